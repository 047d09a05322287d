"""Shared parts of the experiments on noisy distances: expected lengths of runs, and runs that end at a budget.

A run for ten centers also shows when it had three, even if it reached its budget later; see `common.until`.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from experiments.figures import side_by_side, split
from experiments.kcenter import common
from experiments.kcenter.common import DELTA
from experiments.report import Columns, Line, line_of
from jaxbandits.kcenter import Greedy, stage_times
from jaxbandits.kcenter._shared.intervals import least_k1

ALPHA = 1.1  # exponent of the intervals
K1 = least_k1(ALPHA)


def known(line: Line) -> Line:
    """Replaces a mean of queries by infinity if a run was censored, since the mean is then unknown."""
    return line._replace(ours=np.inf, se=np.nan) if line.censored or line.failed else line


def by_instance(columns: Columns, unit: float = 1.0) -> list[Line]:
    """Returns the queries on every instance, if they are known."""
    return [known(line_of("", runs, unit=unit)) for runs in common.by_value(columns, "instance").values()]


def times(distances: np.ndarray, solution: Greedy, noise_scale: float | None) -> np.ndarray:
    """Computes T* of every stage (k-1,). If `noise_scale` is None, rewards are Bernoulli at the stage's bottleneck."""
    d = solution.bottlenecks
    scale = np.sqrt(d * (1 - d)) if noise_scale is None else noise_scale
    return np.asarray(stage_times(distances, solution.centers, noise_scale=scale))


def expected(times: np.ndarray, n: int) -> np.ndarray:
    """Computes the queries (k-1,) until the intervals of two nodes, of equal width, are disjoint: 2 beta T* per stage.

    beta = log(k1 t^alpha n^2 / delta), at the t = beta T* queries that each node then has.
    """
    beta = np.full_like(times, 10.0)
    for _ in range(50):
        beta = np.log(K1 * n**2 / DELTA) + ALPHA * np.log(np.maximum(beta * times, 1))
    return 2 * beta * times


def slashed(values: Iterable[float]) -> str:
    """Formats numbers side by side, as 31/27/29."""
    return "/".join(map(common.rounded, values))


def slashed_means(lines: Iterable[Line]) -> str:
    """Formats means side by side, then their standard errors, if known."""
    means, errors = zip(*((each.ours, each.se) for each in map(known, lines)), strict=True)
    return slashed(means) + (f" +- {slashed(errors)}" if np.isfinite(errors).any() else "")


def draw_by_place(figure: Any, places: Iterable[tuple[int, int]], title: str) -> Any:
    """Creates axes with a position for every n and k."""
    axes = split(figure, (8, 4.8), 1, 1)
    side_by_side(axes, [f"{n}\n{k}" for n, k in places], yscale="log", ylabel="queries", title=title)
    axes.set_xlabel("n (above), k (below)")
    return axes
