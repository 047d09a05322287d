"""Tables at a theta: the worth of their entries, the entries taken, and the entries that can be taken in a box.

An entry's worth coef theta - cost is computed with rounding. Worths that are equal in exact arithmetic are seldom equal
in floating point: 0.8 - 1.3 and 0.6 - 1.1 differ. Every worth is therefore an interval that contains the exact one, and
entries whose intervals overlap count as equal.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.cpe._problem.problems import Table, rounding
from jaxbandits.numerics.linalg import aligned

RANKED = 64  # largest number of entries of a table for which all pairs are compared


class Worth(NamedTuple):
    """Intervals of the entries' worths. If the inputs are rounded rational numbers, they contain the exact worths."""

    low: Array
    high: Array


def entry_values(table: Table, theta: Array) -> Array:
    """Computes the worth coef theta - cost of each entry, with rounding: float (m, W), -inf where a row has ended."""
    return table.coef * theta[:, None] - table.cost


@partial(jax.jit, inline=True)
def worth(table: Table, theta: Array) -> Worth:
    """Computes the worth of each entry of a table, up to rounding.

    Coef and cost are moved by a relative 4 `rounding`, 8 times the error that each has as a rounded number. The other
    roundings (theta, the product, the difference) take half of that room, so rational inputs that tie overlap. An entry
    whose worth is theta itself (coef 1, cost 0) is not moved: equal theta are equal, and the room of other entries is
    enough for both. Worths that differ by 8 `rounding` times the sum of both entries' coef theta + |cost| count as
    different, in 64 bit by about 4e-15, in 32 bit by about 2e-6.

    Args:
        table: the problem.
        theta: float (m,). Where it is below 0, as in boxes that are not clipped, rounding decides ties.

    Returns:
        Worth of (m, W), -inf where a row has ended.
    """
    is_plain = (table.coef == 1) & (table.cost == 0)
    room = jnp.where(is_plain, 0, 4 * rounding(table.coef.dtype)).astype(table.coef.dtype)
    coef, cost = room * table.coef, jnp.where(jnp.isinf(table.cost), 0, room * jnp.abs(table.cost))
    low = (table.coef - coef) * theta[:, None] - (table.cost + cost)
    high = (table.coef + coef) * theta[:, None] - (table.cost - cost)
    return Worth(low, high)


# The best entries


def best_entries(table: Table, theta: Array) -> Array:
    """Finds the leading optimum, int32 (m,). Cost: O((m W)^2) up to 64 entries, otherwise O(m W) 32 or 64 times."""
    worths = worth(table, theta)
    return _best_by_rank(table, worths) if worths.low.size <= RANKED else _best_by_bisection(table, worths)


@partial(jax.jit, inline=True)
def _best_by_rank(table: Table, worths: Worth) -> Array:
    m, width = worths.low.shape
    low, high = (side.reshape(-1) for side in worths)
    arm, level = (axis.reshape(-1) for axis in jnp.indices((m, width), jnp.int32))
    # True if the entry of the column is better than the entry of the row.
    is_better = jnp.where(arm[None] > arm[:, None], high[None] >= low[:, None], low[None] > high[:, None])
    precedes = jnp.where(arm[None] == arm[:, None], level[None] < level[:, None], is_better)
    rank = jnp.sum(precedes, axis=1, dtype=jnp.int32)
    chosen = ((rank < table.quota) & (low > table.floor)) | (low > table.ceiling)
    return jnp.sum(chosen.reshape(m, width), axis=1, dtype=jnp.int32)


def _best_by_bisection(table: Table, worths: Worth) -> Array:
    """Finds the quota-th largest entry, then shares out the entries that equal it. It does not compare all pairs."""
    order = _ordered(worths.low)

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        below, above = bracket
        middle = _middle(below, above)
        is_enough = jnp.sum(order >= middle, dtype=jnp.int32) >= table.quota
        return jnp.where(is_enough, middle, below), jnp.where(is_enough, above, middle)

    # `last` always has at least `quota` entries at or above it: no float has the largest integer.
    limits = jnp.iinfo(order.dtype)
    start = jnp.asarray(limits.min, order.dtype), jnp.asarray(limits.max, order.dtype)
    last, _ = lax.fori_loop(0, limits.bits, halve, start)
    low = jnp.min(jnp.where(order == last, worths.low, jnp.inf))  # inf if the quota is 0
    high = jnp.max(jnp.where(order == last, worths.high, low))
    above = jnp.sum(worths.low > high, axis=1, dtype=jnp.int32)
    equal = jnp.sum((worths.low <= high) & (worths.high >= low), axis=1, dtype=jnp.int32)
    levels = above + share_out(equal, table.quota - jnp.sum(above, dtype=jnp.int32))
    allowed = jnp.sum(worths.low > table.floor, axis=1, dtype=jnp.int32)
    forced = jnp.sum(worths.low > table.ceiling, axis=1, dtype=jnp.int32)
    return jnp.maximum(jnp.minimum(levels, allowed), forced)


