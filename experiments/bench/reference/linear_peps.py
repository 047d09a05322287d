"""PEPS, transcribed from its paper into NumPy, draw by draw; for `linear_glr.run`."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from experiments.bench.reference.linear_glr import AdaHedge, Sampler, Seen


class Numbers(NamedTuple):
    """What a round with n draws draws: uniform variables but for the last."""

    arm: float
    items: np.ndarray  # (n,)
    tails: np.ndarray  # (n,)
    normals: np.ndarray  # (d, n)


def place(weights: np.ndarray, uniform: float) -> int:
    upto = np.cumsum(weights)
    return int(np.searchsorted(upto, uniform * upto[-1], side="right"))


def alternatives(seen: Seen, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Errors of theta (n, d) under which the leader is not best, and their weights (n,)."""
    y = np.array([items[seen.leader] - items[j] for j in seen.rivals])
    norms = np.einsum("md,de,me->m", y, seen.inverse, y)
    leads = y @ seen.theta / np.sqrt(norms)
    logs = log_ndtr(-leads)
    errors, weights = [], []
    for uniform, tail, z in zip(seen.number.items, seen.number.tails, seen.number.normals.T, strict=True):
        j = place(np.exp(logs - logs.max()), uniform)
        depth = -np.sqrt(norms[j]) * ndtri_exp(log_ndtr(-leads[j]) + np.log1p(-tail))
        e = seen.root.T @ z
        e = e - (depth + y[j] @ e) / norms[j] * (seen.inverse @ y[j])
        errors.append(e)
        inside = {m for m in range(len(y)) if y[m] @ (seen.theta + e) <= 0} | {j}
        weights.append(1 / len(inside))
    return np.array(errors), np.array(weights)


def peps(*, mixed_in: np.ndarray | None = None, mix: float = 0.0) -> Sampler:
    """`mixed_in` are the shares of the G-optimal design."""

    def sampler(arms: np.ndarray, items: np.ndarray) -> Callable[[Seen], int]:
        learner = AdaHedge(len(arms))

        def rule(seen: Seen) -> int:
            errors, weights = alternatives(seen, items)
            w = learner.weights()
            learner.learn(-(weights @ (errors @ arms.T) ** 2) / weights.sum())
            return place(w if mixed_in is None else (1 - mix) * w + mix * mixed_in, seen.number.arm)

        return rule

    return sampler
