"""The rules of the family mab, transcribed into plain NumPy: one pull at a time, in float64.

A tape gives the rewards: `tape[arm][n]` is the n-th of an arm. Random numbers are also given, one record per round, and
so are the random words of a run. The lots made of these words break ties: the arm with the largest lot comes first.
"""

from fractions import Fraction
from math import ceil, exp, inf, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm


class Law(NamedTuple):
    kind: str  # "gaussian", "bernoulli", "poisson" or "exponential"
    noise_scale: float = 1.0


class Round(NamedTuple):
    arms: tuple[int, ...]
    stop: bool
    answer: Any


def kl(law: Law, p: float, q: float) -> float:
    if law.kind == "gaussian":
        return (p - q) ** 2 / (2 * law.noise_scale**2)
    if law.kind == "poisson":
        return q if p == 0 else inf if q == 0 else p * log(p / q) - p + q
    if law.kind == "exponential":
        return p / q - 1 - log(p / q)
    from_p = 0.0 if p == 0 else inf if q == 0 else p * log(p / q)
    from_rest = 0.0 if p == 1 else inf if q == 1 else (1 - p) * log((1 - p) / (1 - q))
    return from_p + from_rest


def variance(law: Law, mean: float) -> float:
    """Computes the variance of a reward that is not Gaussian."""
    return {"bernoulli": mean * (1 - mean), "poisson": mean, "exponential": mean**2}[law.kind]


