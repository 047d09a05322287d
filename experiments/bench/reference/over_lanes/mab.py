"""Rules for independent arms: best arm with fixed confidence, and regret."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from experiments.bench.reference.mab import Law
from experiments.bench.reference.over_lanes.loop import Rule, add, entries, places, put

Index = Callable[[int, np.ndarray, np.ndarray], np.ndarray]  # (number of the next pull, counts, sums) -> (K, lanes)


class State(NamedTuple):
    counts: np.ndarray  # float (K, lanes): an integer would be converted in every round
    sums: np.ndarray  # (K, lanes)


class Tracking(NamedTuple):
    counts: np.ndarray
    sums: np.ndarray
    due: np.ndarray  # (K, lanes), sum of the shares of each leader
    pulled: np.ndarray  # (K, lanes), its pulls as a leader


def start(K: int, lanes: int, kind: type = State) -> State | Tracking:
    return kind(*np.zeros((len(kind._fields), K, lanes)))


def observe(state: State | Tracking, arms: np.ndarray, rewards: np.ndarray) -> None:
    """Takes one reward per lane, or several, (slots, lanes), of different arms."""
    for arm, reward in zip(np.atleast_2d(arms), np.atleast_2d(rewards), strict=True):
        at = places(state.counts, arm)
        state.counts.reshape(-1)[at] += 1
        state.sums.reshape(-1)[at] += reward


def best_mean(t: int, state: State | Tracking) -> np.ndarray:
    return np.argmax(state.sums / np.maximum(state.counts, 1), axis=0)


def without(values: np.ndarray, arms: np.ndarray, value: float = -np.inf) -> np.ndarray:
    """Returns a copy in which values[arm, lane] is `value`."""
    values = values.copy()
    put(values, arms, value)
    return values


def kl(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Computes the divergence of Bernoulli laws."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0, p * np.log(p / q), 0) + np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0)


def kl_upper(p: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Computes the largest q with kl(p, q) <= level, by Newton steps from above."""
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(p > 0, p * np.log(p), 0) - np.where(p < 1, (1 - p) * np.log1p(-p), 0)
        q = np.minimum(p + np.sqrt(level / 2), -np.expm1(-(level + entropy) / (1 - p)))
        for _ in range(20):
            excess = -p * np.log(q) - (1 - p) * np.log1p(-q) - entropy - level
            step = np.where((q > p) & (q < 1), excess * q * (1 - q) / (q - p), 0)
            q = np.maximum(q - step, p)
            if np.abs(step).max() < 1e-13:
                break
    return np.where(p < 1, q, 1)


# Regret: the arm with the largest index is pulled, after each was pulled once


def by_index(index: Index, K: int) -> Rule:
    def decide(t, state):
        return (np.full(state.counts.shape[1], t) if t < K else np.argmax(index(t + 1, *state), axis=0)), None

    return Rule(partial(start, K), decide, observe, best_mean)


def ucb1(law: Law, exploration: float = 2.0) -> Index:
    return lambda t, N, S: S / N + np.sqrt(2 * (exploration * law.noise_scale) ** 2 * np.log(t) / N)


def thompson(law: Law, rng: np.random.Generator) -> Index:
    """Draws from the posteriors. Of `rng` the methods standard_normal and beta are called."""
    if law.kind == "gaussian":
        return lambda t, N, S: S / N + law.noise_scale * rng.standard_normal(N.shape) / np.sqrt(N)
    return lambda t, N, S: rng.beta(1 + S, 1 + N - S)


def kl_ucb(law: Law, c: float = 0.0) -> Index:
    def index(t, N, S):
        level = (np.log(t) + c * np.log(max(np.log(t), 1))) / N
        return S / N + law.noise_scale * np.sqrt(2 * level) if law.kind == "gaussian" else kl_upper(S / N, level)

    return index


