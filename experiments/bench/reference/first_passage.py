"""The first pull at which a rule holds, in hundreds of evaluations: compiled runs are checked against it.

The sums at the end of a long block of pulls are drawn first. Where the rule might hold inside, the sums in the middle
are drawn too, given both ends, and the halves are searched in the same way, the left one first.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits.checks import require
from jaxbandits.fullbandit import Design, Instance, Verdict, environment, tracking_counts

SHORT = 4  # a block of so few pulls is searched one by one: its bound would cost as much as it can save

Rule = Callable[[np.ndarray, np.ndarray, int], Verdict]  # (inverse float (n, n), theta float (n,), t) -> Verdict


class Path(NamedTuple):
    """Rewards whose past can be filled in. A position says what has been seen of every super-arm."""

    start: Any  # the position before the first pull
    extend: Callable[[np.random.Generator, Any, np.ndarray], Any]  # (rng, from, pulls int (s,)) -> position
    bridge: Callable[[np.random.Generator, Any, Any, np.ndarray, np.ndarray], Any]
    # (rng, left, right, pulls int (s,) from the left, pulls int (s,) to the right) -> position between
    sums: Callable[[Any], np.ndarray]  # (position) -> float (s,), sums of rewards
    variance: float  # at least the largest of a pull


class Passage(NamedTuple):
    """Where the search ended."""

    stopped: bool  # whether the rule held at all up to `max_pulls`
    pulls: int
    answer: np.ndarray  # bool (n,)
    evaluations: int  # of the rule


class Point(NamedTuple):
    """The statistics after t pulls."""

    t: int
    counts: np.ndarray  # int (s,)
    position: Any
    inverse: np.ndarray  # float (n, n)   A_t^-1
    theta: np.ndarray  # float (n,)


def first_passage(
    rng: np.random.Generator,
    path: Path,
    design: Design,
    rule: Rule,
    *,
    swaps: int,
    first_test: int | None = None,
    ratio: float = 1.05,
    resolution: float = 0.0,
    z: float = 8.0,
    max_pulls: int = 10**8,
) -> Passage:
    """Tracks a design until a rule holds for the first time.

    Between two points a < b of a path, the margin is at most that of the widths at their smallest, with the matrix of b
    and the radius of a, at the better of the two estimates; plus half of what exchanging `swaps` arms can make of the
    difference of the estimates; plus z standard deviations of the bridge. Where that is below 0 nothing is drawn.

    Args:
        rng: source of all randomness.
        path: `gaussian_path` or `bernoulli_path` of an instance.
        design: what is tracked.
        rule: (A_t^-1, theta, t) -> `Verdict`. Inside `jax.jit` it is faster; the estimates are float64, so
            jax_enable_x64 should be on. A rule with a lottery has no first passage.
        swaps: by how many exchanges of arms the super-arms that the rule compares differ at most: 1 for `saqm_rule`,
            min(k, n - k) for the others.
        first_test: pulls before the first test, at least s; s, the size of the support, by default.
        ratio: above 1, ratio of the pulls at the two ends of a block that is drawn at once. It changes the speed, not
            the law.
        resolution: at least 0; blocks shorter than this share of the pulls are not looked into. 0: the first passage.
        z: positive. One direction of the bridge exceeds the bound with probability 2 exp(-z^2 / 2), 2.5e-14 at 8.
        max_pulls: the search ends there if the rule never held.

    Returns:
        Passage.

    Raises:
        ValueError: an argument lies outside the range above.

    **Guarantee**: the law is that of testing after every pull, up to the above probability, for rules whose margin
    depends on the estimate through at most `swaps` exchanges and falls as the widths grow. For `saqm_rule` the set
    whose own width enters is taken to be that of an end. **Cost**: some 1000 evaluations, for T of 10^3
    and of 10^5 alike (n = 5 and 6), of O(s n^2 + n^3) each and that of the rule.
    """
    support = np.asarray(design.support, np.float64)
    s, n = support.shape
    first = s if first_test is None else first_test
    require(1 <= swaps <= n // 2, "swaps", f"lie in 1..{n // 2}", swaps)
    require(first >= s, "first_test", f"be at least {s}, one pull each", first_test)
    require(ratio > 1, "ratio", "be above 1", ratio)
    require(resolution >= 0, "resolution", "be at least 0", resolution)
    require(z > 0, "z", "be positive", z)
    require(max_pulls >= first, "max_pulls", f"be at least {first}, the first test", max_pulls)

    def counts_at(t: int) -> np.ndarray:
        return np.asarray(_tracking_counts(design, t))

    def point(t: int, counts: np.ndarray, position: Any) -> Point:
        inverse = np.linalg.inv(support.T @ (counts[:, None] * support))
        return Point(t, counts, position, inverse, inverse @ (path.sums(position) @ support))

    def beyond(a: Point, t: int) -> Point:
        counts = counts_at(t)
        return point(t, counts, path.extend(rng, a.position, counts - a.counts))

    def between(a: Point, b: Point) -> Point:
        t = (a.t + b.t) // 2
        counts = counts_at(t)
        return point(t, counts, path.bridge(rng, a.position, b.position, counts - a.counts, b.counts - counts))

    def bound(a: Point, b: Point) -> float:
        ends = max(float(rule(b.inverse, theta, a.t).margin) for theta in (a.theta, b.theta))
        moved = np.sort(b.theta - a.theta)
        drift = (moved[-swaps:].sum() - moved[:swaps].sum()) / 2
        # A difference y of super-arms sums to 0 and has |y|_2^2 = 2 swaps at most.
        spread = a.inverse @ support.T * np.sqrt(b.counts - a.counts)
        spread -= spread.mean(axis=0)
        largest = max(np.linalg.eigvalsh(spread @ spread.T)[-1], 0.0)
        return ends + drift + z * np.sqrt(path.variance / 4 * 2 * swaps * largest)

    counts = counts_at(first)
    left = point(first, counts, path.extend(rng, path.start, counts))
    seen, evaluations = rule(left.inverse, left.theta, left.t), 1
    ahead: list[Point] = []  # what is drawn beyond `left`, the nearest last
    while not seen.stop and left.t < max_pulls:
        if not ahead:
            ahead.append(beyond(left, min(max(left.t + 1, int(ratio * left.t)), max_pulls)))
        right = ahead[-1]
        if right.t - left.t > max(1.0, resolution * left.t):
            is_short = right.t - left.t <= SHORT
            evaluations += 0 if is_short else 2
            if is_short or bound(left, right) >= 0:
                ahead.append(between(left, right))
                continue
        left = ahead.pop()
        seen, evaluations = rule(left.inverse, left.theta, left.t), evaluations + 1
    return Passage(bool(seen.stop), left.t, np.asarray(seen.answer), evaluations)


def gaussian_path(instance: Instance, design: Design) -> Path:
    """The rewards of `environment(instance, design)`; a position is the sums of rewards, float (s,)."""
    environment(instance, design)  # checks that the two fit
    theta, support = _truth(instance, design)
    means, variance = support @ theta, instance.k * float(instance.noise_scale) ** 2

    def extend(rng: np.random.Generator, sums: np.ndarray, pulls: np.ndarray) -> np.ndarray:
        return sums + pulls * means + np.sqrt(variance * pulls) * rng.standard_normal(len(pulls))

    def bridge(
        rng: np.random.Generator, left: np.ndarray, right: np.ndarray, before: np.ndarray, after: np.ndarray
    ) -> np.ndarray:
        share = before / np.maximum(before + after, 1)
        return left + share * (right - left) + np.sqrt(variance * share * after) * rng.standard_normal(len(share))

    return Path(np.zeros(len(means)), extend, bridge, np.asarray, variance)


def bernoulli_path(instance: Instance, design: Design) -> Path:
    """Right and wrong answers; a position is the successes of every arm of every super-arm, int (s, k)."""
    environment(instance, design, noise="bernoulli")
    theta, support = _truth(instance, design)
    members = np.argsort(-support, axis=1, kind="stable")[:, : instance.k]

    def extend(rng: np.random.Generator, successes: np.ndarray, pulls: np.ndarray) -> np.ndarray:
        return successes + rng.binomial(pulls[:, None], theta[members])

    def bridge(
        rng: np.random.Generator, left: np.ndarray, right: np.ndarray, before: np.ndarray, after: np.ndarray
    ) -> np.ndarray:
        good = right - left
        pulls = (before + after)[:, None]
        return left + rng.hypergeometric(good, pulls - good, np.broadcast_to(before[:, None], good.shape))

    return Path(
        np.zeros(members.shape, int),
        extend,
        bridge,
        partial(np.sum, axis=1, dtype=np.float64),
        float((support @ (theta * (1 - theta))).max()),
    )


_tracking_counts = jax.jit(tracking_counts)


def _truth(instance: Instance, design: Design) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(instance.theta, np.float64), np.asarray(design.support, np.float64)
