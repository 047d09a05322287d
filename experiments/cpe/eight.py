"""Eight instances of combinatorial pure exploration: COCI, uniform sampling and CLUCB on the same samples.

The best arm, the best two, water planning, sites, opinion sampling, paths, spanning trees and matchings; Bernoulli arms
(opinion sampling: also a uniform one), delta = 0.1. The paper proves bounds and has no experiments: pulls are held
against the bounds, and against the law of runs without noise, in which H = sum 1/Lambda_i^2 stands for COCI and
H_U = m / min Lambda^2 for uniform sampling.

Every instance is also run once without noise: each sample is theta (opinion sampling, whose theta are variances: the
estimates are held at theta).
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.claims import all_of, column, in_range
from experiments.cpe import common
from experiments.cpe.common import DELTA, RULES, Law, Task
from experiments.figures import marks, split, ticks
from experiments.report import Claim, Columns, Line, Report, joined, line_of, number
from experiments.settings import Settings
from jaxbandits import Results, cpe
from jaxbandits.base import Algorithm, PyTree
from jaxbandits.cpe import Instance
from jaxbandits.cpe._estimate import Moments
from jaxbandits.numerics.compensated import Sum

NAMES = ("best5", "top2of6", "water3", "sites5", "osa4", "paths5", "trees5", "matching3")
QUICK = ("best5", "osa4", "paths5")
ORDER = ("CLUCB", "COCI", "uniform")  # of the pulls that they need

Sweeps = dict[tuple[str, str], Results]  # (instance, rule)
Lines = dict[tuple[str, str], Line]
Laws = dict[str, dict[str, Law]]  # instance -> of COCI and of uniform sampling


def run(options: Settings) -> Report:
    replicates = options.seeds or (40 if options.quick else 400)
    cases = {name: getattr(cpe, name)() for name in (QUICK if options.quick else NAMES)}
    laws = common.laws(cases)
    sweeps: Sweeps = {
        (name, rule): common.runs(
            f"cpe eight: {name}",
            [case, common.without_noise(case)],
            rule,
            options=options,
            replicates=[replicates, 1],
            leap=1,
            adapt=held if case.tau == 2 else None,
            **({"curves": common.xi, "metrics": common.was_inside} if rule == "COCI" else {}),
        )
        for name, case in cases.items()
        for rule in RULES
        if not common.refuses(rule, case)
    }
    noisy, exact = ({key: select(sweep, instance) for key, sweep in sweeps.items()} for instance in (0, 1))
    ends = {key: str(sweep.columns["pulls"][0]) for key, sweep in exact.items()}
    lines: Lines = {key: line_of(": ".join(key), sweep) for key, sweep in noisy.items()}
    return Report(
        "Eight instances of combinatorial pure exploration: pulls until the stop, delta = 0.1",
        list(lines.values()),
        [
            *law_claims(lines, laws),
            *bound_claims(noisy, cases, laws),
            common.all_right(noisy.values()),
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
                "H": f"{law['COCI'].H:.2f}",
                "H_U/H": f"{law['uniform'].H / law['COCI'].H:.2f}",
                **common.cells(law, {rule: lines[name, rule] for rule in RULES if (name, rule) in lines}),
                "without noise: COCI / uniform / CLUCB": " / ".join(ends.get((name, rule), "-") for rule in RULES),
            }
            for name, law in laws.items()
        ],
    )


def select(sweep: Results, instance: int) -> Results:
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


def law_claims(lines: Lines, laws: Laws) -> list[Claim]:
    over = {
        rule: {name: lines[name, rule].ours / law[rule].root for name, law in laws.items()}
        for rule in ("COCI", "uniform")
    }
    found = {name: [lines[name, rule].ours for rule in ORDER if (name, rule) in lines] for name in laws}
    order = "CLUCB, where it applies, needs fewer pulls than COCI, and COCI fewer than uniform"
    ordered = all_of(order, np.array([pulls == sorted(pulls) for pulls in found.values()]))
    saved = [1 - pulls[0] / pulls[1] for pulls in found.values() if len(pulls) == len(ORDER)]
    return [
        in_range("mean T of COCI / root of its law", over["COCI"], 0.90, 1.06),
        in_range("mean T of uniform / root with H_U", over["uniform"], 0.93, 1.10),
        ordered._replace(measured=f"{ordered.measured}; CLUCB saves {min(saved):.0%} to {max(saved):.0%} of COCI's"),
    ]


def bound_claims(noisy: Sweeps, cases: dict[str, Instance], laws: Laws) -> list[Claim]:
    """The paper's bounds, run by run, and xi."""
    largest = {
        rule: {name: noisy[name, rule].columns["pulls"].max() / law[rule].bound for name, law in laws.items()}
        for rule in ("COCI", "uniform")
    }
    inside = column([noisy[name, "COCI"] for name in cases], "inside")
    arms = {name: worst_arm(case, noisy[name, "COCI"].columns) for name, case in cases.items()}
    return [
        in_range("T of COCI / its bound (Theorem 1), the largest of all runs,", largest["COCI"], 0, 1),
        in_range("T of uniform / its bound (Theorem 4), the largest of all runs,", largest["uniform"], 0, 1),
        in_range("T_i of COCI / its bound (equation 6), the largest of all runs and arms,", arms, 0, 1),
        Claim(
            "xi (theta stays in the box in every round) has probability 1 - delta at least",
            f"it held in {number(int(inside.sum()))} of {number(len(inside))} runs of COCI",
            inside.mean() >= 1 - DELTA,
        ),
    ]


def worst_arm(case: Instance, columns: Columns) -> float:
    """The largest share of its bound that an arm was pulled in any run."""
    radii = cpe.consistent_radius(case.problem, case.theta)
    bounds = jax.vmap(partial(cpe.arm_bound, radii, tau=case.tau, delta=DELTA))(columns["pulls"])
    return float(np.max(columns["counts"] / np.asarray(bounds)))


def same_samples(noisy: Sweeps) -> Claim:
    pulls = {key: sweep.columns["pulls"] for key, sweep in noisy.items()}
    correlations = {
        name: np.corrcoef(pulls[name, "COCI"], pulls[name, rule])[0, 1] for name, rule in pulls if rule == "uniform"
    }
    return in_range("the correlation of T of COCI and of uniform over the runs", correlations, 0.7, 1, digits=2)


# How it is shown


def draw(figure: Any, *, lines: Lines, laws: Laws) -> None:
    left, right = split(figure, (10, 5), 1, 2)
    H = np.geomspace(80, 1200, 100)
    theory = common.law(H, 5)
    left.plot(H, theory.root, "k-", lw=1.2, label="law: T = m + H/2 ln(4 T³/δ)")
    left.plot(H, theory.bound, color="k", lw=1.2, ls=":", label="Theorem 1, Theorem 4")
    for style, rule in enumerate(RULES):
        against = "uniform" if rule == "uniform" else "COCI"
        shown = {name: lines[name, rule] for name in laws if (name, rule) in lines}
        x, roots = np.array([(laws[name][against].H, laws[name]["COCI"].root) for name in shown]).T
        y, se = np.array([(line.ours, line.se) for line in shown.values()]).T
        places = np.array([list(laws).index(name) for name in shown])
        label = f"{rule}, against ${'H_U' if rule == 'uniform' else 'H'}$"
        left.errorbar(x, y, yerr=2 * se, label=label, **marks(style))
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
