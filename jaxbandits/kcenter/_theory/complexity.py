"""Difficulty of an instance: bounds on the queries, and characteristic times.

All functions need the truth, which no algorithm knows.

Source: Jali, Karamchandani and Moharir, "Greedy k-Center from Noisy Distance Samples".
"""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import require
from jaxbandits.kcenter._shared.weights import check_scales, omega_newton
from jaxbandits.numerics.kl import bernoulli_kl

ACCURACY = 1e-9  # relative error of a characteristic time; in float32 a few roundings
LEAST_GAP = 1e-12  # smallest gap; its square is still a float32


class LowerBound(NamedTuple):
    """Two halves of Theorem 1. The bound is their sum."""

    others: Array  # float ()    queries of the nodes that are no centers
    centers: Array  # float ()   queries of the centers


class _Stages(NamedTuple):
    """Stages p = 1..k-1, where stage p finds center p. It is row p - 1."""

    table: Array  # float (n, k)         distance of every node to every center
    order: Array  # int (n,)             index of a node among the centers; k if it is none
    slots: Array  # bool (k-1, k-1)      slots that hold a center
    candidates: Array  # bool (k-1, n)   nodes that are no centers yet


def most_queries(n: int, m: int, k: int) -> int:
    """Returns the queries that no run of dimension sampling exceeds, 2 m per arm: 2 m sum_{p=1..k-1} (n - p).

    Args:
        n: number of points, at least 2.
        m: dimensions, at least 1.
        k: number of centers, in 2..n.

    Returns:
        A Python int.

    Raises:
        ValueError: an argument is not an integer, or lies outside the range above.

    Source: Algorithm 1, which reads an arm exactly after m queries of it.
    """
    checks.whole("n", n, least=2)
    checks.whole("m", m, least=1)
    checks.whole("k", k, least=2, most=n)
    return m * (k - 1) * (2 * n - k)


def lower_bound(distances: Any, centers: Any, delta: Array | float) -> LowerBound:
    """Computes the expected queries that dimension sampling needs at least, if every coordinate takes two values only.

    Args:
        distances: float (n, n), in [0, 1].
        centers: int (k,), greedy's centers in order.
        delta: () in (0, 1), allowed probability of error. For delta of at least 1/2.4 the bound is 0.

    Returns:
        LowerBound, infinite where a center is as far as another node.

    Raises:
        ValueError: a shape does not fit, or a value is out of range.

    Cost: O(n k^2).

    Source: Theorem 1; its log(1/2.4 delta) is log(1/(2.4 delta)).
    """
    checks.probability("delta", delta)
    stages = _stages(distances, centers, largest=1)
    k = stages.table.shape[1]
    needed = jnp.maximum(-jnp.log(2.4 * jnp.asarray(delta, stages.table.dtype)), 0)
    node = stages.table[None, :, :-1]
    center = stages.table[jnp.asarray(centers)[1:], None, :-1]

    def queries(kl: Array) -> Array:
        largest = jnp.max(kl, -1, initial=0, where=stages.slots[:, None])
        return jnp.where(largest > 0, needed / jnp.where(largest > 0, largest, 1), jnp.inf)

    never_centers = stages.order == k
    later = stages.order[None] > jnp.arange(1, k)[:, None]
    by_node = jnp.max(queries(bernoulli_kl(node, center)), 0)
    by_stage = jnp.max(queries(bernoulli_kl(center, node)), 1, initial=0, where=later)
    return LowerBound(jnp.sum(by_node, where=never_centers) / 2, jnp.sum(by_stage) / 2)


def upper_bound(distances: Any, centers: Any, m: int, delta: Array | float, c: Array | float = 1.0) -> Array:
    """Bounds the queries of DS-UCB, up to a constant, with probability at least 1 - delta.

    Args:
        distances: float (n, n), in [0, 1].
        centers: int (k,), greedy's centers in order.
        m: dimensions of a point, an int of at least 1.
        delta: () in (0, 1).
        c: () > 0, the constant, which the theorem does not specify; its figures take 1.

    Returns:
        float (), at most `most_queries`, however large c is.

    Raises:
        ValueError: a shape does not fit, or a value is out of range.

    Cost: O(n k^2).

    Source: Theorem 2.
    """
    checks.integer("m", m, least=1)
    checks.probability("delta", delta)
    checks.positive("c", c)
    stages = _stages(distances, centers, largest=1)
    table = stages.table[:, :-1]
    n, dtype = table.shape[0], table.dtype
    nearest, bottleneck, _ = _race(stages)
    x = jnp.maximum(table[None] - nearest[..., None], bottleneck[:, None, None] - table[None])
    positive = jnp.where(x > 0, x, 1)
    # As printed log(2 log(2/x)) is undefined from x = 2 on; below 2/e it is above its floor, log 2, anyway.
    loops = jnp.log(2 * jnp.maximum(jnp.log(2 / positive), 1))
    union = 2 * math.log(n) - jnp.log(jnp.asarray(delta, dtype))
    queries = jnp.where(x > 0, jnp.minimum(c * union * loops / positive**2, 2 * m), 2 * m)
    # Node v is a candidate in the stages up to its own, and slot i exists after stage i. The printed sum ends with slot
    # k - 1, whose maximum is over no stage.
    takes_part = stages.candidates[..., None] & stages.slots[:, None]
    return jnp.sum(jnp.max(queries, 0, initial=0, where=takes_part))


