"""The two-call test where it is not valid: it stops too early, or never.

Raising theta_i must never lower level i nor raise another (the best decision is bi-monotone); then two calls of an
oracle tell whether arm i is a candidate. Best arm, top-k, convex water planning, opinion sampling and matroids are so;
paths, matchings and water planning with concave costs are not. Here all are given to COCI as an `oracle` that is said
to be bi-monotone, beside the exact test. delta = 0.1.

Two paths: edges 01 13 02 23 from node 0 to 3, theta = (.7, .7, .5, .5). Concave costs: three sources of 5, 5 and 10
units, demand 10, f1 = f2 = y + 1 - exp(-2y), f3 = y + 2 (1 - exp(-2y)), theta = (.7, .7, .4); the exact test, which the
library does not offer for this class, is a linear program for each decision. Boxes: the centre uniform in [0, 1]^m, the
half-width of each arm uniform in [.01, .25].
"""

from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linprog

import jaxbandits
from experiments.claims import all_of
from experiments.cpe import common
from experiments.cpe.common import DELTA
from experiments.figures import STYLES, split
from experiments.report import Claim, Report, joined, line_of, number
from experiments.settings import Settings
from jaxbandits import Status, cpe
from jaxbandits.base import Array
from jaxbandits.cpe import Instance, candidates, consistent_radius, find_bi_monotone_violation, oracle, solve, two_call
from jaxbandits.cpe._problems import Problem

CLASSES = ("paths5", "matching3", "trees5")
BOXES = 6000
NAMED = {"matching3": 0.16, "paths5": 0.21, "two paths": 0.15}  # half-widths of boxes around theta
LEAST, MOST = 0.01, 0.25  # half-widths of random boxes
HALVES = np.linspace(LEAST, MOST, 13)  # of the figure
CONCAVE_THETA = (0.7, 0.7, 0.4)
CUT = 20_000  # pulls of a run without noise
EARLY = 3  # times too early, at least
BUDGET = 30_000  # pulls of a run with noise


def run(options: Settings) -> Report:
    replicates = options.seeds or (20 if options.quick else 400)
    boxes = 600 if options.quick else BOXES
    cases = {name: getattr(cpe, name)() for name in CLASSES} | {"two paths": two_paths()}
    shares = {name: missed(cases[name], boxes) for name in CLASSES}

    def runs(heading: str, case: Instance, budget: int, replicates: int, test: str) -> jaxbandits.Results:
        settings = {"options": options, "replicates": replicates, "label": test, "leap": 1, "max_rounds": budget}
        return common.runs(f"cpe two-call: {heading}", case, "COCI", **settings)

    tests = {"exact": cases["two paths"], "two calls": dishonest(cases["two paths"])}
    noisy = {name: runs("Bernoulli", case, BUDGET, replicates, name) for name, case in tests.items()}
    judged = {f"two paths, {name}": common.without_noise(case) for name, case in tests.items()}
    judged["concave costs, two calls"] = concave_case()
    found = {
        name: (rounded(np.asarray(consistent_radius(*case[::3]))), ending(runs("constant", case, CUT, 1, name)))
        for name, case in judged.items()
    }
    # The library does not offer the exact test for concave costs.
    found["concave costs, exact"] = rounded(concave_radii()), exact_run()
    seen = {name: named_box(cases[name], half) for name, half in NAMED.items()}
    return Report(
        "The two-call test where the best decision is not bi-monotone, beside the exact one",
        [line_of(f"two paths: {name}", sweep) for name, sweep in noisy.items()],
        [
            *(misses(name, share, boxes) for name, (share, *_) in shares.items()),
            Claim(
                "two calls see only some of the candidates of the boxes around theta, or none",
                "; ".join(f"{name} {two} of {exact}" for name, (exact, two) in seen.items()),
                all(len(two) < len(exact) for exact, two in seen.values()),
            ),
            Claim(
                "without noise the exact test stops, two calls go on for ever",
                "; ".join(f"{name} {end}" for name, (_, end) in found.items()),
                all(end.startswith("stops") == name.endswith("exact") for name, (_, end) in found.items()),
            ),
            *noisy_claims(noisy),
            concave_example(),
            search_claim(cases),
        ],
        joined(noisy, "test"),
        partial(draw, shares=shares, noisy=noisy),
        notes=(
            "What two calls see are candidates, but not all. Their corners move the other edges of a path against "
            "edge i, where the worst case moves them with it: on the two paths they see Lambda twice as large as it "
            "is. The run ends too early, or only some arms are left to pull, and what is not known of the others "
            "keeps them there.",
            "`coci` refuses an oracle that is not said to be bi-monotone; `find_bi_monotone_violation` looks for a "
            "proof that it is not.",
        ),
        grid=[
            *(compared(f"{name}: boxes with missed candidates", "0", f"{x:.1%}") for name, (x, *_) in shares.items()),
            *(compared(f"{name}: candidates in the box +- {NAMED[name]}", *sets) for name, sets in seen.items()),
            *(
                compared(f"{name}: {what}", *(found[f"{name}, {test}"][place] for test in noisy))
                for name in ("two paths", "concave costs")
                for place, what in enumerate(("Lambda", "run without noise"))
            ),
            compared("two paths: T with noise", *map(spread, noisy.values())),
        ],
    )


