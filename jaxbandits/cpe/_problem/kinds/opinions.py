"""Opinion sampling without a table: allocations of interviews for any budget, and the test of its candidates.

Group i's interview number l + 1 is worth w_i / (l (l + 1)), w_i = sizes_i^2 theta_i. As in tables, gains that differ by
rounding alone count as equal.
"""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array, static_fields
from jaxbandits.checks import known, require
from jaxbandits.cpe._problem.floats import floats, rounding
from jaxbandits.cpe._problem.kinds.corners import lasting_by_level, open_by_level
from jaxbandits.cpe._problem.kinds.kind import Kind
from jaxbandits.cpe._problem.kinds.table import Table, share_out, table
from jaxbandits.numerics.linalg import aligned

MAX_LEVELS = 32  # largest number of levels for which opinion sampling builds a table
LARGE_BUDGET = 10**6  # largest budget for which a floor in 64 bit cannot come out one too high


@static_fields("budget")
class OpinionSampling(NamedTuple):
    """Minimise sum_i sizes_i^2 theta_i / y_i over integers y_i >= 1 with sum y <= budget; y = 1 + levels.

    It is a `Table` with rows sizes_i^2 theta_i / ((l+1) (l+2)) that is never written down.
    """

    sizes: Array  # float (m,)   positive integers
    budget: int  # interviews in all; static


def opinion_sampling(sizes: Any, budget: int, *, dtype: Any = None) -> Table | OpinionSampling:
    """Builds the problem of stratified opinion polls: the interviews per group that minimise the estimate's variance.

    Minimise sum_i sizes_i^2 theta_i / y_i over integers y_i >= 1 with sum y <= budget, where theta_i is the variance of
    an opinion in group i. Run it with variance estimates.

    Args:
        sizes: (m,), m >= 2, positive integers, exact in the dtype.
        budget: interviews in all, a Python int above m.
        dtype: dtype of the arrays and of the run; by default JAX's own.

    Returns:
        Table whose decisions are y, or `OpinionSampling` if its rows would have more than 32 entries.

    Raises:
        ValueError: `sizes` is not at least two positive integers, or `budget` is at most m.

    Source: Huang, Ok, Li and Chen (2018), section 4.2 and Definition 3 of its appendix.
    """
    sizes = floats("sizes", sizes, ("m",), dtype)
    check_sizes(sizes)
    m = sizes.size
    checks.whole("budget", budget)
    require(budget > m, "budget", f"exceed {m}, or the only decision is known without a pull", budget)
    levels = budget - m
    if levels > MAX_LEVELS:
        return OpinionSampling(jnp.asarray(sizes), budget)
    level = np.arange(1, levels + 1, dtype=sizes.dtype)
    coef = sizes[:, None] ** 2 / (level * (level + 1))
    return table(coef, np.zeros(coef.shape), levels, kind="at most", base=1.0, dtype=sizes.dtype)


# Checks


def _check(problem: OpinionSampling, name: str) -> None:
    check_sizes(problem.sizes, f"{name}.sizes")
    checks.whole(f"{name}.budget", problem.budget, least=np.size(problem.sizes) + 1)


