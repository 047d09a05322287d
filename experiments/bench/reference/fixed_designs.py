"""The fixed designs, transcribed from the papers into plain NumPy, pull by pull. Each test inverts A anew."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


def confidence_radius(
    n: int, arms: int, *, delta: float, noise_scale: float = 1.0, union_power: int = 2, radius: str = "azuma"
):
    if radius == "azuma":
        return 2 * noise_scale * np.sqrt(2 * np.log(6 * n**2 * arms**union_power / (delta * np.pi**2)))
    return noise_scale * np.sqrt(2 * np.log(np.pi**2 * n**2 * arms**union_power / (3 * delta)))


def next_arm(allocation: np.ndarray, counts: np.ndarray) -> int:
    """Returns the next arm to track: every arm once, then the arm of the support with the smallest count over share."""
    if not counts.all():
        return int(np.argmin(counts > 0))
    behind = [c / p if p > 0 else np.inf for c, p in zip(counts, allocation, strict=True)]
    return int(np.argmin(behind))


def estimate(arms: np.ndarray, counts: np.ndarray, sums: np.ndarray, ridge: float = 0.0):
    A = sum((c * np.outer(x, x) for c, x in zip(counts, arms, strict=True)), ridge * np.eye(arms.shape[1]))
    inverse = np.linalg.inv(A)
    return inverse @ (arms.T @ sums), inverse


def norm(y: np.ndarray, inverse: np.ndarray) -> float:
    return float(np.sqrt(y @ inverse @ y))


class Test(NamedTuple):
    n: int
    counts: tuple[int, ...]
    answer: int
    stop: bool


def xy_static(
    arms: np.ndarray,
    allocation: np.ndarray,
    tape: np.ndarray,  # float (K, N): the m-th reward of arm k
    *,
    ridge: float = 0.0,
    growth: float = 0.0,
    **confidence,
) -> list[Test]:
    """Returns every test of the rule up to the stop."""
    K = len(arms)
    counts, sums = np.zeros(K, int), np.zeros(K)
    tests, n, due = [], 0, K
    while True:
        arm = next_arm(allocation, counts)
        sums[arm] += tape[arm, counts[arm]]
        counts[arm] += 1
        n += 1
        if n < due:
            continue
        theta, inverse = estimate(arms, counts, sums, ridge)
        i = int(np.argmax(arms @ theta))
        c = confidence_radius(n, K, **confidence)
        stop = all(c * norm(arms[i] - x, inverse) <= (arms[i] - x) @ theta for x in np.delete(arms, i, axis=0))
        tests.append(Test(n, tuple(counts.tolist()), i, stop))
        if stop:
            return tests
        due = n + max(1, int(growth * n))


class Phase(NamedTuple):
    counts: tuple[int, ...]
    width: float
    members: tuple[bool, ...]


def xy_adaptive(
    arms: np.ndarray,
    solve: Callable[[list[np.ndarray]], np.ndarray],  # (differences of members) -> allocation
    rewards: Callable[[int, np.ndarray], np.ndarray],  # (phase, counts) -> sums of rewards
    *,
    alpha: float,
    first_width: float,
    keep_eliminated: bool,
    max_phases: int,
    **confidence,
) -> list[Phase]:
    """Returns every phase up to the stop."""
    K = len(arms)
    members, width, phases = set(range(K)), first_width, []
    while len(members) > 1 and len(phases) < max_phases:
        differences = [arms[i] - arms[k] for i in members for k in members if i < k]
        allocation = solve(differences)
        counts, goal = np.ones(K, int), alpha * width
        while True:
            _, inverse = estimate(arms, counts, np.zeros(K))
            width = max(norm(y, inverse) ** 2 for y in differences)
            if width <= goal:
                break
            counts[next_arm(allocation, counts)] += 1
        theta, inverse = estimate(arms, counts, rewards(len(phases), counts))
        c = confidence_radius(counts.sum(), K, **confidence)

        remaining = set()
        for k, x in enumerate(arms):
            leads = np.delete(arms, k, axis=0) - x
            if not any(c * norm(y, inverse) <= y @ theta for y in leads):
                remaining.add(k)
        if keep_eliminated:
            remaining = remaining & members or {max(members, key=lambda k: arms[k] @ theta)}
        members = remaining
        phases.append(Phase(tuple(counts.tolist()), width, tuple(k in members for k in range(K))))
    return phases