def lots(words, t: int, K: int) -> list[int]:
    """Returns the lots after t pulls. If `words` is None, the first arm has the largest."""
    if words is None:
        return [-a for a in range(K)]
    x = t * 0x9E3779B9 % 2**32
    x = (x ^ x >> 16) * 0x21F0AAAD % 2**32
    x = (x ^ x >> 15) * 0x735A2D97 % 2**32
    factor, size = (x ^ x >> 15) | 1, 2 ** (K - 1).bit_length()
    # Products are compared as signed numbers, by their first bits; the index of the arm breaks their ties.
    products = [int(word) * factor % 2**32 for word in words]
    return [(p - 2**32 * (p >= 2**31)) // size * size + a for a, p in enumerate(products)]


def best_of(values, lot, among=None) -> int:
    """Returns the arm with the largest value."""
    return max(range(len(lot)) if among is None else among, key=lambda a: (values[a], lot[a]))


def bisect(f, lo: float, hi: float, steps: int = 200) -> float:
    """Returns the root of an increasing function."""
    for _ in range(steps):
        x = (lo + hi) / 2
        lo, hi = (x, hi) if f(x) < 0 else (lo, x)
    return (lo + hi) / 2


def interval(law: Law, mean: float, c: float) -> tuple[float, float]:
    """Returns (upper, lower)."""
    if law.kind == "gaussian":
        return mean + law.noise_scale * sqrt(2 * c), mean - law.noise_scale * sqrt(2 * c)
    if law.kind in ("poisson", "exponential"):
        if mean == 0:
            return c, 0.0
        highest = 2 * mean
        while kl(law, mean, highest) < c:
            highest *= 2
        below = bisect(lambda z: kl(law, mean, mean * exp(-z)) - c, 0.0, 800.0)
        return bisect(lambda q: kl(law, mean, q) - c, mean, highest), mean * exp(-below)
    upper = bisect(lambda q: kl(law, mean, q) - c, mean, 1.0, 80)
    lower = 1 - bisect(lambda q: kl(law, mean, 1 - q) - c, 1 - mean, 1.0, 80)
    return upper, lower


def cost(law: Law, n_l, m_l, n_a, m_a, epsilon: float = 0.0) -> float:
    """Computes the smallest cost of means x of the leader and x + epsilon of the challenger."""
    if m_l - m_a + epsilon <= 0:
        return 0.0
    if law.kind == "gaussian":
        return (m_l - m_a + epsilon) ** 2 / (2 * law.noise_scale**2 * (1 / n_l + 1 / n_a))
    if epsilon == 0:
        m = (n_l * m_l + n_a * m_a) / (n_l + n_a)
        return n_l * kl(law, m_l, m) + n_a * kl(law, m_a, m)

    most = 1.0 if law.kind == "bernoulli" else inf

    def slope(x):
        y = x + epsilon
        return n_l * (x - m_l) * variance(law, y) + n_a * (y - m_a) * variance(law, x)

    x = bisect(slope, max(0, m_a - epsilon), min(m_l, most - epsilon), 100)
    return n_l * kl(law, m_l, x) + n_a * kl(law, m_a, min(x + epsilon, most))


def optimal_weights(law: Law, mu, *, epsilon: float = 0.0, share: float | None = None) -> tuple[np.ndarray, float]:
    """Computes (w, T) by nested bisection: the common value y outside, every ratio x_a inside."""
    mu = np.array(mu, float)
    b = int(np.argmax(mu))
    others = [a for a in range(len(mu)) if a != b]
    mu_b = mu[b] + epsilon
    if epsilon == 0 and mu_b - max(mu[a] for a in others) < 1e-7:
        return np.full(len(mu), 1 / len(mu)), inf

    def clipped(p, q):
        least, most = {"bernoulli": (2.3e-16, 1 - 2.3e-16), "poisson": (1e-300, inf)}.get(law.kind, (-inf, inf))
        return kl(law, p, min(max(q, least), most))

    def middle(x, a):
        return (mu_b + x * mu[a]) / (1 + x)

    def G(x, a):
        m = middle(x, a)
        return clipped(mu_b, m) + x * clipped(mu[a], m)

    def ratio(y, a):
        hi = 1.0
        while G(hi, a) < y and hi < 1e12:
            hi *= 2
        return bisect(lambda x: G(x, a) - y, 0.0, hi, 70)

    def F(y):
        x = {a: ratio(y, a) for a in others}
        if share is not None:
            return sum(x.values()) - (1 - share) / share
        return sum(clipped(mu_b, middle(x[a], a)) / clipped(mu[a], middle(x[a], a)) for a in others) - 1

    y = bisect(F, 0.0, min(clipped(mu_b, mu[a]) for a in others) * (1 - 1e-12), 60)
    x = np.zeros(len(mu))
    for a in others:
        x[a] = ratio(y, a)
    total = 1 + x.sum()
    x[b] = 1
    return x / total, total / y


def run(law: Law, tape, rule, *, stopping, numbers=None, rounds: int, answer=None, words=None) -> list[Round]:
    """Runs every arm once, then the rule until the test holds or the rounds are over.

    `rule(t, N, m, lot, given)` returns the arms to pull and `stopping(t, N, m, lot)` the test; `given` is
    `numbers[round]`.
    """
    K = len(tape)
    N, S, rounds_made = np.zeros(K, int), np.zeros(K), []
    for n in range(rounds):
        t = int(N.sum())
        m = S / np.maximum(N, 1)
        lot = lots(words, t, K)
        best = best_of(m, lot) if answer is None or t < K else answer(t, N, m, lot)
        stop = t >= K and stopping(t, N, m, lot)
        arms = (t,) if t < K else rule(t, N, m, lot, None if numbers is None else numbers[n])
        rounds_made.append(Round(tuple(int(a) for a in arms), bool(stop), best))
        if stop:
            break
        for a in arms:
            S[a] += tape[a][N[a]]
            N[a] += 1
    return rounds_made


# Stopping


def gk16(t: int, delta: float) -> float:
    return log((1 + log(t)) / delta)


def likelihood_test(law: Law, delta: float, epsilon: float = 0.0):
    def stopping(t, N, m, lot):
        b = best_of(m, lot)
        return all(cost(law, N[b], m[b], N[a], m[a], epsilon=epsilon) > gk16(t, delta) for a in range(len(N)) if a != b)

    return stopping


# Rules


def challenger_of(law: Law, N, m, lot, leader: int, epsilon: float = 0.0, improved: bool = False) -> int:
    def gain(a):
        return -cost(law, N[leader], m[leader], N[a], m[a], epsilon=epsilon) - (log(N[a]) if improved else 0)

    gains = {a: gain(a) for a in range(len(N)) if a != leader}
    return best_of(gains, lot, gains)


def share_of(law: Law, share, N, m, leader: int, challenger: int) -> float:
    if share != "ids":
        return share
    if law.kind == "gaussian":
        return N[challenger] / (N[leader] + N[challenger])
    pooled = (N[leader] * m[leader] + N[challenger] * m[challenger]) / (N[leader] + N[challenger])
    of_leader, of_challenger = (N[a] * kl(law, m[a], pooled) for a in (leader, challenger))
    return 0.5 if of_leader + of_challenger == 0 else of_leader / (of_leader + of_challenger)


def eb_tc(law: Law, *, share, epsilon: float = 0.0, improved: bool = False):
    """Builds EB-TC; the number given is the coin."""

    def rule(t, N, m, lot, coin):
        leader = best_of(m, lot)
        challenger = challenger_of(law, N, m, lot, leader=leader, epsilon=epsilon, improved=improved)
        return (leader if coin < share_of(law, share, N, m, leader=leader, challenger=challenger) else challenger,)

    return rule


def t3c(law: Law, *, share, epsilon: float = 0.0):
    """Builds T3C; given are (N, m) -> a posterior draw of the means, the coin, and a number for ties."""

    def rule(t, N, m, lot, given):
        draw, coin, of_tie = given
        leader = int(np.argmax(draw(N, m)))
        costs = {a: cost(law, N[leader], m[leader], N[a], m[a], epsilon=epsilon) for a in range(len(N)) if a != leader}
        tied = [a for a in costs if costs[a] == min(costs.values())]
        uniform = of_tie if share == "ids" else max(coin - share, 0) / (1 - share)
        challenger = tied[int(len(tied) * uniform)]
        return (leader if coin < share_of(law, share, N, m, leader=leader, challenger=challenger) else challenger,)

    return rule


def ttts(law: Law, *, share):
    """Builds TTTS; given are (N, m) -> a posterior draw, the coin, and the challenger's number or (N, m) -> draws."""

    def rule(t, N, m, lot, given):
        draw, coin, other = given
        leader = int(np.argmax(draw(N, m)))
        if law.kind == "gaussian":
            p = probabilities_of_best(m, law.noise_scale / np.sqrt(N))
            p[leader] = 0
            challenger = int(np.argmax(np.cumsum(p) > other * p.sum()))
        else:
            tops = [int(np.argmax(theta)) for theta in other(N, m)]
            differ = [top for top in tops if top != leader]
            challenger = differ[0] if differ else challenger_of(law, N, m, lot, leader)
        return (leader if coin < share_of(law, share, N, m, leader=leader, challenger=challenger) else challenger,)

    return rule


def probabilities_of_best(means: np.ndarray, spreads: np.ndarray) -> np.ndarray:
    """Computes P(arm a is the largest) of independent normal variables, on a fine grid."""
    lo, hi = (means - 10 * spreads).min(), (means + 10 * spreads).max()
    x = np.linspace(lo, hi, max(2001, int((hi - lo) / spreads.min() * 40)))
    densities, below = np.empty((2, len(means), len(x)))
    for a, (mean, spread) in enumerate(zip(means, spreads, strict=True)):
        densities[a] = norm.pdf(x, mean, spread)
        below[a] = norm.cdf(x, mean, spread)
    others = [np.prod(np.delete(below, a, axis=0), axis=0) for a in range(len(means))]
    return np.array([np.trapezoid(densities[a] * others[a], x) for a in range(len(means))])


def ttucb(law: Law, K: int, *, share, epsilon: float = 0.0, exponent: float = 1.2, slack: float = 1.2):
    L, P = np.zeros(K), np.zeros(K, int)

    def rule(t, N, m, lot, _):
        c = exponent * (1 + slack) * log(t)
        leader = best_of([interval(law, m[a], c / N[a])[0] for a in range(K)], lot)
        challenger = challenger_of(law, N, m, lot, leader=leader, epsilon=epsilon)
        L[leader] += share_of(law, share, N, m, leader=leader, challenger=challenger)
        if P[leader] <= L[leader]:
            P[leader] += 1
            return (leader,)
        return (challenger,)

    return rule


def tas(law: Law, K: int, *, tracking: str, epsilon: float = 0.0):
    tracked = np.ones(K)

    def rule(t, N, m, lot, _):
        w, _ = optimal_weights(law, m, epsilon=epsilon)
        if tracking == "D":
            if (sqrt(t) - K / 2 > N).any():
                return (best_of(-N, lot),)
            return (best_of(t * w - N, lot),)
        smallest = 1 / (2 * sqrt(K**2 + t))
        above = np.maximum(w - smallest, 0)
        tracked[:] += smallest + above * (1 - np.maximum(smallest - w, 0).sum() / above.sum())
        return (best_of(tracked - N, lot),)

    return rule


def bounds_of(law: Law, delta: float, hoeffding: bool = False):
    def bounds(t, N, m):
        if hoeffding:
            radius = law.noise_scale * np.sqrt(2 * gk16(t, delta) / N)
            return m + radius, m - radius
        both = [interval(law, m[a], gk16(t, delta) / N[a]) for a in range(len(N))]
        return np.array([u for u, _ in both]), np.array([low for _, low in both])

    return bounds


def lucb(bounds, *, epsilon: float = 0.0):
    """Returns (rule, stopping) of LUCB or KL-LUCB, by their bounds."""

    def pair(t, N, m, lot):
        U, L = bounds(t, N, m)
        b = best_of(m, lot)
        c = best_of(U, lot, [a for a in range(len(N)) if a != b])
        return b, c, U[c] - L[b]

    return lambda t, N, m, lot, _: pair(t, N, m, lot)[:2], lambda *stats: pair(*stats)[2] <= epsilon


def ugape(bounds, *, epsilon: float = 0.0):
    """Returns (rule, stopping, answer)."""

    def judge(t, N, m, lot):
        U, L = bounds(t, N, m)
        B = np.array([max(U[c] for c in range(len(N)) if c != a) - L[a] for a in range(len(N))])
        J = best_of(-B, lot)
        c = best_of(U, lot, [a for a in range(len(N)) if a != J])
        return J, c, B[J]

    def rule(t, N, m, lot, _):
        J, c, _ = judge(t, N, m, lot)
        return (best_of(-N, lot, (J, c)),)

    return rule, lambda *stats: judge(*stats)[2] <= epsilon, lambda *stats: judge(*stats)[0]


def successive_elimination(noise_scale: float, K: int, *, delta: float):
    """Returns (rule, stopping, answer)."""
    active, phase = set(range(K)), [0]

    def drop(t, N, m):
        r = min(N[a] for a in active)
        if r > phase[0] and all(N[a] == r for a in active):
            phase[0] = r
            radius = noise_scale * sqrt(2 * log(4 * K * r**2 / delta) / r)
            best = max(m[a] for a in active)
            for a in list(active):
                if m[a] < best - 2 * radius:
                    active.remove(a)

    def stopping(t, N, m, lot):
        drop(t, N, m)
        return len(active) == 1

    def answer(t, N, m, lot):
        drop(t, N, m)
        return best_of(m, lot, active)

    return lambda t, N, m, lot, _: (min(active, key=lambda a: (N[a], a)),), stopping, answer


def batched_elimination(tape, noise_scale: float, *, delta: float, first: int, growth: int):
    """Returns the arms of the pulls of every batch, and the answer."""
    K = len(tape)
    active, made, n, batches = list(range(K)), 0, first, []
    while len(active) > 1:
        batches.append([a for a in active for _ in range(n - made)])
        made, r = n, len(batches)
        radius = noise_scale * sqrt(2 * log(2 * K * r * (r + 1) / delta) / n)
        means = {a: np.mean(tape[a][:n]) for a in active}
        active = [a for a in active if means[a] >= max(means.values()) - 2 * radius]
        n *= growth
    return batches, active[0]


def lil_ucb(noise_scale: float, K: int, *, e: float, b: float, ratio: float, d: float):
    """Returns (rule, stopping, answer)."""

    def rule(t, N, m, lot, _):
        width = np.sqrt(2 * (1 + e) * np.log(np.log((1 + e) * N + 2) / d) / N)
        return (best_of(m + noise_scale * (1 + b) * (1 + sqrt(e)) * width, lot),)

    def stopping(t, N, m, lot):
        return any(N[a] >= 1 + ratio * (t - N[a]) for a in range(K))

    return rule, stopping, lambda t, N, m, lot: best_of(N, lot)


# Fixed budget


def in_phases(tape, phases, *, all_samples: bool, words=None) -> list[tuple[int, ...]]:
    """Returns the arms of all pulls, then the answer. `phases` are pairs (total pulls of an arm, arms that stay)."""
    K = len(tape)
    active, before, arms = list(range(K)), [0] * K, []
    for pulls, kept in phases:
        for a in active:
            arms += [a] * (pulls - max(before[a], arms.count(a)))
        means = {a: np.mean(tape[a][0 if all_samples else before[a] : pulls]) for a in active}
        lot = lots(words, len(arms), K)
        active = sorted(sorted(active, key=lambda a: (means[a], lot[a]))[-kept:])
        for a in active:
            before[a] = pulls
    return [*((a,) for a in arms), tuple(active)]


def successive_rejects_phases(K: int, T: int) -> list[tuple[int, int]]:
    L = Fraction(1, 2) + sum(Fraction(1, i) for i in range(2, K + 1))
    return [(ceil(Fraction(T - K) / (L * (K + 1 - k))), K - k) for k in range(1, K)]


def sequential_halving_phases(K: int, T: int, m: int = 1) -> list[tuple[int, int]]:
    phases, size, total, P = [], K, 0, 0
    while size > m:
        size, P = max(m, (size + 1) // 2), P + 1
    size = K
    for _ in range(P):
        total += T // (size * P)
        size = max(m, (size + 1) // 2)
        phases.append((total, size))
    return phases


def continuous_rejects(tape, T: int, *, conservative: bool, noise_scale: float, words=None) -> list[tuple[int, ...]]:
    """Returns the arms of all pulls, then the answer."""
    K = len(tape)
    N, active, arms = np.zeros(K, int), list(range(K)), []
    for t in range(T + 1):
        m, lot = np.array([np.mean(tape[a][: max(N[a], 1)]) for a in range(K)]), lots(words, t, K)
        if t >= K and len(active) > 2:
            worst = best_of(-m, lot, active)
            others = [a for a in active if a != worst]
            standard = min(m[a] for a in others) if conservative else np.mean([m[a] for a in others])
            dropped = [N[a] for a in range(K) if a not in active]
            harmonic = 0.5 + sum(1 / i for i in range(2, len(active) + 1))
            q = harmonic * sum(N[a] for a in active) / (T - sum(dropped))
            if all(N[worst] > n for n in dropped) and (standard - m[worst]) / (2 * noise_scale) > q**-0.5 - 1:
                active = others
        if t == T:
            return [*arms, (best_of(m, lot, active),)]
        arm = t if t < K else best_of(-N, lot, active)
        arms.append((arm,))
        N[arm] += 1
    raise AssertionError


# Regret: the arm with the largest index is pulled


def indices(law: Law, *, T: int, exploration: float = 2.0, hardness: float = 1.0, c: float = 0.0, alpha: float = 1.35):
    """Returns functions (t, N, m) -> (K,) by name; t is the number of the next pull."""

    def kl_upper(t, N, m, level):
        return np.array([interval(law, m[a], level / N[a])[0] for a in range(len(N))])

    def moss(N, m, level):
        return m + 2 * law.noise_scale * np.sqrt(np.maximum(level, 0) / N)

    return {
        "ucb_e": lambda t, N, m: m + np.sqrt(exploration * T / (hardness * N)),
        "ucb1": lambda t, N, m: m + exploration * law.noise_scale * np.sqrt(2 * log(t) / N),
        "kl_ucb": lambda t, N, m: kl_upper(t, N, m, log(t) + c * log(max(log(t), 1))),
        "imed": lambda t, N, m: -np.array([n * kl(law, x, max(m)) + log(n) for n, x in zip(N, m, strict=True)]),
        "moss": lambda t, N, m: moss(N, m, np.log(T / (len(N) * N))),
        "moss_anytime": lambda t, N, m: moss(N, m, (1 + alpha) / 2 * np.log(t / (len(N) * N))),
    }


def by_index(tape, index, rounds: int, *, words=None) -> list[int]:
    """Returns the arms of all pulls."""
    K = len(tape)
    N, arms = np.zeros(K, int), []
    for t in range(1, rounds + 1):
        m = np.array([tape[a][: N[a]].mean() if N[a] else 0.0 for a in range(K)])
        arm = t - 1 if t <= K else best_of(index(t, N, m), lots(words, t - 1, K))
        arms.append(arm)
        N[arm] += 1
    return arms


# Regret where means change: a rule reads the history, pairs (arm, reward) in order


def discounted_ucb(law: Law, K: int, *, gamma: float, xi: float):
    def index(history):
        t = len(history)
        weights = [gamma ** (t - 1 - s) for s in range(t)]
        N = [sum(w for w, (arm, _) in zip(weights, history, strict=True) if arm == a) for a in range(K)]
        S = [sum(w * x for w, (arm, x) in zip(weights, history, strict=True) if arm == a) for a in range(K)]
        return [S[a] / N[a] + 2 * (2 * law.noise_scale) * sqrt(xi * log(sum(N)) / N[a]) for a in range(K)]

    return lambda history, lot, _: len(history) if len(history) < K else best_of(index(history), lot)


def sliding_window_ucb(law: Law, K: int, *, tau: int, xi: float):
    def index(history):
        rewards = [[x for arm, x in history[-tau:] if arm == a] for a in range(K)]
        level = xi * log(min(len(history), tau))
        return [np.mean(x) + 2 * law.noise_scale * sqrt(level / len(x)) if x else inf for x in rewards]

    return lambda history, lot, _: len(history) if len(history) < K else best_of(index(history), lot)


def since_change(history, K: int, *, w: int, b: float):
    """Returns the pulls before the last detected change, and the rewards of every arm since then."""
    start, Z = 0, [[] for _ in range(K)]
    for t, (arm, x) in enumerate(history):
        Z[arm].append(x)
        last = Z[arm][-w:]
        if len(last) == w and abs(sum(last[w // 2 :]) - sum(last[: w // 2])) > b:
            start, Z = t + 1, [[] for _ in range(K)]
    return start, Z


def m_ucb(law: Law, K: int, *, w: int, b: float, gamma: float):
    def rule(history, lot, _):
        start, Z = since_change(history, K, w=w, b=b)
        t = len(history) - start + 1
        A = (t - 1) % int(K / gamma)
        if A < K:
            return A
        return best_of([np.mean(z) + 2 * law.noise_scale * sqrt(2 * log(t) / len(z)) for z in Z], lot)

    return rule


def drawn_arm(p, uniform: float) -> int:
    """Returns the first arm at which the sum of the probabilities exceeds the number, otherwise the last."""
    total = 0.0
    for arm in range(len(p) - 1):
        total += p[arm]
        if uniform < total:
            return arm
    return len(p) - 1


def exp3(K: int, *, gamma: float):
    """Builds Exp3; the number given is uniform."""

    def rule(history, lot, uniform):
        w = np.ones(K)
        for arm, x in history:
            p = (1 - gamma) * w / w.sum() + gamma / K
            w[arm] *= np.exp(gamma * (x / p[arm]) / K)
        return drawn_arm((1 - gamma) * w / w.sum() + gamma / K, uniform)

    return rule


def exp3_ix(K: int, *, eta: float, gamma: float):
    """Builds Exp3-IX; the number given is uniform."""

    def rule(history, lot, uniform):
        L = np.zeros(K)
        for arm, x in history:
            w = np.exp(-eta * L)
            L[arm] += (1 - x) / (w[arm] / w.sum() + gamma)
        w = np.exp(-eta * L)
        return drawn_arm(w / w.sum(), uniform)

    return rule


def by_history(tape, rule, rounds: int, *, words=None, numbers=None) -> list[int]:
    """Returns the arms of all pulls; `rule(history, lot, given)` returns the next, `given` is `numbers[round]`."""
    history, counts = [], [0] * len(tape)
    for t in range(rounds):
        arm = rule(history, lots(words, t, len(tape)), None if numbers is None else numbers[t])
        history.append((arm, tape[arm][counts[arm]]))
        counts[arm] += 1
    return [arm for arm, _ in history]
