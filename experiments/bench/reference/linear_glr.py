"""Rules that stop by likelihood ratios, transcribed from their papers into NumPy. Each round inverts A anew."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Statistics(NamedTuple):
    """Statistics before a pull, in units of the noise."""

    t: int
    counts: np.ndarray  # (K,)
    inverse: np.ndarray  # (d, d)   A^-1, with the ridge
    root: np.ndarray  # (d, d)      R with R'R = A^-1
    theta: np.ndarray  # (d,)
    leader: int
    rivals: list[int]  # items that may challenge
    alternatives: list["Alternative"]  # to the answer: without eliminated items, if the rule ignores them
    number: Any  # random numbers of the round, for rules that draw


class Alternative(NamedTuple):
    """Half-space of theta with another answer, in units of the noise."""

    y: np.ndarray  # (d,)
    lead: float  # y.theta less its offset, the distance of the estimate


class Round(NamedTuple):
    """One round."""

    arm: int
    stop: bool
    answer: Any  # an item, or bool (M,)


# (items, theta, noise_scale) -> answer, alternatives; theta in units of the noise
Question = Callable[[np.ndarray, np.ndarray, float], tuple[Any, list[Alternative]]]
Sampler = Callable[
    [np.ndarray, np.ndarray], Callable[[Statistics], int]
]  # (arms, items) -> a rule, with its own memory


def run(
    arms: np.ndarray,
    tape: np.ndarray,
    sampler: Sampler,
    threshold: Callable[[int, np.ndarray], float],  # (t, counts) -> threshold of the statistic
    *,
    items: np.ndarray | None = None,
    epsilon: float = 0.0,
    ridge: float = 1.0,
    without_ridge: bool = False,
    noise_scale: float = 1.0,
    eliminate: str | None = None,
    first: list[int] | None = None,
    numbers: Callable[[int], Any] = lambda t: None,
    question: Question | None = None,
    rounds: int = 1000,
) -> list[Round]:
    """Returns the rounds up to the stop; `tape[k, n]` is the n-th reward of arm k."""
    K, d = arms.shape
    items = arms if items is None else items
    first = list(range(K)) if first is None else first
    tape, epsilon = tape / noise_scale, epsilon / noise_scale
    counts, b, remaining = np.zeros(K, int), np.zeros(d), set(range(len(items)))
    rule, rounds_made, root = sampler(arms, items), [], np.eye(d) / np.sqrt(ridge)
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
            costs = {
                j: cost(items, tested, theta, i=leader, j=j, epsilon=epsilon) for j in range(len(items)) if j != leader
            }
            if question is not None:
                answer, alternatives = question(items, theta, noise_scale)
                stop = bool(min(ratio(each, tested) for each in alternatives) > level)
            elif eliminate is None:
                stop, answer = bool(min(costs.values()) > level), leader
            else:
                remaining -= {j for j in costs if costs[j] > level}
                stop, answer = len(remaining) <= 1, min(remaining) if len(remaining) == 1 else leader
            inverse = np.linalg.inv(A)
            theta = inverse @ b
            leader = int(np.argmax(items @ theta))
            rivals = [j for j in range(len(items)) if j != leader and (eliminate != "both" or j in remaining)]
            if question is None:
                directions = [items[leader] - items[j] for j in rivals]
                alternatives = [Alternative(y, float(y @ theta)) for y in directions]
            else:
                alternatives = question(items, theta, noise_scale)[1]
            arm = (
                0
                if stop
                else rule(
                    Statistics(
                        t=t,
                        counts=counts.copy(),
                        inverse=inverse,
                        root=root,
                        theta=theta,
                        leader=leader,
                        rivals=rivals,
                        alternatives=alternatives,
                        number=numbers(t),
                    )
                )
            )
        rounds_made.append(Round(arm, stop, answer))
        if stop:
            break
        b += tape[arm, counts[arm]] * arms[arm]
        counts[arm] += 1
        root = turned_least(root, arms[arm])
    return rounds_made


def turned_least(root: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Updates R with R'R = A^-1 to the root for A + x x'."""
    values, vectors = np.linalg.eigh(np.eye(len(x)) + np.outer(root @ x, root @ x))
    return vectors / np.sqrt(values) @ vectors.T @ root


