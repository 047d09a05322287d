"""Opinion sampling with known variances: four ways to the best allocation, which must be the same.

Minimise sum n_i^2 theta_i / y_i over integers y_i >= 1 with sum y <= k: GreedyOSA (Algorithm 2, corrected), a table of
all marginal gains, bisection of the least gain taken (what algorithms call), and brute force over all allocations in
exact fractions, where these are few. Sizes n_i are whole numbers in 1..9, variances uniform in [0, 1/4] ("continuous")
or multiples of 1/32 there ("grid": many gains are equal, and every ninth variance is 0).

Algorithm 2 exists because the continuous optimum x_i = k n_i sqrt(theta_i) / sum_j n_j sqrt(theta_j) is not easily
rounded. Two rules of thumb are compared with it on 20 groups: round down, to 1 at least, or also give the rest to the
largest remainders (if too much is given, it is taken where a group has most above its x_i). Times are medians over
draws, of compiled programs in float64, one problem a call.
"""

import math
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.claims import all_of
from experiments.figures import STYLES, errorbars, side_by_side, split, ticks
from experiments.report import Claim, Report, mean_se, number
from experiments.settings import Settings
from jaxbandits.base import Array
from jaxbandits.cpe import greedy_osa, osa_threshold, solve, table

SMALL = ((2, 5), (3, 7), (4, 9), (5, 11))  # (m, k) within reach of brute force
LARGE = ((5, 100), (20, 1000), (50, 10_000), (100, 100_000), (500, 1_000_000))
QUICK_LARGE = LARGE[:3]
ENTRIES = 10**6  # of a table, at most
KINDS = ("continuous", "grid")
CALLS = 3  # that are timed on each draw, of which the fastest counts: the first one compiles
FEW = 10  # draws of a large problem are fewer by this factor
FASTER = 10  # bisection than Algorithm 2 on the largest problem, at least
ARMS = 20  # in the comparison of roundings
RATIOS = (1.25, 1.5, 2, 3, 5, 10, 20, 50, 100)  # k / m there
ROUNDINGS = ("rounded down", "largest remainders", "best")


class Problem(NamedTuple):
    """One draw."""

    sizes: np.ndarray  # (m,)
    theta: np.ndarray  # (m,)
    budget: int


class Found(NamedTuple):
    """What the four ways gave on some draws."""

    agree: np.ndarray  # bool (draws,)  all are the same
    safe: np.ndarray  # bool (draws,)  the base of Algorithm 2 is nowhere above the best allocation
    printed_safe: np.ndarray  # bool (draws,)  the same for the base as printed
    steps: np.ndarray  # int (draws,)  greedy steps of Algorithm 2
    milliseconds: dict[str, float]  # a call, by way


