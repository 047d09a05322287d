"""Classes of 0/1 decisions that are listed: paths, matchings, few spanning trees."""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import constant, is_concrete, known, require
from jaxbandits.cpe._problem.floats import floats
from jaxbandits.cpe._problem.kinds.kind import Actions, Closest, Kind
from jaxbandits.cpe._problem.kinds.matroids import root_slope
from jaxbandits.numerics.kernels import apart
from jaxbandits.numerics.linalg import dot

# Largest number of decisions in an enumerated class, whose candidates test compares all pairs.
MAX_ROWS = 5000
FEW_TERMS = 512  # largest N^2 m of N decisions on m arms that are compared without a loop
MAX_PAIRS = 256  # largest number of decisions for which all pairs are compared arm by arm


class Enumerated(NamedTuple):
    """A finite class of 0/1 decisions, listed; r(theta, y) = y.theta - offset_y."""

    rows: Array  # int32 (N, m)    0 or 1, in lexicographic order, no two equal
    offset: Array  # float (N,)


def enumerated(rows: Any, offset: Any = None, *, dtype: Any = None) -> Enumerated:
    """Builds a finite class of 0/1 decisions with a linear reward.

    Args:
        rows: (N, m), zeros and ones, no two rows equal, 2 <= N <= 5000, m >= 2; concrete.
        offset: (N,), finite, subtracted from the reward of each row; 0 by default.
        dtype: dtype of the run; by default JAX's own.

    Returns:
        Enumerated, its rows sorted lexicographically.

    Raises:
        ValueError: a shape, a value or the number of rows is not as above.
    """
    dtype = checks.float_dtype("dtype", dtype)
    require(is_concrete(rows), "rows", "be known when the problem is made", rows)
    checks.array("rows", rows, ("N", "m"))
    rows = np.asarray(rows)
    require(rows.shape[1] >= 2, "rows", "have shape (N, m) with m >= 2", rows.shape)
    require(np.isin(rows, (0, 1)), "rows", "hold zeros and ones only", rows)
    require(len(rows) <= MAX_ROWS, "rows", f"be at most {MAX_ROWS}: all pairs are compared", len(rows))
    require(len(np.unique(rows, axis=0)) == len(rows), "rows", "differ from each other", rows)
    require(len(rows) > 1, "rows", "be at least 2, or the only decision is known without a pull", len(rows))
    offset = floats("offset", np.zeros(len(rows)) if offset is None else offset, (len(rows),), dtype)
    order = np.lexsort(rows.T[::-1])
    offset = constant(offset[order], offset.dtype) if is_concrete(offset) else offset[order]
    return Enumerated(constant(rows[order], jnp.int32), offset)


def _check(problem: Enumerated, name: str) -> None:
    rows = checks.array(f"{name}.rows", problem.rows, ("N", "m"), kind="int", least=0, most=1)
    checks.array(f"{name}.offset", problem.offset, (rows.shape[0],))


# The best decision, and the decisions that lead somewhere in a box


def row_values(problem: Enumerated, theta: Array) -> Array:
    """Computes the rewards of the decisions of a class.

    Args:
        problem: an enumerated class.
        theta: float (m,).

    Returns:
        float (N,). The arms are added in the order of their indices, so decisions that tie at round numbers tie on
        every machine.
    """
    total = jnp.zeros_like(problem.offset)
    for i in range(jnp.shape(problem.rows)[1]):
        total = total + problem.rows[:, i].astype(total.dtype) * theta[i]
    return total - problem.offset


def _best_levels(problem: Enumerated, theta: Array) -> Array:
    # Rows are in lexicographic order, so the first of tied rows leads.
    return problem.rows[jnp.argmax(row_values(problem, theta))]


