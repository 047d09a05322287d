"""Eight instances of combinatorial pure exploration: COCI, uniform sampling and CLUCB on the same samples.

The best arm, the best two, water planning, sites, opinion sampling, paths, spanning trees and matchings; Bernoulli arms
(opinion sampling: also a uniform one), delta = 0.1. The paper proves bounds and has no experiments. Without noise COCI
stops at T = m + (H/2) ln(4 T^3 / (tau delta)), H = sum 1/Lambda_i^2, uniform sampling at the same with m / min Lambda^2
in place of H: the pulls with noise are held against these laws, and against the bounds.

Every instance is also run once without noise: each sample is theta (opinion sampling, whose theta are variances: the
estimates are held at theta). These runs have known ends, to the pull.
"""

from argparse import Namespace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments import _cpe
from experiments._cpe import DELTA, Law, Task, cell, in_range
from experiments.report import STYLES, Claim, Line, Report, joined, line, number
from jaxbandits import cpe
from jaxbandits.base import Algorithm, PyTree
from jaxbandits.cpe import Instance
from jaxbandits.cpe._estimate import Moments
from jaxbandits.numerics.compensated import Sum

NAMES = ("best5", "top2of6", "water3", "sites5", "osa4", "paths5", "trees5", "matching3")
QUICK = ("best5", "osa4", "paths5")
RULES = tuple(_cpe.RULES)
# T without noise, of COCI, uniform sampling, CLUCB; and COCI's pulls of every arm.
NOISE_FREE = {
    "best5": (2605, 4642, 2293),
    "top2of6": (2727, 5211, 2302),
    "water3": (2854, 4321),
    "sites5": (1453, 1616, 1404),
    "osa4": (6671, 12803),
    "paths5": (1769, 2365, 1734),
    "trees5": (2513, 4643, 2269),
    "matching3": (3821, 5955, 3323),
}
NOISE_FREE_COUNTS = {
    "best5": (874, 873, 590, 191, 77),
    "top2of6": (323, 812, 811, 489, 174, 118),
    "water3": (1378, 1378, 98),
    "sites5": (320, 248, 247, 319, 319),
    "osa4": (395, 3002, 3001, 273),
    "paths5": (119, 119, 276, 275, 327, 327, 326),
    "trees5": (157, 870, 870, 194, 422),
    "matching3": (267, 246, 267, 267, 632, 632, 246, 632, 632),
}
# Mean pulls with noise, by another program in NumPy, on 400 runs.
OTHER_RUNS = 400
OTHER = {
    "best5": (2600, 4635, 2281),
    "top2of6": (2720, 5144, 2283),
    "water3": (2851, 4308),
    "sites5": (1506, 1731, 1379),
    "osa4": (6672, 12804),
    "paths5": (1776, 2382, 1719),
    "trees5": (2484, 4522, 2226),
    "matching3": (3854, 5995, 3342),
}

Sweeps = dict[tuple[str, str], jaxbandits.Results]  # (instance, rule)
Lines = dict[tuple[str, str], Line]


def run(options: Namespace) -> Report:
    names = QUICK if options.quick else NAMES
    replicates = options.seeds or (40 if options.quick else 400)
    cases = {name: getattr(cpe, name)() for name in names}
    laws = {name: _cpe.laws(case)[0] for name, case in cases.items()}
    sweeps: Sweeps = {
        (name, rule): _cpe.runs(
            f"cpe eight: {name}",
            [case, _cpe.without_noise(case)],
            rule,
            options=options,
            replicates=[replicates, 1],
            leap=1,
            adapt=partial(around, case=case, rule=rule),
            metrics=_cpe.was_inside if rule == "COCI" else None,
        )
        for name, case in cases.items()
        for rule in RULES
        if not _cpe.refuses(rule, case)
    }
    noisy = {key: select(sweep, 0) for key, sweep in sweeps.items()}
    exact = {key: select(sweep, 1) for key, sweep in sweeps.items()}
    lines: Lines = {
        key: line(": ".join(key), sweep.columns["pulls"], status=sweep.columns["status"])
        for key, sweep in noisy.items()
    }
    return Report(
        "Eight instances of combinatorial pure exploration: pulls until the stop, delta = 0.1",
        list(lines.values()),
        [
            *noise_free_claims(exact),
            *law_claims(lines, laws),
            *bound_claims(noisy, cases, laws),
            _cpe.all_right(list(noisy.values())),
            same_samples(noisy),
            _cpe.same_as_the_other(
                lines,
                {
                    (name, rule): (mean, OTHER_RUNS)
                    for name, means in OTHER.items()
                    for rule, mean in zip(RULES, means, strict=False)
                },
            ),
        ],
        joined(
            {
                rule: joined({name: sweeps[name, rule].columns for name in names if (name, rule) in sweeps}, "problem")
                for rule in RULES
            }
        ),
        partial(draw, lines=lines, laws=laws),
        notes=(
            "The law is the root of T = m + (H/2) ln(4 T^3 / (tau delta)): without noise arm i leaves the candidates "
            "when its confidence radius reaches Lambda_i. Runs end a little before it, because arms that have left are "
            "not pulled again as the radii grow with ln T, or after it, where several constraints of about the same "
            "Lambda must all be met.",
            "CLUCB, with COCI's radius, stops before COCI: it asks only about the strongest rival of the best decision."
            " It is not for levels beyond 0 and 1, nor for variances.",
        ),
        grid=grid(lines, laws, exact),
    )


