"""The first pull at which a rule holds, in hundreds of evaluations. Compiled runs are checked against it.

The sums at the end of a long block of pulls are drawn first. If the rule might hold inside the block, the sums in the
middle are drawn too, given both ends. The halves are then searched in the same way, the first half first.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits.checks import require
from jaxbandits.fullbandit import Design, Instance, Verdict, environment, tracking_counts

SHORT = 4  # pulls of a block that is searched one by one: its bound would cost as much as it can save

Rule = Callable[[np.ndarray, np.ndarray, int], Verdict]  # (inverse float (n, n), theta float (n,), t) -> Verdict


class Path(NamedTuple):
    """Rewards whose past can be filled in. A position holds the observations of every super-arm."""

    start: Any  # position before the first pull
    extend: Callable[[np.random.Generator, Any, np.ndarray], Any]  # (rng, from, pulls int (s,)) -> position
    bridge: Callable[[np.random.Generator, Any, Any, np.ndarray, np.ndarray], Any]
    # (rng, start, end, pulls int (s,) from the start, pulls int (s,) to the end) -> position between
    sums: Callable[[Any], np.ndarray]  # (position) -> float (s,), sums of rewards
    variance: float  # bound on the variance of a pull


class Passage(NamedTuple):
    """End of a search."""

    stopped: bool  # True if the rule held up to `max_pulls`
    pulls: int
    answer: np.ndarray  # bool (n,)
    evaluations: int  # number of evaluations of the rule


class Point(NamedTuple):
    """Statistics after t pulls."""

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

    Between two points a < b of a path, the margin is at most the sum of three terms. The first is the margin at the
    better of the two estimates, with the smallest widths: the matrix of b and the radius of a. The second is half of
    the largest change of the estimates' difference by exchanging `swaps` arms. The third is z standard deviations of
    the bridge. If the sum is below 0, nothing is drawn between a and b.

    Args:
        rng: source of all randomness.
        path: `gaussian_path` or `bernoulli_path` of an instance.
        design: the design to track.
        rule: (A_t^-1, theta, t) -> `Verdict`. Inside `jax.jit` it is faster; the estimates are float64, so
            jax_enable_x64 should be on. A rule with a lottery has no first passage.
        swaps: largest number of exchanged arms between two super-arms that the rule compares: 1 for `saqm_rule`,
            min(k, n - k) for the others.
        first_test: pulls before the first test, at least s. If None, s, the size of the support.
        ratio: above 1, ratio of the pulls at the two ends of a block that is drawn at once. It changes the speed, not
            the law.
        resolution: at least 0; blocks shorter than this share of the pulls are not searched. At 0, all are.
        z: positive. One direction of the bridge exceeds the bound with probability 2 exp(-z^2 / 2), 2.5e-14 at 8.
        max_pulls: pulls after which the search ends if the rule never held.

    Returns:
        Passage.

    Raises:
        ValueError: an argument lies outside the range above.

    **Guarantee**: the result has the same law as a test after every pull, up to the above probability. The margin of
    the rule must depend on the estimate through at most `swaps` exchanges and fall as the widths grow. For `saqm_rule`
    the set whose own width enters is taken from one of the ends. **Cost**: some 1000 evaluations, for T of 10^3 and of
    10^5 alike (n = 5 and 6). Each costs O(s n^2 + n^3) plus the rule.
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
    current = point(first, counts, path.extend(rng, path.start, counts))
    verdict, evaluations = rule(current.inverse, current.theta, current.t), 1
    drawn: list[Point] = []  # points drawn beyond `current`, the nearest last
    while not verdict.stop and current.t < max_pulls:
        if not drawn:
            drawn.append(beyond(current, min(max(current.t + 1, int(ratio * current.t)), max_pulls)))
        following = drawn[-1]
        if following.t - current.t > max(1.0, resolution * current.t):
            is_short = following.t - current.t <= SHORT
            evaluations += 0 if is_short else 2
            if is_short or bound(current, following) >= 0:
                drawn.append(between(current, following))
                continue
        current = drawn.pop()
        verdict, evaluations = rule(current.inverse, current.theta, current.t), evaluations + 1
    return Passage(bool(verdict.stop), current.t, np.asarray(verdict.answer), evaluations)


def gaussian_path(instance: Instance, design: Design) -> Path:
    """Builds the path of `environment(instance, design)`; a position is the sums of rewards, float (s,)."""
    environment(instance, design)  # raises if the two do not fit
    theta, support = _truth(instance, design)
    means, variance = support @ theta, instance.k * float(instance.noise_scale) ** 2

    def extend(rng: np.random.Generator, sums: np.ndarray, pulls: np.ndarray) -> np.ndarray:
        return sums + pulls * means + np.sqrt(variance * pulls) * rng.standard_normal(len(pulls))

    def bridge(
        rng: np.random.Generator, start: np.ndarray, end: np.ndarray, before: np.ndarray, after: np.ndarray
    ) -> np.ndarray:
        share = before / np.maximum(before + after, 1)
        return start + share * (end - start) + np.sqrt(variance * share * after) * rng.standard_normal(len(share))

    return Path(np.zeros(len(means)), extend, bridge, np.asarray, variance)


def bernoulli_path(instance: Instance, design: Design) -> Path:
    """Builds a path of right and wrong answers; a position is the successes of each super-arm's arms, int (s, k)."""
    environment(instance, design, noise="bernoulli")
    theta, support = _truth(instance, design)
    members = np.argsort(-support, axis=1, kind="stable")[:, : instance.k]

    def extend(rng: np.random.Generator, successes: np.ndarray, pulls: np.ndarray) -> np.ndarray:
        return successes + rng.binomial(pulls[:, None], theta[members])

    def bridge(
        rng: np.random.Generator, start: np.ndarray, end: np.ndarray, before: np.ndarray, after: np.ndarray
    ) -> np.ndarray:
        good = end - start
        pulls = (before + after)[:, None]
        return start + rng.hypergeometric(good, pulls - good, np.broadcast_to(before[:, None], good.shape))

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
