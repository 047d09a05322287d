"""The two-call test where it is not valid: it stops too early, or never.

Raising theta_i must never lower level i nor raise another (the best decision is bi-monotone); then two calls of an
oracle decide whether arm i is a candidate. Best arm, top-k, convex water planning, opinion sampling and matroids are
bi-monotone. Paths, matchings and water planning with concave costs are not. Here COCI gets all of them as an `oracle`
that is declared bi-monotone, and runs with the exact test for comparison. delta = 0.1.

Two paths: edges 01 13 02 23 from node 0 to 3, theta = (.7, .7, .5, .5). Concave costs: three sources of 5, 5 and 10
units, demand 10, f1 = f2 = y + 1 - exp(-2y), f3 = y + 2 (1 - exp(-2y)), theta = (.7, .7, .4); the exact test, which the
library does not offer for this class, is a linear program for each decision. Boxes: the centre uniform in [0, 1]^m, the
half-width of each arm uniform in [.01, .25].
"""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linprog

from experiments.claims import all_of
from experiments.cpe import common
from experiments.cpe.common import DELTA
from experiments.figures import STYLES, split
from experiments.report import Claim, Report, joined, line_of, listed, number
from experiments.settings import Settings
from jaxbandits import Results, Status, cpe
from jaxbandits.base import Array
from jaxbandits.cpe import Instance, candidates, consistent_radius, find_bi_monotone_violation, oracle, solve, two_call
from jaxbandits.cpe._problem.problems import Problem

CLASSES = {"paths5": "paths", "matching3": "matchings", "trees5": "spanning trees (bi-monotone)"}
BI_MONOTONE = "trees5"
NAMED = {"matching3": 0.16, "paths5": 0.21, "two paths": 0.15}  # half-widths of boxes around theta
LEAST, MOST = 0.01, 0.25  # half-widths of random boxes
HALVES = np.linspace(LEAST, MOST, 13)  # half-widths in the figure
CUT = 20_000  # pulls of a run without noise
EARLY = 3  # smallest factor by which runs stop too early
BUDGET = 30_000  # pulls of a run with noise