def select(sweep: jaxbandits.Results, instance: int) -> jaxbandits.Results:
    """The runs of one instance: 0 with noise, 1 without."""
    chosen = sweep.columns["instance"] == instance
    return sweep._replace(columns={name: values[chosen] for name, values in sweep.columns.items()})


def around(algorithm: Algorithm, task: Task, *, case: Instance, rule: str) -> Algorithm:
    """Watches xi for COCI, and takes the noise from estimates of variances in the run that has none."""
    if case.tau == 2:
        algorithm = held(algorithm, task)
    return _cpe.watched(algorithm, task, tau=case.tau) if rule == "COCI" else algorithm


def held(algorithm: Algorithm, task: Task) -> Algorithm:
    """Holds the estimates of variances at theta, whatever the samples are, in the runs of instance 1."""

    def observe(state: Any, action: PyTree, observation: PyTree) -> Any:
        state = algorithm.observe(state, action, observation)
        counts, sums, _ = state.statistics
        zeros, theta = jnp.zeros_like(task["theta"]), task["theta"]
        squares = theta * jnp.maximum(counts - 1, 0).astype(theta.dtype)
        true = Moments(Sum(zeros, zeros), Sum(squares, zeros))
        kept = jax.tree.map(lambda x, y: jnp.where(task["instance"] == 1, x, y), true, sums)
        return state._replace(statistics=state.statistics._replace(sums=kept))

    return algorithm._replace(observe=observe)


# What must hold


def noise_free_claims(exact: Sweeps) -> list[Claim]:
    """T of every rule and COCI's counts, to the pull."""
    times = {key: int(sweep.columns["pulls"][0]) for key, sweep in exact.items()}
    counts = {
        name: tuple(sweep.columns["counts"][0].tolist()) for (name, rule), sweep in exact.items() if rule == "COCI"
    }
    wrong = [
        f"{name}, {rule}: {found}, not {NOISE_FREE[name][RULES.index(rule)]}"
        for (name, rule), found in times.items()
        if found != NOISE_FREE[name][RULES.index(rule)]
    ]
    wrong_counts = [f"{name}: {found}" for name, found in counts.items() if found != NOISE_FREE_COUNTS[name]]
    return [
        Claim(
            "without noise every rule stops at the known T",
            "; ".join(wrong) or f"{len(times)} of {len(times)}",
            not wrong,
        ),
        Claim(
            "without noise COCI's pulls of every arm are the known ones",
            "; ".join(wrong_counts) or f"{len(counts)} of {len(counts)}",
            not wrong_counts,
        ),
    ]


def law_claims(lines: Lines, laws: dict[str, Law]) -> list[Claim]:
    """The implicit law, and who needs the fewest pulls."""

    def ratios(rule: str) -> dict[str, float]:
        return {name: lines[name, rule].ours / getattr(law, rule.lower()) for name, law in laws.items()}

    ordered = [name for name in laws if in_order(lines, name)]
    saved = {
        name: 1 - lines[name, "CLUCB"].ours / lines[name, "COCI"].ours for name in laws if (name, "CLUCB") in lines
    }
    return [
        in_range("mean T of COCI / root of its law", ratios("COCI"), 0.90, 1.06),
        in_range("mean T of uniform / root with H_U", ratios("uniform"), 0.93, 1.10),
        Claim(
            "CLUCB, where it applies, needs fewer pulls than COCI, and COCI fewer than uniform",
            f"{len(ordered)} of {len(laws)} instances; CLUCB saves {min(saved.values()):.0%} to "
            f"{max(saved.values()):.0%} of COCI's",
            len(ordered) == len(laws),
        ),
    ]


def in_order(lines: Lines, name: str) -> bool:
    """CLUCB < COCI < uniform, without CLUCB where it does not apply."""
    means = [lines[name, rule].ours for rule in ("CLUCB", "COCI", "uniform") if (name, rule) in lines]
    return means == sorted(means)


