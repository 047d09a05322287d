"""Good arms in plain NumPy: APGAI and Track-and-Stop for one arm above a level, (ST)^2 for all arms near the best.

Rules are functions (t, N, m, coin) -> arm, for `questions.run`. A question is ("good", level).
"""

from math import log, log2, sqrt

import numpy as np

from experiments.bench.reference.mab import Law, Round, bisect, kl


def box(n: int, delta: float) -> float:
    """Returns the threshold for one comparison: delta is divided by their number before."""
    x = 2 * log(1 / delta) + 4 * log(4 + log(n)) + 0.5
    return bisect(lambda y: y - log(y) - x, 1.0, 2 * x) / 2


def apgai(law: Law, question):
    level = question[1]

    def rule(t, N, m, coin):
        evidence = [N[a] * kl(law, m[a], level) for a in range(len(N))]
        if max(m) > level:
            return max((a for a in range(len(N)) if m[a] > level), key=lambda a: (evidence[a], -a))
        return min(range(len(N)), key=lambda a: (evidence[a], a))

    return rule


def tas(law: Law, question, *, sticky: bool = False):
    """Builds Track-and-Stop with cumulative tracking. The rule has a memory, so it is good for one run."""
    level, tracked = question[1], []

    def weights(t, N, m):
        K = len(N)
        if sticky:
            held = next((a for a in range(K) if cost_of_best(law, N, m, a, level) <= log(t)), K)
            if (held < K and m[held] <= level) or (held == K and max(m) > level):
                return np.full(K, 1 / K)
        else:
            held = int(np.argmax(m)) if max(m) >= level else K
        if held < K:
            return np.eye(K)[held]
        inverse = np.array([1 / kl(law, x, level) for x in m])
        return inverse / inverse.sum()

    def rule(t, N, m, coin):
        if not tracked:
            tracked.append(np.zeros(len(N)))
        tracked[0] += at_least(weights(t, N, m), 1 / sqrt(len(N) ** 2 + t + 1))
        return int(np.argmax(tracked[0] - N))

    return rule


def cost_of_best(law: Law, N, m, arm: int, level: float) -> float:
    """Returns the smallest cost of means among which an arm has the largest one, at least as large as the level."""
    count, total = N[arm], N[arm] * m[arm]
    for b in sorted((b for b in range(len(m)) if m[b] > m[arm]), key=lambda b: -m[b]):
        if m[b] <= total / count:
            break
        count, total = count + N[b], total + N[b] * m[b]
    x = max(total / count, level)
    moved = [b for b in range(len(m)) if b != arm and m[b] > x] + ([arm] if m[arm] < x else [])
    return sum(N[b] * kl(law, m[b], x) for b in moved)


def at_least(w, least: float) -> np.ndarray:
    """Raises weights to a smallest one, and lowers the others by one amount, none below it."""
    w = np.maximum(w, least)
    surplus, higher = w.sum() - 1, sorted(range(len(w)), key=lambda a: w[a])
    while higher and w[higher[0]] - surplus / len(higher) < least:
        a = higher.pop(0)
        surplus -= w[a] - least
        w[a] = least
    w[higher] -= surplus / max(len(higher), 1)
    return w


def st2(law: Law, tape, epsilon: float, delta: float, *, rounds: int) -> list[Round]:
    """Runs (ST)^2 on a tape; a round has up to three arms, and the first ones have one each."""
    K = len(tape)
    N, S = np.zeros(K, int), np.zeros(K)
    U, L = np.full(K, np.inf), np.full(K, -np.inf)
    made = []
    for n in range(rounds):
        m = S / np.maximum(N, 1)
        good = [bool(x >= max(m) - epsilon) for x in m]
        arms, stop = (n,), False
        if n >= K:
            first = int(np.argmax(U))
            lowest = min((a for a in range(K) if good[a]), key=lambda a: (L[a], a))
            highest = max((a for a in range(K) if not good[a]), key=lambda a: (U[a], -a), default=None)
            due = [lowest] if L[lowest] <= U[first] - epsilon else []
            due += [highest] if highest is not None and U[highest] >= max(L) - epsilon else []
            arms, stop = (first, *due), not due
        made.append(Round(arms, stop, good))
        if stop:
            break
        for a in arms:
            S[a] += tape[a][N[a]]
            N[a] += 1
            radius = 2 * law.noise_scale * sqrt(log(K * log2(2 * N[a]) / delta) / N[a])
            U[a], L[a] = min(U[a], S[a] / N[a] + radius), max(L[a], S[a] / N[a] - radius)
    return made
