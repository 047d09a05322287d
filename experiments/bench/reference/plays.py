"""P-FWS and CombGame, transcribed into plain NumPy: every action listed, one play at a time.

The transcriptions use no swaps: they search the hardest rival among all actions.
"""

from math import ceil, inf, isqrt, log, sqrt
from typing import NamedTuple

import numpy as np


class Round(NamedTuple):
    action: tuple[int, ...]
    counts: tuple[int, ...]
    stop: bool
    answer: tuple[int, ...] | None  # None until every arm is sampled


def trees(nodes: int, edges) -> np.ndarray:
    """Lists all spanning trees as 0/1 rows in falling lexicographic order, so that the first of a tie is found."""
    spanning = []

    def grow(kept, edge):
        if len(kept) == nodes - 1:
            spanning.append(kept)
            return
        if edge == len(edges):
            return
        names = list(range(nodes))
        for used in kept:
            one, other = (names[end] for end in edges[used])
            names = [one if name == other else name for name in names]
        if names[edges[edge][0]] != names[edges[edge][1]]:
            grow((*kept, edge), edge + 1)
        grow(kept, edge + 1)

    grow((), 0)
    rows = np.zeros((len(spanning), len(edges)), int)
    for row, arms in zip(rows, spanning, strict=True):
        row[list(arms)] = 1
    return rows


def greedy(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Returns the best action of a matroid: the heaviest arms first, the lowest index first among ties."""
    chosen = np.zeros(rows.shape[1], int)
    for arm in np.argsort(-weights, kind="stable"):
        chosen[arm] = 1
        if not np.any(rows @ chosen == chosen.sum()):
            chosen[arm] = 0
    return chosen


def listed(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Returns the best action of any class."""
    return rows[np.argmax(rows @ weights)]


def hardest(rows, best, means, weight):
    """Returns the smallest gap^2 / (2 sum of 1 / weight), its action, and its gap / sum of 1 / weight."""
    rivals = rows[np.any(rows != best, axis=1)]
    gap = (best - rivals) @ means
    spread = (best != rivals) @ (1 / weight)
    at = np.argmin(gap**2 / (2 * spread))
    return gap[at] ** 2 / (2 * spread[at]), rivals[at], gap[at] / spread[at]


def gk16(t: int, delta: float) -> float:
    return log((1 + log(t)) / delta)


def _means(tape, counts):
    return np.array([tape[arm, :n].mean() for arm, n in enumerate(counts)])


def pfws(rows, tape, points, *, delta, cover, draws, noise_scale=1.0, maximum=greedy, rounds=inf) -> list[Round]:
    """Returns every round up to the stop. `points[t]` (draws, K) are the draws of play t, in the unit ball."""
    K, M = rows.shape[1], len(cover)
    counts, rounds_made = np.zeros(K, int), []
    t = -1
    while True:
        t, stop, answer = t + 1, False, None
        if t >= M:
            means, omega = _means(tape, counts), counts / t
            answer = maximum(rows, means)
            value, *_ = hardest(rows, answer, means, counts)
            stop = value / noise_scale**2 > gk16(t, delta)
        if isqrt(t // M) ** 2 == t // M:
            action = cover[t % M]
        else:
            gradient = np.zeros(K)
            for z in points[t][: min(draws, ceil(t**0.25))]:
                w = omega + z / (4 * sqrt(t * M))
                assert np.all(w >= 0.75 * omega)
                _, rival, slope = hardest(rows, answer, means, w)
                gradient += (rival != answer) * slope**2 / (2 * w**2)
            action = maximum(rows, gradient)
        rounds_made.append(Round(tuple(action), tuple(counts), stop, None if answer is None else tuple(answer)))
        if stop or len(rounds_made) >= rounds:
            return rounds_made
        counts = counts + action


def combgame(rows, tape, *, delta, cover, capacity, diameter, noise_scale=1.0, maximum=greedy, rounds=inf):
    """Returns every round up to the stop."""
    K, M = rows.shape[1], len(cover)
    counts, rounds_made = np.zeros(K, int), []
    start = cover.mean(axis=0)
    w, gains, strength = start.copy(), np.zeros(K), 0.0
    weights: dict[tuple[int, ...], list[float]] = {}  # action -> its weight and its plays, in the order of rows
    for action in map(tuple, cover):
        weight, plays = weights.get(action, (0.0, 0))
        weights[action] = [weight + 1 / M, plays + 1]
    table = [[action, *numbers] for action, numbers in weights.items()]
    t = -1
    while True:
        t += 1
        if t < M:
            action, stop, answer = tuple(cover[t]), False, None
        else:
            means = _means(tape, counts) / noise_scale
            answer = maximum(rows, means)
            stop = hardest(rows, answer, means, counts)[0] > gk16(t, delta)
            gamma = t**-0.25
            proposed = tuple(maximum(rows, gains - strength * w))
            _, rival, slope = hardest(rows, answer, means, w)
            slack = log(t) / counts
            moved = (rival != answer) * slope / w
            gains = gains + gamma * start / diameter + np.maximum((moved + np.sqrt(2 * slack)) ** 2 / 2, slack)
            strength += gamma / diameter
            w = (1 - gamma) * w + gamma * np.array(proposed)
            slot = next((n for n, row in enumerate(table) if row[0] == proposed), None)
            if slot is None and len(table) < capacity:
                slot = len(table)
                table.append([proposed, 0.0, 0])
            elif slot is None:
                slot = int(np.argmin([row[1] for row in table]))
                table[slot] = [proposed, 0.0, 0]
            for n, row in enumerate(table):
                row[1] = (1 - gamma) * row[1] + gamma * (n == slot)
            played = table[int(np.argmin([n / weight if n else 0.0 for _, weight, n in table]))]
            action = played[0]
        rounds_made.append(Round(tuple(action), tuple(counts), stop, None if answer is None else tuple(answer)))
        if stop or len(rounds_made) >= rounds:
            return rounds_made
        if t >= M:
            played[2] += 1
        counts = counts + np.array(action)