def check_sizes(sizes: Any, name: str = "sizes") -> None:
    """Raises `ValueError` unless the groups' sizes are at least two positive integers, in any dtype."""
    checks.array(name, sizes, ("m",), least=1)
    require(np.size(sizes) >= 2, name, "have shape (m,) with m >= 2", np.shape(sizes))
    require(known(sizes) == known(sizes) // 1, name, "be positive integers", sizes)


def _check_estimator(estimator: str) -> None:
    require(estimator == "variance", "estimator", "be 'variance' for opinion sampling", estimator)


# Allocations


class Greedy(NamedTuple):
    """Result of `greedy_osa`."""

    allocation: Array  # int32 (m,)
    base: Array  # int32 (m,)   allocation before the greedy steps
    steps: Array  # int32 ()    number of greedy steps


def greedy_osa(theta: Array, sizes: Array, budget: int) -> Greedy:
    """Computes the optimal allocation of opinion sampling: rounds the continuous optimum down, then adds greedily.

    Args:
        theta: float (m,), variances, at least 0.
        sizes: (m,), positive integers.
        budget: interviews in all, a Python int, at least m.

    Returns:
        Greedy, whose allocation is the leading optimum.

    Raises:
        ValueError: an argument is not as above.

    Cost: O(m) in each of at most m^2 greedy steps, or m more if the base is lowered for rounding. Under `vmap` the
    slowest lane sets the number of steps; use `osa_threshold` there.

    Source: Huang, Ok, Li and Chen (2018), Algorithm 2.
    """
    theta, sizes = _checked(theta, sizes, budget)
    weights, share = sizes**2 * theta, sizes * jnp.sqrt(theta)
    dtype, m = theta.dtype, theta.shape[0]
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

    def is_unfinished(carry: tuple[Array, Array]) -> Array:
        y, steps = carry
        # The bound on the steps ends the loop for a NaN.
        return (jnp.sum(y, dtype=jnp.int32) < budget) & (steps < m * (m + 1))

    def step(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        y, steps = carry
        level = y.astype(dtype)
        # The printed difference w/y - w/(y+1) cancels for large y.
        gain = weights / (level * (level + 1))
        best = (gain >= gain.max() * (1 - _room(dtype))).astype(jnp.int32)
        return y + share_out(best, budget - jnp.sum(y, dtype=jnp.int32)), steps + 1

    allocation, steps = lax.while_loop(is_unfinished, step, (base, jnp.int32(0)))
    ones = jnp.ones(m, jnp.int32)
    allocation, base = (jnp.where(total > 0, y, ones) for y in (allocation, base))
    return Greedy(allocation, base, jnp.where(total > 0, steps, 0))


def osa_threshold(theta: Array, sizes: Array, budget: int) -> Array:
    """Computes the optimal allocation of opinion sampling, by bisection of the smallest gain that is taken.

    Args:
        theta: float (m,), variances, at least 0.
        sizes: (m,), positive integers.
        budget: interviews in all, a Python int, at least m.

    Returns:
        int32 (m,), the leading optimum; all ones if every theta is 0.

    Raises:
        ValueError: an argument is not as above.

    Cost: O(m) 32 or 64 times, for any budget.
    """
    theta, sizes = _checked(theta, sizes, budget)
    return 1 + levels_by_bisection(sizes**2 * theta, budget)


def levels_by_bisection(weights: Array, budget: int) -> Array:
    """Computes the interviews of each group beyond its first, int32 (m,); weights are sizes^2 theta."""
    limit, room = budget - weights.shape[0], _room(weights.dtype)
    kind = jnp.int32 if weights.dtype == jnp.float32 else jnp.int64

    def gain(bits: Array) -> Array:
        return lax.bitcast_convert_type(bits, weights.dtype)

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = low + (high - low) // 2
        fits = jnp.sum(entries_above(weights, gain(middle), limit=limit), dtype=jnp.int32) <= limit
        return jnp.where(fits, low, middle), jnp.where(fits, middle, high)

    # Gains above the value at `high` fit into the budget. Gains above the value at `low` do not, or that value is 0.
    start = jnp.zeros((), kind), lax.bitcast_convert_type(jnp.abs(weights.max() / 2), kind)
    low, high = lax.fori_loop(0, jnp.iinfo(kind).bits, halve, start)
    above = entries_above(weights, gain(high) * (1 + room), limit=limit)
    equal = entries_above(weights, gain(low) * (1 - room), limit=limit) - above
    return above + share_out(equal, limit - jnp.sum(above, dtype=jnp.int32))


# The best levels, and the entries that can be taken in a box


def _best_levels(problem: OpinionSampling, theta: Array) -> Array:
    return levels_by_bisection(problem.sizes**2 * theta, problem.budget)


def _exceeds(problem: OpinionSampling, level: Array, *, at_i: Array, others: Array) -> Array:
    """True if arm i's level is above `level[i]` at the corner (at_i at i, others elsewhere), bool (m,).

    Cost: O(m^2).
    """
    arm, limit, room = jnp.arange(at_i.shape[0]), problem.budget - at_i.shape[0], _room(at_i.dtype)
    y = jnp.maximum(level, 0).astype(at_i.dtype) + 1
    entry = problem.sizes**2 * at_i / (y * (y + 1))
    # Among equal entries the larger arm is ahead.
    value = entry[:, None] * jnp.where(arm[None] > arm[:, None], 1 - room, 1 + room).astype(at_i.dtype)
    ahead = entries_above(problem.sizes**2 * others, value, limit=limit)
    better = level.astype(jnp.int32) + jnp.sum(jnp.where(arm[None] == arm[:, None], 0, ahead), axis=1, dtype=jnp.int32)
    return ((better < limit) & (entry > 0)) | (level < 0)


def _reward(problem: OpinionSampling, theta: Array, levels: Array) -> Array:
    return jnp.sum(problem.sizes**2 * theta * (1 - 1 / (1 + levels.astype(theta.dtype))))


def entries_above(weights: Array, value: Array, *, limit: int) -> Array:
    """Counts the entries among w/(1*2), w/(2*3), w/(3*4), ... that exceed a value.

    Args:
        weights: float (m,), w = sizes^2 theta, at least 0.
        value: float, at least 0; its shape broadcasts with (m,), such as () or (n, 1).
        limit: number of entries of a row, a Python int. In float32 the count may be off by one beyond about 10^6.

    Returns:
        int32 (m,) or (n, m), at most `limit`. Every comparison is one of w/(l (l+1)), rounded once, with `value`.
    """
    dtype, weights = weights.dtype, aligned(weights, jnp.ndim(value))
    tiny = 1e-37 if dtype == jnp.float32 else 1e-300
    ratio = jnp.minimum(weights / jnp.maximum(value, tiny), 4.0 * limit**2)
    count = jnp.floor((jnp.sqrt(1 + 4 * ratio) - 1) / 2)

    def exceeds(number: Array) -> Array:
        return weights / (number * (number + 1)) > value

    # Rounding of the root may shift the count by one. One comparison on each side corrects that.
    count = jnp.where((count > 0) & ~exceeds(jnp.maximum(count, 1)), count - 1, count)
    count = jnp.where(exceeds(count + 1), count + 1, count)
    return jnp.minimum(count, limit).astype(jnp.int32)


def _room(dtype: jnp.dtype) -> float:
    """Returns the largest relative difference of two gains that are equal in exact arithmetic."""
    return 8 * rounding(dtype)


def _checked(theta: Array, sizes: Array, budget: int) -> tuple[Array, Array]:
    theta = checks.array("theta", theta, ("m",), least=0)
    sizes = checks.array("sizes", sizes, theta.shape)
    check_sizes(sizes)
    checks.whole("budget", budget, least=theta.shape[0])
    return theta, sizes.astype(theta.dtype)


KIND = Kind(
    arm_count=lambda problem: jnp.shape(problem.sizes)[0],
    float_dtype=lambda problem: jnp.result_type(problem.sizes),
    check=_check,
    best_levels=_best_levels,
    open_arms=partial(open_by_level, _exceeds),
    lasting_arms=partial(lasting_by_level, _exceeds),
    reward=_reward,
    decision=lambda problem, levels: 1 + levels.astype(jnp.result_type(problem.sizes)),
    check_estimator=_check_estimator,
)