def compared(what: str, exact: str, two: str) -> dict[str, str]:
    return {"": what, "exact test": exact, "two calls": two}


# The exact test and two calls


def two_paths() -> Instance:
    arms = cpe.bernoulli([0.7, 0.7, 0.5, 0.5])
    return cpe.instance(cpe.st_paths([(0, 1), (1, 3), (0, 2), (2, 3)], 0, 3), arms)


def dishonest(case: Instance) -> Instance:
    """The same with an oracle that is said to be bi-monotone, though it is not."""
    return case._replace(problem=oracle(partial(solve, case.problem), len(case.theta), bi_monotone=True))


def both(problem: Problem, lo: Array, hi: Array) -> tuple[Array, Array]:
    """The candidates of a box by the exact test and by two calls, bool (m,) each."""
    return candidates(problem, lo, hi, solve(problem, lo)), two_call(partial(solve, problem), lo, hi)


def missed(case: Instance, boxes: int) -> list[float]:
    """The share of random boxes where two calls miss a candidate.

    The first is of boxes with random half-widths, then there is one for each of `HALVES`.
    """
    shape = boxes, len(case.theta)
    centre, width = (jax.random.uniform(key, shape) for key in jax.random.split(jax.random.key(0)))
    widths = jnp.stack([LEAST + (MOST - LEAST) * width, *(jnp.full(shape, half) for half in HALVES)])
    lo, hi = (jnp.reshape(corner, (-1, shape[1])) for corner in (centre - widths, centre + widths))
    exact, two = jax.jit(jax.vmap(partial(both, case.problem)))(lo, hi)
    return np.asarray(jnp.any(exact != two, axis=1)).reshape(len(widths), boxes).mean(axis=1).tolist()


def named_box(case: Instance, half: float) -> tuple[str, ...]:
    found = jax.jit(partial(both, case.problem))(case.theta - half, case.theta + half)
    return tuple("{" + ", ".join(map(str, np.flatnonzero(each))) + "}" for each in found)


# Water from three sources of concave cost


def concave_decisions() -> tuple[np.ndarray, np.ndarray]:
    """All ways to take 10 units in lexicographic order, (36, 3), and their costs (36,)."""
    y = np.array([(a, b, 10 - a - b) for a, b in product(range(6), repeat=2)])
    rise = 1 - np.exp(-2.0 * y)
    return y, (y + rise * [1, 1, 2]).sum(axis=1)


def concave_case() -> Instance:
    decisions, costs = (jnp.asarray(values) for values in concave_decisions())

    def best(theta: Array) -> Array:
        return decisions[jnp.argmax(decisions.astype(costs.dtype) @ theta.astype(costs.dtype) - costs)]

    theta = jnp.asarray(CONCAVE_THETA)
    return cpe.instance(oracle(best, 3, bi_monotone=True), cpe.constant(theta))


def reach(radii: np.ndarray) -> np.ndarray:
    """For every decision the least h such that it leads somewhere in the box theta +- h radii, within [0, 1]."""
    decisions, costs = concave_decisions()
    theta = np.array(CONCAVE_THETA)
    around = np.block([[np.eye(3), -radii[:, None]], [-np.eye(3), -radii[:, None]]])
    found = []
    for y, cost in zip(decisions, costs, strict=True):
        leads = np.concatenate([np.pad(decisions - y, ((0, 0), (0, 1))), around])
        most = np.concatenate([costs - cost, theta, -theta])
        solution = linprog([0, 0, 0, 1], leads, most, bounds=[(0, 1)] * 3 + [(0, None)])
        found.append(solution.fun if solution.status == 0 else np.inf)
    return np.array(found)


def concave_radii() -> np.ndarray:
    """Lambda of every source: how far theta must move for another level of it to lead."""
    decisions, _ = concave_decisions()
    far = reach(np.ones(3))
    best = decisions[np.argmin(far)]
    return np.array([far[decisions[:, i] != best[i]].min() for i in range(3)])


def exact_run() -> str:
    """COCI without noise with the exact test on the concave class."""
    decisions, _ = concave_decisions()
    radii = concave_radii()
    counts = np.ones(3, int)
    while True:
        n = counts.sum()
        radius = np.sqrt((np.log(4 / DELTA) + 3 * np.log(n)) / (2 * counts))
        if np.all(radius > radii.max()):
            is_candidate = np.ones(3, bool)  # the box holds one that is wider than every Lambda
        else:
            led = decisions[reach(radius) <= 1]
            is_candidate = np.any(led != led[0], axis=0)
        if not is_candidate.any():
            return told(True, counts)
        counts[np.argmin(np.where(is_candidate, counts, n))] += 1


# What is claimed


def ending(sweep: jaxbandits.Results) -> str:
    """Of one run without noise."""
    return told(sweep.columns["status"][0] == Status.STOPPED, sweep.columns["counts"][0])


def told(stopped: bool, counts: np.ndarray) -> str:
    what = "stops at" if stopped else "still pulls at"
    return f"{what} {number(counts.sum())}, counts {tuple(counts.tolist())}"


