"""Queries against the probability of error, and against the lower and upper bounds of theory.

Ten instances of 50 points with 1500 binary coordinates, k = 3, delta = 1e-1 .. 1e-12. Dimension sampling: DS-UCB with
the paper's radius (C = 0.1), with the radius of Lemma 1 and with KL intervals, and DS-TS, against Theorem 1 (queries
that are necessary where coordinates take two values) and Theorem 2 (queries that suffice, c = 1).

Noisy sampling of the same distances: NS-TS (mix 0.9), NS-TandS with difference and with ratio tracking (rate "loglog"),
and the latter in batches, against sum_p T*_p log(1/(2.4 delta)). For each instance the variance of the Gaussian noise
is chosen such that sum_p T*_p = 1000 or, in batches, 100,000. An extension: the paper shows no such figure.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.claims import above, allowed, between, column, errors, every_run_stops
from experiments.figures import legend_under, quantiles, split, ticks
from experiments.kcenter import common, noisy
from experiments.kcenter.common import LEAP, Images, blocks, matches
from experiments.report import Claim, Columns, Report, joined, listed, number
from experiments.settings import Settings
from jaxbandits import Status, kcenter
from jaxbandits.base import Algorithm
from jaxbandits.kcenter import KL, Greedy, Lemma1, Lil, ds_ts, ds_ucb, ns_tands, ns_ts, track_and_stop
from jaxbandits.kcenter._problem.points import BINARY_LEVELS

N, M, K = 50, 1500, 3
INSTANCES = 10
DELTAS, QUICK_DELTAS = (1e-1, 1e-2, 1e-4, 1e-6, 1e-9, 1e-12), (1e-1, 1e-4, 1e-12)
TIME, LONG_TIME = 1000, 100_000  # sum_p T*_p with noisy sampling
LIMIT = 300  # budget of a run with noisy sampling, over sum_p T*_p
SLOPE = (0.85, 1.15)
MOST = 1.5  # largest factors: ratio tracking over sum_p T*_p beta, and batches over single queries
LATE = 3  # factor over sum_p T*_p beta from which on a run has gone astray


class Rule(NamedTuple):
    """A rule that samples dimensions, or one of noisy distances."""

    rule: Callable[..., Algorithm]
    seeds: int  # runs of each instance and delta
    drawn: Mapping[str, int] = LEAP  # dimensions per round
    queries: int = 1  # queries per round
    time: int = TIME  # sum_p T*_p


HEURISTIC, DIFFERENCE, THOMPSON = "DS-UCB, C = 0.1", "difference", "NS-TS"
RATIO, BATCHES, LONG = "ratio", "ratio, batches of 50", f"ratio, batches, T* = {LONG_TIME:,}"
# Greedy's centers are unique here. After a wrong center, two nodes may be equally far, and the run would not end.
SAMPLED = {
    HEURISTIC: Rule(partial(ds_ucb, interval=Lil(), ties="lowest"), 4),
    "DS-UCB, Lemma 1": Rule(partial(ds_ucb, interval=Lemma1(), ties="lowest"), 1),
    "DS-UCB, KL": Rule(partial(ds_ucb, interval=KL(), ties="lowest"), 1),
    "DS-TS": Rule(partial(ds_ts, ties="lowest"), 1, drawn={"leap": 8}),
}
NOISY = {
    THOMPSON: Rule(ns_ts, 2, queries=2),
    DIFFERENCE: Rule(partial(ns_tands, tracking="difference"), 1),
    RATIO: Rule(partial(ns_tands, tracking="ratio"), 3),
    BATCHES: Rule(partial(track_and_stop, test_every=50), 3, queries=50),
    LONG: Rule(partial(track_and_stop, test_every=5000), 8, queries=5000, time=LONG_TIME),
}
TRACKING = (RATIO, BATCHES, LONG)
OTHERS = {"difference tracking": DIFFERENCE, "NS-TS": THOMPSON}
RATIOS = ("Theorem 1", "T* log", "T* beta", "Theorem 2", "most")
FACTORS = np.geomspace(1e-3, 1e3, 241)  # candidates for c of Theorem 2
UNITY = len(FACTORS) // 2


class Bounds(NamedTuple):
    """Bounds of theory for the instances."""

    lower: np.ndarray  # (instances, deltas)           Theorem 1
    upper: np.ndarray  # (instances, deltas, factors)  Theorem 2, for c = FACTORS
    binary: np.ndarray  # (instances,)                 sum_p T*_p of single dimensions
    unit: np.ndarray  # (instances,)                   and of noise of variance 1


Cells = dict[str, dict[float, Columns]]  # rule -> delta -> the runs, with the columns of `ratios`


def run(options: Settings) -> Report:
    deltas = QUICK_DELTAS if options.quick else DELTAS
    points = instances(INSTANCES)
    theory = bounds(points, deltas)
    sweeps = {name: rule_runs(name, points, theory, deltas, options) for name in SAMPLED | NOISY}
    cells = {name: common.by_value(columns, "delta") for name, columns in sweeps.items()}
    return Report(
        f"Queries against delta, binary points: n = {N}, m = {M}, k = {K}",
        [],
        [*noisy_claims(cells), *sampled_claims(sweeps), *error_claims(cells)],
        joined(sweeps),
        partial(draw, cells=cells, theory=theory),
        notes=notes(sweeps, cells),
        grid=[row(name, delta, cell) for name, at in cells.items() for delta, cell in at.items()],
    )


def rule_runs(name: str, points: Images, theory: Bounds, deltas: Sequence[float], options: Settings) -> Columns:
    entry, heading = (SAMPLED | NOISY)[name], f"kcenter bounds: {name}"
    shared = {"rows": blocks(N, INSTANCES), "k": K, "settings": {"delta": deltas}}
    shared |= {"options": options, "seeds": options.seeds or entry.seeds}
    if name in SAMPLED:
        columns = common.image_runs(heading, entry.rule, points, drawn=entry.drawn, **shared)
        return columns | ratios(columns, deltas, theory, theory.binary, is_sampled=True)
    shared |= {"noise_scale": np.sqrt(entry.time / theory.unit), "max_rounds": LIMIT * entry.time // entry.queries}
    columns = common.distance_runs(heading, entry.rule, points.distances, **shared)
    return columns | ratios(columns, deltas, theory, np.full(INSTANCES, float(entry.time)), is_sampled=False)


# Instances and bounds


def instances(count: int) -> Images:
    """Draws the points of many instances, side by side."""
    points = common.untied(partial(kcenter.binary_rows, N, M), K, count)
    return common.as_images(np.concatenate(points), levels=BINARY_LEVELS)


def bounds(points: Images, deltas: Sequence[float]) -> Bounds:
    def of(distances: np.ndarray, solution: Greedy) -> Bounds:
        centers, at = solution.centers, np.array(deltas)
        lower = jnp.vectorize(lambda delta: sum(kcenter.lower_bound(distances, centers, delta)))(at)
        upper = jnp.vectorize(partial(kcenter.upper_bound, distances, centers, M))(at[:, None], FACTORS)
        return Bounds(lower, upper, *(noisy.times(distances, solution, scale).sum() for scale in (None, 1.0)))

    stacked = [of(*each) for each in common.solved(points.distances, blocks(N, INSTANCES), K)]
    return Bounds(*map(np.stack, zip(*stacked, strict=True)))


def needed(delta: Any) -> np.ndarray:
    return -np.log(2.4 * np.asarray(delta))


@jax.jit
@jnp.vectorize
def rate(queries: jax.Array, delta: jax.Array) -> jax.Array:
    """Computes the exploration rate "loglog" after a number of queries."""
    one = jnp.ones((), int)
    return kcenter.exploration_rate("loglog", N, K, delta=delta)(queries, one, one, one)


# The runs


def ratios(
    columns: Columns, deltas: Sequence[float], theory: Bounds, times: np.ndarray, *, is_sampled: bool
) -> dict[str, np.ndarray]:
    """Computes columns of every run: its queries over each of RATIOS, and c.

    `times` (instances,) is sum_p T*_p. Theorems 1 and 2 are about single dimensions, as is the limit.
    """
    delta, instance, queries = columns["delta"], columns["instance"], columns["pulls"]
    column, time = np.searchsorted(-np.asarray(deltas), -delta), times[instance]
    upper = theory.upper[instance, column]
    sampled = {
        "queries / Theorem 1": queries / theory.lower[instance, column],
        "queries / Theorem 2": queries / upper[:, UNITY],
        "queries / most": queries / kcenter.most_queries(N, M, K),
        "factor": FACTORS[np.argmax(queries[:, None] <= upper, axis=1)],
    }
    return {
        "queries / T* log": queries / (time * needed(delta)),
        "queries / T* beta": queries / (time * np.asarray(rate(queries, delta))),
    } | {name: values if is_sampled else np.full(len(queries), np.nan) for name, values in sampled.items()}


def shown(name: str, cells: Cells) -> list[np.ndarray]:
    """Returns the values of the figure (runs,), by delta: queries or, for noisy rules, queries / sum_p T*_p."""
    over = "queries / T* log" if name in NOISY else "pulls"
    return [cell[over] * (needed(delta) if name in NOISY else 1.0) for delta, cell in cells[name].items()]


def slope(name: str, cells: Cells) -> tuple[float, float]:
    """Fits the slope of median queries / sum_p T*_p over log(1/delta); its standard error is by bootstrap."""
    values, x = shown(name, cells), needed([*cells[name]])
    medians = np.array([np.median(runs) for runs in values])
    redrawn = np.array([np.median(np.random.default_rng(0).choice(runs, (1000, len(runs))), axis=1) for runs in values])
    fitted, samples = (np.polyfit(x, each, 1)[0] for each in (medians, redrawn))
    return float(fitted), float(samples.std())


# Claims


def noisy_claims(cells: Cells) -> list[Claim]:
    needs, beta, queries = (
        {name: np.array([np.median(cell[what]) for cell in cells[name].values()]) for name in NOISY}
        for what in ("queries / T* log", "queries / T* beta", "pulls")
    )
    slopes = {name: slope(name, cells) for name in TRACKING}
    close = f"{{}}: 1 to {MOST} times sum T* beta(q), in the median, at every delta"
    few = f"{BATCHES}: at most {MOST} times the queries of single ones, in the median, at every delta"
    more = "{} takes more queries than ratio tracking, at every delta"
    return [
        Claim(
            f"ratio tracking tends to the line of slope 1: its slope is {SLOPE[0]} to {SLOPE[1]} for the largest T*",
            ", ".join(f"{mean:.2f} +- {se:.2f} ({name})" for name, (mean, se) in slopes.items()),
            SLOPE[0] <= slopes[LONG][0] <= SLOPE[1],
        ),
        Claim(
            "ratio tracking: queries / (sum T* log(1/(2.4 delta))) falls as delta does",
            "; ".join(f"{name}: {listed(needs[name])}" for name in TRACKING),
            all(np.all(np.diff(needs[name]) < 0) for name in TRACKING),
        ),
        *(between(close.format(name), beta[name], 1, MOST) for name in (RATIO, LONG)),
        between(few, queries[BATCHES] / queries[RATIO], most=MOST),
        *(above(more.format(who), beta[name] / beta[RATIO]) for who, name in OTHERS.items()),
    ]


def sampled_claims(sweeps: Mapping[str, Columns]) -> list[Claim]:
    sampled = {name: sweeps[name] for name in SAMPLED}
    most = column(sampled.values(), "queries / most").max()
    upper = sampled[HEURISTIC]["queries / Theorem 2"].max()
    factors = {f"{name}:": columns["factor"].max() for name, columns in sampled.items()}
    fewer = {name: np.sum(columns["queries / Theorem 1"] < 1) for name, columns in sampled.items()}
    less = [f"{count} of {len(sampled[name]['row'])} ({name})" for name, count in fewer.items()]
    return [
        every_run_stops(sampled.values(), "every run that samples dimensions stops"),
        Claim("none exceeds 2 m queries for each arm", f"at most {most:.3f} of them", most <= 1),
        Claim(
            f"Theorem 2 with c = 1 suffices for every run of {HEURISTIC}",
            f"at most {upper:.2f} of it; least c for all runs: {listed(factors, '.2g', '; ')}",
            upper <= 1,
        ),
        Claim("no run takes fewer queries than Theorem 1", f"less in {'; '.join(less)}", not any(fewer.values())),
    ]


def error_claims(cells: Cells) -> list[Claim]:
    groups = {HEURISTIC: [HEURISTIC], "the other rules that sample dimensions": [*SAMPLED][1:]}
    groups |= {"the rules that see noise": [*NOISY]}
    claims = []
    for what, names in groups.items():
        counts = {delta: errors((cells[name][delta] for name in names), "ordered") for delta in cells[HEURISTIC]}
        statement = f"{what}: a share of at most delta of the answers is wrong, at every delta"
        measured = ", ".join(f"{wrong} of {ended} at {delta:g}" for delta, (wrong, ended) in counts.items())
        kept = all(wrong <= allowed(ended, delta) for delta, (wrong, ended) in counts.items())
        claims.append(Claim(statement, measured, kept))
    return claims


# Tables and figures


def row(name: str, delta: float, cell: Columns) -> dict[str, str]:
    low, middle, high = (number(round(x)) for x in np.percentile(cell["pulls"], (25, 50, 75)))
    over = {f"/ {ratio}": np.median(cell[f"queries / {ratio}"]) for ratio in RATIOS}
    cut = np.sum(cell["status"] != Status.STOPPED)
    return {
        "": name,
        "delta": f"{delta:g}",
        "queries (quartiles)": f"{middle} ({low} to {high})",
        **{head: f"{value:.3g}" if np.isfinite(value) else "-" for head, value in over.items()},
        "ordered (as a set)": matches(cell) + (f" ({cut} censored)" if cut else ""),
    }


def notes(sweeps: Mapping[str, Columns], cells: Cells) -> tuple[str, ...]:
    over = {name: sweeps[name]["queries / T* beta"] for name in TRACKING}
    late = ", ".join(f"{np.sum(times > LATE)} of {len(times)} ({name})" for name, times in over.items())
    least, end = [*cells[RATIO].items()][-1]
    return (
        f"Medians over runs on {INSTANCES} instances, the first seeds of binary_rows with unique greedy centers. T* "
        "log: sum_p T*_p log(1/(2.4 delta)); T* beta: sum_p T*_p beta(q) with the rate loglog at q queries of a run; "
        f"with single dimensions T* is for variance d (1 - d) at the bottlenecks. Theorem 2 has c = 1; most: 2 m "
        f"for each arm, {kcenter.most_queries(N, M, K):,}. Runs that saw noise are censored at {LIMIT} sum_p T*_p.",
        "Theorem 1 is no bound for these rules. It grows with log(1/delta) without limit, but m queries read an arm "
        "exactly. It counts single dimensions only, so runs stay below it where gaps are narrow or delta is small.",
        "The rate loglog is log(n^2/delta) and a little more, so that queries / (sum T* log(1/(2.4 delta))) tends to 1 "
        f"as 1/log(1/delta). At delta = {least:g} it is still {np.median(end['queries / T* log']):.2f} for ratio "
        f"tracking. The slope is 1 once forced queries are a small share. Tracking gives each arm of a stage at least "
        f"sqrt(T) - n k/2 of its T queries, in all up to {_forced(20 * TIME):.0%} of 20 T* at T* = {TIME:,} and "
        f"{_forced(20 * LONG_TIME):.0%} at {LONG_TIME:,}.",
        f"Some runs go astray, with more than {LATE} times sum T* beta queries: {late}. After few queries an "
        "important arm looks unimportant while two other nodes seem nearly tied. Those take the queries, its weight "
        "is almost 0, and it gets forced queries only, some sqrt(T) after T. Hence medians.",
    )


def _forced(queries: float) -> float:
    """Bounds the share of the last stage's queries that tracking is forced to make."""
    arms = (N - K + 1) * (K - 1)
    return min(1.0, arms * max(0.0, np.sqrt(queries) - N * K / 2) / queries)