def imed(law: Law) -> Index:
    def index(t, N, S):
        m = S / N
        best = entries(m, np.argmax(m, axis=0))  # twice as fast as m.max(axis=0)
        cost = (m - best) ** 2 / (2 * law.noise_scale**2) if law.kind == "gaussian" else kl(m, best)
        return -N * cost - np.log(N)

    return index


def moss(law: Law, horizon: int) -> Index:
    def index(t, N, S):
        return S / N + 2 * law.noise_scale * np.sqrt(np.maximum(np.log(horizon / (len(N) * N)), 0) / N)

    return index


# Fixed confidence


def gk16(t: int, delta: float) -> float:
    return np.log((1 + np.log(t)) / delta)


def costs(law: Law, N: np.ndarray, m: np.ndarray, leader: np.ndarray) -> np.ndarray:
    """Computes the transport cost of every challenger (inf: the leader itself)."""
    n_l, m_l = (entries(x, leader) for x in (N, m))
    if law.kind == "gaussian":
        cost = np.maximum(m_l - m, 0) ** 2 * (N * n_l / (2 * law.noise_scale**2 * (N + n_l)))
    else:
        pooled = (n_l * m_l + N * m) / (n_l + N)
        cost = np.where(m_l > m, n_l * kl(m_l, pooled) + N * kl(m, pooled), 0)
    return without(cost, leader, np.inf)


def ttucb(law: Law, K: int, *, delta: float, share: float = 0.5, exponent: float = 1.2, slack: float = 1.2) -> Rule:
    def decide(t, state):
        N, S, due, pulled = state
        if t < K:
            return np.full(N.shape[1], t), None
        m, level = S / N, exponent * (1 + slack) * np.log(t) / N
        upper = m + law.noise_scale * np.sqrt(2 * level) if law.kind == "gaussian" else kl_upper(m, level)
        best, leader = np.argmax(m, axis=0), np.argmax(upper, axis=0)
        stops = costs(law, N, m, best).min(axis=0) > gk16(t, delta)
        challenger = np.argmin(costs(law, N, m, leader), axis=0)
        add(due, leader, share)
        is_due = entries(pulled, leader) <= entries(due, leader)
        add(pulled, leader, is_due)
        return np.where(is_due, leader, challenger), stops

    return Rule(partial(start, K, kind=Tracking), decide, observe, best_mean)


def lucb(law: Law, K: int, *, delta: float) -> Rule:
    """Pulls two arms in every round after the first K."""

    def decide(t, state):
        N, S = state
        if t < K:
            return np.full((1, N.shape[1]), t), None
        m, radius = S / N, np.sqrt(2 * law.noise_scale**2 * gk16(2 * t - K, delta) / N)
        best = np.argmax(m, axis=0)
        upper = without(m + radius, best)
        rival = np.argmax(upper, axis=0)
        stops = entries(upper, rival) <= entries(m - radius, best)
        return np.stack([best, rival]), stops

    return Rule(partial(start, K), decide, observe, best_mean)


def ugape(law: Law, K: int, *, delta: float) -> Rule:
    """Builds the rule for Gaussian arms."""

    def bounds(t, state):
        """Returns the answer, its rival, and the gap between them at worst."""
        N, S = state
        m, radius = S / N, np.sqrt(2 * law.noise_scale**2 * gk16(t, delta) / N)
        upper = m + radius
        first = np.argmax(upper, axis=0)
        second = np.argmax(without(upper, first), axis=0)
        gaps = entries(upper, first) - (m - radius)
        put(gaps, first, entries(upper, second) - entries(m - radius, first))
        answer = np.argmin(gaps, axis=0)
        return answer, np.where(answer == first, second, first), entries(gaps, answer)

    def decide(t, state):
        if t < K:
            return np.full(state.counts.shape[1], t), None
        answer, rival, gap = bounds(t, state)
        ahead = entries(state.counts, rival) - entries(state.counts, answer)
        arm = np.where(ahead > 0, answer, np.where(ahead < 0, rival, np.minimum(answer, rival)))
        return arm, gap <= 0

    return Rule(partial(start, K), decide, observe, lambda t, state: bounds(t, state)[0])