def misses(name: str, share: float, boxes: int) -> Claim:
    """Trees are bi-monotone, paths and matchings are not."""
    some = name != "trees5"
    statement = f"{name}: two calls miss candidates of {'some random boxes' if some else 'no random box'}"
    return Claim(statement, f"{share:.3f} of {number(boxes)}", (share > 0) == some)


def noisy_claims(noisy: dict[str, jaxbandits.Results]) -> list[Claim]:
    stopped = {name: sweep.columns["status"] == Status.STOPPED for name, sweep in noisy.items()}
    median = {name: np.median(sweep.columns["pulls"][stopped[name]]) for name, sweep in noisy.items()}
    ratio = median["exact"] / median["two calls"]
    by_law = np.divide(*(cpe.implicit_time(4 / Lambda**2, 4, 1, DELTA, 0.5) for Lambda in (0.1, 0.2)))
    early, never = stopped["two calls"].mean(), (~stopped["two calls"]).sum()
    return [
        Claim(
            f"two paths, with noise: two calls mostly stop, more than {EARLY} times too early in the median",
            f"{early:.0%} of the runs stop, {ratio:.2f} times too early; Lambda twice as large makes it {by_law:.2f} "
            "times by the law",
            early > 0.5 and ratio > EARLY,
        ),
        Claim(
            "two paths, with noise: two calls sometimes never stop",
            f"{never} of {len(stopped['two calls'])} runs had not by {number(BUDGET)} pulls",
            never > 0,
        ),
        all_of(
            "two paths, with noise: the exact test always stops, with the best path", noisy["exact"].columns["right"]
        ),
    ]


def concave_example() -> Claim:
    best = concave_case().problem.solve
    plans = [tuple(np.asarray(best(jnp.asarray(theta))).tolist()) for theta in ((0.5, 0.4, 0.5), (0.5, 0.6, 0.5))]
    return Claim(
        "concave costs: theta_2 from .4 to .6, at .5 for the others, turns the plan (0, 0, 10) into (5, 5, 0)",
        " and ".join(map(str, plans)),
        plans == [(0, 0, 10), (5, 5, 0)],
    )


def search_claim(cases: dict[str, Instance]) -> Claim:
    """Whether the library's search finds out what may be said of a class."""
    oracles = {name: dishonest(case).problem for name, case in cases.items()}
    oracles["concave costs"] = concave_case().problem
    key = jax.random.key(0)
    found = {name: find_bi_monotone_violation(x.solve, key, x.arms) is not None for name, x in oracles.items()}
    return Claim(
        "the search for a violation finds one for all of them but the trees",
        ", ".join(f"{name} {'yes' if violated else 'no'}" for name, violated in found.items()),
        all(violated == (name != "trees5") for name, violated in found.items()),
    )


# How it is shown


def rounded(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:.6g}" for value in values) + ")"


def spread(sweep: jaxbandits.Results) -> str:
    """Of the runs that stopped, and the number of all others."""
    stopped = sweep.columns["status"] == Status.STOPPED
    low, middle, high = np.quantile(sweep.columns["pulls"][stopped], (0.05, 0.5, 0.95))
    never = f", {(~stopped).sum()} of {len(stopped)} never" if not stopped.all() else ""
    return f"{number(round(middle))} ({number(round(low))} to {number(round(high))}){never}"


def draw(figure: Any, *, shares: dict[str, list[float]], noisy: dict[str, jaxbandits.Results]) -> None:
    share, times = split(figure, (10, 4.2), 1, 2)
    labels = {"paths5": "paths", "matching3": "matchings", "trees5": "spanning trees (bi-monotone)"}
    for style, (name, label) in zip(STYLES, labels.items(), strict=False):
        share.plot(HALVES, shares[name][1:], label=label, mfc="w", clip_on=False, **style)
    share.set(xlabel="half-width of the box", ylabel="share of random boxes", ylim=(0, 1))
    share.set_title("Two calls miss a candidate")
    share.legend(loc="lower right", bbox_to_anchor=(1, 0.06))
    for style, (name, sweep) in zip(STYLES, noisy.items(), strict=False):
        stopped = sweep.columns["status"] == Status.STOPPED
        pulls = np.sort(sweep.columns["pulls"][stopped])
        x, y = np.append(pulls, BUDGET), np.append(np.arange(1, len(pulls) + 1), len(pulls)) / len(stopped)
        keys = {"color": style["color"], "ls": style["linestyle"], "lw": 1.8}
        times.step(np.append(pulls[0], x), np.append(0, y), where="post", label=name, **keys)
    never = np.mean(noisy["two calls"].columns["status"] != Status.STOPPED)
    text, at = f"two calls: {never:.0%}\nof the runs never stop", (BUDGET, 1 - never)
    times.annotate(text, at, (0, -6), textcoords="offset points", ha="right", va="top", fontsize=9)
    times.set(xscale="log", xlabel="pulls", ylabel="share of runs that have stopped", ylim=(0, 1.02))
    times.set_title("COCI on two disjoint paths")
    times.legend(loc="center right")