def cost(items: np.ndarray, A: np.ndarray, theta: np.ndarray, i: int, j: int, epsilon: float = 0.0) -> float:
    """Computes the likelihood ratio of item i against item j."""
    y = items[i] - items[j]
    lead = y @ theta + epsilon
    return lead**2 / (2 * y @ np.linalg.solve(A, y)) if lead > 0 else 0.0


def uniform(arms: np.ndarray, items: np.ndarray) -> Callable[[Statistics], int]:
    return lambda stats: stats.t % len(arms)


def fixed_weights(shares: np.ndarray) -> Sampler:
    return lambda arms, items: lambda stats: int(np.argmin(stats.counts - stats.t * shares))


def closest(stats: Statistics, A: np.ndarray) -> tuple[float, np.ndarray, float]:
    """Returns (ratio, y, lead) of the closest alternative in a design A."""
    return min(((ratio(each, A), *each) for each in stats.alternatives), key=lambda entry: entry[0])


def ratio(alternative: Alternative, A: np.ndarray) -> float:
    """Computes the likelihood ratio of the answer against an alternative."""
    y, lead = alternative
    return float(lead**2 / (2 * y @ np.linalg.solve(A, y)))


def fws(arms: np.ndarray, items: np.ndarray) -> Callable[[Statistics], int]:
    K = len(arms)
    target = np.ones(K)

    def rule(stats: Statistics) -> int:
        nonlocal target
        n = stats.t + 1
        if np.sqrt(n // K) % 1 == 0:
            z = np.full(K, 1 / K)
        else:
            V = arms.T @ (target[:, None] / stats.t * arms)
            _, y, lead = closest(stats, V)
            image = np.linalg.solve(V, y)
            gradient = (lead / (y @ image)) ** 2 * (arms @ image) ** 2 / 2
            z = np.eye(K)[np.argmax(gradient)]
        target = target + z  # sum of all steps, not their mean: equal entries stay equal
        return int(np.argmax(target / stats.counts))

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


def gains(stats: Statistics, arms: np.ndarray, w: np.ndarray, optimism: bool, clip: bool) -> np.ndarray:
    V = arms.T @ (np.maximum(w, 1e-9)[:, None] * arms)
    _, y, lead = closest(stats, V)
    image = np.linalg.solve(V, y)
    shift = np.abs(lead / (y @ image) * (arms @ image))
    gain = (shift + deviations(stats, arms, optimism)) ** 2 / 2
    return np.minimum(gain, np.log(stats.t)) if clip else gain


def deviations(stats: Statistics, arms: np.ndarray, optimism: bool) -> np.ndarray:
    leverage = np.einsum("kd,de,ke->k", arms, stats.inverse, arms)
    return np.sqrt(2 * np.log(max(stats.t, 2)) * leverage) * optimism


def lingame(*, shared_learner: bool = False, optimism: bool = True, clip: bool = True) -> Sampler:
    def sampler(arms: np.ndarray, items: np.ndarray) -> Callable[[Statistics], int]:
        K = len(arms)
        learners = [AdaHedge(K) for _ in range(1 if shared_learner else len(items))]
        lag = np.zeros(K)

        def rule(stats: Statistics) -> int:
            nonlocal lag
            learner = learners[0 if shared_learner else stats.leader]
            w = learner.weights()
            learner.learn(-gains(stats, arms, w, optimism=optimism, clip=clip))
            lag -= w
            arm = int(np.argmin(lag))
            lag[arm] += 1
            return arm

        return rule

    return sampler


def lingame_c(*, optimism: bool = True, clip: bool = True) -> Sampler:
    def sampler(arms: np.ndarray, items: np.ndarray) -> Callable[[Statistics], int]:
        K, M = len(arms), len(items)
        learner, lag = AdaHedge(M * K), np.zeros(M * K)

        def rule(stats: Statistics) -> int:
            nonlocal lag
            W = learner.weights()
            scores = -np.log(M * K) / learner.gap * learner.losses.reshape(M, K)[stats.leader]
            w = np.exp(scores - scores.max())
            deviation = deviations(stats, arms, optimism) ** 2 / 2
            table = np.tile(np.minimum(deviation, np.log(stats.t)) if clip else deviation, (M, 1))
            table[stats.leader] = gains(stats, arms, w / w.sum(), optimism=optimism, clip=clip)
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
    def sampler(arms: np.ndarray, items: np.ndarray) -> Callable[[Statistics], int]:
        K, d = arms.shape
        start = np.isin(range(K), spanner) / len(spanner) if support else np.full(K, 1 / K)
        w, turn, update, lag, tracked = start, 0, 1, None, np.zeros(K)
        c0 = np.linalg.eigvalsh(arms[spanner].T @ arms[spanner])[0] / np.sqrt(d)
        while update < initial:
            update *= laziness

        def rule(stats: Statistics) -> int:
            nonlocal w, turn, update, lag, tracked
            if stats.t >= update:
                update *= laziness
                y, leads = (np.array(each) for each in zip(*stats.alternatives, strict=True))
                w = frank_wolfe(arms, y, leads**-2.0, steps, start)
            tracked = tracked + w
            lag = (stats.counts if lag is None else lag) - w
            A = ridge * np.eye(d) + arms.T @ (stats.counts[:, None] * arms)
            if np.linalg.eigvalsh(A)[0] < c0 * np.sqrt(stats.t):
                arm, turn = spanner[turn], (turn + 1) % d
            else:
                arm = int(np.argmin(np.where(tracked > 0, lag, np.inf) if support else lag))
            lag[arm] += 1
            return arm

        return rule

    return sampler


def challengers(stats: Statistics, arms: np.ndarray) -> list[tuple[int, int]]:
    """Lists the leader with each of its rivals."""
    del arms
    return [(stats.leader, j) for j in stats.rivals]


def lingape(
    threshold: Callable[[int, np.ndarray], float] | None, delta: float, ratios: Any = None, pairs: Any = challengers
) -> Sampler:
    """Builds LinGapE with the width of `threshold`. If None, the width uses log(t).

    `ratios` is the table for the rule "ratio", `pairs` lists the two items of each alternative.
    """

    def sampler(arms: np.ndarray, items: np.ndarray) -> Callable[[Statistics], int]:
        def rule(stats: Statistics) -> int:
            A = np.linalg.inv(stats.inverse)
            if threshold is None:
                C = np.sqrt(2 * (np.log(1 / delta) + 2 * np.log(stats.t + 2)))
            else:
                C = np.sqrt(2 * threshold(stats.t, stats.counts))
            upper = [C * np.sqrt(y @ stats.inverse @ y) - lead for y, lead in stats.alternatives]
            n = int(np.argmax(upper))
            y = stats.alternatives[n].y
            if ratios is not None:
                share = ratios[pairs(stats, arms)[n]]
                return int(np.argmin(np.where(share > 0, stats.counts / np.where(share > 0, share, 1), np.inf)))
            return int(np.argmin([y @ np.linalg.inv(A + np.outer(x, x)) @ y for x in arms]))

        return rule

    return sampler


def top_two(*, leader: Callable[[Statistics, np.ndarray], int], challenger: Any, share: float | None = None) -> Sampler:
    """Builds a top-two rule of leader(stats, items) and challenger(stats, items, leader, costs)."""

    def sampler(arms: np.ndarray, items: np.ndarray) -> Callable[[Statistics], int]:
        def rule(stats: Statistics) -> int:
            A = np.linalg.inv(stats.inverse)
            first = leader(stats, items)
            costs = [np.inf if j == first else cost(items, A, stats.theta, first, j) for j in range(len(items))]
            second = challenger(stats, items, first, np.array(costs))
            if share is not None:
                return first if stats.number.coin < share else second
            image = stats.inverse @ (items[first] - items[second])
            leverage = np.einsum("kd,de,ke->k", arms, stats.inverse, arms)
            return int(np.argmax((arms @ image) ** 2 / (1 + leverage)))

        return rule

    return sampler
