"""Questions about the means of the arms, in plain NumPy: costs, rules and a tape of random numbers, in float64.

A question is a pair (name, number): ("top", m), ("above", level), ("good", level) or ("all good", epsilon). Ties go to
the lowest index.
"""

from math import cos, inf, log, pi, sqrt
from typing import NamedTuple

import numpy as np

from experiments.bench.reference.mab import Law, Round, bisect, gk16, interval, kl, successive_rejects_phases

# The tape: 64-bit unsigned arithmetic, wrapping

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    """Returns the output function of SplitMix64."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def uniform(rep: int, channel: int, s: int) -> float:
    """Returns the s-th number of a channel, in [0, 1)."""
    start = mix(((rep + 1) * GOLDEN + mix((channel + 1) * GOLDEN & MASK)) & MASK)
    return (mix((start + s * GOLDEN) & MASK) >> 11) * 2.0**-53


def normal(rep: int, channel: int, s: int) -> float:
    """Returns the s-th normal number of a channel."""
    radius = sqrt(-2 * log(1 - uniform(rep, channel, 2 * s - 1)))
    return radius * cos(2 * pi * uniform(rep, channel, 2 * s))


def rewards(law: Law, means, length: int, rep: int = 0) -> np.ndarray:
    """Returns the first rewards of every arm, float (K, length)."""

    def reward(arm: int, mean: float, s: int) -> float:
        if law.kind == "gaussian":
            return mean + law.noise_scale * normal(rep, arm, s)
        return float(uniform(rep, arm, s) < mean)

    return np.array([[reward(a, mean, s) for s in range(1, length + 1)] for a, mean in enumerate(means)])


def coins(length: int, rep: int = 0) -> list[float]:
    """Returns the first numbers of the channel of coins."""
    return [uniform(rep, 2000, q) for q in range(1, length + 1)]


# Nearest alternatives


class Move(NamedTuple):
    """An alternative: where it moves the means."""

    cost: float
    parts: np.ndarray  # summand of every arm
    arms: tuple[int, ...]  # the arm whose label changes comes first
    targets: dict[int, float]  # means of the arms that move


def moved(law: Law, N, m, targets: dict[int, float]) -> Move:
    parts = np.zeros(len(N))
    for a, target in targets.items():
        # Rounding may make it negative where the mean hardly moves.
        parts[a] = max(N[a] * kl(law, m[a], target), 0.0)
    return Move(float(parts.sum()), parts, tuple(targets), targets)


def variance(law: Law, y: float) -> float:
    return law.noise_scale**2 if law.kind == "gaussian" else y * (1 - y)


def swap(law: Law, N, m, i: int, j: int) -> Move:
    """Brings arm i of a set and arm j outside it to one mean."""
    if m[i] <= m[j]:
        return Move(0.0, np.zeros(len(N)), (i, j), {})
    x = (N[i] * m[i] + N[j] * m[j]) / (N[i] + N[j])
    return moved(law, N, m, {i: x, j: x})


def fall(law: Law, N, m, a: int, b: int, *, epsilon: float) -> Move:
    """Brings arm a to epsilon below arm b."""
    if m[a] - m[b] + epsilon <= 0:
        return Move(0.0, np.zeros(len(N)), (a, b), {})
    top = np.inf if law.kind == "gaussian" else 1.0

    def slope(x):
        y = x + epsilon
        return N[a] * (x - m[a]) * variance(law, y) + N[b] * (y - m[b]) * variance(law, x)

    low = m[b] - epsilon if law.kind == "gaussian" else max(m[b] - epsilon, 0)
    x = bisect(slope, low, min(m[a], top - epsilon))
    return moved(law, N, m, {a: x, b: min(x + epsilon, top)})


def rise(law: Law, N, m, a: int, epsilon: float) -> Move:
    """Brings arm a to a point, and all others down to at most epsilon above it."""

    def slope(x):
        y = x + epsilon
        down = sum(N[b] * (y - m[b]) for b in range(len(N)) if b != a and m[b] > y)
        return N[a] * (x - m[a]) * variance(law, y) + down * variance(law, x)

    x = bisect(slope, m[a], max(m) - epsilon)
    return moved(law, N, m, {a: x} | {b: x + epsilon for b in range(len(N)) if b != a and m[b] > x + epsilon})


def largest(m, number: int) -> list[int]:
    return sorted(sorted(range(len(m)), key=lambda a: (-m[a], a))[:number])


def alternatives(law: Law, question, N, m) -> list[Move]:
    """Returns the nearest alternatives of every form, in the order in which ties are broken."""
    name, number = question
    arms = range(len(N))
    if name == "top":
        inside = largest(m, number)
        return [swap(law, N, m, i, j) for i in inside for j in arms if j not in inside]
    if name == "above":
        return [moved(law, N, m, {a: number}) for a in arms]
    if name == "good":
        answer = answer_of(law, question, N, m)
        return [moved(law, N, m, {a: number}) for a in (arms if answer == len(N) else [answer])]
    good = answer_of(law, question, N, m)
    moves = []
    for a in arms:
        others = [b for b in arms if b != a]
        moves += [fall(law, N, m, a, b, epsilon=number) for b in others] if good[a] else [rise(law, N, m, a, number)]
    return moves


def nearest(law: Law, question, N, m) -> Move:
    return min(alternatives(law, question, N, m), key=lambda move: move.cost)


def answer_of(law: Law, question, N, m):
    name, number = question
    arms = range(len(N))
    if name == "top":
        return [a in largest(m, number) for a in arms]
    if name == "above":
        return [bool(m[a] > number) for a in arms]
    if name == "all good":
        return [bool(m[a] >= max(m) - number) for a in arms]
    good = [a for a in arms if m[a] > number]
    return max(good, key=lambda a: N[a] * kl(law, m[a], number)) if good else len(N)


# Rules (t, N, m, coin) -> arm


def in_turn(law: Law, question):
    return lambda t, N, m, coin: t % len(N)


def shares_of_pair(law: Law, N, m, inside, *, share, penalty: float) -> dict[int, float]:
    """Returns the shares of the arm inside a set and of the arm outside it that are hardest to tell apart."""
    pairs = [(i, j) for i in inside for j in range(len(N)) if j not in inside]
    i, j = min(pairs, key=lambda p: swap(law, N, m, *p).cost + penalty * log(N[p[0]] * N[p[1]] / (N[p[0]] + N[p[1]])))
    if share == "ids" and law.kind == "gaussian":
        share = N[j] / (N[i] + N[j])
    elif share == "ids":
        x = (N[i] * m[i] + N[j] * m[j]) / (N[i] + N[j])
        first, second = N[i] * kl(law, m[i], x), N[j] * kl(law, m[j], x)
        share = 0.5 if first + second == 0 else first / (first + second)
    return {i: share, j: 1 - share}


def eb_tc(law: Law, question, *, share="ids", penalty: float = 0.0, members=None):
    """Builds EB-TC, and with a penalty EB-TCI; `members` (coin, N, m) -> the arms of a set, as T3C draws them."""

    def of_pair(t, N, m, coin):
        inside = largest(m, question[1]) if members is None else members(coin, N, m)
        if members is not None:
            coin = coin[1]
        (i, first), (j, _) = shares_of_pair(law, N, m, inside, share=share, penalty=penalty).items()
        return i if coin < first else j

    def of_parts(t, N, m, coin):
        move = nearest(law, question, N, m)
        if move.cost == 0:
            return move.arms[0]
        total = 0.0
        for a in range(len(N)):
            total += move.parts[a]
            if total > coin * move.cost:
                return a
        return move.arms[0]

    return of_pair if question[0] == "top" else of_parts


def direct(t: int, N, w) -> int:
    """Returns the arm of D-tracking."""
    return int(np.argmin(N)) if (sqrt(t) - len(N) / 2 > N).any() else int(np.argmax(t * w - N))


def tas_above(law: Law, question):
    def rule(t, N, m, coin):
        w = np.array([1 / max(kl(law, x, question[1]), 1e-300) for x in m])
        return direct(t, N, w / w.sum())

    return rule


def bounds(law: Law, t: int, N, m, delta: float):
    """Returns upper and lower bounds by the kl intervals of gk16."""
    both = [interval(law, x, gk16(t, delta) / n) for n, x in zip(N, m, strict=True)]
    return [upper for upper, _ in both], [lower for _, lower in both]


def bernstein(tape):
    """Builds intervals in the place of `bounds`, from the empirical variances of rewards in [0, 1]."""

    def bounds(law: Law, t: int, N, m, delta: float):
        del law
        ends = []
        for arm, n in enumerate(N):
            e, V = gk16(t, delta), tape[arm][:n].var(ddof=1) if n > 1 else np.inf
            r = sqrt(2 * V * e / n) + 7 * e / (3 * (n - 1)) if n > 1 else np.inf
            ends.append((min(m[arm] + r, 1.0), max(m[arm] - r, 0.0)))
        return [upper for upper, _ in ends], [lower for _, lower in ends]

    return bounds


def lucb(law: Law, number: int, delta: float, bounds=bounds):
    """Builds KL-LUCB for the best arms: (t, N, m) -> arms, stop, answer."""

    def decide(t, N, m):
        U, L = bounds(law, t, N, m, delta)
        inside = largest(m, number)
        h = min(inside, key=lambda a: (L[a], a))
        low = min((a for a in range(len(N)) if a not in inside), key=lambda a: (-U[a], a))
        return (h, low), U[low] <= L[h], [a in inside for a in range(len(N))]

    return decide


def ugape(law: Law, number: int, delta: float, bounds=bounds):
    """Builds UGapE for the best arms: (t, N, m) -> arms, stop, answer."""

    def decide(t, N, m):
        arms = range(len(N))
        U, L = bounds(law, t, N, m, delta)
        B = [sorted((U[b] for b in arms if b != a), reverse=True)[number - 1] - L[a] for a in arms]
        J = largest([-b for b in B], number)
        h = min(J, key=lambda a: (L[a], a))
        low = min((a for a in arms if a not in J), key=lambda a: (-U[a], a))
        return (min((h, low), key=lambda a: (N[a], a)),), max(B[a] for a in J) <= 0, [a in J for a in arms]

    return decide


def by_bounds(tape, decide, rounds: int, start: int = 1):
    """Runs every arm `start` times, then a rule of fixed confidence with bounds; returns `Round`s."""
    K = len(tape)
    N, S, made = np.zeros(K, int), np.zeros(K), []
    for _ in range(rounds):
        t = int(N.sum())
        arms, stop, answer = decide(max(t, 1), np.maximum(N, 1), S / np.maximum(N, 1))
        arms, stop = ((t % K,), False) if t < start * K else (arms, stop)
        made.append(Round(tuple(arms), bool(stop), answer))
        if stop:
            break
        for arm in arms:
            S[arm] += tape[arm][N[arm]]
            N[arm] += 1
    return made


def apt(level: float, epsilon: float):
    """Returns the index of all arms, of which the largest is pulled."""
    return lambda t, N, m: -np.sqrt(N) * (np.abs(m - level) + epsilon)


def lsa(law: Law, level: float, alpha: float):
    """Returns the index of all arms, of which the largest is pulled."""
    return lambda t, N, m: -(alpha * N * (m - level) ** 2 / (4 * law.noise_scale**2) + np.log(N) / 2)


def sar(tape, m: int, T: int) -> tuple[list[int], list[int], list[int]]:
    """Returns the arms of all pulls, the accepted arms, and all arms that left, in order."""
    K = len(tape)
    active, accepted, gone, before, arms = list(range(K)), [], [], 0, []
    for pulls, _ in successive_rejects_phases(K, T):
        arms += [a for a in active for _ in range(pulls - before)]
        before, places = pulls, m - len(accepted)
        mean = {a: tape[a][:pulls].mean() for a in active}
        order = sorted(active, key=lambda a: (-mean[a], a))
        if places == 0:
            i = len(order) - 1
        elif places == len(order):
            i = 0
        else:
            inside = [mean[a] - mean[order[places]] for a in order[:places]]
            gaps = inside + [mean[order[places - 1]] - mean[a] for a in order[places:]]
            i = max(range(len(order)), key=lambda i: (gaps[i], i))
        accepted += [order[i]] if i < places else []
        gone.append(order[i])
        active.remove(order[i])
    return arms, accepted + (active if len(accepted) < m else []), gone


def radius(law: Law, K: int, n, delta: float):
    return law.noise_scale * np.sqrt(2 * np.log(4 * K * n**2 / delta) / n)


def good_arms(
    law: Law, tape, rule: str, level: float, delta: float, *, every: bool = False, size: int = 1, most: float = inf
):
    """Returns the arms of all pulls, the good arms, and the pulls at which each was found.

    `every`: all good arms. `size`: pulls of an arm between two looks at it; then no run stops in the first turn.
    `most`: pulls after which a run ends, however many arms are open.
    """
    K = len(tape)
    N, m, is_open = np.zeros(K, int), np.zeros(K), np.ones(K, bool)
    arms, good, good_at = [], [], []
    while len(arms) < most and ((is_open.any() and (every or not good)) or (size > 1 and len(arms) < K)):
        t = len(arms)
        if t < K:
            a = t
        else:
            index = {
                "hdoc": lambda t=t: m + law.noise_scale * np.sqrt(2 * np.log(t + 1) / N),
                "lucb_g": lambda: m + radius(law, K, N, delta),
                "apt_g": lambda: -np.sqrt(N) * np.abs(m - level),
            }[rule]()
            a = int(np.argmax(np.where(is_open, index, -np.inf)))
        number = 1 if t < K else size
        arms += [a] * number
        N[a] += number
        m[a] = tape[a][: N[a]].mean()
        width = radius(law, K, N[a], delta)
        if m[a] + width < level:
            is_open[a] = False
        elif m[a] - width >= level:
            is_open[a] = False
            good.append(a)
            good_at.append(len(arms))
    return arms, good, good_at


def run(law: Law, tape, question, rule, *, delta: float, rounds: int, numbers=None, comparisons: float = 1, limit=gk16):
    """Runs every arm once, then the rule until all alternatives cost more than the threshold; returns `Round`s.

    `numbers(t)` is what the rule is given at t pulls, `limit(t, delta)` the threshold.
    """
    K = len(tape)
    N, S, made = np.zeros(K, int), np.zeros(K), []
    for t in range(rounds):
        m = S / np.maximum(N, 1)
        stop = t >= K and nearest(law, question, N, m).cost > limit(t, delta / comparisons)
        arm = t if t < K else rule(t, N, m, None if numbers is None else numbers(t))
        made.append(Round((int(arm),), bool(stop), answer_of(law, question, np.maximum(N, 1), m)))
        if stop:
            break
        S[arm] += tape[arm][N[arm]]
        N[arm] += 1
    return made
