"""LinGapE by the products x V y of all pairs of arms, V = A^-1, updated by a matrix of rank one in each round."""

from typing import NamedTuple

import numpy as np

from experiments.bench.reference.over_lanes.loop import Rule, entries, put


class State(NamedTuple):
    products: np.ndarray  # (K, K, lanes), x V y
    values: np.ndarray  # (K, lanes), estimated mean of every arm
    log_det: np.ndarray  # (lanes,), log det(A / ridge)


def lingape(
    arms: np.ndarray, *, delta: float, ridge: float = 1.0, noise_scale: float = 1.0, norm_bound: float = 2.0
) -> Rule:
    """Builds the greedy form. It pulls every arm once first."""
    K = len(arms)

    def init(lanes):
        gram = np.repeat((arms @ arms.T / ridge)[..., None], lanes, axis=2)
        return State(gram, np.zeros((K, lanes)), np.zeros(lanes))

    def decide(t, state):
        products, values, log_det = state
        if t < K:
            return np.full(len(log_det), t), None
        best = np.argmax(values, axis=0)
        of_best, squares = rows(products, best), np.einsum("kkl->kl", products)
        widths = np.sqrt(np.maximum(squares + entries(of_best, best) - 2 * of_best, 0))
        C = noise_scale * np.sqrt(log_det + 2 * np.log(K**2 / delta)) + norm_bound * np.sqrt(ridge)
        upper = values - entries(values, best) + C * widths
        put(upper, best, -np.inf)
        rival = np.argmax(upper, axis=0)
        # The pull of x lowers the width of the pair by (x V pair)^2 / (1 + x V x).
        gains = (of_best - rows(products, rival)) ** 2 / (1 + squares)
        return np.argmax(gains, axis=0), entries(upper, rival) <= 0

    def observe(state, pulled, rewards):
        products, values, log_det = state
        row = rows(products, pulled)
        square = entries(row, pulled)
        step = row / (1 + square)
        values += step * (rewards - entries(values, pulled))
        products -= step[:, None] * row
        log_det += np.log1p(square)

    return Rule(init, decide, observe, lambda t, state: np.argmax(state.values, axis=0))


def rows(products: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """Returns products[arm, :, lane] of every lane, (K, lanes)."""
    K, _, lanes = products.shape
    return products.ravel()[(arms * K + np.arange(K)[:, None]) * lanes + np.arange(lanes)]
