"""What the experiments on noisy distances share: how long a run should take, and runs that end at a budget of queries.

A run for ten centers also says when it had three, and so does one that reached its budget later.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.figures import side_by_side, split
from experiments.kcenter import common
from experiments.kcenter.common import DELTA
from experiments.report import Columns, mean_se, number
from jaxbandits.kcenter import Greedy, PairPull, ns_ts, stage_times
from jaxbandits.kcenter._intervals import least_k1

ALPHA = 1.1  # of the intervals
K1 = least_k1(ALPHA)


class Cell(NamedTuple):
    """The runs of one rule on one instance, until the first k centers."""

    queries: np.ndarray  # int64 (reached,)  of the runs that found so many
    runs: int
    ordered: int  # that found exactly greedy's
    members: int  # that found them in some order

    @property
    def mean(self) -> float:
        """Infinite if a run was censored: no mean is known then."""
        return float(self.queries.mean()) if len(self.queries) == self.runs else np.inf

    @property
    def se(self) -> float:
        """Of the mean; NaN where there is none."""
        return float(mean_se(self.queries)[1]) if len(self.queries) == self.runs else np.nan


def cell(columns: Columns, k: int) -> Cell:
    """These runs."""
    match = {name: int(runs.sum()) for name, runs in common.matches_until(columns, k).items()}
    reached = columns["answer.found"] >= k
    return Cell(common.queries_until(columns, k)[reached], len(reached), **match)


def cells_by_instance(columns: Columns, k: int) -> list[Cell]:
    """Those on every instance."""
    return [cell(runs, k) for runs in common.by_value(columns, "instance").values()]


def cells_by_mix(columns: Columns, k: int) -> dict[float, list[Cell]]:
    """Of every mix on every instance."""
    return {mix: cells_by_instance(runs, k) for mix, runs in common.by_value(columns, "mix").items()}


def matches(cells: Iterable[Cell]) -> str:
    """How many of the runs that reached the center have greedy's centers in order and, in brackets, as a set."""
    counts = [(each.ordered, each.members, len(each.queries)) for each in cells]
    return "{} ({}) of {}".format(*np.sum(counts, axis=0))


def thompson_runs(heading: str, *, mixes: Sequence[float], limit: int, **shared: Any) -> dict[str, np.ndarray]:
    """Runs of NS-TS until the k-th center, or until they have taken `limit` queries; as `distance_runs`."""
    shared |= {"action": PairPull, "settings": {"mix": mixes}, "max_rounds": limit // 2}
    return common.distance_runs(heading, partial(ns_ts, delta=DELTA), **shared)


def wrong(columns: Columns) -> int:
    """How many runs found another center than greedy's where they should have found that one."""
    centers = columns["answer.indices"]
    is_found = np.arange(centers.shape[1]) < columns["answer.found"][:, None]
    return int(np.any(is_found & (centers != columns["greedy"]), axis=1).sum())


def times(distances: np.ndarray, solution: Greedy, noise_scale: float | None) -> np.ndarray:
    """T* of every stage (k-1,); `noise_scale` None: of Bernoulli rewards at each stage's bottleneck."""
    d = solution.bottlenecks
    scale = np.sqrt(d * (1 - d)) if noise_scale is None else noise_scale
    return np.asarray(stage_times(distances, solution.centers, noise_scale=scale))


def expected(times: np.ndarray, n: int) -> np.ndarray:
    """The queries (k-1,) that two nodes with intervals of one width take to come apart, 2 beta T* a stage.

    beta = log(k1 t^alpha n^2 / delta) at the t = beta T* queries that each of the two has by then.
    """
    beta = np.full_like(times, 10.0)
    for _ in range(50):
        beta = np.log(K1 * n**2 / DELTA) + ALPHA * np.log(np.maximum(beta * times, 1))
    return 2 * beta * times


def quantiles(means: np.ndarray, limit: float, unit: float) -> str:
    """Median and range over instances; those that did not end are the longest, and only known to exceed the limit."""

    def shown(value: float) -> str:
        return number(value / unit) if np.isfinite(value) else f"> {number(limit / unit)}"

    return common.spread(means, shown)


def slashed(values: Iterable[float], unit: float = 1.0) -> str:
    """Numbers side by side, as 31/27/29."""
    return "/".join(common.three_digits(value / unit) for value in values)


def slashed_means(cells: Sequence[Cell], unit: float) -> str:
    """Means side by side, then their standard errors, if they are known."""
    means, errors = (slashed((getattr(each, name) for each in cells), unit) for name in ("mean", "se"))
    return f"{means} +- {errors}" if any(np.isfinite(each.se) for each in cells) else means


def draw_by_place(figure: Any, places: Iterable[tuple[int, int]], title: str) -> Any:
    """Axes with a place for every n and k."""
    axes = split(figure, (8, 4.8), 1, 1)
    side_by_side(axes, [f"{n}\n{k}" for n, k in places], yscale="log", ylabel="queries", title=title)
    axes.set_xlabel("n (above), k (below)")
    return axes