def run(options: Settings) -> Report:
    cases = {name: getattr(cpe, name)() for name in CLASSES} | {"two paths": two_paths()}
    tests = {"exact": cases["two paths"], "two calls": dishonest(cases["two paths"])}

    def runs(noise: str, case: Instance, test: str, budget: int, replicates: int) -> Results:
        settings = {"options": options, "replicates": replicates, "leap": 1, "max_rounds": budget}
        return common.runs(f"cpe two-call: {noise}", case, "COCI", label=test, **settings)

    boxes = 600 if options.quick else 6000
    shares = {name: missed(cases[name], boxes) for name in CLASSES}
    boxed = {name: named_box(cases[name], half) for name, half in NAMED.items()}

    quiet = {f"two paths, {test}": common.without_noise(case) for test, case in tests.items()}
    quiet["concave costs, two calls"] = concave_case()
    endings = {}  # case -> Lambda, and the end of a run without noise
    for name, case in quiet.items():
        columns = runs("constant", case, name, CUT, 1).columns
        ending = ending_of(columns["status"][0] == Status.STOPPED, columns["counts"][0])
        endings[name] = rounded(consistent_radius(case.problem, case.theta)), ending
    # The library does not offer the exact test for concave costs.
    endings["concave costs, exact"] = rounded(concave_radii()), exact_run()

    replicates = options.seeds or (20 if options.quick else 400)
    noisy = {test: runs("Bernoulli", case, test, BUDGET, replicates) for test, case in tests.items()}
    pulls = {test: sweep.columns["pulls"][sweep.columns["status"] == Status.STOPPED] for test, sweep in noisy.items()}
    right, stop = noisy["exact"].columns["right"], len(pulls["two calls"])
    ratio = np.median(pulls["exact"]) / np.median(pulls["two calls"])
    by_law = np.divide(*(cpe.implicit_time(4 / Lambda**2, 4, 1, DELTA, 0.5) for Lambda in (0.1, 0.2)))

    def draw(figure) -> None:
        share, times = split(figure, (10, 4.2), 1, 2)
        for style, (name, label) in zip(STYLES, CLASSES.items(), strict=False):
            share.plot(HALVES, shares[name][1:], label=label, mfc="w", clip_on=False, **style)
        share.set(xlabel="half-width of the box", ylabel="share of random boxes", ylim=(0, 1))
        share.set_title("Two calls miss a candidate")
        share.legend(loc="lower right", bbox_to_anchor=(1, 0.06))
        for style, (test, ended) in zip(STYLES, pulls.items(), strict=False):
            x = np.concatenate([[ended.min()], np.sort(ended), [BUDGET]])
            y = np.minimum(np.arange(len(x)), len(ended)) / replicates
            look = {"color": style["color"], "ls": style["linestyle"], "lw": 1.8}
            times.step(x, y, where="post", label=test, **look)
        text = f"two calls: {1 - stop / replicates:.0%}\nof the runs never stop"
        at = {"xytext": (0, -6), "textcoords": "offset points", "ha": "right", "va": "top"}
        times.annotate(text, (BUDGET, stop / replicates), fontsize=9, **at)
        times.set(xscale="log", xlabel="pulls", ylabel="share of runs that have stopped", ylim=(0, 1.02))
        times.set_title("COCI on two disjoint paths")
        times.legend(loc="center right")

    def row(what: str, exact: str, two: str) -> dict[str, str]:
        return {"": what, "exact test": exact, "two calls": two}

    return Report(
        "The two-call test where the best decision is not bi-monotone, beside the exact one",
        [line_of(f"two paths: {name}", sweep) for name, sweep in noisy.items()],
        [
            *(misses(name, share, boxes) for name, (share, *_) in shares.items()),
            Claim(
                "two calls see only some of the candidates of the boxes around theta, or none",
                "; ".join(f"{name} {two} of {exact}" for name, (exact, two) in boxed.items()),
                all(len(two) < len(exact) for exact, two in boxed.values()),
            ),
            Claim(
                "without noise the exact test stops, two calls never do",
                "; ".join(f"{name} {end}" for name, (_, end) in endings.items()),
                all(end.startswith("stops") == name.endswith("exact") for name, (_, end) in endings.items()),
            ),
            Claim(
                f"two paths, with noise: two calls mostly stop, more than {EARLY} times too early in the median",
                f"{stop / replicates:.0%} of the runs stop, {ratio:.2f} times too early; Lambda twice as large makes "
                f"it {by_law:.2f} times by the law",
                stop > replicates / 2 and ratio > EARLY,
            ),
            Claim(
                "two paths, with noise: two calls sometimes never stop",
                f"{replicates - stop} of {replicates} runs had not by {number(BUDGET)} pulls",
                stop < replicates,
            ),
            all_of("two paths, with noise: the exact test always stops, with the best path", right),
            concave_example(),
            search_claim(cases),
        ],
        joined(noisy, "test"),
        draw,
        notes=(
            "Two calls find only some of the candidates. Their corners move the other edges of a path against edge i, "
            "where the worst case moves them with it. On the two paths Lambda thus appears twice as large as it is. "
            "The run ends too early, or only some arms remain to be pulled, and the uncertainty of the others keeps "
            "them there.",
            "`coci` refuses an oracle that is not declared bi-monotone; `find_bi_monotone_violation` searches for a "
            "counterexample.",
        ),
        grid=[
            *(row(f"{name}: boxes with missed candidates", "0", f"{x:.1%}") for name, (x, *_) in shares.items()),
            *(row(f"{name}: candidates in the box +- {NAMED[name]}", *sets) for name, sets in boxed.items()),
            *(
                row(f"{name}: {what}", *(endings[f"{name}, {test}"][entry] for test in tests))
                for name in ("two paths", "concave costs")
                for entry, what in enumerate(("Lambda", "run without noise"))
            ),
            row("two paths: T with noise", *(spread(ended, replicates) for ended in pulls.values())),
        ],
    )


# The exact test and two calls


def two_paths() -> Instance:
    arms = cpe.bernoulli([0.7, 0.7, 0.5, 0.5])
    return cpe.instance(cpe.st_paths([(0, 1), (1, 3), (0, 2), (2, 3)], 0, 3), arms)


def dishonest(case: Instance) -> Instance:
    """Replaces the problem by an oracle that is wrongly declared bi-monotone."""
    return case._replace(problem=oracle(partial(solve, case.problem), len(case.theta), bi_monotone=True))


def both(problem: Problem, lo: Array, hi: Array) -> tuple[Array, Array]:
    """Computes the candidates of a box by the exact test and by two calls, bool (m,) each."""
    return candidates(problem, lo, hi, solve(problem, lo)), two_call(partial(solve, problem), lo, hi)


def missed(case: Instance, boxes: int) -> np.ndarray:
    """Computes the share of random boxes where two calls miss a candidate.

    The first entry is for boxes with random half-widths, the others for each of `HALVES`.
    """
    shape = boxes, len(case.theta)
    centre, width = (jax.random.uniform(key, shape) for key in jax.random.split(jax.random.key(0)))
    widths = jnp.stack([LEAST + (MOST - LEAST) * width, *(jnp.full(shape, half) for half in HALVES)])
    exact, two = jax.jit(jax.vmap(jax.vmap(partial(both, case.problem))))(centre - widths, centre + widths)
    return np.any(exact != two, axis=2).mean(axis=1)


def misses(name: str, share: float, boxes: int) -> Claim:
    some = name != BI_MONOTONE
    statement = f"{name}: two calls miss candidates of {'some random boxes' if some else 'no random box'}"
    return Claim(statement, f"{share:.3f} of {number(boxes)}", (share > 0) == some)


