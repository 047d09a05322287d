"""The best decision at a known theta: the maximisers that the algorithms call."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.checks import require
from jaxbandits.cpe.problem import (
    Enumerated,
    Graphic,
    OpinionSampling,
    Oracle,
    Problem,
    Table,
    entries_above,
    entry_values,
    row_values,
)
from jaxbandits.numerics import matroid

RANKED = 64  # entries of a table up to which all pairs are compared
LARGE_BUDGET = 10**6  # beyond it a floor in 64 bit may come out one too high


def solve(problem: Problem, theta: Array) -> Array:
    """The leading optimum: of the decisions that pay most at theta, the lexicographically smallest.

    Args:
        problem: any.
        theta: float (m,).

    Returns:
        int32 (m,), its levels; for an `Oracle`, whatever its own function returns.

    Cost: O((m W)^2) for a `Table` of at most 64 entries, else O(m W) 32 or 64 times; O(N m) for `Enumerated`; O(m^2)
    for `Graphic`; O(m) 32 or 64 times for `OpinionSampling`.

    Example:
        >>> from jaxbandits import cpe
        >>> print(solve(cpe.top_k(4, 2), jnp.asarray([0.2, 0.9, 0.4, 0.1])))
        [0 1 1 0]
    """
    match problem:
        case Table():
            values = entry_values(problem, theta)
            return _take_ranked(problem, values) if values.size <= RANKED else _take_bisected(problem, values)
        case OpinionSampling():
            return osa_threshold(theta, problem.sizes, problem.budget) - 1
        case Enumerated():
            return problem.rows[jnp.argmax(row_values(problem, theta))]
        case Graphic():
            # `graphic` keeps the lowest index among ties, and the leading tree has the largest.
            return matroid.graphic(problem.ends[::-1])(theta[::-1])[::-1].astype(jnp.int32)
        case Oracle():
            return problem.solve(theta).astype(jnp.int32)


# Tables


def _take_ranked(problem: Table, values: Array) -> Array:
    m, width = values.shape
    flat = values.reshape(-1)
    arm, level = (axis.reshape(-1) for axis in jnp.indices((m, width), jnp.int32))
    # Entry b precedes entry a.
    other = (flat > flat[:, None]) | ((flat == flat[:, None]) & (arm > arm[:, None]))
    precedes = jnp.where(arm == arm[:, None], level < level[:, None], other)
    rank = jnp.sum(precedes, axis=1, dtype=jnp.int32)
    chosen = ((rank < problem.quota) & (flat > problem.floor)) | (flat > problem.ceiling)
    return jnp.sum(chosen.reshape(m, width), axis=1, dtype=jnp.int32)


def _take_bisected(problem: Table, values: Array) -> Array:
    """The same without comparing all pairs: finds the quota-th largest value, and then shares out what equals it."""
    order = _ordered(values)

    def halve(_: int, span: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = span
        middle = _middle(low, high)
        enough = jnp.sum(order >= middle, dtype=jnp.int32) >= problem.quota
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    # `low` always has at least `quota` values at or above it, `high` has fewer: no float has the largest integer.
    span = jnp.iinfo(order.dtype)
    start = jnp.asarray(span.min, order.dtype), jnp.asarray(span.max, order.dtype)
    last, _ = lax.fori_loop(0, span.bits, halve, start)
    above = jnp.sum(order > last, axis=1, dtype=jnp.int32)
    equal = jnp.sum(order == last, axis=1, dtype=jnp.int32)
    levels = above + _share_out(equal, problem.quota - jnp.sum(above, dtype=jnp.int32))
    most = jnp.sum(values > problem.floor, axis=1, dtype=jnp.int32)
    least = jnp.sum(values > problem.ceiling, axis=1, dtype=jnp.int32)
    return jnp.maximum(jnp.minimum(levels, most), least)


def _share_out(wanted: Array, places: Array) -> Array:
    """Gives places to the arms, as many as each one wants, the largest index first."""
    behind = jnp.cumsum(wanted[::-1], dtype=wanted.dtype)[::-1] - wanted
    return jnp.clip(places - behind, 0, wanted)


def _ordered(values: Array) -> Array:
    """Integers in the order of the floats."""
    kind = jnp.int32 if values.dtype == jnp.float32 else jnp.int64
    # -0.0 is to become 0.0; XLA would drop an addition of 0.
    bits = lax.bitcast_convert_type(jnp.where(values == 0, 0, values), kind)
    return jnp.where(bits < 0, bits ^ jnp.iinfo(kind).max, bits)


def _middle(low: Array, high: Array) -> Array:
    """floor((low + high) / 2) without overflow."""
    return (low & high) + ((low ^ high) >> 1)


# Opinion sampling


class Greedy(NamedTuple):
    """An allocation and how it came about."""

    allocation: Array  # int32 (m,)
    base: Array  # int32 (m,)   where the greedy steps began
    steps: Array  # int32 ()


def greedy_osa(theta: Array, sizes: Array, budget: int) -> Greedy:
    """The optimal allocation of opinion sampling: rounds the continuous optimum down safely, then adds greedily.

    Args:
        theta: float (m,), variances, at least 0.
        sizes: (m,), positive integers.
        budget: people to ask, at least m.

    Returns:
        Greedy, whose allocation is the leading optimum.

    Raises:
        ValueError: `budget` is below m.

    Cost: O(m) in each of at most m^2 greedy steps, or m more where the base is lowered for rounding. Under `vmap` the
    slowest lane sets the number: use `osa_threshold` there.

    Source: Huang, Ok, Li and Chen (2018), Algorithm 2.
    """
    weights = _weights(theta, sizes, budget)
    dtype, m = weights.dtype, weights.shape[0]
    share = jnp.asarray(sizes).astype(dtype) * jnp.sqrt(theta)
    total = share.sum()
    x = budget * share / jnp.where(total > 0, total, 1)
    up = jnp.ceil(x)
    slack = jnp.where(up * (up - 1) >= x**2, 0, up - x)
    # ERRATUM: ceil(0) = 0 makes the printed slack 0 where theta_i = 0, although y_i >= 1 is forced there. The base then
    # exceeds the budget.
    slack = jnp.where(x < 1, 1 - x, slack)
    # A floor just below an integer may be rounded up to it. A lower base is always safe.
    caution = 1 if dtype == jnp.float32 or budget > LARGE_BUDGET else 0
    base = jnp.maximum(jnp.floor(x - (slack.sum() - slack)) - caution, 1).astype(jnp.int32)

    def unfinished(carry: tuple[Array, Array]) -> Array:
        y, steps = carry
        return (jnp.sum(y, dtype=jnp.int32) < budget) & (steps < m * (m + 1))  # the latter ends a NaN's run

    def step(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        y, steps = carry
        level = y.astype(dtype)
        # The printed difference w/y - w/(y+1) cancels for large y.
        gain = weights / (level * (level + 1))
        best = (gain == gain.max()).astype(jnp.int32)
        return y + _share_out(best, budget - jnp.sum(y, dtype=jnp.int32)), steps + 1

    allocation, steps = lax.while_loop(unfinished, step, (base, jnp.int32(0)))
    ones = jnp.ones(m, jnp.int32)
    allocation, base = (jnp.where(total > 0, y, ones) for y in (allocation, base))
    return Greedy(allocation, base, jnp.where(total > 0, steps, 0))


def osa_threshold(theta: Array, sizes: Array, budget: int) -> Array:
    """The optimal allocation of opinion sampling, by bisection of the least gain that is taken.

    Args:
        theta: float (m,), variances, at least 0.
        sizes: (m,), positive integers.
        budget: people to ask, at least m.

    Returns:
        int32 (m,), the leading optimum; all ones where every theta is 0.

    Raises:
        ValueError: `budget` is below m.

    Cost: O(m) 32 or 64 times, for any budget.
    """
    weights = _weights(theta, sizes, budget)
    limit = budget - weights.shape[0]
    kind = jnp.int32 if weights.dtype == jnp.float32 else jnp.int64

    def taken(bits: Array) -> Array:
        return entries_above(weights, lax.bitcast_convert_type(bits, weights.dtype), limit=limit)

    def halve(_: int, span: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = span
        middle = low + (high - low) // 2
        fits = jnp.sum(taken(middle), dtype=jnp.int32) <= limit
        return jnp.where(fits, low, middle), jnp.where(fits, middle, high)

    # Gains above the value at `high` fit into the budget, those above the value at `low` do not, or it is 0.
    start = jnp.zeros((), kind), lax.bitcast_convert_type(jnp.abs(weights.max() / 2), kind)
    low, high = lax.fori_loop(0, jnp.iinfo(kind).bits, halve, start)
    surely = taken(high)
    ties = taken(low) - surely
    return 1 + surely + _share_out(ties, limit - jnp.sum(surely, dtype=jnp.int32))


def _weights(theta: Array, sizes: Array, budget: int) -> Array:
    m = jnp.shape(theta)[0]
    require(budget >= m, "budget", f"be at least {m}", budget)
    theta = jnp.asarray(theta)
    return jnp.asarray(sizes).astype(theta.dtype) ** 2 * theta
