"""Rules for normal rewards of unknown variance in plain NumPy, float64: every arm has a variance of its own.

A cost is "adaptive" (the likelihood ratio) or "plug-in". Ties go to the lowest index.
"""

from math import log, log1p

import numpy as np

from experiments.bench.reference.mab import Round, bisect, gk16
from experiments.bench.reference.questions import normal


def rewards(means, sd, length: int, rep: int = 0) -> np.ndarray:
    """Returns the first rewards of every arm, float (K, length)."""
    arms = enumerate(zip(means, sd, strict=True))
    return np.array([[mean + s * normal(rep, a, n) for n in range(1, length + 1)] for a, (mean, s) in arms])


def moved(cost: str, n: float, m: float, v: float, x: float) -> float:
    """Returns the evidence of n rewards of mean m and variance v against the mean x."""
    ratio = (m - x) ** 2 / v
    return n / 2 * (log1p(ratio) if cost == "adaptive" else ratio)


def stationary(share: float, gap: float, v: float, w: float) -> list[float]:
    """Returns the real roots in [0, gap] of the adaptive cost's derivative, at a share of the first arm's pulls."""
    cubic = [1.0, -(2 - share) * gap, share * w + (1 - share) * (v + gap**2), -share * w * gap]
    real = [z.real for z in np.roots(cubic) if abs(z.imag) < 1e-6 * gap]
    return [min(max(u, 0.0), gap) for u in real]


def swap(cost: str, N, m, v, pair: tuple[int, int]) -> float:
    """Returns the smallest evidence against means with lambda_i <= lambda_j, for the pair (i, j)."""
    i, j = pair
    if m[i] <= m[j]:
        return 0.0
    if cost == "plug-in":
        return (m[i] - m[j]) ** 2 / (2 * (v[i] / N[i] + v[j] / N[j]))
    points = [m[j] + u for u in stationary(N[i] / (N[i] + N[j]), m[i] - m[j], v[i], v[j])]
    return min(moved(cost, N[i], m[i], v[i], x) + moved(cost, N[j], m[j], v[j], x) for x in points)


def student(N, delta: float, cost: str, prior: float = 1.0) -> float:
    """Returns the threshold of two arms with these pulls, or of one."""
    level = log(1 / delta)
    if len(N) == 2:
        level = bisect(lambda u: u - log(1 + u) - level, 0.0, 4 * level + 9)
    level += sum(log((n + prior) / prior) / 2 for n in N)
    most = 0.0
    for n in N:
        q = (n + prior) / n * (1 - np.exp(-2 * level / n))
        if q >= 1:
            return np.inf
        most = max(most, -n / 2 * log(1 - q) if cost == "adaptive" else n / 2 * q / (1 - q))
    return most


def eb_tci(cost: str):
    """Builds EB-TCI with share 1/2: (t, N, m, v, coin) -> arm."""

    def rule(t, N, m, v, coin):
        del t
        best = int(np.argmax(m))
        others = [j for j in range(len(N)) if j != best]
        rival = min(others, key=lambda j: (swap(cost, N, m, v, (best, j)) + log(N[j]), j))
        return best if coin < 0.5 else rival

    return rule


def above(cost: str, level: float):
    """Builds the rule that pulls the arm nearest to a level: (t, N, m, v, coin) -> arm."""
    return lambda t, N, m, v, coin: int(np.argmin([moved(cost, *x, level) for x in zip(N, m, v, strict=True)]))


def run(tape, rule, *, cost: str, start: int, delta: float, rounds: int, coins, level=None, threshold=None):
    """Runs every arm `start` times, then the rule until its answer costs more than the threshold; returns `Round`s.

    Without a level the answer is the best arm, otherwise all arms above it. The threshold, `gk16` if it is None, is a
    function of the pulls of the arms that are compared.
    """
    K = len(tape)
    N, made = np.zeros(K, int), []
    m, v = np.zeros(K), np.ones(K)
    for t in range(rounds):
        at = (lambda N: gk16(t, delta)) if threshold is None else threshold  # noqa: B023
        if level is None:
            best = int(np.argmax(m))
            answer = best
            costs = [
                (swap(cost, N, m, v, (best, j)), at(N[[best, j]])) for j in range(K) if j != best and t >= start * K
            ]
        else:
            answer = [bool(x > level) for x in m]
            costs = [(moved(cost, N[a], m[a], v[a], level), at(N[[a]])) for a in range(K) if t >= start * K]
        stop = t >= start * K and all(c > least for c, least in costs)
        # A coin is tossed at every decision of a rule.
        arm = t % K if t < start * K else rule(t, N, m, v, next(coins))
        made.append(Round((int(arm),), bool(stop), answer))
        if stop:
            break
        N[arm] += 1
        paid = tape[arm][: N[arm]]
        m[arm], v[arm] = paid.mean(), max(paid.var(), 1e-300)
    return made