def share_out(demand: Array, places: Array) -> Array:
    """Gives places to the arms up to their demand, the largest index first."""
    behind = jnp.cumsum(demand[::-1], dtype=demand.dtype)[::-1] - demand
    return jnp.clip(places - behind, 0, demand)


def _ordered(values: Array) -> Array:
    """Returns integers in the order of the floats."""
    kind = jnp.int32 if values.dtype == jnp.float32 else jnp.int64
    # The select makes 0.0 of -0.0. XLA would drop an addition of 0.
    bits = lax.bitcast_convert_type(jnp.where(values == 0, 0, values), kind)
    return jnp.where(bits < 0, bits ^ jnp.iinfo(kind).max, bits)


def _middle(low: Array, high: Array) -> Array:
    """Computes floor((low + high) / 2) without overflow."""
    return (low & high) + ((low ^ high) >> 1)


# The entries that can be taken in a box: one entry of each row against the entries of the other rows


def table_exceeds(table: Table, level: Array, *, at_i: Array, others: Array) -> Array:
    """True if arm i's level is above `level[i]` at the corner (at_i at i, others elsewhere), bool (m,).

    That is so if its entry number `level[i]`, counted from 0, is chosen. Cost: O(m^2 W).
    """
    entry = _entry(worth(table, at_i), level)
    better = level.astype(jnp.int32) + _better_entries(entry, worth(table, others))
    return ((better < table.quota) & (entry.low > table.floor)) | (entry.low > table.ceiling)


def corner_levels(table: Table, *, at_i: Array, others: Array) -> Array:
    """Computes phi_i(at_i at i, others elsewhere) for every arm, int32 (m,). Cost: O((m W)^2)."""
    entries = worth(table, at_i)
    better = jnp.arange(entries.low.shape[1], dtype=jnp.int32) + _better_entries(entries, worth(table, others))
    chosen = ((better < table.quota) & (entries.low > table.floor)) | (entries.low > table.ceiling)
    return jnp.sum(chosen, axis=1, dtype=jnp.int32)


def table_stops(table: Table, lo: Array, hi: Array, levels: Array) -> Array:
    """True if one decision leads in all of a box, by comparing chosen entries with entries that are not chosen.

    A set of entries is the choice at theta if it is ahead of all others there, has the size of the quota except where
    floor or ceiling prevent it, and respects both. Each of these conditions is on two entries at most, so each has a
    worst corner of the box.

    Args:
        table: the problem.
        lo: float (m,).
        hi: float (m,).
        levels: int32 (m,), the best decision at any one point of the box.

    Returns:
        bool (). Cost: O(m^2 + m W).
    """
    last = _entry(worth(table, lo), levels - 1)  # smallest chosen entry of each row, at its worst
    following = _entry(worth(table, hi), levels)  # largest entry of each row that is not chosen, at its best
    arm = jnp.arange(lo.shape[0])
    is_later = arm[:, None] > arm[None]
    ahead = jnp.where(is_later, last.high[:, None] >= following.low[None], last.low[:, None] > following.high[None])
    size = jnp.sum(levels, dtype=jnp.int32)
    return (
        jnp.all(ahead | (arm[:, None] == arm[None]))
        & jnp.all((last.low > table.floor) & ((size <= table.quota) | (last.low > table.ceiling)))
        & jnp.all((following.low <= table.ceiling) & ((size >= table.quota) | (following.low <= table.floor)))
    )


def _entry(worths: Worth, level: Array) -> Worth:
    """Returns entry number level[i] of every row, (m,); +inf before the first, -inf after the last."""
    is_it = jnp.arange(worths.low.shape[1], dtype=level.dtype)[None] == level[:, None]
    low, high = (jnp.max(jnp.where(is_it, side, -jnp.inf), axis=1) for side in worths)
    return Worth(jnp.where(level < 0, jnp.inf, low), jnp.where(level < 0, jnp.inf, high))


def _better_entries(entry: Worth, worths: Worth) -> Array:
    """Counts the entries of the other rows that are ahead of one entry of each row, int32 (m, ...).

    Args:
        entry: (m, ...), one or more entries of each row.
        worths: (m, W), the rows.
    """
    m, width = worths.low.shape
    axes = entry.low.ndim + 1
    arm, j = jnp.arange(m).reshape(m, *[1] * (axes - 1)), aligned(jnp.repeat(jnp.arange(m), width), axes)
    low, high = (aligned(side.ravel(), axes) for side in worths)
    # Among equal entries the larger arm is ahead, which gives the lexicographically smallest decision.
    ahead = jnp.where(j > arm, high >= entry.low[..., None], low > entry.high[..., None]) & (j != arm)
    return jnp.sum(ahead, axis=-1, dtype=jnp.int32)