def named_box(case: Instance, half: float) -> tuple[str, ...]:
    masks = jax.jit(partial(both, case.problem))(case.theta - half, case.theta + half)
    return tuple("{" + ", ".join(map(str, np.flatnonzero(each))) + "}" for each in masks)


def search_claim(cases: dict[str, Instance]) -> Claim:
    """Claims that the library's search finds a violation exactly where there is one."""
    oracles = {name: dishonest(case).problem for name, case in cases.items()}
    oracles["concave costs"] = concave_case().problem
    key = jax.random.key(0)
    violations = {name: find_bi_monotone_violation(x.solve, key, x.arms) is not None for name, x in oracles.items()}
    return Claim(
        "the search for a violation finds one for all of them except the trees",
        ", ".join(f"{name} {'yes' if violated else 'no'}" for name, violated in violations.items()),
        all(violated == (name != BI_MONOTONE) for name, violated in violations.items()),
    )


# Water from three sources of concave cost


# All ways to take 10 units in lexicographic order, (36, 3), and their costs, (36,).
DECISIONS = np.array([(a, b, 10 - a - b) for a, b in product(range(6), repeat=2)])
COSTS = (DECISIONS + (1 - np.exp(-2.0 * DECISIONS)) * [1, 1, 2]).sum(axis=1)
THETA = np.array([0.7, 0.7, 0.4])


def concave_case() -> Instance:
    decisions, costs = jnp.asarray(DECISIONS), jnp.asarray(COSTS)

    def best(theta: Array) -> Array:
        return decisions[jnp.argmax(decisions.astype(costs.dtype) @ theta.astype(costs.dtype) - costs)]

    return cpe.instance(oracle(best, 3, bi_monotone=True), cpe.constant(jnp.asarray(THETA)))


def concave_example() -> Claim:
    best = concave_case().problem.solve
    plans = [tuple(np.asarray(best(jnp.asarray(theta))).tolist()) for theta in ((0.5, 0.4, 0.5), (0.5, 0.6, 0.5))]
    return Claim(
        "concave costs: theta_2 from .4 to .6, at .5 for the others, turns the plan (0, 0, 10) into (5, 5, 0)",
        " and ".join(map(str, plans)),
        plans == [(0, 0, 10), (5, 5, 0)],
    )


def reach(radii: np.ndarray) -> np.ndarray:
    """Computes for every decision the smallest h such that it leads somewhere in the box theta +- h radii, cut to [0,
    1].
    """
    around = np.block([[np.eye(3), -radii[:, None]], [-np.eye(3), -radii[:, None]]])
    distances = []
    for y, cost in zip(DECISIONS, COSTS, strict=True):
        leads = np.concatenate([np.pad(DECISIONS - y, ((0, 0), (0, 1))), around])
        most = np.concatenate([COSTS - cost, THETA, -THETA])
        solution = linprog([0, 0, 0, 1], leads, most, bounds=[(0, 1)] * 3 + [(0, None)])
        distances.append(solution.fun if solution.status == 0 else np.inf)
    return np.array(distances)


def concave_radii() -> np.ndarray:
    """Computes Lambda of every source, the distance that theta must move for another level of it to lead."""
    far = reach(np.ones(3))
    best = DECISIONS[np.argmin(far)]
    return np.array([far[DECISIONS[:, i] != best[i]].min() for i in range(3)])


def exact_run() -> str:
    """Runs COCI without noise, with the exact test, on the concave class."""
    widest, counts = concave_radii().max(), np.ones(3, int)
    while True:
        n = counts.sum()
        radius = np.sqrt((np.log(4 / DELTA) + 3 * np.log(n)) / (2 * counts))
        if np.all(radius > widest):
            is_candidate = np.ones(3, bool)  # the box holds one that is wider than every Lambda
        else:
            led = DECISIONS[reach(radius) <= 1]
            is_candidate = np.any(led != led[0], axis=0)
        if not is_candidate.any():
            return ending_of(True, counts)
        counts[np.argmin(np.where(is_candidate, counts, n))] += 1


def ending_of(stopped: bool, counts: np.ndarray) -> str:
    """Describes the end of a run without noise."""
    what = "stops at" if stopped else "still pulls at"
    return f"{what} {number(counts.sum())}, counts {tuple(counts.tolist())}"


def rounded(values: np.ndarray) -> str:
    return f"({listed(np.asarray(values), '.6g')})"


def spread(pulls: np.ndarray, runs: int) -> str:
    """Formats quantiles of the runs that stopped, and the number of all others."""
    low, middle, high = (number(round(q)) for q in np.quantile(pulls, (0.05, 0.5, 0.95)))
    never = f", {runs - len(pulls)} of {runs} never" if len(pulls) < runs else ""
    return f"{middle} ({low} to {high}){never}"
