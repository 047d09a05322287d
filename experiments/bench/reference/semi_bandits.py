"""Algorithms that play whole actions, transcribed into plain NumPy: every action and every rival is listed.

`tape[k, n]` is sample n of arm k. A rule is (t, counts, means, answer, numbers of the round) -> action.
"""

from collections.abc import Callable, Sequence
from math import fsum, inf, log
from typing import Any, NamedTuple

import numpy as np

Rule = Callable[[int, np.ndarray, np.ndarray, np.ndarray, Any], np.ndarray]
Stop = Callable[[int, np.ndarray, np.ndarray, np.ndarray], bool]


class Round(NamedTuple):
    counts: np.ndarray  # (K,), before the round
    decision: np.ndarray  # (K,), the action
    stop: bool
    answer: np.ndarray  # (K,)


def maximum(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Returns the best row; among ties the lexicographically last, which holds the lowest index."""
    return max(rows.tolist(), key=lambda row: (fsum(weights[k] for k in range(len(row)) if row[k]), row))


def ratio(rows: np.ndarray, counts: np.ndarray, means: np.ndarray, best: np.ndarray, scale: float) -> float:
    """Computes the smallest half of squared gap over variance of the gap, over all other actions."""
    values = []
    for row in rows:
        differs = row != best
        if differs.any():
            gap = fsum(means[differs] * np.where(best[differs] > 0, 1, -1))
            values.append(gap**2 / (2 * scale**2 * np.sum(1 / counts[differs])))
    return min(values)


def likely(rows: np.ndarray, delta: float, scale: float) -> Stop:
    """Returns the test whether the likelihood ratio exceeds gk16."""

    def stop(t: int, counts: np.ndarray, means: np.ndarray, best: np.ndarray) -> bool:
        return ratio(rows, counts, means, best, scale) > log((1 + log(t)) / delta)

    return stop


def plays(
    rows: np.ndarray,
    tape: np.ndarray,
    rule: Rule,
    *,
    cover: np.ndarray,
    stop: Stop = lambda *_: False,
    numbers: Sequence[Any] | None = None,
    rounds: float = inf,
) -> list[Round]:
    """Returns every round up to the stop."""
    K = len(tape)
    counts, rounds_made = np.zeros(K, int), []
    while len(rounds_made) < rounds:
        t, is_ready = len(rounds_made), counts.min() > 0
        means = np.array([np.cumsum(tape[k, :n])[-1] / n for k, n in enumerate(counts)]) if is_ready else np.zeros(K)
        best = np.array(maximum(rows, means))
        stops = bool(is_ready and stop(t, counts, means, best))
        number = None if numbers is None else numbers[t]
        decision = cover[t] if t < len(cover) else np.array(rule(t, counts, means, best, number))
        rounds_made.append(Round(counts.copy(), decision, stops, best))
        if stops:
            break
        counts += decision
    return rounds_made


def semi_clucb(rows: np.ndarray, delta: float, scale: float) -> tuple[Rule, Stop]:
    def bounds(t, counts, means, best):
        radii = scale * np.sqrt(2 * log(4 * len(counts) * t**3 / delta) / counts)
        weights = np.where(best > 0, means - radii, means + radii)
        rival = np.array(maximum(rows, weights))
        return radii, weights, rival

    def rule(t, counts, means, best, _):
        radii, _, rival = bounds(t, counts, means, best)
        return maximum(rows, np.where(best != rival, radii, 0))

    def stop(t, counts, means, best):
        _, weights, rival = bounds(t, counts, means, best)
        return fsum(weights * (rival - best)) <= 0

    return rule, stop


def round_robin(listed: np.ndarray) -> Rule:
    return lambda t, *_: listed[t % len(listed)]


def cucb(rows: np.ndarray, scale: float) -> Rule:
    return lambda t, counts, means, *_: maximum(rows, means + scale * np.sqrt(6 * log(t) / counts))


def cts(rows: np.ndarray, scale: float) -> Rule:
    return lambda t, counts, means, _, z: maximum(rows, means + scale * z / np.sqrt(counts))


def small_cover(rows: np.ndarray) -> np.ndarray:
    uncovered, cover = np.ones(rows.shape[1]), []
    while uncovered.any():
        cover.append(np.array(maximum(rows, uncovered)))
        uncovered = uncovered * (1 - cover[-1])
    return np.array(cover)
