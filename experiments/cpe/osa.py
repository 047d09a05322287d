"""Opinion sampling with known variances: four ways to the best allocation, which must be the same.

Minimise sum n_i^2 theta_i / y_i over integers y_i >= 1 with sum y <= k: GreedyOSA (Algorithm 2, corrected), a table of
all marginal gains, bisection of the smallest gain taken (used by algorithms), and brute force over all allocations in
exact fractions, where these are few. Sizes n_i are whole numbers in 1..9, variances uniform in [0, 1/4] ("continuous")
or multiples of 1/32 there ("grid": many gains are equal, and every ninth variance is 0).

Algorithm 2 exists because the continuous optimum x_i = k n_i sqrt(theta_i) / sum_j n_j sqrt(theta_j) is not easily
rounded. Two rules of thumb are compared with it on 20 groups. One rounds down, to 1 at least. The other also gives the
remaining interviews to the largest remainders, and takes an excess from the groups furthest above their x_i. Times are
medians over draws, of compiled programs in float64, one problem per call.
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

from experiments.claims import all_of, column
from experiments.figures import STYLES, errorbars, side_by_side, split, ticks
from experiments.report import Claim, Columns, Report, mean_se, number
from experiments.settings import Settings
from jaxbandits.base import Array
from jaxbandits.cpe import greedy_osa, osa_threshold, solve, table

SMALL = ((2, 5), (3, 7), (4, 9), (5, 11))  # (m, k), small enough for brute force
LARGE = ((5, 100), (20, 1000), (50, 10_000), (100, 100_000), (500, 1_000_000))
ENTRIES = 10**6  # largest size of a table
KINDS = ("continuous", "grid")
CALLS = 3  # timed calls per draw; the fastest counts, since the first one compiles
FEW = 10  # factor by which a large problem has fewer draws
FASTER = 10  # smallest speed-up of bisection over Algorithm 2 on the largest problem
ARMS = 20  # number of groups in the comparison of roundings
RATIOS = (1.25, 1.5, 2, 3, 5, 10, 20, 50, 100)  # values of k / m in that comparison
ROUNDINGS = ("rounded down", "largest remainders", "best")

Found = dict[tuple[int, int, str], Columns]  # (m, k, kind) -> `compared`


class Problem(NamedTuple):
    """One draw."""

    sizes: np.ndarray  # (m,)
    theta: np.ndarray  # (m,)
    budget: int


def run(options: Settings) -> Report:
    draws = options.seeds or (20 if options.quick else 200)
    places = (*SMALL, *(LARGE[:3] if options.quick else LARGE))
    compared_draws: Found = {
        (m, k, kind): compared(m, k, kind, draws if (m, k) in SMALL else max(draws // FEW, 2))
        for (m, k), kind in product(places, KINDS)
    }
    excess = {ratio: roundings(ratio, draws) for ratio in RATIOS}
    claims = same_claims(compared_draws)
    m, k = LARGE[-1]
    if (m, k) in places:
        slow, fast = (
            [milliseconds(compared_draws[m, k, kind], way) for kind in KINDS] for way in ("greedy", "bisection")
        )
        what = f"bisection is at least {FASTER} times faster than Algorithm 2 at m = {m}, k = {number(k)}"
        claims.append(Claim(what, f"{min(slow):.3g} ms against {max(fast):.3g} ms", min(slow) >= FASTER * max(fast)))
    few, many = ({name: excess[ratio][name] for name in ROUNDINGS[:2]} for ratio in (2, RATIOS[-1]))
    excesses = (f"{x} {few[x].mean():.2%} (at worst {few[x].max():.1%}) and {many[x].mean():.4%}" for x in few)
    less = all(few[x].mean() > 1e-3 and many[x].mean() < few[x].mean() / 10 for x in few)
    what = "rules of thumb lose variance where budgets are small, and less where they are large (k = 2 m, k = 100 m)"
    claims.append(Claim(what, ", ".join(excesses), less))

    def draw(figure) -> None:
        clock, price = split(figure, (10, 4.3), 1, 2)
        for style, way in zip(STYLES, WAYS, strict=False):
            times = [milliseconds(compared_draws[m, k, "continuous"], way) for m, k in places]
            clock.plot(range(len(places)), times, label=way, mfc="w", **style)
        names = [f"{m}\n{k if k < 10_000 else f'$10^{np.log10(k):.0f}$'}" for m, k in places]
        side_by_side(clock, names, yscale="log", xlabel="groups m, interviews k")
        clock.set(title="The same allocation, four ways", ylabel="milliseconds for one allocation")
        clock.legend(loc="upper left")
        for style, name in enumerate(ROUNDINGS):
            mean, se = np.transpose([mean_se(excess[ratio][name]) for ratio in RATIOS])
            labels = {"best": "best in whole numbers, above the continuous optimum"}
            errorbars(price, RATIOS, mean, se, label=labels.get(name, f"{name}, above the best"), style=style)
        price.set(xscale="log", yscale="log", xlabel="interviews a group, k / m", ylim=(1e-9, 1))
        price.set(ylabel="variance in excess, mean", title=f"The cost of rounding ({ARMS} groups)")
        ticks(price, [1.25, 2, 5, 10, 20, 50, 100])
        price.legend(loc="lower left", fontsize=9)

    return Report(
        "The best allocation of opinion sampling, four ways",
        [],
        claims,
        {"ratio": np.repeat(RATIOS, draws)} | {name: column(excess.values(), name) for name in ROUNDINGS},
        draw,
        notes=(
            "Steps: mean and largest number of greedy steps after Algorithm 2's base; greedy from all ones takes k - "
            "m. Bisection takes 64 steps for any k. A table has at most a million entries.",
            "As printed, Algorithm 2 gives a group with variance 0 no slack, since ceil(0) = 0, although one "
            "interview goes there. Its start then exceeds the budget, and no step reduces it. The claim fails on the "
            "grid only.",
        ),
        grid=[
            {
                "m, k": f"{m}, {number(k)}: {kind}",
                "draws": str(len(one["agree"])),
                "the same": str(one["agree"].sum()),
                "steps": f"{one['steps'].mean():,.0f} ({number(int(one['steps'].max()))})",
                "m^2": number(m * m),
                **{f"{way}, ms": f"{milliseconds(one, way):.3g}" if way in one else "-" for way in WAYS},
            }
            for (m, k, kind), one in compared_draws.items()
        ],
    )


# The four ways


def draw_problem(m: int, budget: int, kind: str, seed: int) -> Problem:
    rng = np.random.default_rng((m, budget, KINDS.index(kind), seed))
    theta = rng.uniform(0, 0.25, m) if kind == "continuous" else rng.integers(0, 9, m) / 32
    return Problem(rng.integers(1, 10, m), theta, budget)


@partial(jax.jit, static_argnames="budget")
def by_table(theta: Array, sizes: Array, budget: int) -> Array:
    """Selects the largest gains n_i^2 theta_i / (y (y + 1)) from one table."""
    level = jnp.arange(1, budget - len(sizes) + 1)
    gains, none = (sizes**2)[:, None] / (level * (level + 1.0)), jnp.zeros((len(sizes), len(level)))
    return 1 + solve(table(gains, none, len(level), kind="at most", base=1.0), theta)


def by_brute_force(theta: np.ndarray, sizes: np.ndarray, budget: int) -> np.ndarray:
    """Finds the lexicographically smallest optimum, in exact fractions."""
    weights = [int(n) ** 2 * Fraction(float(value)) for n, value in zip(sizes, theta, strict=True)]
    levels = range(1, budget - len(weights) + 2)
    common = math.lcm(*(weight.denominator for weight in weights)) * math.lcm(*levels)
    terms = [{level: int(weight * common / level) for level in levels} for weight in weights]
    allocations = (y for y in product(levels, repeat=len(weights)) if sum(y) <= budget)
    return np.array(min(allocations, key=lambda y: (sum(row[level] for row, level in zip(terms, y, strict=True)), y)))


greedy = jax.jit(greedy_osa, static_argnames="budget")
WAYS: dict[str, Callable[..., Any]] = {
    "greedy": lambda **problem: greedy(**problem).allocation,
    "bisection": jax.jit(osa_threshold, static_argnames="budget"),
    "table": by_table,
    "brute force": by_brute_force,
}


def compared(m: int, budget: int, kind: str, draws: int) -> dict[str, np.ndarray]:
    """Compares all feasible ways on the same draws.

    Returns:
        Columns over draws: seconds of each way; `agree`, True if all results are equal; `safe`, True if the base of
        Algorithm 2 is nowhere above the best allocation, and `printed_safe` for the printed base; its greedy `steps`.
    """
    left_out = {"table": m * (budget - m) > ENTRIES, "brute force": (m, budget) not in SMALL}
    rows = []
    for seed in range(draws):
        one = draw_problem(m, budget, kind, seed)
        results = {name: timed(way, one) for name, way in WAYS.items() if not left_out.get(name)}
        best, _ = results["bisection"]
        base, steps = map(np.asarray, greedy(**one._asdict())[1:])
        row = {name: seconds for name, (_, seconds) in results.items()} | {"steps": steps}
        row |= {"agree": all(np.array_equal(result, best) for result, _ in results.values())}
        rows.append(row | {"safe": np.all(base <= best), "printed_safe": np.all(printed_base(one) <= best)})
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def timed(way: Callable[..., Any], one: Problem) -> tuple[np.ndarray, float]:
    """Returns the result and the shortest time of several calls."""
    times = []
    for _ in range(CALLS):
        started = time.perf_counter()
        result = np.asarray(way(**one._asdict()))
        times.append(time.perf_counter() - started)
    return result, min(times)


def milliseconds(one: Columns, way: str) -> float:
    """Returns the median milliseconds of a call; NaN for a way that is not feasible."""
    return 1000 * float(np.median(one.get(way, np.nan)))


def continuous(one: Problem) -> np.ndarray:
    """Computes the continuous optimum x."""
    share = one.sizes * np.sqrt(one.theta)
    return one.budget * share / max(share.sum(), np.finfo(float).tiny)


def printed_base(one: Problem) -> np.ndarray:
    """Computes the start of Algorithm 2 as printed: a variance of 0 has no slack, although it costs 1."""
    x = continuous(one)
    up = np.ceil(x)
    slack = np.where(up * (up - 1) >= x**2, 0, up - x)
    return np.maximum(np.floor(x - (slack.sum() - slack)), 1).astype(int)


# Rules of thumb


def variance(one: Problem, allocation: np.ndarray) -> float:
    return float(np.sum(one.sizes**2 * one.theta / allocation))


def roundings(ratio: float, draws: int) -> dict[str, np.ndarray]:
    """Computes the excess variance of two rules of thumb over the optimum, and of the optimum over the continuous
    one.
    """
    rows = []
    for seed in range(draws):
        one = draw_problem(ARMS, round(ratio * ARMS), "continuous", seed)
        x, least = continuous(one), variance(one, np.asarray(WAYS["bisection"](**one._asdict())))
        down = np.maximum(np.floor(x), 1).astype(int)
        while down.sum() > one.budget:
            down[np.argmax(np.where(down > 1, down - x, -np.inf))] -= 1
        near = down.copy()
        near[np.argsort(near - x, kind="stable")[: one.budget - near.sum()]] += 1
        rows.append((variance(one, down) / least, variance(one, near) / least, least / variance(one, x)))
    return dict(zip(ROUNDINGS, np.transpose(rows) - 1, strict=True))


def same_claims(draws: Found) -> list[Claim]:
    agree, safe, printed_safe = (column(draws.values(), name) for name in ("agree", "safe", "printed_safe"))
    brute = sum(len(draws[m, k, kind]["agree"]) for (m, k), kind in product(SMALL, KINDS))
    example = Problem(np.array([2, 1, 1]), np.array([0.25, 0, 0]), 4)
    ours = [np.asarray(y).tolist() for y in greedy_osa(jnp.asarray(example.theta), example.sizes, 4)[:2]]
    starts = f"; n = (2, 1, 1), theta = (1/4, 0, 0), k = 4: starts at {printed_base(example).tolist()}"
    steps = max(one["steps"].max() / m**2 for (m, _, _), one in draws.items())
    return [
        all_of(f"all ways give the same allocation, brute force among them on {number(brute)} draws", agree),
        all_of("Algorithm 2, corrected, starts nowhere above the best allocation", safe),
        all_of("as printed, Algorithm 2 starts nowhere above the best allocation", printed_safe, starts),
        Claim(
            "corrected, it starts there at [2, 1, 1], which is the best allocation",
            f"{ours[1]}, best {ours[0]}",
            ours == [[2, 1, 1], [2, 1, 1]],
        ),
        Claim("Algorithm 2 takes at most m^2 greedy steps", f"{steps:.2f} m^2 at most", steps <= 1),
    ]
