"""RAGE, transcribed from its paper into NumPy: one pass over sets of items, pulls counted one by one."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Phase(NamedTuple):
    """Pulls of a phase, and the active items after it."""

    counts: tuple[int, ...]
    theta: np.ndarray  # (d,)
    active: tuple[bool, ...]
    answer: int
    stop: bool


def rounded(allocation: np.ndarray, n: int) -> np.ndarray:
    """Computes the efficient rounding of Pukelsheim and Rieder (1992)."""
    support = [k for k, p in enumerate(allocation) if p > 0]
    counts = np.zeros(len(allocation), int)
    for k in support:
        counts[k] = max(1, np.ceil((n - len(support) / 2) * allocation[k]))
    while counts.sum() > n:
        counts[max(support, key=lambda k: (counts[k] - 1) / allocation[k])] -= 1
    while counts.sum() < n:
        counts[min(support, key=lambda k: counts[k] / allocation[k])] += 1
    return counts


def spanning(arms: np.ndarray) -> np.ndarray:
    """Marks d arms that span R^d by 1: each has the largest part orthogonal to the arms before it."""
    chosen: list[int] = []
    for _ in range(arms.shape[1]):
        basis = np.linalg.qr(arms[chosen].T)[0] if chosen else np.zeros((arms.shape[1], 0))
        squares = np.sum((arms - arms @ basis @ basis.T) ** 2, axis=1)
        chosen.append(int(np.argmax(squares >= (1 - 1e-5) * squares.max())))  # first of the longest
    return np.isin(np.arange(len(arms)), chosen).astype(int)


def rage(
    arms: np.ndarray,
    items: np.ndarray,
    solve: Callable[[list[np.ndarray]], tuple[np.ndarray, float]],  # (differences) -> allocation and its value
    rewards: Callable[[int, np.ndarray], np.ndarray],  # (phase, counts) -> sums of rewards
    *,
    delta: float,
    epsilon: float = 0.0,
    noise_scale: float = 1.0,
    rounding: float = 0.1,
    reuse: bool = False,
    against: str = "all",
    max_phases: int = 20,
) -> list[Phase]:
    """Returns every phase up to the stop."""
    d, M = arms.shape[1], len(items)
    active, phases, leader = set(range(M)), [], 0
    V, b = np.eye(d), np.zeros(d)  # sums over all phases
    once = np.ones(len(arms), int) if against == "all" else spanning(arms)
    for t in range(1, max_phases + 1):
        if against == "all":
            allocation, value = solve([items[i] - items[j] for i in active for j in active if i < j])
        else:
            allocation, value = solve([items[i] - items[leader] for i in active if i != leader])
        c = 2 * noise_scale**2 * np.log(2 * M**2 * t**2 / delta)
        precise = int(np.ceil(c * 4**t * value * (1 + rounding)))
        counts = rounded(allocation, max(precise, int(np.ceil((allocation > 0).sum() * (1 + rounding) / rounding))))
        if not reuse:
            counts = np.maximum(counts, once)
        elif t == 1:
            counts = counts + once
        sums = rewards(t - 1, counts)
        gram, response = arms.T @ (counts[:, None] * arms), arms.T @ sums
        V, b = V + gram, b + response
        A, theta = (V, np.linalg.solve(V, b)) if reuse else (gram, np.linalg.solve(gram, response))

        def width(i: int, j: int, A: np.ndarray = A, c: float = c) -> float:
            y = items[i] - items[j]
            return np.sqrt(c * (y @ np.linalg.solve(A, y)))

        leader = max(sorted(active), key=lambda i: items[i] @ theta)
        winners = active if against == "all" else {leader}
        out = {j for j in active for i in winners if i != j and width(i, j) <= (items[i] - items[j]) @ theta}
        active = active - out or {leader}
        stop = len(active) == 1 or 2.0 ** ((1 if against == "all" else 2) - t) <= epsilon
        answer = leader = max(sorted(active), key=lambda i: items[i] @ theta)
        phases.append(Phase(tuple(counts.tolist()), theta, tuple(i in active for i in range(M)), answer, stop))
        if stop:
            break
    return phases
