"""Tables of entries: best arm, top-k, sites, water planning, opinion sampling with few interviews.

An entry's worth coef theta - cost is computed with rounding. Worths that are equal in exact arithmetic are seldom equal
in floating point: 0.8 - 1.3 and 0.6 - 1.1 differ. Every worth is therefore an interval that contains the exact one, and
entries whose intervals overlap count as equal.
"""

from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import constant, is_concrete, known, require
from jaxbandits.cpe._problem.floats import floats, rounding
from jaxbandits.cpe._problem.kinds.corners import lasting_by_level, open_by_level
from jaxbandits.cpe._problem.kinds.kind import Actions, Kind
from jaxbandits.cpe._problem.kinds.matroids import (
    Swaps,
    closest_swap,
    matroid_diameter,
    one_hot,
    swap_gaps,
    swaps_on_host,
)
from jaxbandits.numerics.indexing import row_sums
from jaxbandits.numerics.kernels import apart
from jaxbandits.numerics.linalg import aligned, dot

SHORT = 8  # largest number of entries that are added one by one: 24 take twice as long as by a reduction
RANKED = 64  # largest number of entries of a table for which all pairs are compared

Quota = Literal["exactly", "at most", "at least"]


class Table(NamedTuple):
    """Entries (i, l) worth coef[i, l] theta_i - cost[i, l]; a decision takes the best ones.

    Rows do not increase in l for any theta_i in [0, 1]. Entry (i, l) precedes (j, k) if it is worth more, or as much
    and i > j, or i = j and l < k. It is chosen if fewer than `quota` entries precede it and it is worth more than
    `floor`, or if it is worth more than `ceiling`. The level of an arm is the number of its chosen entries, which are
    the first of its row.

    Entries with the same worth in exact arithmetic count as equal in floating point too, see `solve`.
    """

    coef: Array  # float (m, W)   at least 0; 0 where the row has ended
    cost: Array  # float (m, W)   +inf where the row has ended
    quota: Array  # int32 ()      number of entries to take
    floor: Array  # float ()      -inf (exactly, at least) or 0 (at most)
    ceiling: Array  # float ()    +inf (exactly, at most) or 0 (at least)
    base: Array  # float ()       y = base + step * levels
    step: Array  # float ()


def table(
    coef: Any,
    cost: Any,
    quota: Array | int,
    *,
    kind: Quota = "exactly",
    base: Array | float = 0.0,
    step: Array | float = 1.0,
    dtype: Any = None,
) -> Table:
    """Builds a problem that takes the best entries of a table; see `Table`.

    Args:
        coef: (m, W), m >= 2, finite and at least 0.
        cost: (m, W), finite, or +inf where a row has ended (coef is 0 there).
        quota: int (), number of entries.
        kind: "exactly" for the `quota` best entries; "at most" for the ones among them that are worth more than 0; "at
            least" for them and every further entry that is worth more than 0.
        base: y of level 0.
        step: y per level, positive.
        dtype: dtype of the arrays and of the run; by default JAX's own.

    Returns:
        Table. Its leading optimum is bi-monotone: raising theta_i never lowers the level of arm i and never raises
        another level.

    Raises:
        ValueError: the shapes differ, m < 2, a value is out of range, a row increases for some theta in [0, 1], `kind`
            is unknown, there are fewer entries than `quota`, or there is only one decision.
    """
    checks.one_of("kind", kind, Quota)
    checks.real("base", base)
    checks.positive("step", step)
    check_entries(coef, cost, quota)
    coef = floats("coef", coef, ("m", "W"), dtype)
    cost = floats("cost", cost, coef.shape, coef.dtype, finite=False)
    if is_concrete(cost, quota):
        _check_choice(int(quota), int(np.isfinite(np.asarray(cost)).sum()), kind)
    dtype = coef.dtype
    return Table(
        coef=constant(coef, dtype),
        cost=constant(cost, dtype),
        quota=constant(quota, jnp.int32),
        floor=constant(0 if kind == "at most" else -np.inf, dtype),
        ceiling=constant(0 if kind == "at least" else np.inf, dtype),
        base=constant(base, dtype),
        step=constant(step, dtype),
    )


def _check_choice(quota: int, entries: int, kind: Quota) -> None:
    alone = {"exactly": quota in (0, entries), "at most": quota == 0, "at least": quota == entries}[kind]
    expected = f"leave a choice among {entries} entries, or the only decision is known without a pull"
    require(not alone, "quota", expected, quota)


# Checks


