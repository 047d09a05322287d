"""Eight instances of combinatorial pure exploration: COCI, uniform sampling and CLUCB on the same samples.

The best arm, the best two, water planning, sites, opinion sampling, paths, spanning trees and matchings; Bernoulli arms
(opinion sampling: also a uniform one), delta = 0.1. The paper proves bounds and has no experiments. Pulls are compared
with the bounds and with the law of runs without noise, whose hardness is H = sum 1/Lambda_i^2 for COCI and H_U = m /
min Lambda^2 for uniform sampling.

Every instance is also run once without noise: each sample is theta (opinion sampling, whose theta are variances: the
estimates are held at theta).
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments import study
from experiments.claims import all_of, column, in_range
from experiments.cpe import common
from experiments.cpe.common import DELTA, RULES, Task
from experiments.figures import marks, split, ticks
from experiments.report import Claim, Columns, Report, number
from experiments.settings import Settings
from jaxbandits import cpe
from jaxbandits.base import Algorithm, PyTree
from jaxbandits.cpe import Instance
from jaxbandits.cpe._shared.estimate import Moments
from jaxbandits.numerics.compensated import Sum

NAMES = ("best5", "top2of6", "water3", "sites5", "osa4", "paths5", "trees5", "matching3")
QUICK = ("best5", "osa4", "paths5")
ORDER = ("CLUCB", "COCI", "uniform")  # order by pulls


def run(options: Settings) -> Report:
    replicates = options.seeds or (40 if options.quick else 400)
    cases = {name: getattr(cpe, name)() for name in (QUICK if options.quick else NAMES)}

    def extra(name: str, rule: str) -> dict[str, Any]:
        watched = common.WATCHED if rule == "COCI" else {"leap": 1}
        return watched | {"adapt": held if cases[name].tau == 2 else None}

    pairs = {name: [case, common.without_noise(case)] for name, case in cases.items()}
    sweeps = common.compared("cpe eight: {}", pairs, extra=extra, options=options, replicates=[replicates, 1])
    # The last run of a sweep has no noise.
    ends = {key: str(sweep.columns["pulls"][-1]) for key, sweep in sweeps.items()}
    noisy: dict[Any, Columns] = {
        key: {name: x[:-1] for name, x in sweep.columns.items()} for key, sweep in sweeps.items()
    }
    cells = study.collected({"name": cases, "rule": RULES}, noisy, name="{name}: {rule}")
    lines = cells.lines
    laws = common.laws(cases.values())

    over, largest = {}, {}
    for rule, law in laws.items():
        over[rule] = dict(zip(cases, [lines[name, rule].ours for name in cases] / law.root, strict=True))
        longest = [noisy[name, rule]["pulls"].max() for name in cases]
        largest[rule] = dict(zip(cases, longest / law.bound, strict=True))
    arms = {name: worst_arm(case, noisy[name, "COCI"]) for name, case in cases.items()}
    inside = column([noisy[name, "COCI"] for name in cases], "inside")
    both = {name: [noisy[name, rule]["pulls"] for rule in laws] for name in cases}
    alike = {name: np.corrcoef(*pulls)[0, 1] for name, pulls in both.items()}
    pulls_by_rule = [[lines[name, rule].ours for rule in ORDER if (name, rule) in lines] for name in cases]
    saved = [1 - pulls[0] / pulls[1] for pulls in pulls_by_rule if len(pulls) == len(ORDER)]

    def draw(figure) -> None:
        left, right = split(figure, (10, 5), 1, 2)
        H = np.geomspace(80, 1200, 100)
        theory = common.law(H, 5)
        left.plot(H, theory.root, "k-", lw=1.2, label="law: T = m + H/2 ln(4 T³/δ)")
        left.plot(H, theory.bound, color="k", lw=1.2, ls=":", label="Theorem 1, Theorem 4")
        for style, rule in enumerate(RULES):
            places = np.array([n for n, name in enumerate(cases) if (name, rule) in lines])
            y, se = np.array([(line.ours, line.se) for (_, other), line in lines.items() if other == rule]).T
            against, label = ("uniform", "H_U") if rule == "uniform" else ("COCI", "H")
            left.errorbar(laws[against].H[places], y, yerr=2 * se, label=f"{rule}, against ${label}$", **marks(style))
            roots = laws["COCI"].root[places]
            right.errorbar(y / roots, -places, xerr=2 * se / roots, label=rule, **marks(style))
        left.set(xscale="log", yscale="log", xlabel="hardness", title="Pulls follow the law")
        left.set_ylabel("pulls until the stop (T)")
        ticks(left, (100, 200, 400, 800))
        left.legend(fontsize=9)
        right.axvline(1, color="k", lw=1.2)
        right.set_yticks(-np.arange(len(cases)), list(cases))
        right.set(xlabel="pulls / root of COCI's law", title="Side by side", xlim=(0.75, 2.45))
        right.grid(axis="y", visible=False)
        right.legend(loc="upper right", fontsize=9)

    def row(n: int) -> dict[str, str]:
        H, H_U = (law.H[n] for law in laws.values())
        return {"instance": [*cases][n], "H": f"{H:.2f}", "H_U/H": f"{H_U / H:.2f}"}

    without_noise = "without noise: COCI / uniform / CLUCB"
    return study.report(
        "Eight instances of combinatorial pure exploration: pulls until the stop, delta = 0.1",
        cells,
        [
            in_range("mean T of COCI / root of its law", over["COCI"], 0.90, 1.06),
            in_range("mean T of uniform / root with H_U", over["uniform"], 0.93, 1.10),
            all_of(
                "CLUCB, where it applies, needs fewer pulls than COCI, and COCI fewer than uniform",
                np.array([pulls == sorted(pulls) for pulls in pulls_by_rule]),
                f"; CLUCB saves {min(saved):.0%} to {max(saved):.0%} of COCI's",
            ),
            in_range("T of COCI / its bound (Theorem 1), the largest of all runs,", largest["COCI"], 0, 1),
            in_range("T of uniform / its bound (Theorem 4), the largest of all runs,", largest["uniform"], 0, 1),
            in_range("T_i of COCI / its bound (equation 6), the largest of all runs and arms,", arms, 0, 1),
            Claim(
                "xi (theta stays in the box in every round) has probability 1 - delta at least",
                f"it held in {number(int(inside.sum()))} of {number(len(inside))} runs of COCI",
                inside.mean() >= 1 - DELTA,
            ),
            common.all_right(noisy.values()),
            in_range("the correlation of T of COCI and of uniform over the runs", alike, 0.7, 1, digits=2),
        ],
        draw=draw,
        notes=(
            "The law is the root of T = m + (H/2) ln(4 T^3 / (tau delta)): without noise arm i leaves the candidates "
            "when its confidence radius reaches Lambda_i. Some runs end a little earlier, because arms that have left "
            "are not pulled again as the radii grow with ln T. Others end later, where several constraints of about "
            "the same Lambda must all be met.",
            "CLUCB, with COCI's radius, stops before COCI, because it tests only the strongest rival of the best "
            "decision. It does not apply to levels beyond 0 and 1, nor to variances.",
        ),
        grid=[
            shown | {without_noise: " / ".join(ends.get((shown["instance"], rule), "-") for rule in RULES)}
            for shown in common.grid(cells, "name", laws, row)
        ],
    )


def held(algorithm: Algorithm, task: Task) -> Algorithm:
    """Fixes the estimates of variances at theta, whatever the samples are, in the runs of instance 1."""

    def observe(state: Any, action: PyTree, observation: PyTree) -> Any:
        state = algorithm.observe(state, action, observation)
        counts, sums, _ = state.statistics
        zeros, theta = jnp.zeros_like(task["theta"]), task["theta"]
        squares = theta * jnp.maximum(counts - 1, 0).astype(theta.dtype)
        true = Moments(Sum(zeros, zeros), Sum(squares, zeros))
        kept = jax.tree.map(lambda x, y: jnp.where(task["instance"] == 1, x, y), true, sums)
        return state._replace(statistics=state.statistics._replace(sums=kept))

    return algorithm._replace(observe=observe)


def worst_arm(case: Instance, columns: Columns) -> float:
    """Computes the largest ratio of an arm's pulls to its bound, over arms and runs."""
    radii = cpe.consistent_radius(case.problem, case.theta)
    bounds = jax.vmap(partial(cpe.arm_bound, radii, tau=case.tau, delta=DELTA))(columns["pulls"])
    return float(np.max(columns["counts"] / np.asarray(bounds)))
