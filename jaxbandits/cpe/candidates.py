"""Candidates: the arms on which the best decision is still open, given that the parameter lies in a box.

Arm i is a candidate of the box [lo, hi] if its level phi_i(theta) in the best decision is not the same for all theta of
the box. A run may stop once there is none. The set can only shrink with the box.

Each class of decisions has its own exact test. Where raising theta_i never lowers level i and never raises another
(phi is bi-monotone: tables, opinion sampling, matroids), level i is highest at the corner (hi at i, lo elsewhere) and
lowest at the corner (lo at i, hi elsewhere). Paths and matchings are not of that kind: there, each decision is tried at
the corner that favours it most.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.cpe.problem import (
    Enumerated,
    Graphic,
    OpinionSampling,
    Oracle,
    Problem,
    Table,
    entries_above,
    entry_values,
)

MAX_PAIRS = 256  # decisions of a class up to which all pairs are compared arm by arm


def candidates(problem: Problem, lo: Array, hi: Array, levels: Array) -> Array:
    """The arms whose level is not the same everywhere in a box.

    Args:
        problem: the class of decisions and its reward.
        lo: float (m,), lower corner of the box.
        hi: float (m,), upper corner.
        levels: int32 (m,), the best decision at any one point of the box.

    Returns:
        bool (m,). Exact, ties included; for an `Oracle`, if it is bi-monotone as promised.

    Cost: O(m^2 W) for a `Table` with rows of W entries, O(m^2) for `OpinionSampling`, O(N^2 m) for `Enumerated` with N
    decisions, O(m nodes^3 log nodes) for `Graphic`, 2 m calls of an `Oracle`.

    Source: Huang, Ok, Li and Chen (2018), section 4 and Theorem 3.
    """
    if isinstance(problem, (Table, OpinionSampling)):
        return threshold(problem, lo, hi, levels)
    if isinstance(problem, Enumerated):
        return disagreement(problem, reachable(problem, lo, hi))
    if isinstance(problem, Graphic):
        least, most = ranges(problem, lo, hi)
        return most != least
    return two_call(problem.solve, lo, hi)


def lasting_candidates(problem: Problem, lo: Array, hi: Array, levels: Array) -> Array:
    """Arms that are candidates of every box that contains a given one, which may be empty (lo > hi).

    Args:
        problem: as in `candidates`.
        lo: float (m,), upper bounds of the lower corners.
        hi: float (m,), lower bounds of the upper corners.
        levels: int32 (m,), any decision. For a `Table` and `OpinionSampling` the best one of a point in the box, or
            near it, finds the most arms.

    Returns:
        bool (m,).

    Cost: twice that of `candidates` for a `Table` and `OpinionSampling`, the same for the others.
    """
    if isinstance(problem, (Table, OpinionSampling)):

        def parts(level: Array) -> Array:
            return exceeds(problem, hi, lo, level) & ~exceeds(problem, lo, hi, level)

        return parts(levels) | parts(levels - 1)
    if isinstance(problem, Enumerated):
        return disagreement(problem, reachable(problem, lo, hi))
    least, most = ranges(problem, lo, hi)
    return most > least


def stops(problem: Problem, lo: Array, hi: Array, levels: Array) -> Array:
    """Whether a box has no candidate: the same as `~candidates(...).any()`, cheaper where that is possible.

    Args:
        problem: as in `candidates`.
        lo: as in `candidates`.
        hi: as in `candidates`.
        levels: as in `candidates`.

    Returns:
        bool ().

    Cost: O(m^2 + m W) for a `Table`, O(N m) for `Enumerated`, that of `candidates` for the others.
    """
    if isinstance(problem, Table):
        return table_stops(problem, lo, hi, levels)
    if isinstance(problem, Enumerated):
        return leads_everywhere(problem, lo, hi, levels)
    return ~candidates(problem, lo, hi, levels).any()


# Any bi-monotone class: the two corners of every arm


class Ranges(NamedTuple):
    """The levels that each arm takes in a box."""

    least: Array  # int32 (m,)
    most: Array  # int32 (m,)


def ranges(problem: Table | Graphic | Oracle, lo: Array, hi: Array) -> Ranges:
    """The least and the greatest level of every arm at its two extreme corners.

    Args:
        problem: bi-monotone: a `Table`, `Graphic` or `Oracle`.
        lo: float (m,).
        hi: float (m,). Where lo > hi the "greatest" level may be below the "least".

    Returns:
        Ranges: phi_i(lo at i, hi elsewhere) and phi_i(hi at i, lo elsewhere).

    Cost: O((m W)^2) for a `Table`, otherwise that of `candidates`.
    """
    if isinstance(problem, Table):
        return Ranges(_corner_levels(problem, lo, hi), _corner_levels(problem, hi, lo))
    if isinstance(problem, Graphic):
        return Ranges(_joins(problem, lo, hi), _joins(problem, hi, lo))
    return _call_corners(problem.solve, lo, hi)


def two_call(solve: Callable[[Array], Array], lo: Array, hi: Array) -> Array:
    """The arms whose level differs between their two extreme corners.

    For bi-monotone classes these are the candidates. For others, such as paths and matchings, arms are missed and
    others are never let go: it stops too early or never.

    Args:
        solve: theta (m,) -> levels int (m,).
        lo: float (m,).
        hi: float (m,).

    Returns:
        bool (m,). Cost: 2 m calls.

    Source: Huang, Ok, Li and Chen (2018), Theorem 3.
    """
    least, most = _call_corners(solve, lo, hi)
    return most != least


def _call_corners(solve: Callable[[Array], Array], lo: Array, hi: Array) -> Ranges:
    own = jnp.eye(lo.shape[0], dtype=bool)

    def at_own_corner(one: Array, others: Array) -> Array:
        levels = jax.vmap(solve)(jnp.where(own, one, others)).astype(jnp.int32)
        return jnp.sum(jnp.where(own, levels, 0), axis=1, dtype=jnp.int32)

    return Ranges(at_own_corner(lo, hi), at_own_corner(hi, lo))


# Tables and opinion sampling: one entry of each row against those of the others


def threshold(problem: Table | OpinionSampling, lo: Array, hi: Array, levels: Array) -> Array:
    """`candidates` from one decision of the box: arms whose next entry can be chosen or whose last one can be dropped.

    Args:
        problem: rows of entries in falling order, of which the best are chosen.
        lo: float (m,).
        hi: float (m,).
        levels: int32 (m,), the best decision at any one point of the box.

    Returns:
        bool (m,).
    """
    return exceeds(problem, hi, lo, levels) | ~exceeds(problem, lo, hi, levels - 1)


def exceeds(problem: Table | OpinionSampling, own: Array, others: Array, level: Array) -> Array:
    """Whether arm i's level is above `level[i]` at the corner (own at i, others elsewhere), for every arm.

    It is if its entry number `level[i]` is chosen, the first being number 0.

    Args:
        problem: rows of entries in falling order, of which the best are chosen.
        own: float (m,).
        others: float (m,).
        level: int32 (m,). Every level is above -1.

    Returns:
        bool (m,). Cost: O(m^2 W) for a `Table`, O(m^2) for `OpinionSampling`.
    """
    if isinstance(problem, Table):
        entry = _entry(entry_values(problem, own), level)
        better = level.astype(jnp.int32) + _better_entries(entry, entry_values(problem, others))
        return ((better < problem.quota) & (entry > problem.floor)) | (entry > problem.ceiling)
    return _osa_exceeds(problem, own, others, level)


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
    last = _entry(entry_values(table, lo), levels - 1)  # the least that is chosen of each row, at its worst
    following = _entry(entry_values(table, hi), levels)  # the largest that is not, at its best
    arm = jnp.arange(lo.shape[0])
    ahead = (last[:, None] > following) | ((last[:, None] == following) & (arm[:, None] > arm))
    size = jnp.sum(levels, dtype=jnp.int32)
    return (
        jnp.all(ahead | (arm[:, None] == arm))
        & jnp.all((last > table.floor) & ((size <= table.quota) | (last > table.ceiling)))
        & jnp.all((following <= table.ceiling) & ((size >= table.quota) | (following <= table.floor)))
    )


def _entry(values: Array, level: Array) -> Array:
    """Entry number level[i] of every row; +inf before the first, -inf after the last."""
    numbers = jnp.arange(values.shape[1], dtype=level.dtype)
    entry = jnp.max(jnp.where(numbers == level[:, None], values, -jnp.inf), axis=1)
    return jnp.where(level < 0, jnp.inf, entry)


def _better_entries(entry: Array, values: Array) -> Array:
    """How many entries of the other rows are ahead of one of each row, int32 (m, ...).

    Args:
        entry: float (m, ...), one or more entries of each row.
        values: float (m, W), the rows.
    """
    m, W = values.shape
    arm, j = jnp.arange(m).reshape(m, *[1] * entry.ndim), jnp.repeat(jnp.arange(m), W)
    entry, value = entry[..., None], values.ravel()
    # Among equal entries the larger arm is ahead: that gives the lexicographically smallest decision.
    ahead = ((value > entry) | ((value == entry) & (j > arm))) & (j != arm)
    return jnp.sum(ahead, axis=-1, dtype=jnp.int32)


def _corner_levels(table: Table, own: Array, others: Array) -> Array:
    """phi_i(own at i, others elsewhere) for every arm, int32 (m,)."""
    entries = entry_values(table, own)
    better = jnp.arange(entries.shape[1], dtype=jnp.int32) + _better_entries(entries, entry_values(table, others))
    chosen = ((better < table.quota) & (entries > table.floor)) | (entries > table.ceiling)
    return jnp.sum(chosen, axis=1, dtype=jnp.int32)


def _osa_exceeds(problem: OpinionSampling, own: Array, others: Array, level: Array) -> Array:
    arm, limit = jnp.arange(own.shape[0]), problem.budget - own.shape[0]
    y = jnp.maximum(level, 0).astype(own.dtype) + 1
    entry = problem.sizes**2 * own / (y * (y + 1))
    ahead = entries_above(problem.sizes**2 * others, entry[:, None], limit=limit, inclusive=arm > arm[:, None])
    better = level.astype(jnp.int32) + jnp.sum(jnp.where(arm == arm[:, None], 0, ahead), axis=1, dtype=jnp.int32)
    return ((better < limit) & (entry > 0)) | (level < 0)


# Enumerated classes: each decision at the corner that favours it most


def reachable(problem: Enumerated, lo: Array, hi: Array) -> Array:
    """The decisions that lead somewhere in a box.

    At its own corner (hi on y, lo off y) all differences r(y) - r(z) are largest at once, so y leads somewhere if and
    only if it leads there. No class needs more than this one look at each decision.

    Args:
        problem: N decisions in lexicographic order, of which the first leads among equals.
        lo: float (m,).
        hi: float (m,).

    Returns:
        bool (N,). Cost: O(N^2 m). Above 256 decisions by a matrix product, whose rounding (m units in the last place)
        matters for exact ties only.
    """
    N, m = jnp.shape(problem.rows)
    rows = problem.rows > 0
    if N <= MAX_PAIRS:
        favour = jnp.where(rows, hi, -lo)
        lead = problem.offset - problem.offset[:, None]
        for i in range(m):
            lead += jnp.where(rows[:, None, i] != rows[:, i], favour[:, None, i], 0)
    else:
        Y = rows.astype(lo.dtype)
        common = jnp.matmul(Y * (hi - lo), Y.T, precision="highest")
        highest, lowest = (jnp.matmul(Y, theta, precision="highest") - problem.offset for theta in (hi, lo))
        lead = highest[:, None] - lowest - common
    number = jnp.arange(N)
    return jnp.all(jnp.where(number < number[:, None], lead > 0, lead >= 0) | (number == number[:, None]), axis=1)


def disagreement(problem: Enumerated, reached: Array) -> Array:
    """The arms on which some of the decisions differ.

    Args:
        problem: N decisions.
        reached: bool (N,), which of them.

    Returns:
        bool (m,).
    """
    rows = problem.rows > 0
    return jnp.any(rows & reached[:, None], axis=0) & jnp.any(~rows & reached[:, None], axis=0)


def leads_everywhere(problem: Enumerated, lo: Array, hi: Array, levels: Array) -> Array:
    """Whether a decision leads in all of a box: it does if it leads at its worst corner, lo on it and hi off it.

    Args:
        problem: N decisions in lexicographic order.
        lo: float (m,).
        hi: float (m,).
        levels: int32 (m,), the decision.

    Returns:
        bool (). Cost: O(N m).
    """
    N, m = jnp.shape(problem.rows)
    rows = problem.rows > 0
    number, here = jnp.arange(N), jnp.argmax(jnp.all(rows == (levels > 0), axis=1))
    against = jnp.where(levels > 0, lo, -hi)
    lead = problem.offset - jnp.sum(jnp.where(number == here, problem.offset, 0))
    for i in range(m):
        lead += jnp.where(rows[:, i] != (levels[i] > 0), against[i], 0)
    return jnp.all(jnp.where(number < here, lead > 0, lead >= 0) | (number == here))


# Spanning trees


def _joins(problem: Graphic, own: Array, others: Array) -> Array:
    """phi_i(own at i, others elsewhere) for every edge, int32 (m,): 1 if no path of better edges joins its ends."""
    edge, node = jnp.arange(own.shape[0]), jnp.arange(problem.nodes, dtype=problem.ends.dtype)
    better = (others > own[:, None]) | ((others == own[:, None]) & (edge > edge[:, None]))
    better &= edge != edge[:, None]
    tail, head = (problem.ends[:, side, None] == node for side in (0, 1))
    links = tail[:, :, None] & head[:, None, :]
    links |= links.swapaxes(1, 2)
    joined = jnp.any(better[:, :, None, None] & links, axis=1) | jnp.eye(problem.nodes, dtype=bool)
    for _ in range(max(problem.nodes - 1, 1).bit_length()):
        joined = jnp.any(joined[:, :, :, None] & joined[:, None, :, :], axis=2)
    apart = ~jnp.any(joined & (tail[:, :, None] & head[:, None, :]), axis=(1, 2))
    return apart.astype(jnp.int32)