def _check(problem: Table, name: str) -> None:
    check_entries(problem.coef, problem.cost, problem.quota, prefix=f"{name}.")
    for part in ("floor", "ceiling"):
        checks.real(f"{name}.{part}", getattr(problem, part), finite=False)
    checks.real(f"{name}.base", problem.base)
    checks.positive(f"{name}.step", problem.step)


def check_entries(coef: Any, cost: Any, quota: Any, *, prefix: str = "") -> None:
    """Raises `ValueError` unless rows of entries do not increase and the quota is a possible number of entries."""
    shape = checks.array(f"{prefix}coef", coef, ("m", "W"), least=0).shape
    require(shape[0] >= 2, f"{prefix}coef", "have shape (m, W) with m >= 2", shape)
    checks.array(f"{prefix}cost", cost, shape, finite=False, above=-np.inf)
    checks.integer(f"{prefix}quota", quota, least=0)
    if not is_concrete(coef, cost):
        return
    coef, cost = known(coef), known(cost)
    entries = int(np.isfinite(cost).sum())
    if is_concrete(quota):
        require(int(quota) <= entries, f"{prefix}quota", f"lie in 0..{entries}, the number of entries", quota)
    room = 4 * rounding(jnp.result_type(float) if coef.dtype.kind != "f" else coef.dtype)
    for theta in (0, 1):
        values = coef * theta - cost
        size = np.where(np.isfinite(cost), coef + abs(cost), 0)
        rises = np.argwhere(values[:, 1:] > values[:, :-1] + room * (size[:, 1:] + size[:, :-1]))
        if rises.size:
            i, l = rises[0]
            expected = f"give rows that do not increase (arm {i}, entries {l} and {l + 1}, at theta = {theta})"
            require(False, f"{prefix}coef and {prefix}cost", expected, values[i, l : l + 2])


# The best entries


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


def _best_levels(table: Table, theta: Array) -> Array:
    """Finds the leading optimum, int32 (m,). Cost: O((m W)^2) up to 64 entries, otherwise O(m W) 32 or 64 times."""
    worths = worth(table, theta)
    if worths.low.size > RANKED:
        return _best_by_bisection(table, worths)
    return apart(lambda low, high: _best_by_rank(table, Worth(low, high)), *worths)


@partial(jax.jit, inline=True)
def _best_by_rank(table: Table, worths: Worth) -> Array:
    m, width = worths.low.shape
    low, high = (side.reshape(-1) for side in worths)
    arm, level = (axis.reshape(-1) for axis in jnp.indices((m, width), jnp.int32))
    # True if the entry of the column is better than the entry of the row.
    is_better = jnp.where(arm[None] > arm[:, None], high[None] >= low[:, None], low[None] > high[:, None])
    precedes = jnp.where(arm[None] == arm[:, None], level[None] < level[:, None], is_better)
    rank = _numbers(precedes)
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


def _exceeds(table: Table, level: Array, *, at_i: Array, others: Array) -> Array:
    """True if arm i's level is above `level[i]` at the corner (at_i at i, others elsewhere), bool (m,).

    That is so if its entry number `level[i]`, counted from 0, is chosen. Cost: O(m^2 W).
    """
    return apart(partial(_exceeds_at, table), level, at_i, others)


def _exceeds_at(table: Table, level: Array, at_i: Array, others: Array) -> Array:
    entry = _entry(worth(table, at_i), level)
    better = level.astype(jnp.int32) + _better_entries(entry, worth(table, others))
    return ((better < table.quota) & (entry.low > table.floor)) | (entry.low > table.ceiling)


def _is_decided(table: Table, lo: Array, hi: Array, levels: Array) -> Array:
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
    """Counts the entries (m, W) of the other rows that are ahead of one entry (m,) of each row, int32 (m,)."""
    m, width = worths.low.shape
    arm, j = jnp.arange(m).reshape(m, 1), aligned(jnp.repeat(jnp.arange(m), width), 2)
    low, high = (aligned(side.ravel(), 2) for side in worths)
    # Among equal entries the larger arm is ahead, which gives the lexicographically smallest decision.
    ahead = jnp.where(j > arm, high >= entry.low[:, None], low > entry.high[:, None]) & (j != arm)
    return _numbers(ahead)


def _numbers(mask: Array) -> Array:
    """Counts the entries of each row that hold, int32 (n,)."""
    is_short = mask.shape[1] <= SHORT
    return row_sums(mask.astype(jnp.int32)) if is_short else jnp.sum(mask, axis=1, dtype=jnp.int32)


# Rewards


