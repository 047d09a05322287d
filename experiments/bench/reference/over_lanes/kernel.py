"""GP-UCB with posteriors that grow by one row per query, for candidates that all runs share."""

from typing import NamedTuple

import numpy as np

from experiments.bench.reference.over_lanes.loop import Rule


class State(NamedTuple):
    factor: np.ndarray  # (horizon, M, lanes), rows of L^-1 K(queries, candidates)
    mean: np.ndarray  # (M, lanes)
    variance: np.ndarray  # (M, lanes)
    made: np.ndarray  # int (lanes,), queries


def gp_ucb(gram: np.ndarray, first: np.ndarray | int, *, horizon: int, beta: np.ndarray, noise_variance: float) -> Rule:
    """Builds the rule; `first` are the first queries, int () or (lanes,), and beta[t] is the width of query t."""
    M = len(gram)

    def init(lanes):
        variance = np.repeat(np.diag(gram)[:, None], lanes, axis=1)
        return State(np.zeros((horizon, M, lanes)), np.zeros((M, lanes)), variance, np.zeros(lanes, int))

    def decide(t, state):
        if t == 0:
            return np.broadcast_to(first, state.made.shape), None
        return np.argmax(state.mean + beta[t] * np.sqrt(np.maximum(state.variance, 0)), axis=0), None

    def observe(state, queries, rewards):
        factor, mean, variance, made = state
        t, lanes = made[0], np.arange(len(made))
        covariance = gram[:, queries]
        if t:
            covariance = covariance - np.einsum("tml,tl->ml", factor[:t], factor[:t, queries, lanes])
        scale = np.sqrt(variance[queries, lanes] + noise_variance)
        factor[t] = covariance / scale
        mean += factor[t] * ((rewards - mean[queries, lanes]) / scale)
        variance -= factor[t] ** 2
        made += 1

    return Rule(init, decide, observe, lambda t, state: np.argmax(state.mean, axis=0))
