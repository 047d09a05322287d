"""SAQM. All lanes make the same pulls, so they share the inverse and the densest subgraph of every round."""

from typing import NamedTuple

import numpy as np

from experiments.bench.reference.fullbandit import ellipsoid
from experiments.bench.reference.over_lanes.loop import Rule


class State(NamedTuple):
    moments: np.ndarray  # (n, lanes) with the lanes first in memory, sums of rewards times super-arms
    shared: dict[str, np.ndarray]  # counts (s,), gram (n, n) of all pulls


def saqm(
    support: np.ndarray,  # 0/1 (s, n)
    weights: np.ndarray,  # (s,)
    k: int,
    *,
    delta: float,
    epsilon: float,
    noise_scale: float,
    alpha: float = 0.9,
) -> Rule:
    """Builds SAQM with a test after every pull once each super-arm was pulled. Actions are super-arms, one for all."""
    s, n = support.shape
    rows = support.astype(float)

    def init(lanes):
        return State(np.zeros((lanes, n)).T, {"counts": np.zeros(s, int), "gram": np.zeros((n, n))})

    def leading(theta):
        """Returns the best sets, 0/1 (lanes, n), and how much more they pay than the next best."""
        ranked = np.sort(theta, axis=1)
        best = theta >= ranked[:, n - k, None]
        return best.astype(float), ranked[:, n - k] - ranked[:, n - k - 1]

    def decide(t, state):
        moments, shared = state
        arm = np.argmin(shared["counts"] / weights)
        if t < s:
            return np.full(moments.shape[1], arm), None
        inverse = np.linalg.inv(shared["gram"])
        best, lead = leading(moments.T @ inverse)
        rival, C = peel(inverse, k), ellipsoid(t, n, k, delta, noise_scale)
        widths = np.sqrt(np.einsum("ln,ln->l", best @ inverse, best)) + np.sqrt(rival @ inverse @ rival) / alpha
        return np.full(moments.shape[1], arm), lead + epsilon >= C * widths

    def observe(state, arms, rewards):
        row = rows[arms[0]]
        state.moments.T[:] += rewards[:, None] * row
        state.shared["counts"][arms[0]] += 1
        state.shared["gram"][:] += np.outer(row, row)

    def answer(t, state):
        return leading(state.moments.T @ np.linalg.inv(state.shared["gram"]))[0].T

    return Rule(init, decide, observe, answer)


def peel(W: np.ndarray, k: int) -> np.ndarray:
    """Returns the k vertices that are left when the one of smallest degree is removed again and again, 0/1 (n,)."""
    weights = W + np.diag(W)[:, None] + np.diag(W)
    np.fill_diagonal(weights, 0)
    degrees = weights.sum(axis=1)
    for _ in range(len(W) - k):
        i = np.argmin(degrees)
        degrees = degrees - weights[i]
        degrees[i] = np.inf
    return (degrees < np.inf).astype(float)
