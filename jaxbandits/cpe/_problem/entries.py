"""Tables at a theta: what their entries are worth, which are taken, and which can be taken in a box.

An entry's worth coef theta - cost is computed with rounding, so what is equal in exact arithmetic seldom is in floating
point: 0.8 - 1.3 and 0.6 - 1.1 differ. Every worth is therefore an interval that is sure to hold the exact one, and
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

RANKED = 64  # entries of a table up to which all pairs are compared


class Worth(NamedTuple):
    """What entries are worth: for inputs that are rounded rational numbers, the exact worth lies in between."""

    low: Array
    high: Array


def entry_values(table: Table, theta: Array) -> Array:
    """What entries are worth as computed, coef theta - cost: float (m, W), -inf where a row has ended."""
    return table.coef * theta[:, None] - table.cost


@partial(jax.jit, inline=True)
def worth(table: Table, theta: Array) -> Worth:
    """What the entries of a table are worth, up to rounding.

    Coef and cost are moved by 4 `rounding` of themselves, 8 times the error that each has as a rounded number. What
    rounds besides them (theta, the product, the difference) takes half of that room, so that rational inputs which tie
    overlap. An entry whose worth is theta itself (coef 1, cost 0) is not moved: equal theta are equal, and the room of
    other entries is enough for both. Worths that differ by 8 `rounding` times the sum of both entries'
    coef theta + |cost| count as different, in 64 bit by about 4e-15, in 32 bit by about 2e-6.

    Args:
        table: the problem.
        theta: float (m,). Where it is below 0, as in boxes that are not clipped, ties are a matter of rounding.

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
    """The leading optimum of a table, int32 (m,). Cost: O((m W)^2) up to 64 entries, else O(m W) 32 or 64 times."""
    of_all = worth(table, theta)
    return _best_by_rank(table, of_all) if of_all.low.size <= RANKED else _best_by_bisection(table, of_all)


@partial(jax.jit, inline=True)
def _best_by_rank(table: Table, of_all: Worth) -> Array:
    m, width = of_all.low.shape
    low, high = (side.reshape(-1) for side in of_all)
    arm, level = (axis.reshape(-1) for axis in jnp.indices((m, width), jnp.int32))
    # Whether the column is better than the row.
    is_better = jnp.where(arm[None] > arm[:, None], high[None] >= low[:, None], low[None] > high[:, None])
    precedes = jnp.where(arm[None] == arm[:, None], level[None] < level[:, None], is_better)
    rank = jnp.sum(precedes, axis=1, dtype=jnp.int32)
    chosen = ((rank < table.quota) & (low > table.floor)) | (low > table.ceiling)
    return jnp.sum(chosen.reshape(m, width), axis=1, dtype=jnp.int32)


def _best_by_bisection(table: Table, of_all: Worth) -> Array:
    """The same without comparing all pairs: finds the quota-th largest entry, and then shares out what equals it."""
    order = _ordered(of_all.low)

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        below, above = bracket
        middle = _middle(below, above)
        is_enough = jnp.sum(order >= middle, dtype=jnp.int32) >= table.quota
        return jnp.where(is_enough, middle, below), jnp.where(is_enough, above, middle)

    # `last` always has at least `quota` entries at or above it: no float has the largest integer.
    limits = jnp.iinfo(order.dtype)
    start = jnp.asarray(limits.min, order.dtype), jnp.asarray(limits.max, order.dtype)
    last, _ = lax.fori_loop(0, limits.bits, halve, start)
    low = jnp.min(jnp.where(order == last, of_all.low, jnp.inf))  # inf if the quota is 0
    high = jnp.max(jnp.where(order == last, of_all.high, low))
    above = jnp.sum(of_all.low > high, axis=1, dtype=jnp.int32)
    equal = jnp.sum((of_all.low <= high) & (of_all.high >= low), axis=1, dtype=jnp.int32)
    levels = above + share_out(equal, table.quota - jnp.sum(above, dtype=jnp.int32))
    allowed = jnp.sum(of_all.low > table.floor, axis=1, dtype=jnp.int32)
    forced = jnp.sum(of_all.low > table.ceiling, axis=1, dtype=jnp.int32)
    return jnp.maximum(jnp.minimum(levels, allowed), forced)