def reachable(problem: Enumerated, lo: Array, hi: Array) -> Array:
    """Finds the decisions that lead somewhere in a box.

    At the corner of y (hi on y, lo off y) all differences r(y) - r(z) are largest at once. So y leads somewhere if and
    only if it leads there, and one corner per decision is enough.

    Args:
        problem: N decisions in lexicographic order; the first leads among equals.
        lo: float (m,).
        hi: float (m,).

    Returns:
        bool (N,). Cost: O(N^2 m). Above 256 decisions it uses a matrix product, whose rounding (m units in the last
        place) matters for exact ties only.
    """
    N, m = jnp.shape(problem.rows)
    rows = problem.rows > 0
    if N <= MAX_PAIRS:
        favour = jnp.where(rows, hi[None], -lo[None])
        lead = problem.offset[None] - problem.offset[:, None]
        for i in range(m):
            lead += jnp.where(rows[:, None, i] != rows[None, :, i], favour[:, None, i], 0)
    else:
        Y = rows.astype(lo.dtype)
        common = jnp.matmul(Y * (hi - lo)[None], Y.T, precision="highest")
        highest, lowest = (jnp.matmul(Y, theta, precision="highest") - problem.offset for theta in (hi, lo))
        lead = highest[:, None] - lowest[None] - common
    number = jnp.arange(N)
    return jnp.all(
        jnp.where(number[None] < number[:, None], lead > 0, lead >= 0) | (number[None] == number[:, None]), axis=1
    )


def _reached_bits(problem: Enumerated, lo: Array, hi: Array) -> Array:
    """Finds the `reachable` decisions of a few known ones: bit y of an int32 () is set if decision y is one."""
    rows, offset = known(problem.rows) > 0, known(problem.offset)
    bits = jnp.zeros((), jnp.int32)
    for y, row in enumerate(rows):
        leads = jnp.ones((), bool)
        for z in range(len(rows)):
            if z != y:
                terms = (hi[i] if row[i] else -lo[i] for i in np.flatnonzero(row != rows[z]))
                lead = sum(terms, start=offset[z] - offset[y])
                leads &= lead > 0 if z < y else lead >= 0
        bits |= leads.astype(jnp.int32) << y
    return bits


def disagreement(problem: Enumerated, reached: Array) -> Array:
    """Returns the arms on which some of the decisions differ.

    Args:
        problem: N decisions.
        reached: bool (N,), True for the decisions to compare.

    Returns:
        bool (m,).
    """
    rows = problem.rows > 0
    return jnp.any(rows & reached[:, None], axis=0) & jnp.any(~rows & reached[:, None], axis=0)


def _open_arms(problem: Enumerated, lo: Array, hi: Array, levels: Array) -> Array:
    del levels
    N, m = jnp.shape(problem.rows)
    if not is_concrete(problem.rows, problem.offset) or N**2 * m > FEW_TERMS:
        return disagreement(problem, reachable(problem, lo, hi))
    # Spelled out for the arms that differ, as vectors over the lanes: five paths take 6 core-ns instead of 63.
    reached, bit = apart(partial(_reached_bits, problem), lo, hi), 1 << np.arange(N, dtype=np.int32)
    having = np.sum(np.where(known(problem.rows) > 0, bit[:, None], 0), axis=0, dtype=np.int32)
    return ((reached & having) != 0) & ((reached & ~having) != 0)


