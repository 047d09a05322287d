"""Rules that stop by likelihood ratios, transcribed from their papers into NumPy: A is inverted anew every round."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Seen(NamedTuple):
    """What a rule reads before a pull, in units of the noise."""

    t: int
    counts: np.ndarray  # (K,)
    inverse: np.ndarray  # (d, d)   A^-1, with the ridge
    root: np.ndarray  # (d, d)      R with R'R = A^-1
    theta: np.ndarray  # (d,)
    leader: int
    rivals: list[int]  # the items that may challenge
    number: Any  # of the round, for rules that draw


class Round(NamedTuple):
    """One round."""

    arm: int
    stop: bool
    answer: int


Sampler = Callable[[np.ndarray, np.ndarray], Callable[[Seen], int]]  # (arms, items) -> a rule, with its own memory


def run(
    arms: np.ndarray,
    tape: np.ndarray,
    sampler: Sampler,
    threshold: Callable[[int, np.ndarray], float],  # (t, counts) -> the least statistic that is trusted
    *,
    items: np.ndarray | None = None,
    epsilon: float = 0.0,
    ridge: float = 1.0,
    without_ridge: bool = False,
    noise_scale: float = 1.0,
    eliminate: str | None = None,
    first: list[int] | None = None,
    numbers: Callable[[int], Any] = lambda t: None,
    rounds: int = 1000,
) -> list[Round]:
    """The rounds, the last of which stops; `tape[k, n]` is the n-th reward of arm k."""
    K, d = arms.shape
    items = arms if items is None else items
    first = list(range(K)) if first is None else first
    tape, epsilon = tape / noise_scale, epsilon / noise_scale
    counts, b, left = np.zeros(K, int), np.zeros(d), set(range(len(items)))
    rule, course, root = sampler(arms, items), [], np.eye(d) / np.sqrt(ridge)
    for t in range(rounds):
        if t < len(first):
            arm, stop, answer = first[t], False, -1
        else:
            V = arms.T @ (counts[:, None] * arms)
            A = V + ridge * np.eye(d)
            tested = V if without_ridge else A
            theta = np.linalg.solve(tested, b)
            leader = int(np.argmax(items @ theta))
            level = threshold(t, counts)
            costs = {j: cost(items, tested, theta, leader, j, epsilon) for j in range(len(items)) if j != leader}
            if eliminate is None:
                stop, answer = bool(min(costs.values()) > level), leader
            else:
                left -= {j for j in costs if costs[j] > level}
                stop, answer = len(left) <= 1, min(left) if len(left) == 1 else leader
            inverse = np.linalg.inv(A)
            theta = inverse @ b
            leader = int(np.argmax(items @ theta))
            rivals = [j for j in range(len(items)) if j != leader and (eliminate != "both" or j in left)]
            arm = 0 if stop else rule(Seen(t, counts.copy(), inverse, root, theta, leader, rivals, numbers(t)))
        course.append(Round(arm, stop, answer))
        if stop:
            break
        b += tape[arm, counts[arm]] * arms[arm]
        counts[arm] += 1
        root = turned_least(root, arms[arm])
    return course


def turned_least(root: np.ndarray, x: np.ndarray) -> np.ndarray:
    """From R with R'R = A^-1 that of A + x x'."""
    values, vectors = np.linalg.eigh(np.eye(len(x)) + np.outer(root @ x, root @ x))
    return vectors / np.sqrt(values) @ vectors.T @ root


def cost(items: np.ndarray, A: np.ndarray, theta: np.ndarray, i: int, j: int, epsilon: float = 0.0) -> float:
    """The likelihood ratio of item i against item j."""
    y = items[i] - items[j]
    lead = y @ theta + epsilon
    return lead**2 / (2 * y @ np.linalg.solve(A, y)) if lead > 0 else 0.0


def uniform(arms: np.ndarray, items: np.ndarray) -> Callable[[Seen], int]:
    return lambda seen: seen.t % len(arms)


def fixed_weights(shares: np.ndarray) -> Sampler:
    return lambda arms, items: lambda seen: int(np.argmin(seen.counts - seen.t * shares))


def closest(seen: Seen, items: np.ndarray, A: np.ndarray) -> tuple[float, np.ndarray, float]:
    """(ratio, y, lead) of the challenger in a design A."""
    found = []
    for j in seen.rivals:
        y = items[seen.leader] - items[j]
        found.append(((y @ seen.theta) ** 2 / (2 * y @ np.linalg.solve(A, y)), y, y @ seen.theta))
    return min(found, key=lambda entry: entry[0])


def fws(arms: np.ndarray, items: np.ndarray) -> Callable[[Seen], int]:
    K = len(arms)
    target = np.ones(K)

    def rule(seen: Seen) -> int:
        nonlocal target
        n = seen.t + 1
        if np.sqrt(n // K) % 1 == 0:
            z = np.full(K, 1 / K)
        else:
            V = arms.T @ (target[:, None] / seen.t * arms)
            _, y, lead = closest(seen, items, V)
            image = np.linalg.solve(V, y)
            gradient = (lead / (y @ image)) ** 2 * (arms @ image) ** 2 / 2
            z = np.eye(K)[np.argmax(gradient)]
        target = target + z  # the sum of all steps, not their mean: equal entries stay equal
        return int(np.argmax(target / seen.counts))

    return rule


class AdaHedge:
    """Exponential weights (de Rooij et al., 2014)."""

    def __init__(self, n: int):
        self.losses, self.gap, self.n = np.zeros(n), 0.01, n

    def weights(self) -> np.ndarray:
        w = np.exp(-np.log(self.n) / self.gap * (self.losses - self.losses.min()))
        return w / w.sum()

    def learn(self, loss: np.ndarray) -> None:
        rate, w = np.log(self.n) / self.gap, self.weights()
        mix = loss.min() - np.log(w @ np.exp(-rate * (loss - loss.min()))) / rate
        self.gap += max(0.0, w @ loss - mix)
        self.losses = self.losses + loss


def gains(seen: Seen, arms: np.ndarray, items: np.ndarray, w: np.ndarray, optimism: bool, clip: bool) -> np.ndarray:
    V = arms.T @ (np.maximum(w, 1e-9)[:, None] * arms)
    _, y, lead = closest(seen, items, V)
    image = np.linalg.solve(V, y)
    shift = np.abs(lead / (y @ image) * (arms @ image))
    gain = (shift + deviations(seen, arms, optimism)) ** 2 / 2
    return np.minimum(gain, np.log(seen.t)) if clip else gain


def deviations(seen: Seen, arms: np.ndarray, optimism: bool) -> np.ndarray:
    leverage = np.einsum("kd,de,ke->k", arms, seen.inverse, arms)
    return np.sqrt(2 * np.log(max(seen.t, 2)) * leverage) * optimism


def lingame(*, shared_learner: bool = False, optimism: bool = True, clip: bool = True) -> Sampler:
    def sampler(arms: np.ndarray, items: np.ndarray) -> Callable[[Seen], int]:
        K = len(arms)
        learners = [AdaHedge(K) for _ in range(1 if shared_learner else len(items))]
        lag = np.zeros(K)

        def rule(seen: Seen) -> int:
            nonlocal lag
            learner = learners[0 if shared_learner else seen.leader]
            w = learner.weights()
            learner.learn(-gains(seen, arms, items, w, optimism, clip))
            lag -= w
            arm = int(np.argmin(lag))
            lag[arm] += 1
            return arm

        return rule

    return sampler


def lingame_c(*, optimism: bool = True, clip: bool = True) -> Sampler:
    def sampler(arms: np.ndarray, items: np.ndarray) -> Callable[[Seen], int]:
        K, M = len(arms), len(items)
        learner, lag = AdaHedge(M * K), np.zeros(M * K)

        def rule(seen: Seen) -> int:
            nonlocal lag
            W = learner.weights()
            scores = -np.log(M * K) / learner.gap * learner.losses.reshape(M, K)[seen.leader]
            w = np.exp(scores - scores.max())
            deviation = deviations(seen, arms, optimism) ** 2 / 2
            table = np.tile(np.minimum(deviation, np.log(seen.t)) if clip else deviation, (M, 1))
            table[seen.leader] = gains(seen, arms, items, w / w.sum(), optimism, clip)
            learner.learn(-table.ravel())
            lag -= W
            pair = int(np.argmin(lag))
            lag[pair] += 1
            return pair % K

        return rule

    return sampler


def frank_wolfe(
    arms: np.ndarray, directions: np.ndarray, weights: np.ndarray, steps: int, start: np.ndarray
) -> np.ndarray:
    K, n = len(arms), np.count_nonzero(start)
    w = start
    for s in range(steps):
        inverse = np.linalg.inv(arms.T @ (w[:, None] * arms))
        y = directions[np.argmax(weights * np.einsum("md,de,me->m", directions, inverse, directions))]
        w = w + 1 / (s + 1 + n) * (np.eye(K)[np.argmax((arms @ inverse @ y) ** 2)] - w)
    return w


def lazy_tas(
    *,
    laziness: int = 2,
    steps: int = 1000,
    spanner: list[int],
    initial: int,
    ridge: float,
    support: bool = False,
) -> Sampler:
    def sampler(arms: np.ndarray, items: np.ndarray) -> Callable[[Seen], int]:
        K, d = arms.shape
        start = np.isin(range(K), spanner) / len(spanner) if support else np.full(K, 1 / K)
        w, turn, update, lag, tracked = start, 0, 1, None, np.zeros(K)
        c0 = np.linalg.eigvalsh(arms[spanner].T @ arms[spanner])[0] / np.sqrt(d)
        while update < initial:
            update *= laziness

        def rule(seen: Seen) -> int:
            nonlocal w, turn, update, lag, tracked
            if seen.t >= update:
                update *= laziness
                y = np.array([items[seen.leader] - items[j] for j in seen.rivals])
                w = frank_wolfe(arms, y, (y @ seen.theta) ** -2.0, steps, start)
            tracked = tracked + w
            lag = (seen.counts if lag is None else lag) - w
            A = ridge * np.eye(d) + arms.T @ (seen.counts[:, None] * arms)
            if np.linalg.eigvalsh(A)[0] < c0 * np.sqrt(seen.t):
                arm, turn = spanner[turn], (turn + 1) % d
            else:
                arm = int(np.argmin(np.where(tracked > 0, lag, np.inf) if support else lag))
            lag[arm] += 1
            return arm

        return rule

    return sampler


def lingape(threshold: Callable[[int, np.ndarray], float] | None, delta: float, ratios: Any = None) -> Sampler:
    """The width is that of a threshold, or of log(t) without one; `ratios` is a table for the rule "ratio"."""

    def sampler(arms: np.ndarray, items: np.ndarray) -> Callable[[Seen], int]:
        def rule(seen: Seen) -> int:
            i, A = seen.leader, np.linalg.inv(seen.inverse)
            if threshold is None:
                C = np.sqrt(2 * (np.log(1 / delta) + 2 * np.log(seen.t + 2)))
            else:
                C = np.sqrt(2 * threshold(seen.t, seen.counts))
            y = items - items[i]
            upper = y @ seen.theta + C * np.sqrt(np.einsum("md,de,me->m", y, seen.inverse, y))
            j = max(seen.rivals, key=lambda j: upper[j])
            if ratios is not None:
                share = ratios[i, j]
                return int(np.argmin(np.where(share > 0, seen.counts / np.where(share > 0, share, 1), np.inf)))
            return int(np.argmin([y[j] @ np.linalg.inv(A + np.outer(x, x)) @ y[j] for x in arms]))

        return rule

    return sampler


def top_two(*, leader: Callable[[Seen, np.ndarray], int], challenger: Any, share: float | None = None) -> Sampler:
    """`challenger(seen, leader, nearest)` may name one; `nearest` is that of the least ratio."""

    def sampler(arms: np.ndarray, items: np.ndarray) -> Callable[[Seen], int]:
        def rule(seen: Seen) -> int:
            A = np.linalg.inv(seen.inverse)
            first = leader(seen, items)
            costs = [np.inf if j == first else cost(items, A, seen.theta, first, j) for j in range(len(items))]
            second = challenger(seen, items, first, np.array(costs))
            if share is not None:
                return first if seen.number.coin < share else second
            image = seen.inverse @ (items[first] - items[second])
            leverage = np.einsum("kd,de,ke->k", arms, seen.inverse, arms)
            return int(np.argmax((arms @ image) ** 2 / (1 + leverage)))

        return rule

    return sampler