def share_out(wanted: Array, places: Array) -> Array:
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


# The entries that can be taken in a box: one entry of each row against those of the others


def table_exceeds(table: Table, own: Array, others: Array, level: Array) -> Array:
    """Whether arm i's level is above `level[i]` at the corner (own at i, others elsewhere), bool (m,).

    It is if its entry number `level[i]` is chosen, the first being number 0. Cost: O(m^2 W).
    """
    entry = _entry(worth(table, own), level)
    better = level.astype(jnp.int32) + _better_entries(entry, worth(table, others))
    return ((better < table.quota) & (entry.low > table.floor)) | (entry.low > table.ceiling)


def corner_levels(table: Table, own: Array, others: Array) -> Array:
    """phi_i(own at i, others elsewhere) for every arm, int32 (m,). Cost: O((m W)^2)."""
    entries = worth(table, own)
    better = jnp.arange(entries.low.shape[1], dtype=jnp.int32) + _better_entries(entries, worth(table, others))
    chosen = ((better < table.quota) & (entries.low > table.floor)) | (entries.low > table.ceiling)
    return jnp.sum(chosen, axis=1, dtype=jnp.int32)


def table_stops(table: Table, lo: Array, hi: Array, levels: Array) -> Array:
    """Whether one decision leads in all of a box, by comparing what is chosen with what is not.

    A set of entries is the choice at theta if it is ahead of all others there, has the size of the quota unless floor
    or ceiling say otherwise, and keeps to both. Each of these conditions is on two entries at most, so that each has
    its own worst corner of the box.

    Args:
        table: the problem.
        lo: float (m,).
        hi: float (m,).
        levels: int32 (m,), the best decision at any one point of the box.

    Returns:
        bool (). Cost: O(m^2 + m W).
    """
    last = _entry(worth(table, lo), levels - 1)  # the least that is chosen of each row, at its worst
    following = _entry(worth(table, hi), levels)  # the largest that is not, at its best
    arm = jnp.arange(lo.shape[0])
    is_later = arm[:, None] > arm[None]
    ahead = jnp.where(is_later, last.high[:, None] >= following.low[None], last.low[:, None] > following.high[None])
    size = jnp.sum(levels, dtype=jnp.int32)
    return (
        jnp.all(ahead | (arm[:, None] == arm[None]))
        & jnp.all((last.low > table.floor) & ((size <= table.quota) | (last.low > table.ceiling)))
        & jnp.all((following.low <= table.ceiling) & ((size >= table.quota) | (following.low <= table.floor)))
    )


def _entry(of_all: Worth, level: Array) -> Worth:
    """Entry number level[i] of every row, (m,); +inf before the first, -inf after the last."""
    is_it = jnp.arange(of_all.low.shape[1], dtype=level.dtype)[None] == level[:, None]
    low, high = (jnp.max(jnp.where(is_it, side, -jnp.inf), axis=1) for side in of_all)
    return Worth(jnp.where(level < 0, jnp.inf, low), jnp.where(level < 0, jnp.inf, high))


def _better_entries(entry: Worth, of_all: Worth) -> Array:
    """How many entries of the other rows are ahead of one of each row, int32 (m, ...).

    Args:
        entry: (m, ...), one or more entries of each row.
        of_all: (m, W), the rows.
    """
    m, width = of_all.low.shape
    axes = entry.low.ndim + 1
    arm, j = jnp.arange(m).reshape(m, *[1] * (axes - 1)), aligned(jnp.repeat(jnp.arange(m), width), axes)
    low, high = (aligned(side.ravel(), axes) for side in of_all)
    # Among equal entries the larger arm is ahead: that gives the lexicographically smallest decision.
    ahead = jnp.where(j > arm, high >= entry.low[..., None], low > entry.high[..., None]) & (j != arm)
    return jnp.sum(ahead, axis=-1, dtype=jnp.int32)