def _is_decided(problem: Enumerated, lo: Array, hi: Array, levels: Array) -> Array:
    """True if a decision leads in all of a box, which it does if it leads at its worst corner, lo on it and hi off it.

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
    number, leader = jnp.arange(N), jnp.argmax(jnp.all(rows == (levels > 0)[None], axis=1))
    against = jnp.where(levels > 0, lo, -hi)
    lead = problem.offset - jnp.sum(jnp.where(number == leader, problem.offset, 0))
    for i in range(m):
        lead += jnp.where(rows[:, i] != (levels[i] > 0), against[i], 0)
    return jnp.all(jnp.where(number < leader, lead > 0, lead >= 0) | (number == leader))


# Rewards


def _reward(problem: Enumerated, theta: Array, levels: Array) -> Array:
    total = dot(theta, levels.astype(theta.dtype))
    is_row = jnp.all(problem.rows == levels[None], axis=1)
    return total - jnp.where(jnp.any(is_row), jnp.sum(jnp.where(is_row, problem.offset, 0)), jnp.nan)


def _lead(problem: Enumerated, theta: Array, *, one: Array, other: Array) -> Array:
    gained = dot(theta, (one - other).astype(theta.dtype))
    return gained - (_offset(problem, one) - _offset(problem, other))


def _offset(problem: Enumerated, levels: Array) -> Array:
    return jnp.sum(jnp.where(jnp.all(problem.rows == levels[None], axis=1), problem.offset, 0))


def _reward_gaps(problem: Enumerated, theta: Array) -> Array:
    values = row_values(problem, theta)
    best = problem.rows[jnp.argmax(values)]
    rivals = jnp.where(problem.rows != best[None], values[:, None], -jnp.inf)
    return values.max() - rivals.max(axis=0)


# Plays: every other row is a rival of the best one


class Row(NamedTuple):
    """The best action of a class that is listed."""

    action: Array  # bool (K,)
    row: Array  # int ()


def _check_playable(problem: Enumerated) -> None:
    require(known(problem.offset) == 0, "problem.offset", "be 0 in what is played", problem.offset)
    rows = known(problem.rows)
    require(len(rows) > 1, "problem.rows", "be at least 2: one action is known without a play", len(rows))
    require(rows.any(axis=0), "problem.rows", "hold every arm in at least one action", rows)


def _best(problem: Enumerated, weights: Array) -> Row:
    # Rows ascend lexicographically, so the last of tied rows holds the lowest index.
    row = len(problem.rows) - 1 - jnp.argmax(row_values(problem, weights)[::-1])
    return Row(problem.rows[row] > 0, row)


def _gaps(problem: Enumerated, best: Row, means: Array) -> Array:
    fewer = best.action.astype(means.dtype) - problem.rows.astype(means.dtype)
    gaps = jnp.matmul(fewer, means, precision="highest")
    return jnp.where(jnp.arange(len(problem.rows)) == best.row, jnp.inf, gaps)


def _closest(problem: Enumerated, best: Row, gaps: Array, inverse: Array) -> Closest:
    others = (problem.rows > 0) != best.action
    values = gaps**2 / jnp.matmul(others.astype(inverse.dtype), inverse, precision="highest")
    row = jnp.argmin(values).astype(jnp.int32)
    least, differs = values[row], others[row]
    slope = root_slope(least, differs, inverse)
    return Closest(least / 2, slope, differs, out=row, into=jnp.full_like(row, -1))


def _diameter(problem: Enumerated) -> float:
    rows = np.asarray(problem.rows, float)
    held = rows.sum(axis=1)
    return float(np.sqrt(np.max(held[:, None] + held - 2 * rows @ rows.T)))


def _maximum_on_host(problem: Enumerated, weights: np.ndarray) -> np.ndarray:
    rows = known(problem.rows)
    return rows[len(rows) - 1 - np.argmax((rows @ weights)[::-1])].astype(int)


def _contains(problem: Enumerated, rows: np.ndarray) -> list[bool]:
    listed = {tuple(row) for row in known(problem.rows).tolist()}
    return [tuple(row) in listed for row in rows.tolist()]


def _rivals(problem: Enumerated, action: np.ndarray) -> np.ndarray:
    rows = known(problem.rows)
    return action - rows[np.any(rows != action, axis=1)]


KIND = Kind(
    arm_count=lambda problem: jnp.shape(problem.rows)[1],
    float_dtype=lambda problem: jnp.result_type(problem.offset),
    check=_check,
    best_levels=_best_levels,
    open_arms=_open_arms,
    lasting_arms=_open_arms,
    is_decided=_is_decided,
    reward=_reward,
    lead=_lead,
    reward_gaps=_reward_gaps,
    actions=Actions(
        check=_check_playable,
        maximum=lambda problem, weights: _best(problem, weights).action,
        best=_best,
        gaps=_gaps,
        closest=_closest,
        rank=None,
        diameter=_diameter,
        on_host=_maximum_on_host,
        contains=_contains,
        rivals=_rivals,
    ),
    is_binary=True,
)
