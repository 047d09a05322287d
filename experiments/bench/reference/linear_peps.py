"""PEPS, transcribed from its paper into NumPy, draw by draw, for `linear_glr.run`."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from experiments.bench.reference.linear_glr import AdaHedge, Sampler, Statistics


class Numbers(NamedTuple):
    """Random numbers of a round with n draws: uniform, except the last, which are normal."""

    arm: float
    items: np.ndarray  # (n,)
    tails: np.ndarray  # (n,)
    normals: np.ndarray  # (d, n)


def index_at(weights: np.ndarray, uniform: float) -> int:
    upto = np.cumsum(weights)
    return int(np.searchsorted(upto, uniform * upto[-1], side="right"))


def alternatives(stats: Statistics, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns errors of theta (n, d) under which the leader is not best, and their weights (n,)."""
    y = np.array([items[stats.leader] - items[j] for j in stats.rivals])
    norms = np.einsum("md,de,me->m", y, stats.inverse, y)
    leads = y @ stats.theta / np.sqrt(norms)
    logs = log_ndtr(-leads)
    errors, weights = [], []
    for uniform, tail, z in zip(stats.number.items, stats.number.tails, stats.number.normals.T, strict=True):
        j = index_at(np.exp(logs - logs.max()), uniform)
        depth = -np.sqrt(norms[j]) * ndtri_exp(log_ndtr(-leads[j]) + np.log1p(-tail))
        e = stats.root.T @ z
        e = e - (depth + y[j] @ e) / norms[j] * (stats.inverse @ y[j])
        errors.append(e)
        inside = {m for m in range(len(y)) if y[m] @ (stats.theta + e) <= 0} | {j}
        weights.append(1 / len(inside))
    return np.array(errors), np.array(weights)


def peps(*, mixed_in: np.ndarray | None = None, mix: float = 0.0) -> Sampler:
    """Builds PEPS; `mixed_in` are the shares of the G-optimal design."""

    def sampler(arms: np.ndarray, items: np.ndarray) -> Callable[[Statistics], int]:
        learner = AdaHedge(len(arms))

        def rule(stats: Statistics) -> int:
            errors, weights = alternatives(stats, items)
            w = learner.weights()
            learner.learn(-(weights @ (errors @ arms.T) ** 2) / weights.sum())
            return index_at(w if mixed_in is None else (1 - mix) * w + mix * mixed_in, stats.number.arm)

        return rule

    return sampler
