"""Eight instances of combinatorial pure exploration: COCI, uniform sampling and CLUCB on the same samples.

The best arm, the best two, water planning, sites, opinion sampling, paths, spanning trees and matchings; Bernoulli arms
(opinion sampling: also a uniform one), delta = 0.1. The paper proves bounds and has no experiments. Without noise COCI
stops at T = m + (H/2) ln(4 T^3 / (tau delta)), H = sum 1/Lambda_i^2, uniform sampling at the same with m / min Lambda^2
in place of H: the pulls with noise are held against these laws, and against the bounds.

Every instance is also run once without noise: each sample is theta (opinion sampling, whose theta are variances: the
estimates are held at theta).
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments.claims import all_of, in_range
from experiments.cpe import common
from experiments.cpe.common import DELTA, Law, Task
from experiments.figures import marks, split, ticks
from experiments.report import Claim, Line, Report, joined, line_of, number, plus_minus
from experiments.settings import Settings
from jaxbandits import cpe
from jaxbandits.base import Algorithm, PyTree
from jaxbandits.cpe import Instance
from jaxbandits.cpe._estimate import Moments
from jaxbandits.numerics.compensated import Sum

NAMES = ("best5", "top2of6", "water3", "sites5", "osa4", "paths5", "trees5", "matching3")
QUICK = ("best5", "osa4", "paths5")
RULES = tuple(common.RULES)

Sweeps = dict[tuple[str, str], jaxbandits.Results]  # (instance, rule)
Lines = dict[tuple[str, str], Line]


def run(options: Settings) -> Report:
    names = QUICK if options.quick else NAMES
    replicates = options.seeds or (40 if options.quick else 400)
    cases = {name: getattr(cpe, name)() for name in names}
    laws = {name: common.laws(case)[0] for name, case in cases.items()}
    sweeps: Sweeps = {
        (name, rule): common.runs(
            f"cpe eight: {name}",
            [case, common.without_noise(case)],
            rule,
            options=options,
            replicates=[replicates, 1],
            leap=1,
            adapt=held if case.tau == 2 else None,
            curves=partial(common.xi, tau=case.tau) if rule == "COCI" else None,
            metrics=common.was_inside if rule == "COCI" else None,
        )
        for name, case in cases.items()
        for rule in RULES
        if not common.refuses(rule, case)
    }
    noisy, exact = ({key: select(sweep, instance) for key, sweep in sweeps.items()} for instance in (0, 1))
    lines: Lines = {key: line_of(": ".join(key), sweep) for key, sweep in noisy.items()}

    def ends(name: str) -> str:
        found = [exact[name, rule].columns["pulls"][0] if (name, rule) in exact else "-" for rule in RULES]
        return " / ".join(map(str, found))

    return Report(
        "Eight instances of combinatorial pure exploration: pulls until the stop, delta = 0.1",
        list(lines.values()),
        [
            *law_claims(lines, laws),
            *bound_claims(noisy, cases, laws),
            common.all_right(list(noisy.values())),
            same_samples(noisy),
        ],
        joined(sweeps),
        partial(draw, lines=lines, laws=laws),
        notes=(
            "The law is the root of T = m + (H/2) ln(4 T^3 / (tau delta)): without noise arm i leaves the candidates "
            "when its confidence radius reaches Lambda_i. Runs end a little before it, because arms that have left are "
            "not pulled again as the radii grow with ln T, or after it, where several constraints of about the same "
            "Lambda must all be met.",
            "CLUCB, with COCI's radius, stops before COCI: it asks only about the strongest rival of the best decision."
            " It is not for levels beyond 0 and 1, nor for variances.",
        ),
        grid=[
            {
                "instance": name,
                "H": f"{law.H:.2f}",
                "H_U/H": f"{law.H_U / law.H:.2f}",
                "Theorem 1": number(round(law.bound)),
                "law": number(round(law.coci)),
                **{rule: plus_minus(lines[name, rule]) if (name, rule) in lines else "-" for rule in RULES},
                "runs": str(lines[name, "COCI"].runs),
                "without noise: COCI / uniform / CLUCB": ends(name),
            }
            for name, law in laws.items()
        ],
    )


def select(sweep: jaxbandits.Results, instance: int) -> jaxbandits.Results:
    """The runs of one instance: 0 with noise, 1 without."""
    chosen = sweep.columns["instance"] == instance
    return sweep._replace(columns={name: values[chosen] for name, values in sweep.columns.items()})


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


def law_claims(lines: Lines, laws: dict[str, Law]) -> list[Claim]:
    def ratios(rule: str) -> dict[str, float]:
        return {name: lines[name, rule].ours / law.of(rule) for name, law in laws.items()}

    def in_order(name: str) -> bool:
        found = [lines[name, rule].ours for rule in ("CLUCB", "COCI", "uniform") if (name, rule) in lines]
        return found == sorted(found)

    saved = [1 - lines[n, "CLUCB"].ours / lines[n, "COCI"].ours for n in laws if (n, "CLUCB") in lines]
    order = "CLUCB, where it applies, needs fewer pulls than COCI, and COCI fewer than uniform"
    ordered = all_of(order, np.array([in_order(name) for name in laws]))
    return [
        in_range("mean T of COCI / root of its law", ratios("COCI"), 0.90, 1.06),
        in_range("mean T of uniform / root with H_U", ratios("uniform"), 0.93, 1.10),
        ordered._replace(measured=f"{ordered.measured}; CLUCB saves {min(saved):.0%} to {max(saved):.0%} of COCI's"),
    ]


def bound_claims(noisy: Sweeps, cases: dict[str, Instance], laws: dict[str, Law]) -> list[Claim]:
    """The paper's bounds, run by run, and xi."""
    coci, uniform = (
        {name: noisy[name, rule].columns["pulls"].max() / law.bound_of(rule) for name, law in laws.items()}
        for rule in ("COCI", "uniform")
    )
    arms = {}
    for name, law in laws.items():
        columns = noisy[name, "COCI"].columns
        per_arm = jax.vmap(partial(cpe.arm_bound, law.radii, tau=cases[name].tau, delta=DELTA))(columns["pulls"])
        arms[name] = float(np.max(columns["counts"] / np.asarray(per_arm)))
    inside = np.concatenate([noisy[name, "COCI"].columns["inside"] for name in laws])
    return [
        in_range("T of COCI / its bound (Theorem 1), the largest of all runs,", coci, 0, 1),
        in_range("T of uniform / its bound (Theorem 4), the largest of all runs,", uniform, 0, 1),
        in_range("T_i of COCI / its bound (equation 6), the largest of all runs and arms,", arms, 0, 1),
        Claim(
            "xi (theta stays in the box in every round) has probability 1 - delta at least",
            f"it held in {number(int(inside.sum()))} of {number(len(inside))} runs of COCI",
            inside.mean() >= 1 - DELTA,
        ),
    ]


