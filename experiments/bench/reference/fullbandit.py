"""Top-k identification from sums, transcribed into plain NumPy: one pull at a time, every set enumerated.

A rule is called as rule(A^-1, theta_hat, t) and returns (answer, stop), the answer as a tuple of arms.
"""

from collections.abc import Callable
from itertools import combinations
from math import comb, log, pi, sqrt
from typing import NamedTuple

import numpy as np

Rule = Callable[[np.ndarray, np.ndarray, int], tuple[tuple[int, ...], bool]]


class Test(NamedTuple):
    t: int
    counts: tuple[int, ...]
    theta: np.ndarray
    answer: tuple[int, ...]
    stop: bool


def tests_of(support: np.ndarray, weights: np.ndarray, tape: np.ndarray, rule: Rule, first_test: int) -> list[Test]:
    """Returns every test of a rule up to the stop; tape[i, m] is the m-th reward of super-arm i."""
    s, n = support.shape
    support = support.astype(float)
    counts, A, b = np.zeros(s, int), np.zeros((n, n)), np.zeros(n)
    tests, t = [], 0
    while True:
        i = next_superarm(weights, counts)
        A += np.outer(support[i], support[i])
        b += tape[i, counts[i]] * support[i]
        counts[i] += 1
        t += 1
        if t < first_test:
            continue
        inverse = np.linalg.inv(A)
        answer, stop = rule(inverse, inverse @ b, t)
        tests.append(Test(t, tuple(counts.tolist()), inverse @ b, answer, stop))
        if stop:
            return tests


def next_superarm(weights: np.ndarray, counts: np.ndarray) -> int:
    """Returns the super-arm furthest behind its share, the lowest index among ties."""
    return min(range(len(counts)), key=lambda i: (counts[i] / weights[i], i))


# Radii


def ellipsoid(t: int, n: int, k: int, delta: float, noise_scale: float) -> float:
    return 2 * sqrt(2) * k * noise_scale * sqrt(log(6 / pi**2 * t**2 * comb(n, k) / delta))


def lemma1(t: int, n: int, k: int, delta: float, noise_scale: float) -> float:
    return k * noise_scale * sqrt(2 * log(6 / pi**2 * t**2 * n / delta))


# Sets


def best(theta: np.ndarray, k: int) -> tuple[int, ...]:
    return tuple(sorted(sorted(range(len(theta)), key=lambda i: (-theta[i], i))[:k]))


def chi(arms: tuple[int, ...], n: int) -> np.ndarray:
    vector = np.zeros(n)
    vector[list(arms)] = 1
    return vector


def others(answer: tuple[int, ...], n: int) -> list[tuple[int, ...]]:
    return [M for M in combinations(range(n), len(answer)) if answer != M]


def norm(y: np.ndarray, inverse: np.ndarray) -> float:
    return sqrt(max(y @ inverse @ y, 0))


def peel(W: np.ndarray, k: int, reduction: str = "paper") -> tuple[int, ...]:
    """Removes the vertex with the smallest degree until k are left. Each removal sums the degrees anew."""

    def edge(i: int, j: int) -> float:
        if reduction == "paper":
            return W[i, j] + W[i, i] + W[j, j]
        return 2 * W[i, j] + (W[i, i] + W[j, j]) / (k - 1)

    remaining = list(range(len(W)))
    while len(remaining) > k:
        degrees = [sum(edge(i, j) for j in remaining if j != i) for i in remaining]
        del remaining[int(np.argmin(degrees))]
    return tuple(remaining)


# Rules


def saqm(inverse, theta, t, *, k, delta, epsilon, noise_scale, alpha=0.9, reduction="paper"):
    n, answer = len(theta), best(theta, k)
    C = ellipsoid(t, n, k, delta, noise_scale)
    Z = C * norm(chi(peel(inverse, k, reduction), n), inverse)
    lead = theta[list(answer)].sum() - max(theta[list(M)].sum() for M in others(answer, n))
    return answer, lead + epsilon >= C * norm(chi(answer, n), inverse) + Z / alpha


def icb(inverse, theta, t, *, k, delta, epsilon, noise_scale, radius="lemma1"):
    n, answer = len(theta), best(theta, k)
    C = {"lemma1": lemma1, "ellipsoid": ellipsoid}[radius](t, n, k, delta, noise_scale)
    return answer, best_rival(theta, C * np.sqrt(np.diag(inverse)), k) < epsilon


def best_rival(theta, widths, k):
    """Solves Problem P1 by trying all sets. Returns its value minus the value of the best set."""
    n, answer = len(theta), best(theta, k)

    def value(M):
        changed = set(M) ^ set(answer)
        return theta[list(M)].sum() - theta[list(answer)].sum() + sum(widths[e] for e in changed)

    return max(value(M) for M in others(answer, n))


def exhaustive(inverse, theta, t, *, k, delta, epsilon, noise_scale):
    n, answer = len(theta), best(theta, k)
    C = ellipsoid(t, n, k, delta, noise_scale)
    return answer, largest_lead(inverse, theta, C, k) < epsilon


def largest_lead(inverse, theta, radius, k):
    """Computes equation (5) minus the value of the best set."""
    n, answer = len(theta), best(theta, k)
    changes = [chi(M, n) - chi(answer, n) for M in others(answer, n)]
    return max(y @ theta + radius * norm(y, inverse) for y in changes)


def spectral(inverse, theta, t, *, k, delta, epsilon, noise_scale, eigenvalue):
    """Tests by `eigenvalue` (t) -> bound on |y|^2 in A_t^-1 over |y|_2^2, for y orthogonal to the constants."""
    n, answer = len(theta), best(theta, k)
    C, L = ellipsoid(t, n, k, delta, noise_scale), eigenvalue(t)
    values = []
    for M in others(answer, n):
        swaps = len(set(M) - set(answer))
        values.append(theta[list(M)].sum() - theta[list(answer)].sum() + C * sqrt(2 * swaps * L))
    return answer, max(values) < epsilon


def sa_foa(
    inverse,
    theta,
    t,
    *,
    k,
    delta,
    epsilon,
    noise_scale,
    support: np.ndarray,  # 0/1 (s, n)
    rows: Callable[[int], np.ndarray],  # (t) -> rows of the support drawn for the test after t pulls
    threshold=0.5,
    reduction="paper",
):
    n, answer = len(theta), best(theta, k)
    C = ellipsoid(t, n, k, delta, noise_scale)
    center = chi(answer, n)
    surrogates = set()
    for i in rows(t):
        distance = norm(support[i] - center, inverse)
        if np.array_equal(support[i], center):
            continue
        g = C / (2 * distance)
        B = g * inverse - np.diag(2 * g * inverse @ center) + np.diag(theta)
        surrogates.add(peel(B, k, reduction))
    values = [theta[list(S)].sum() + C * norm(chi(S, n) - center, inverse) for S in surrogates]
    return answer, all(v - theta[list(answer)].sum() <= threshold * epsilon for v in values)