def _reward(problem: Table, theta: Array, levels: Array) -> Array:
    values = entry_values(problem, theta)
    width = values.shape[1]
    chosen = jnp.arange(width, dtype=jnp.int32)[None] < levels[:, None]
    total = jnp.sum(jnp.where(chosen, values, 0))
    return jnp.where(jnp.any(levels > width), -jnp.inf, total)


def _decision(problem: Table, levels: Array) -> Array:
    return problem.base + problem.step * levels.astype(problem.step.dtype)


# 0/1 decisions: rows of one entry, of which exactly the quota is taken


def _misfit(problem: Table) -> str:
    if jnp.shape(problem.coef)[1] != 1:
        return f"rows of {jnp.shape(problem.coef)[1]} entries"
    is_known = is_concrete(problem.floor, problem.ceiling)
    is_exact = not is_known or (np.isneginf(known(problem.floor)) and np.isposinf(known(problem.ceiling)))
    return "" if is_exact else f"floor {problem.floor} and ceiling {problem.ceiling}"


def _lead(problem: Table, theta: Array, *, one: Array, other: Array) -> Array:
    # An arm without an entry in the table is in neither decision.
    values = jnp.where(jnp.isfinite(problem.cost[:, 0]), entry_values(problem, theta)[:, 0], 0)
    return dot(values, (one - other).astype(theta.dtype))


def _reward_gaps(problem: Table, theta: Array) -> Array:
    entries = problem.coef.shape[1]
    require(entries == 1, "problem", "have 0/1 decisions, a table with rows of one entry", entries)
    is_known = is_concrete(problem.quota, problem.floor, problem.ceiling)
    is_exact = is_known and not np.isfinite(problem.floor) and not np.isfinite(problem.ceiling)
    require(is_exact, "problem", "take exactly a known number of entries", problem)
    return top_gaps(entry_values(problem, theta)[:, 0], int(problem.quota))


def top_gaps(values: Array, k: int) -> Array:
    """Computes the distance of each value to the other side of the border between the k largest and the others."""
    ranked = jnp.sort(values, descending=True)
    return jnp.where(values >= ranked[k - 1], values - ranked[k], ranked[k - 1] - values)


# Plays: the best arm and top-k, whose worths are theta


def _check_playable(problem: Table) -> None:
    fits = (
        problem.coef.shape[1] == 1
        and np.all(known(problem.coef) == 1)
        and np.all(known(problem.cost) == 0)
        and np.isneginf(known(problem.floor))
        and np.isposinf(known(problem.ceiling))
    )
    require(fits, "problem", "be Graphic, Enumerated, or of tables top_k or best_arm", "another table")
    K = problem.coef.shape[0]
    inside = 0 < _rank(problem) < K
    require(inside, "problem.quota", f"lie in 1..{K - 1}: one action is known without a play", problem.quota)


def _rank(problem: Table) -> int:
    return int(problem.quota)


def _maximum(problem: Table, weights: Array) -> Array:
    return one_hot(lax.top_k(weights, _rank(problem))[1], weights.shape[0]).any(axis=0)


def _best(problem: Table, weights: Array) -> Swaps:
    out = lax.top_k(weights, _rank(problem))[1]
    action = one_hot(out, weights.shape[0]).any(axis=0)
    return Swaps(action, out, jnp.broadcast_to(~action, (out.shape[0], *action.shape)))


def _maximum_on_host(problem: Table, weights: np.ndarray) -> np.ndarray:
    chosen = np.zeros(len(weights), int)
    chosen[np.argsort(-weights, kind="stable")[: _rank(problem)]] = 1
    return chosen


KIND = Kind(
    arm_count=lambda problem: jnp.shape(problem.coef)[0],
    float_dtype=lambda problem: jnp.result_type(problem.coef),
    check=_check,
    best_levels=_best_levels,
    open_arms=partial(open_by_level, _exceeds),
    lasting_arms=partial(lasting_by_level, _exceeds),
    is_decided=_is_decided,
    reward=_reward,
    decision=_decision,
    lead=_lead,
    misfit=_misfit,
    reward_gaps=_reward_gaps,
    actions=Actions(
        check=_check_playable,
        maximum=_maximum,
        best=_best,
        gaps=swap_gaps,
        closest=closest_swap,
        rank=_rank,
        diameter=lambda problem: matroid_diameter(_rank(problem), problem.coef.shape[0]),
        on_host=_maximum_on_host,
        contains=lambda problem, rows: rows.sum(axis=1) == _rank(problem),
        rivals=lambda problem, action: swaps_on_host(action, lambda out: True),
    ),
    is_unbounded=True,
)