def bound_claims(noisy: Sweeps, cases: dict[str, Instance], laws: dict[str, Law]) -> list[Claim]:
    """The paper's bounds, run by run, and xi."""
    shares, arms = {}, {}
    inside = total = 0
    for name, law in laws.items():
        columns = noisy[name, "COCI"].columns
        shares[name] = columns["pulls"].max() / law.bound
        per_arm = jax.vmap(partial(cpe.arm_bound, law.radii, tau=cases[name].tau, delta=DELTA))(columns["pulls"])
        arms[name] = float(np.max(columns["counts"] / np.asarray(per_arm)))
        inside, total = inside + int(columns["inside"].sum()), total + len(columns["inside"])
    uniform = {name: noisy[name, "uniform"].columns["pulls"].max() / law.bound_uniform for name, law in laws.items()}
    return [
        in_range("T of COCI / its bound (Theorem 1), the largest of all runs,", shares, 0, 1),
        in_range("T of uniform / its bound (Theorem 4), the largest of all runs,", uniform, 0, 1),
        in_range("T_i of COCI / its bound (equation 6), the largest of all runs and arms,", arms, 0, 1),
        Claim(
            "xi (theta stays in the box in every round) has probability 1 - delta at least",
            f"it held in {number(inside)} of {number(total)} runs of COCI",
            inside >= (1 - DELTA) * total,
        ),
    ]


def same_samples(noisy: Sweeps) -> Claim:
    """Common samples tie the rules together."""
    correlations = {
        name: float(np.corrcoef(noisy[name, "COCI"].columns["pulls"], sweep.columns["pulls"])[0, 1])
        for (name, rule), sweep in noisy.items()
        if rule == "uniform"
    }
    return in_range("the correlation of T of COCI and of uniform over the runs", correlations, 0.7, 1, digits=2)


# How it is shown


def grid(lines: Lines, laws: dict[str, Law], exact: Sweeps) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    def pulls(name: str, rule: str) -> str:
        return cell(lines[name, rule]) if (name, rule) in lines else "-"

    def ends(name: str) -> str:
        found = [exact[name, rule].columns["pulls"][0] if (name, rule) in exact else "-" for rule in RULES]
        return " / ".join(map(str, found))

    rows = [
        (
            name,
            f"{law.H:.2f}",
            f"{law.H_U / law.H:.2f}",
            number(round(law.bound)),
            number(round(law.coci)),
            *(pulls(name, rule) for rule in RULES),
            str(lines[name, "COCI"].runs),
            ends(name),
        )
        for name, law in laws.items()
    ]
    return (
        "instance",
        "H",
        "H_U/H",
        "Theorem 1",
        "law",
        *RULES,
        "runs",
        "without noise: COCI / uniform / CLUCB",
    ), rows


def draw(figure: Any, *, lines: Lines, laws: dict[str, Law]) -> None:
    figure.set_size_inches(10, 5)
    left, right = figure.subplots(1, 2)
    H = np.geomspace(80, 1200, 100)
    left.plot(H, _cpe.laws_at(H, 5, 1, DELTA, 0.5), "k-", lw=1.2, label="law: T = m + H/2 ln(4 T³/δ)")
    left.plot(H, _cpe.bounds_at(H, 5, 1, DELTA), color="k", lw=1.2, ls=":", label="Theorem 1, Theorem 4")
    for style, rule in enumerate(RULES):
        marks = STYLES[style] | {"linestyle": ""}
        shown = [name for name in laws if (name, rule) in lines]
        x = [laws[name].H_U if rule == "uniform" else laws[name].H for name in shown]
        y = [lines[name, rule].ours for name in shown]
        bars = [2 * lines[name, rule].se for name in shown]
        against = "H_U" if rule == "uniform" else "H"
        left.errorbar(x, y, yerr=bars, mfc="w", label=f"{rule}, against ${against}$", **marks)
        places = np.array([list(laws).index(name) for name in shown])
        roots = np.array([laws[name].coci for name in shown])
        right.errorbar(np.divide(y, roots), -places, xerr=np.divide(bars, roots), mfc="w", label=rule, **marks)
    left.set(
        xscale="log", yscale="log", xlabel="hardness", ylabel="pulls until the stop (T)", title="Pulls follow the law"
    )
    left.set(xticks=(100, 200, 400, 800), xticklabels=("100", "200", "400", "800"))
    left.minorticks_off()
    left.legend(fontsize=9)
    right.axvline(1, color="k", lw=1.2)
    right.set_yticks(-np.arange(len(laws)), list(laws))
    right.set(xlabel="pulls / root of COCI's law", title="Side by side", xlim=(0.75, 2.45))
    right.grid(axis="y", visible=False)
    right.legend(loc="upper right", fontsize=9)