def same_samples(noisy: Sweeps) -> Claim:
    correlations = {
        name: float(np.corrcoef(noisy[name, "COCI"].columns["pulls"], sweep.columns["pulls"])[0, 1])
        for (name, rule), sweep in noisy.items()
        if rule == "uniform"
    }
    return in_range("the correlation of T of COCI and of uniform over the runs", correlations, 0.7, 1, digits=2)


# How it is shown


def draw(figure: Any, *, lines: Lines, laws: dict[str, Law]) -> None:
    left, right = split(figure, (10, 5), 1, 2)
    H = np.geomspace(80, 1200, 100)
    left.plot(H, common.laws_at(H, 5, 1, DELTA, 0.5), "k-", lw=1.2, label="law: T = m + H/2 ln(4 T³/δ)")
    left.plot(H, common.bounds_at(H, 5, 1, DELTA), color="k", lw=1.2, ls=":", label="Theorem 1, Theorem 4")
    for style, rule in enumerate(RULES):
        shown = [name for name in laws if (name, rule) in lines]
        x = [laws[name].H_U if rule == "uniform" else laws[name].H for name in shown]
        y, se = np.array([(lines[name, rule].ours, lines[name, rule].se) for name in shown]).T
        roots = np.array([laws[name].coci for name in shown])
        against = "H_U" if rule == "uniform" else "H"
        left.errorbar(x, y, yerr=2 * se, label=f"{rule}, against ${against}$", **marks(style))
        places = np.array([list(laws).index(name) for name in shown])
        right.errorbar(y / roots, -places, xerr=2 * se / roots, label=rule, **marks(style))
    left.set(xscale="log", yscale="log", xlabel="hardness", title="Pulls follow the law")
    left.set_ylabel("pulls until the stop (T)")
    ticks(left, (100, 200, 400, 800))
    left.legend(fontsize=9)
    right.axvline(1, color="k", lw=1.2)
    right.set_yticks(-np.arange(len(laws)), list(laws))
    right.set(xlabel="pulls / root of COCI's law", title="Side by side", xlim=(0.75, 2.45))
    right.grid(axis="y", visible=False)
    right.legend(loc="upper right", fontsize=9)