def characteristic_time(means: Any, *, noise_scale: Array | float) -> Array:
    """Computes T* of one stage: with noisy distances, finding its center takes about T* log(1/delta) queries.

    Args:
        means: float (candidates, slots), the true distances.
        noise_scale: float () or (candidates, slots), positive, standard deviation of one query.

    Returns:
        float (), infinite if two candidates tie for the farthest.

    Raises:
        ValueError: a shape does not fit, or `noise_scale` is not positive.

    Source: equation (19).
    """
    means = checks.array("means", means, ("candidates", "slots"))
    check_scales(noise_scale, means.shape)
    candidates, slots = (jnp.ones(size, bool) for size in means.shape)
    lowest = means.min(1)
    tied = jnp.sum(lowest == lowest.max()) > 1
    return _time(means, slots, candidates, jnp.asarray(noise_scale, means.dtype), tied)


def stage_times(distances: Any, centers: Any, *, noise_scale: Array | float) -> Array:
    """Computes T* of every stage.

    Args:
        distances: float (n, n).
        centers: int (k,), greedy's centers in order.
        noise_scale: standard deviation of one query, positive: (), or (k-1,) by stage, or (n, k-1) by arm. Bernoulli
            rewards have sqrt(d (1 - d)), with d of each arm or at each stage's bottleneck.

    Returns:
        float (k-1,), infinite for a stage whose two farthest nodes tie, 0 for a stage with a single candidate.

    Raises:
        ValueError: a shape does not fit, or a value is out of range.

    Source: Garivier and Kaufmann (2016); Jali, Karamchandani and Moharir, Algorithm 4, for a stage of greedy.
    """
    distances, centers = _checked(distances, centers)
    n, k = distances.shape[0], centers.size
    check_scales(noise_scale, (k - 1,), (n, k - 1))
    stages = _stages(distances, centers)
    shape, noise_scale = jnp.shape(noise_scale), jnp.asarray(noise_scale, stages.table.dtype)
    by_stage = jnp.broadcast_to(noise_scale, (k - 1, *shape)) if len(shape) != 1 else noise_scale
    tied = _race(stages)[2]
    return jax.vmap(lambda *stage: _time(stages.table[:, :-1], *stage))(stages.slots, stages.candidates, by_stage, tied)


def noisy_lower_bound(distances: Any, centers: Any, *, noise_scale: Array | float, delta: Array | float) -> Array:
    """Computes sum_p T*_p log(1/(2.4 delta)), the expected queries that noisy sampling needs at least.

    Args:
        distances: float (n, n).
        centers: int (k,), greedy's centers in order.
        noise_scale: standard deviation of one query, as for `stage_times`.
        delta: () in (0, 1), allowed probability of error. For delta of at least 1/2.4 the bound is 0.

    Returns:
        float ().

    Raises:
        ValueError: as `stage_times`, or `delta` is out of range.

    The alternatives of different stages are treated as unrelated, and the bound holds in the limit of small delta.
    """
    checks.probability("delta", delta)
    times = stage_times(distances, centers, noise_scale=noise_scale)
    return times.sum() * jnp.maximum(-jnp.log(2.4 * jnp.asarray(delta, times.dtype)), 0)


def _checked(distances: Any, centers: Any, largest: float | None = None) -> tuple[Array, Array]:
    distances = checks.array("distances", distances, ("n", "n"), least=0, most=largest)
    n = distances.shape[0]
    centers = checks.array("centers", centers, ("k",), kind="int", least=0, most=n - 1)
    require(2 <= centers.size <= n, "centers", "have shape (k,) with 2 <= k <= n", centers.shape)
    return distances, centers


def _stages(distances: Any, centers: Any, largest: float | None = None) -> _Stages:
    return _stages_of(*_checked(distances, centers, largest))


@partial(jax.jit, inline=True)
def _stages_of(distances: Array, centers: Array) -> _Stages:
    n, k = distances.shape[0], centers.size
    order = jnp.full(n, k, int).at[centers].set(jnp.arange(k))
    p = jnp.arange(1, k)[:, None]
    return _Stages(distances[:, centers], order, jnp.arange(k - 1)[None] < p, order[None] >= p)


@partial(jax.jit, inline=True)
def _race(stages: _Stages) -> tuple[Array, Array, Array]:
    """Returns by stage each node's distance to the centers (k-1, n), the largest (k-1,), and its ties (k-1,)."""
    far = jnp.finfo(stages.table.dtype).max
    nearest = jnp.where(stages.slots[:, None], stages.table[None, :, :-1], far).min(-1)
    bottleneck = jnp.max(nearest, -1, initial=-far, where=stages.candidates)
    first = stages.candidates & (nearest == bottleneck[:, None])
    return nearest, bottleneck, first.sum(-1) > 1


@jax.jit
def _time(means: Array, slots: Array, candidates: Array, noise_scale: Array, tied: Array) -> Array:
    tolerance = max(ACCURACY, 20 * float(jnp.finfo(means.dtype).eps))
    weights = omega_newton(means, slots, candidates, noise_scale=noise_scale, tolerance=tolerance, gap_floor=LEAST_GAP)
    return jnp.where(tied, jnp.inf, weights.time)