def run(options: Settings) -> Report:
    draws = options.seeds or (20 if options.quick else 200)
    large = QUICK_LARGE if options.quick else LARGE
    found = {(m, k, kind): compare(m, k, kind, draws) for m, k in SMALL for kind in KINDS}
    found |= {(m, k, kind): compare(m, k, kind, max(draws // FEW, 2)) for m, k in large for kind in KINDS}
    excess = {ratio: roundings(ratio, draws) for ratio in RATIOS}
    return Report(
        "The best allocation of opinion sampling, four ways",
        [],
        [*claims(found, large), rounding_claim(excess)],
        {"ratio": np.repeat(RATIOS, draws)}
        | {name: np.concatenate([excess[ratio][name] for ratio in RATIOS]) for name in ROUNDINGS},
        partial(draw, found=found, excess=excess, large=large),
        notes=(
            "Steps: mean and greatest number of greedy steps after Algorithm 2's base; a greedy from all ones has k - "
            "m. Bisection takes 64 steps whatever k. A table is written down up to a million entries.",
            "As printed, Algorithm 2 gives a group with variance 0 no slack, for ceil(0) = 0, although one interview "
            "goes there; its start then exceeds the budget, and it has no step down. The claim fails on the grid only.",
        ),
        grid=[
            {
                "m, k": f"{m}, {number(k)}: {kind}",
                "draws": str(len(one.agree)),
                "the same": str(one.agree.sum()),
                "steps": f"{one.steps.mean():,.0f} ({number(int(one.steps.max()))})",
                "m^2": number(m * m),
                **{f"{w}, ms": f"{one.milliseconds[w]:.3g}" if w in one.milliseconds else "-" for w in WAYS},
            }
            for (m, k, kind), one in found.items()
        ],
    )


# The four ways


def draw_problem(m: int, budget: int, kind: str, seed: int) -> Problem:
    rng = np.random.default_rng((m, budget, KINDS.index(kind), seed))
    theta = rng.uniform(0, 0.25, m) if kind == "continuous" else rng.integers(0, 9, m) / 32
    return Problem(rng.integers(1, 10, m), theta, budget)


def by_table(theta: Array, sizes: Array, budget: int) -> Array:
    """All gains n_i^2 theta_i / (y (y + 1)) in one table, of which the best are taken."""
    level = jnp.arange(1, budget - len(sizes) + 1)
    gains, none = (sizes**2)[:, None] / (level * (level + 1.0)), jnp.zeros((len(sizes), len(level)))
    return 1 + solve(table(gains, none, len(level), kind="at most", base=1.0), theta)


def by_brute_force(problem: Problem) -> np.ndarray:
    """The leading optimum in exact fractions: the lexicographically smallest of those that vary least."""
    weights = [int(n) ** 2 * Fraction(float(theta)) for n, theta in zip(*problem[:2], strict=True)]
    most = problem.budget - len(weights) + 1
    common = math.lcm(*(weight.denominator for weight in weights)) * math.lcm(*range(1, most + 1))
    terms = [[int(weight * common / y) for y in range(1, most + 1)] for weight in weights]
    allocations = (y for y in product(range(1, most + 1), repeat=len(weights)) if sum(y) <= problem.budget)
    return np.array(
        min(allocations, key=lambda y: (sum(row[level - 1] for row, level in zip(terms, y, strict=True)), y))
    )


WAYS = ("greedy", "bisection", "table", "brute force")


def compare(m: int, budget: int, kind: str, draws: int) -> Found:
    """All ways that apply, on the same draws."""
    greedy = jax.jit(partial(greedy_osa, budget=budget))
    bisection, tabled = (jax.jit(partial(way, budget=budget)) for way in (osa_threshold, by_table))
    ways: dict[str, Callable[[Problem], Any]] = {
        "greedy": lambda one: greedy(one.theta, one.sizes).allocation,
        "bisection": lambda one: bisection(one.theta, one.sizes),
    }
    if m * (budget - m) <= ENTRIES:
        ways["table"] = lambda one: tabled(one.theta, one.sizes)
    if (m, budget) in SMALL:
        ways["brute force"] = by_brute_force
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    rows = []
    for seed in range(draws):
        one = draw_problem(m, budget, kind, seed)
        results = {way: timed(partial(solve_it, one), seconds[way]) for way, solve_it in ways.items()}
        best = results["bisection"]
        base, steps = map(np.asarray, greedy(one.theta, one.sizes)[1:])
        agree = all(np.array_equal(result, best) for result in results.values())
        rows.append((agree, np.all(base <= best), np.all(printed_base(one) <= best), steps))
    milliseconds = {way: 1000 * float(np.median(times)) for way, times in seconds.items()}
    return Found(*map(np.array, zip(*rows, strict=True)), milliseconds)


def timed(function: Callable[[], Any], seconds: list[float]) -> np.ndarray:
    """The result; the least time of some calls goes to the list."""
    times = []
    for _ in range(CALLS):
        started = time.perf_counter()
        result = np.asarray(function())
        times.append(time.perf_counter() - started)
    seconds.append(min(times))
    return result


def continuous(one: Problem) -> np.ndarray:
    """The continuous optimum x."""
    share = one.sizes * np.sqrt(one.theta)
    return one.budget * share / max(share.sum(), np.finfo(float).tiny)


def printed_base(one: Problem) -> np.ndarray:
    """Where Algorithm 2 starts as it is printed: a variance of 0 has no slack, although 1 is spent on it."""
    x = continuous(one)
    up = np.ceil(x)
    slack = np.where(up * (up - 1) >= x**2, 0, up - x)
    return np.maximum(np.floor(x - (slack.sum() - slack)), 1).astype(int)


# Rules of thumb


def variance(one: Problem, allocation: np.ndarray) -> float:
    return float(np.sum(one.sizes**2 * one.theta / allocation))


def rounded(one: Problem) -> dict[str, np.ndarray]:
    """The continuous optimum, rounded by two rules of thumb."""
    x = continuous(one)
    down = np.maximum(np.floor(x), 1).astype(int)
    while down.sum() > one.budget:
        down[np.argmax(np.where(down > 1, down - x, -np.inf))] -= 1
    near = down.copy()
    near[np.argsort(near - x, kind="stable")[: one.budget - near.sum()]] += 1
    return {"rounded down": down, "largest remainders": near}


def roundings(ratio: float, draws: int) -> dict[str, np.ndarray]:
    """By how much two rules of thumb exceed the least variance, and by how much that exceeds the continuous one."""
    budget = round(ratio * ARMS)
    best = jax.jit(partial(osa_threshold, budget=budget))
    excess: dict[str, list[float]] = {name: [] for name in ROUNDINGS}
    for seed in range(draws):
        one = draw_problem(ARMS, budget, "continuous", seed)
        least = variance(one, np.asarray(best(one.theta, one.sizes)))
        for name, allocation in rounded(one).items():
            excess[name].append(variance(one, allocation) / least - 1)
        excess["best"].append(least / variance(one, continuous(one)) - 1)
    return {name: np.array(values) for name, values in excess.items()}


# What is claimed

Founds = dict[tuple[int, int, str], Found]


def claims(found: Founds, large: tuple[tuple[int, int], ...]) -> list[Claim]:
    agree, safe, printed_safe = (
        np.concatenate([getattr(one, kind) for one in found.values()]) for kind in ("agree", "safe", "printed_safe")
    )
    brute = sum(len(found[m, k, kind].agree) for m, k in SMALL for kind in KINDS)
    example = Problem(np.array([2, 1, 1]), np.array([0.25, 0, 0]), 4)
    ours = [np.asarray(y).tolist() for y in greedy_osa(jnp.asarray(example.theta), example.sizes, 4)[:2]]
    as_printed = all_of("as printed, Algorithm 2 starts nowhere above the best allocation", printed_safe)
    starts = f"; n = (2, 1, 1), theta = (1/4, 0, 0), k = 4: starts at {printed_base(example).tolist()}"
    steps = max(one.steps.max() / m**2 for (m, _, _), one in found.items())
    judged = [
        all_of(f"all ways give the same allocation, brute force among them on {number(brute)} draws", agree),
        all_of("Algorithm 2, corrected, starts nowhere above the best allocation", safe),
        as_printed._replace(measured=as_printed.measured + starts),
        Claim(
            "corrected it starts there at [2, 1, 1], which is the best allocation",
            f"{ours[1]}, best {ours[0]}",
            ours == [[2, 1, 1], [2, 1, 1]],
        ),
        Claim("Algorithm 2 takes at most m^2 greedy steps", f"{steps:.2f} m^2 at most", steps <= 1),
    ]
    if large[-1] == LARGE[-1]:
        m, k = LARGE[-1]
        slow, fast = ([found[m, k, kind].milliseconds[way] for kind in KINDS] for way in ("greedy", "bisection"))
        faster = f"bisection is at least {FASTER} times faster than Algorithm 2 at m = {m}, k = {number(k)}"
        shown = f"{min(slow):.3g} ms against {max(fast):.3g} ms"
        judged.append(Claim(faster, shown, min(slow) >= FASTER * max(fast)))
    return judged


def rounding_claim(excess: dict[float, dict[str, np.ndarray]]) -> Claim:
    few, many = ({name: excess[ratio][name] for name in ROUNDINGS[:2]} for ratio in (2, RATIOS[-1]))
    told = (f"{x} {few[x].mean():.2%} (at worst {few[x].max():.1%}) and {many[x].mean():.4%}" for x in few)
    return Claim(
        "rules of thumb lose variance where budgets are small, and less where they are large (k = 2 m, k = 100 m)",
        ", ".join(told),
        all(few[x].mean() > 1e-3 and many[x].mean() < few[x].mean() / 10 for x in few),
    )


# How it is shown


def draw(figure: Any, *, found: Founds, excess: dict[float, dict[str, np.ndarray]], large: Any) -> None:
    clock, loss = split(figure, (10, 4.3), 1, 2)
    sizes = [*SMALL, *large]
    for style, way in zip(STYLES, WAYS, strict=False):
        times = {i: found[m, k, "continuous"].milliseconds.get(way) for i, (m, k) in enumerate(sizes)}
        times = {i: time for i, time in times.items() if time}
        clock.plot(list(times), list(times.values()), label=way, mfc="w", **style)
    side_by_side(clock, [f"{m}\n{short(k)}" for m, k in sizes], yscale="log", xlabel="groups m, interviews k")
    clock.set(title="The same allocation, four ways", ylabel="milliseconds for one allocation")
    clock.legend(loc="upper left")
    labels = {"best": "best in whole numbers, above the continuous optimum"}
    for style, name in enumerate(ROUNDINGS):
        mean, se = np.transpose([mean_se(excess[ratio][name]) for ratio in RATIOS])
        errorbars(loss, RATIOS, mean, se, labels.get(name, f"{name}, above the best"), style)
    loss.set(xscale="log", yscale="log", xlabel="interviews a group, k / m", ylim=(1e-9, 1))
    loss.set(ylabel="variance in excess, mean", title=f"What rounding costs ({ARMS} groups)")
    ticks(loss, [1.25, 2, 5, 10, 20, 50, 100])
    loss.legend(loc="lower left", fontsize=9)


def short(k: int) -> str:
    """10000 as 10^4."""
    return str(k) if k < 10_000 else f"$10^{round(np.log10(k))}$"
