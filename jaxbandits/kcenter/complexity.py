"""How hard an instance is: bounds on the queries, and characteristic times.

All of it is about the truth, and none of it is for an algorithm to see.

Source: Jali, Karamchandani and Moharir, "Greedy k-Center from Noisy Distance Samples".
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.checks import known, require
from jaxbandits.kcenter.weights import omega_newton
from jaxbandits.numerics.kl import bernoulli_kl

ACCURACY = 1e-9  # relative, of a characteristic time; in float32 a few roundings
LEAST_GAP = 1e-12  # its square is still a float32


class LowerBound(NamedTuple):
    """The two halves of Theorem 1. The bound is their sum."""

    others: Array  # float ()    for the nodes that are no centers
    centers: Array  # float ()   for the centers


class _Stages(NamedTuple):
    """Stage p = 1..k-1 looks for center p; it is row p - 1 here."""

    table: Array  # float (n, k)         distance of every node to every center
    place: Array  # int (n,)             which center a node is; k if it is none
    slots: Array  # bool (k-1, k-1)      slots that hold a center
    candidates: Array  # bool (k-1, n)   nodes that are no centers yet


def most_queries(n: int, m: int, k: int) -> int:
    """The queries that no run of dimension sampling exceeds, 2 m for each arm: 2 m sum_{p=1..k-1} (n - p).

    Args:
        n: points.
        m: dimensions.
        k: centers.

    Returns:
        A Python int.

    Source: Algorithm 1, which reads an arm exactly after m queries of it.
    """
    return m * (k - 1) * (2 * n - k)


def lower_bound(distances: Any, centers: Any, delta: Array | float) -> LowerBound:
    """Expected queries that dimension sampling cannot do without, if every coordinate takes two values only.

    Args:
        distances: float (n, n), in [0, 1].
        centers: int (k,), greedy's centers in order.
        delta: () in (0, 1), admitted probability of error. From 1/2.4 on the bound is 0.

    Returns:
        LowerBound, infinite where a center cannot be told from another node.

    Raises:
        ValueError: a shape does not fit, or a value is out of range.

    Cost: O(n k^2).

    Source: Theorem 1; its log(1/2.4 delta) is log(1/(2.4 delta)).
    """
    stages = _stages(distances, centers)
    k = stages.table.shape[1]
    _check_delta(delta)
    needed = jnp.maximum(-jnp.log(2.4 * jnp.asarray(delta, stages.table.dtype)), 0)
    node = stages.table[None, :, :-1]
    center = stages.table[jnp.asarray(centers)[1:], None, :-1]

    def queries(kl: Array) -> Array:
        most = jnp.max(kl, -1, initial=0, where=stages.slots[:, None])
        return jnp.where(most > 0, needed / jnp.where(most > 0, most, 1), jnp.inf)

    never_centers = stages.place == k
    later = stages.place > jnp.arange(1, k)[:, None]
    by_node = jnp.max(queries(bernoulli_kl(node, center)), 0)
    by_stage = jnp.max(queries(bernoulli_kl(center, node)), 1, initial=0, where=later)
    return LowerBound(jnp.sum(by_node, where=never_centers) / 2, jnp.sum(by_stage) / 2)


def upper_bound(distances: Any, centers: Any, m: int, delta: Array | float, c: Array | float = 1.0) -> Array:
    """Queries that DS-UCB stays below with probability at least 1 - delta, up to its constant.

    Args:
        distances: float (n, n), in [0, 1].
        centers: int (k,), greedy's centers in order.
        m: dimensions of a point.
        delta: () in (0, 1).
        c: () > 0, the constant, which the theorem leaves open; its figures take 1.

    Returns:
        float (), at most `most_queries` for c as large as you like.

    Raises:
        ValueError: a shape does not fit, or a value is out of range.

    Cost: O(n k^2).

    Source: Theorem 2.
    """
    stages = _stages(distances, centers)
    _check_delta(delta)
    require(known(m) >= 1, "m", "be at least 1", m)
    require(known(c) > 0, "c", "be positive", c)
    table = stages.table[:, :-1]
    n, dtype = table.shape[0], table.dtype
    nearest, bottleneck, _ = _race(stages)
    x = jnp.maximum(table - nearest[..., None], bottleneck[:, None, None] - table)
    positive = jnp.where(x > 0, x, 1)
    # As printed log(2 log(2/x)) is undefined from x = 2 on; below 2/e it is above its floor, log 2, anyway.
    loops = jnp.log(2 * jnp.maximum(jnp.log(2 / positive), 1))
    union = 2 * math.log(n) - jnp.log(jnp.asarray(delta, dtype))
    queries = jnp.where(x > 0, jnp.minimum(c * union * loops / positive**2, 2 * m), 2 * m)
    # Node v is a candidate in the stages up to its own, and slot i is there after stage i. The printed sum ends with
    # slot k - 1, whose maximum is over no stage.
    takes_part = stages.candidates[..., None] & stages.slots[:, None]
    return jnp.sum(jnp.max(queries, 0, initial=0, where=takes_part))


def characteristic_time(means: Any, variance: Array | float) -> Array:
    """T* of one stage: with noisy distances, about T* log(1/delta) queries are needed to find its center.

    Args:
        means: float (candidates, slots), the true distances.
        variance: float () or (candidates, slots), positive, of one query.

    Returns:
        float (), infinite if two candidates tie for the farthest.

    Raises:
        ValueError: a shape does not fit, or `variance` is not positive.

    Source: equation (19).
    """
    means = jnp.asarray(means)
    require(means.ndim == 2, "means", "have shape (candidates, slots)", means.shape)
    candidates, slots = (jnp.ones(size, bool) for size in means.shape)
    lowest = means.min(1)
    tied = jnp.sum(lowest == lowest.max()) > 1
    return _time(means, slots, candidates, variance, tied)


def stage_times(distances: Any, centers: Any, variance: Array | float) -> Array:
    """T* of every stage.

    Args:
        distances: float (n, n).
        centers: int (k,), greedy's centers in order.
        variance: of one query, positive: (), or (k-1,) by stage, or (n, k-1) by arm. For Bernoulli rewards d (1 - d),
            of each arm or at each stage's bottleneck.

    Returns:
        float (k-1,), infinite for a stage whose two farthest nodes tie, 0 for a stage with a single candidate.

    Raises:
        ValueError: a shape does not fit, or a value is out of range.

    Source: Garivier and Kaufmann (2016); Jali, Karamchandani and Moharir, Algorithm 4, for a stage of greedy.
    """
    stages = _stages(distances, centers)
    n, k = stages.table.shape
    shape = jnp.shape(variance)
    require(shape in ((), (k - 1,), (n, k - 1)), "variance", f"have shape (), {(k - 1,)} or {(n, k - 1)}", shape)
    variance = jnp.asarray(variance, stages.table.dtype)
    by_stage = jnp.broadcast_to(variance, (k - 1, *shape)) if len(shape) != 1 else variance
    require(known(variance) > 0, "variance", "be positive", variance)
    tied = _race(stages)[2]
    return jax.vmap(lambda *stage: _time(stages.table[:, :-1], *stage))(stages.slots, stages.candidates, by_stage, tied)


def noisy_lower_bound(distances: Any, centers: Any, variance: Array | float, delta: Array | float) -> Array:
    """sum_p T*_p log(1/(2.4 delta)): the expected queries that noisy sampling cannot do without, for small delta.

    Args:
        distances: float (n, n).
        centers: int (k,), greedy's centers in order.
        variance: of one query, as for `stage_times`.
        delta: () in (0, 1), admitted probability of error. From 1/2.4 on the bound is 0.

    Returns:
        float ().

    Raises:
        ValueError: as `stage_times`, or `delta` is out of range.

    The boxes of different stages are taken as unrelated, and the bound is one for delta to 0.
    """
    times = stage_times(distances, centers, variance)
    _check_delta(delta)
    return times.sum() * jnp.maximum(-jnp.log(2.4 * jnp.asarray(delta, times.dtype)), 0)


def _check_delta(delta: Any) -> None:
    """Raises `ValueError` unless delta lies in (0, 1)."""
    require((known(delta) > 0) & (known(delta) < 1), "delta", "lie in (0, 1)", delta)


def _stages(distances: Any, centers: Any) -> _Stages:
    shape = jnp.shape(distances)
    require(len(shape) == 2 and shape[0] == shape[1], "distances", "have shape (n, n)", shape)
    n = shape[0]
    count = jnp.shape(centers)
    require(len(count) == 1 and 2 <= count[0] <= n, "centers", "have shape (k,) with 2 <= k <= n", count)
    listed = known(centers)
    require((listed >= 0) & (listed < n), "centers", f"lie in 0..{n - 1}", centers)
    require(known(distances) >= 0, "distances", "be at least 0", distances)
    distances, centers, k = jnp.asarray(distances), jnp.asarray(centers), count[0]
    place = jnp.full(n, k, int).at[centers].set(jnp.arange(k))
    p = jnp.arange(1, k)[:, None]
    return _Stages(distances[:, centers], place, jnp.arange(k - 1) < p, place >= p)


def _race(stages: _Stages) -> tuple[Array, Array, Array]:
    """By stage: each node's distance to the centers (k-1, n), the largest (k-1,), whether two have it (k-1,)."""
    far = jnp.finfo(stages.table.dtype).max
    nearest = jnp.where(stages.slots[:, None], stages.table[:, :-1], far).min(-1)
    bottleneck = jnp.max(nearest, -1, initial=-far, where=stages.candidates)
    first = stages.candidates & (nearest == bottleneck[:, None])
    return nearest, bottleneck, first.sum(-1) > 1


@jax.jit
def _time(means: Array, slots: Array, candidates: Array, variance: Array | float, tied: Array) -> Array:
    tolerance = max(ACCURACY, 20 * float(jnp.finfo(means.dtype).eps))
    weights = omega_newton(means, slots, candidates, variance=variance, tolerance=tolerance, gap_floor=LEAST_GAP)
    return jnp.where(tied, jnp.inf, weights.time)
