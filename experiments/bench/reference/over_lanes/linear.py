"""LinGapE and LinUCB by the products x V y of all pairs of arms, V = A^-1, each round changed by a matrix of rank one.

This is cheaper than V itself if there are about as many arms as dimensions.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from experiments.bench.reference.over_lanes.loop import Rule, entries, put


class State(NamedTuple):
    products: np.ndarray  # (K, K, lanes), x V y
    values: np.ndarray  # (K, lanes), estimated mean of every arm
    log_det: np.ndarray  # (lanes,), log det(A / ridge)


def start(arms: np.ndarray, ridge: float, lanes: int) -> State:
    gram = np.repeat((arms @ arms.T / ridge)[..., None], lanes, axis=2)
    return State(gram, np.zeros((len(arms), lanes)), np.zeros(lanes))


def observe(state: State, pulled: np.ndarray, rewards: np.ndarray) -> None:
    products, values, log_det = state
    row = rows(products, pulled)
    square = entries(row, pulled)
    step = row / (1 + square)
    values += step * (rewards - entries(values, pulled))
    products -= step[:, None] * row
    log_det += np.log1p(square)


def rows(products: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """Returns products[arm, :, lane] of every lane, (K, lanes)."""
    K, _, lanes = products.shape
    return products.ravel()[(arms * K + np.arange(K)[:, None]) * lanes + np.arange(lanes)]


def best_value(t: int, state: State) -> np.ndarray:
    return np.argmax(state.values, axis=0)


def lingape(
    arms: np.ndarray, *, delta: float, ridge: float = 1.0, noise_scale: float = 1.0, norm_bound: float = 2.0
) -> Rule:
    """Builds the greedy form. It pulls every arm once first."""
    K = len(arms)

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

    return Rule(partial(start, arms, ridge), decide, observe, best_value)


def lin_ucb(arms: np.ndarray, *, delta: float, ridge: float, noise_scale: float, norm_bound: float) -> Rule:
    def decide(t, state):
        products, values, log_det = state
        radius = noise_scale * np.sqrt(log_det + 2 * np.log(1 / delta)) + np.sqrt(ridge) * norm_bound
        return np.argmax(values + radius * np.sqrt(np.einsum("kkl->kl", products)), axis=0), None

    return Rule(partial(start, arms, ridge), decide, observe, best_value)
