"""COCI, uniform sampling and CLUCB, transcribed into plain NumPy: one pull at a time, every decision enumerated.

A class is given by its decisions and the pay of each arm at each level.
"""

from collections.abc import Callable
from itertools import product
from math import inf, log
from typing import NamedTuple

import numpy as np


class Class(NamedTuple):
    decisions: np.ndarray  # int (N, m), levels, in lexicographic order
    pay: Callable[[np.ndarray], np.ndarray]  # theta (m,) -> (m, W + 1), pay of arm i at level l
    cost: np.ndarray  # (N,), subtracted from the reward of each decision
    bi_monotone: bool


class Round(NamedTuple):
    counts: tuple[int, ...]
    arm: int
    stop: bool
    answer: tuple[int, ...]


# Classes


def table(coef, cost, quota: int, kind: str = "exactly") -> Class:
    """Builds the class of all level vectors that the quota allows. Sums of entries are compared, not the entries."""
    coef, cost = np.asarray(coef, float), np.asarray(cost, float)
    m, _ = coef.shape
    lengths = np.isfinite(cost).sum(axis=1)
    fits = {"exactly": quota.__eq__, "at most": quota.__ge__, "at least": quota.__le__}[kind]
    decisions = np.array([y for y in product(*(range(n + 1) for n in lengths)) if fits(sum(y))])

    def pay(theta):
        with np.errstate(invalid="ignore"):
            entries = coef * theta[:, None] - cost
        return np.concatenate([np.zeros((m, 1)), np.cumsum(entries, axis=1)], axis=1)

    return Class(decisions, pay, np.zeros(len(decisions)), True)


def linear(rows, offset=None, *, bi_monotone: bool = False) -> Class:
    """Builds a class of 0/1 decisions. If it is not bi-monotone, each decision is tried at its own corner."""
    rows = np.array(sorted(map(tuple, rows)))
    cost = np.zeros(len(rows)) if offset is None else np.asarray(offset, float)
    return Class(rows, lambda theta: np.stack([np.zeros(len(theta)), theta], axis=1), cost, bi_monotone)


def concave_costs() -> tuple[np.ndarray, np.ndarray]:
    """Returns (decisions, costs) of water planning with falling marginal costs, whose optimum is not bi-monotone."""

    def curve(y):
        return 1 - np.exp(-2 * y)

    y = np.array([y for y in product(range(6), range(6), range(11)) if sum(y) == 10])
    return y, y.sum(axis=1) + curve(y[:, 0]) + curve(y[:, 1]) + 2 * curve(y[:, 2])


def rewards(problem: Class, theta: np.ndarray) -> np.ndarray:
    pay, total = problem.pay(np.asarray(theta, float)), -problem.cost
    for i in range(problem.decisions.shape[1]):
        total = total + pay[i, problem.decisions[:, i]]
    return total


def phi(problem: Class, theta: np.ndarray) -> np.ndarray:
    """Returns the first of the best decisions."""
    return problem.decisions[np.argmax(rewards(problem, theta))]


def candidates(problem: Class, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    m = len(lo)
    if problem.bi_monotone:
        ends = [phi(problem, np.where(np.arange(m) == i, *pair))[i] for i in range(m) for pair in ((hi, lo), (lo, hi))]
        return np.array(ends[::2]) != np.array(ends[1::2])
    leading = [y for y in problem.decisions if np.array_equal(phi(problem, np.where(y > 0, hi, lo)), y)]
    return np.ptp(leading, axis=0) > 0


# Estimates


def estimates(tape: np.ndarray, counts: np.ndarray, tau: int) -> np.ndarray:
    samples = [tape[i, :n] for i, n in enumerate(counts)]
    return np.array([x.mean() if tau == 1 else x.var(ddof=1) for x in samples])


def radius(counts: np.ndarray, tau: int, delta: float, scale: float = 1.0) -> np.ndarray:
    return scale * np.sqrt((log(4) - log(tau * delta) + 3 * log(counts.sum())) / (2 * counts))


def chen_radius(counts: np.ndarray, delta: float, scale: float) -> np.ndarray:
    return scale * np.sqrt(2 * log(4 * len(counts) * int(counts.sum()) ** 3 / delta) / counts)


# Algorithms


def coci(problem, tape, *, delta, tau=1, scale=1.0, clip=True, everywhere=False, rounds=inf) -> list[Round]:
    """Returns every round up to the stop; tape[i, s] is sample s of arm i. If `everywhere`, sampling is uniform."""
    m = len(tape)
    counts, rounds_made = np.zeros(m, int), []
    while len(rounds_made) < rounds:
        if counts.min() < tau:
            arm, stop, answer = int(np.argmin(counts)), False, None
        else:
            center, width = estimates(tape, counts, tau), radius(counts, tau, delta, scale)
            lo, hi = center - width, center + width
            if clip:
                lo, hi = np.maximum(lo, 0), np.minimum(hi, 1)
            is_open, answer = candidates(problem, lo, hi), phi(problem, center)
            stop = not is_open.any()
            arm = least_pulled(counts, np.ones(m, bool) if everywhere else is_open)
        rounds_made.append(Round(tuple(counts.tolist()), arm, stop, None if answer is None else tuple(answer.tolist())))
        if stop:
            break
        counts[arm] += 1
    return rounds_made


def uniform(problem, tape, **settings) -> list[Round]:
    return coci(problem, tape, everywhere=True, **settings)


def clucb(problem, tape, *, delta, radius_of: Callable[[np.ndarray], np.ndarray] | None = None) -> list[Round]:
    m = len(tape)
    radius_of = radius_of or (lambda counts: radius(counts, 1, delta))
    counts, rounds_made = np.zeros(m, int), []
    while True:
        if counts.min() < 1:
            arm, stop, best = int(np.argmin(counts)), False, None
        else:
            center, width = estimates(tape, counts, 1), radius_of(counts)
            best = phi(problem, center)
            weights = np.where(best > 0, center - width, center + width)
            rival, reward = phi(problem, weights), rewards(problem, weights)
            at = [int(np.flatnonzero((problem.decisions == y).all(axis=1))[0]) for y in (best, rival)]
            disputed = best != rival
            stop = bool(not disputed.any() or reward[at[1]] - reward[at[0]] <= 0)
            arm = least_pulled(counts, disputed)
        rounds_made.append(Round(tuple(counts.tolist()), arm, stop, None if best is None else tuple(best.tolist())))
        if stop:
            return rounds_made
        counts[arm] += 1


def least_pulled(counts: np.ndarray, mask: np.ndarray) -> int:
    return min((i for i in range(len(counts)) if mask[i]), key=lambda i: (counts[i], i), default=-1)
