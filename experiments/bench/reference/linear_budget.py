"""Fixed budgets and regret on linear bandits, transcribed from their papers into NumPy."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np


class Phase(NamedTuple):
    """One phase: its pulls, then the estimate and the active arms after it."""

    counts: np.ndarray  # (K,)
    theta: np.ndarray  # (d,)
    active: list[int]


Rewards = Callable[[int, np.ndarray], np.ndarray]  # (phase, counts) -> sums of the arms' rewards
Separate = Callable[[list[int]], tuple[np.ndarray, float]]  # (active arms) -> the XY design and its value


# A budget in phases


def od_linbai(arms: np.ndarray, horizon: int, rewards: Rewards, *, steps: int) -> list[Phase]:
    """Runs Algorithm 1 of Yang and Tan (2022)."""
    K, d = arms.shape
    R = int(np.ceil(np.log2(d)))
    m = (horizon - min(K, d * (d + 1) / 2) - sum(np.ceil(d / 2**r) for r in range(1, R))) / R
    active, phases = list(range(K)), []
    for r in range(1, R + 1):
        _, values, axes = np.linalg.svd(arms[active], full_matrices=False)
        points = (
            arms[active] @ axes[: np.sum(values > 1e-8 * values[0])].T
        )  # coordinates in the subspace that they span
        counts = np.zeros(K, int)
        counts[active] = np.ceil(
            determinant_design(points, steps) * m * (1 - 1e-6)
        )  # rounding errors alone must not raise the ceiling
        sums = rewards(r - 1, counts)
        theta = np.linalg.lstsq(np.sqrt(counts)[:, None] * arms, sums / np.sqrt(np.maximum(counts, 1)), rcond=None)[0]
        active = sorted(active, key=lambda k: -arms[k] @ theta)[: int(np.ceil(d / 2**r))]
        phases.append(Phase(counts, theta, active))
    return phases


def determinant_design(points: np.ndarray, steps: int) -> np.ndarray:
    """Computes the D-optimal shares, which are also G-optimal, by multiplicative updates."""
    w = np.full(len(points), 1 / len(points))
    for _ in range(steps):
        inverse = np.linalg.inv(points.T @ (w[:, None] * points))
        w = w * np.einsum("kd,de,ke->k", points, inverse, points) / points.shape[1]
    w = np.where(w < 1e-7, 0, w)
    return w / w.sum()


def peace(arms: np.ndarray, horizon: int, rewards: Rewards, separate: Separate) -> list[Phase]:
    """Runs Algorithm 2 of Katz-Samuels et al. (2020), with the design's value instead of the Gaussian width."""
    K = len(arms)
    active, phases = list(range(K)), []
    E = epochs(separate, K)
    for epoch in range(E):
        shares, value = separate(active)
        n = horizon // E if epoch < E - 1 else horizon - (E - 1) * (horizon // E)
        counts = pukelsheim(shares, n)
        sums = rewards(epoch, counts)
        theta = np.linalg.lstsq(np.sqrt(counts)[:, None] * arms, sums / np.sqrt(np.maximum(counts, 1)), rcond=None)[0]
        order = sorted(active, key=lambda k: -arms[k] @ theta)
        if epoch < E - 1:  # every prefix, the longest first
            active = next(order[:n] for n in range(len(order), 0, -1) if n == 1 or separate(order[:n])[1] <= value / 2)
        else:
            active = order
        phases.append(Phase(counts, theta, active))
        if len(active) == 1:
            break
    return phases


def epochs(separate: Separate, K: int) -> int:
    return max(1, int(np.ceil(np.log2(separate(list(range(K)))[1]))))


def pukelsheim(shares: np.ndarray, n: int) -> np.ndarray:
    """Rounds n pulls efficiently. If there are enough for all, every arm without a share gets one of them.

    Ties of shares are broken by order here and by lots in the library: compare them on arms in general position.
    """
    counts = np.zeros(len(shares), int)
    if n >= len(shares):
        counts[shares == 0] = 1
    (support,) = np.nonzero(shares)
    n, p = n - counts.sum(), shares[support]
    if n < len(p):
        counts[support[np.argsort(-p, kind="stable")[:n]]] = 1
        return counts
    N = np.ceil((n - len(p) / 2) * p)
    while N.sum() != n:
        if N.sum() > n:
            N[np.argmax((N - 1) / p)] -= 1
        else:
            N[np.argmin(N / p)] += 1
    counts[support] = N
    return counts


