"""COCI by enumeration: the rewards of all decisions at all corners of the box of means are one product of matrices."""

from functools import partial
from typing import NamedTuple

import numpy as np

from experiments.bench.reference.cpe import Class
from experiments.bench.reference.over_lanes.loop import Rule, places


class State(NamedTuple):
    counts: np.ndarray  # float (m, lanes)
    sums: np.ndarray  # (m, lanes)
    squares: np.ndarray  # (m, lanes), sums of squares


def coci(problem: Class, *, delta: float, tau: int = 1, scale: float = 1.0) -> Rule:
    """Builds COCI for means (tau = 1) or variances (tau = 2)."""
    decisions = problem.decisions
    m = decisions.shape[1]
    slopes, constants = affine(problem)
    at = corners(problem)
    # Rewards of every decision at every corner, from the upper bounds and the lower ones.
    table = np.concatenate([at[:, None] * slopes, ~at[:, None] * slopes], axis=2).reshape(-1, 2 * m)
    offsets = np.tile(constants, len(at))[:, None]

    def center(state):
        counts, sums, squares = state
        mean = sums / counts
        return mean if tau == 1 else (squares - counts * mean**2) / (counts - 1)

    def decide(t, state):
        counts, lanes = state.counts, state.counts.shape[1]
        if t < m * tau:
            return np.full(lanes, t % m), None
        middle, width = center(state), scale * np.sqrt((np.log(4 / (tau * delta)) + 3 * np.log(t)) / (2 * counts))
        bounds = np.concatenate([np.minimum(middle + width, 1), np.maximum(middle - width, 0)])
        leaders = np.argmax((table @ bounds + offsets).reshape(len(at), -1, lanes), axis=1)
        is_open = disputed(problem, leaders)
        return np.argmin(np.where(is_open, counts, np.inf), axis=0), ~is_open.any(axis=0)

    def answer(t, state):
        return decisions[np.argmax(slopes @ center(state) + constants[:, None], axis=0)].T

    return Rule(lambda lanes: State(*np.zeros((3, m, lanes))), decide, partial(observe, tau), answer)


def observe(tau: int, state: State, arms: np.ndarray, rewards: np.ndarray) -> None:
    at = places(state.counts, arms)
    state.counts.reshape(-1)[at] += 1
    state.sums.reshape(-1)[at] += rewards
    if tau == 2:
        state.squares.reshape(-1)[at] += rewards * rewards


def affine(problem: Class) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rewards of all decisions as functions of the means: slopes (N, m) and constants (N,)."""
    arms = np.arange(problem.decisions.shape[1])
    at_zero, at_one = (problem.pay(np.full(len(arms), value))[arms, problem.decisions] for value in (0.0, 1.0))
    return at_one - at_zero, at_zero.sum(axis=1) - problem.cost


def corners(problem: Class) -> np.ndarray:
    """Returns which arms are at their upper bounds, bool (corners, m)."""
    if not problem.bi_monotone:
        return problem.decisions > 0
    one = np.eye(problem.decisions.shape[1], dtype=bool)
    return np.concatenate([one, ~one])


def disputed(problem: Class, leaders: np.ndarray) -> np.ndarray:
    """Returns the arms on which leading decisions differ, bool (m, lanes), from the best decision of every corner."""
    decisions, m = problem.decisions, problem.decisions.shape[1]
    if problem.bi_monotone:
        arms = np.arange(m)[:, None]
        return decisions[leaders[:m], arms] != decisions[leaders[m:], arms]
    leads = leaders == np.arange(len(decisions))[:, None]
    has = decisions.T @ leads
    return (has > 0) & (has < leads.sum(axis=0))
