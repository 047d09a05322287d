"""Enumerated classes at a theta: the best decision, and the decisions that lead somewhere in a box."""

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.cpe._problem.problems import Enumerated, arm_count

MAX_PAIRS = 256  # largest number of decisions for which all pairs are compared arm by arm


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
    for i in range(arm_count(problem)):
        total = total + problem.rows[:, i].astype(total.dtype) * theta[i]
    return total - problem.offset


def best_row(problem: Enumerated, theta: Array) -> Array:
    """Finds the leading optimum, int32 (m,): the first of the best rows, which are in lexicographic order."""
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


def leads_everywhere(problem: Enumerated, lo: Array, hi: Array, levels: Array) -> Array:
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