def draw(figure: Any, *, cells: Cells, theory: Bounds) -> None:
    left, right = split(figure, (10.6, 6), 1, 2)
    deltas = np.array([*cells[RATIO]])
    inverse, x = 1 / deltas, needed(deltas)
    for axes, names, places, shift in ((left, SAMPLED, inverse, 1.25), (right, NOISY, x, 1.02)):
        for style, name in enumerate(names):
            label = f"NS-TandS, {name}" if name in NOISY and name != THOMPSON else name
            quantiles(axes, places * shift ** (style - 1.5), shown(name, cells), label, style, at=(0.25, 0.75))
    left.plot(inverse, np.median(theory.lower, axis=0), "k-", lw=1.2, label="Theorem 1")
    left.plot(inverse, np.median(theory.upper[..., UNITY], axis=0), "k--", lw=1.2, label="Theorem 2, c = 1")
    left.plot(inverse, np.full(len(inverse), kcenter.most_queries(N, M, K)), "k:", lw=1.2, label="2 m for each arm")
    left.set(xlabel=r"$1/\delta$", ylabel="queries (median; bars: quartiles)")

    fine = np.geomspace(deltas[0], deltas[-1], 60)
    queries = np.full_like(fine, TIME)
    for _ in range(20):
        queries = TIME * np.asarray(rate(queries, fine))
    right.plot(needed(fine), queries / TIME, color="#888888", lw=1.2, label=r"$\beta(q)$, rate loglog")
    right.plot(needed(fine), needed(fine), "k-", lw=1.2, label=r"$\log(1/(2.4\,\delta))$: slope 1")
    right.set(xlabel=r"$\log(1/(2.4\,\delta))$", ylabel=r"queries / $\Sigma_p\, T^*_p$")
    for axes, title in ((left, "dimension sampling"), (right, "noisy distances")):
        axes.set(xscale="log", yscale="log")
        axes.set_title(title, fontsize=11)
        legend_under(axes, fontsize=8)
    ticks(right, (2, 5, 10, 20))
    ticks(right, (2, 5, 10, 20, 50, 100, 200), axis="y")