# A budget by random pulls: the pulls and their rewards are given


class Batch(NamedTuple):
    """Pulls under one design."""

    shares: np.ndarray  # (K,)   design
    estimates: np.ndarray  # (d,)   sum of A(w)^-1 x r over all pulls before
    n: int  # pulls


Given = Sequence[tuple[np.ndarray, np.ndarray]]  # (counts, sums) of each batch


def p1_rage(arms: np.ndarray, horizon: int, given: Given, separate: Separate, first: np.ndarray) -> list[Batch]:
    """Runs Algorithms 2 and 3 of Xiong et al. (2024) in batches, of which the last pulls nothing.

    `first` is the G design.
    """
    L = horizon // epochs(separate, len(arms))
    w, estimates, t, batches = first, np.zeros(arms.shape[1]), 0, []
    for counts, sums in given:
        batches.append(Batch(w, estimates, min(L, horizon - t) if t else 1))
        assert counts.sum() == batches[-1].n
        estimates = estimates + np.linalg.solve(arms.T @ (w[:, None] * arms), arms.T @ sums)
        t += int(counts.sum())
        gaps = (arms @ estimates).max() - arms @ estimates
        active, designs = list(range(len(arms))), []
        while len(active) > 1 and len(designs) < 15:
            designs.append(separate(active)[0])
            active = [k for k in active if gaps[k] / t <= 2.0 ** -len(designs)]
        w = np.mean(designs, axis=0) / 2 + first / 2
    return [*batches, Batch(w, estimates, 0)]


# Regret


def regret(arms: np.ndarray, tape: np.ndarray, *, ridge: float, index: Callable, rounds: int) -> list[tuple[int, int]]:
    """Returns (arm, answer) of every round; `index(t, theta, A)` returns the index of every arm."""
    K, d = arms.shape
    A, b, counts, rounds_made = ridge * np.eye(d), np.zeros(d), np.zeros(K, int), []
    for t in range(rounds):
        theta = np.linalg.solve(A, b)
        arm = int(np.argmax(index(t, theta, A)))
        rounds_made.append((arm, int(np.argmax(arms @ theta))))
        b = b + tape[arm, counts[arm]] * arms[arm]
        A = A + np.outer(arms[arm], arms[arm])
        counts[arm] += 1
    return rounds_made


def radius(A: np.ndarray, *, delta: float, norm_bound: float, ridge: float, noise_scale: float) -> float:
    """Computes the radius of Theorem 2 of Abbasi-Yadkori et al. (2011)."""
    logdet = np.linalg.slogdet(A / ridge)[1]
    return noise_scale * np.sqrt(logdet + 2 * np.log(1 / delta)) + np.sqrt(ridge) * norm_bound


def lin_ucb(arms: np.ndarray, **settings: float) -> Callable:
    def index(t: int, theta: np.ndarray, A: np.ndarray) -> np.ndarray:
        widths = np.sqrt(np.einsum("kd,de,ke->k", arms, np.linalg.inv(A), arms))
        return arms @ theta + radius(A, **settings) * widths

    return index


def lin_ts(
    arms: np.ndarray, normals: np.ndarray, *, horizon: int, scale: float | None, delta: float, **settings: float
) -> Callable:
    """Returns the index of Abeille and Lazaric (2017), with given standard normals (rounds, d)."""

    def index(t: int, theta: np.ndarray, A: np.ndarray) -> np.ndarray:
        v = radius(A, delta=delta / (4 * horizon), **settings) if scale is None else scale * settings["noise_scale"]
        return arms @ (theta + v * np.linalg.solve(np.linalg.cholesky(A).T, normals[t]))

    return index
