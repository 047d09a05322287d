"""Questions about the means of linear arms, for the rules of `linear_glr`: the answer, and all its alternatives."""

from collections.abc import Callable

import numpy as np

from experiments.bench.reference.linear_glr import Alternative, Question, Statistics


def top_m(m: int) -> Question:
    """Returns the question for the m best items; an alternative swaps one inside with one outside."""

    def question(items: np.ndarray, theta: np.ndarray, noise_scale: float) -> tuple[np.ndarray, list[Alternative]]:
        del noise_scale
        means = items @ theta
        best = sorted(range(len(items)), key=lambda i: (-means[i], i))[:m]
        answer = np.isin(np.arange(len(items)), best)
        directions = [items[i] - items[j] for i in np.flatnonzero(answer) for j in np.flatnonzero(~answer)]
        return answer, [Alternative(y, float(y @ theta)) for y in directions]

    return question


def above(level: float) -> Question:
    """Returns the question for all items above a level; an alternative moves one mean to the level."""

    def question(items: np.ndarray, theta: np.ndarray, noise_scale: float) -> tuple[np.ndarray, list[Alternative]]:
        means = items @ theta
        # The mean of an item without features is known.
        distances = [(x, abs(float(x @ theta) - level / noise_scale)) for x in items if x.any()]
        return means > level / noise_scale, [Alternative(*each) for each in distances]

    return question


def pairs_of(m: int) -> Callable[[Statistics, np.ndarray], list[tuple[int, int]]]:
    """Returns the function that lists the two arms of each alternative to the m best arms, which are the items."""

    def pairs(stats: Statistics, arms: np.ndarray) -> list[tuple[int, int]]:
        best = sorted(range(len(arms)), key=lambda i: (-(arms[i] @ stats.theta), i))[:m]
        return [(i, j) for i in sorted(best) for j in range(len(arms)) if j not in best]

    return pairs
