"""Distances to the other decisions: consistent radii, reward gaps and exchange widths.

They are functions of the truth, which no algorithm may know.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.cpe._problem.kinds.enumerated import Enumerated
from jaxbandits.cpe._problem.kinds.table import Table, top_gaps
from jaxbandits.cpe._problem.problems import (
    Problem,
    arm_count,
    best_levels,
    check_problem,
    float_dtype,
    kind_of,
    needed,
)
from jaxbandits.cpe._shared.candidates import open_arms

HALVINGS = 60  # number of bisection steps for a radius
# Largest number of decisions for the exchange width, which tries all triples.
MAX_EXCHANGE_ROWS = 60

# Radii and gaps


def consistent_radius(problem: Problem, theta: Array) -> Array:
    """Computes the smallest change of theta, in its largest coordinate, that changes the level of an arm: Lambda_i.

    Lambda_i = inf {max_j |theta'_j - theta_j| : theta' in [0, 1]^m, phi_i(theta') != phi_i(theta)}.

    Args:
        problem: any; an `Oracle` only if it is bi-monotone.
        theta: float (m,), in [0, 1].

    Returns:
        float (m,), inf for an arm whose level never changes, 0 (up to rounding) for one that is tied.

    Raises:
        ValueError: `theta` is not a vector in [0, 1], or the oracle is not bi-monotone.

    Cost: m candidates tests, 60 times.

    Source: Huang, Ok, Li and Chen (2018), Definition 2.
    """
    check_problem(problem)
    kind_of(problem).check_candidates(problem)
    m, dtype = arm_count(problem), float_dtype(problem)
    theta = checks.array("theta", theta, (m,), least=0, most=1).astype(dtype)
    return _consistent_radius(problem, theta)


# Without `jit` every call from outside a trace would compile the loop again.
@jax.jit
def _consistent_radius(problem: Problem, theta: Array) -> Array:
    m, dtype = theta.shape[0], theta.dtype
    levels = best_levels(problem, theta)

    def varies(half: Array) -> Array:
        """Returns True for each arm i whose level changes in the box of half-width half[i], bool (m,)."""
        boxes = jnp.clip(theta[None] - half[:, None], 0, 1), jnp.clip(theta[None] + half[:, None], 0, 1)
        return jnp.diagonal(jax.vmap(lambda lo, hi: open_arms(problem, lo, hi, levels))(*boxes))

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = (low + high) / 2
        is_out = varies(middle)
        return jnp.where(is_out, low, middle), jnp.where(is_out, middle, high)

    unit = jnp.ones(m, dtype)
    _, radius = lax.fori_loop(0, HALVINGS, halve, (jnp.zeros_like(unit), unit))
    return jnp.where(varies(unit), radius, jnp.inf)


def radius_top_k(theta: Array, k: int) -> Array:
    """Computes the consistent radii of top-k in closed form: half the distance to the other side of the border.

    Args:
        theta: float (m,), in [0, 1].
        k: arms to find, a Python int in 1..m-1.

    Returns:
        float (m,).

    Raises:
        ValueError: an argument is not as above.

    Source: Huang, Ok, Li and Chen (2018), Definition 2, worked out for top-k.
    """
    theta = checks.array("theta", theta, ("m",), least=0, most=1)
    checks.whole("k", k, least=1, most=theta.shape[0] - 1)
    return top_gaps(theta, k) / 2


def reward_gaps(problem: Table | Enumerated, theta: Array) -> Array:
    """Computes the lead Delta_i of the best decision over the best one with the other y_i.

    Args:
        problem: an `Enumerated` class, or a table with rows of one entry that takes exactly `quota` of them (concrete).
        theta: float (m,), in [0, 1].

    Returns:
        float (m,), inf for an arm whose level never changes.

    Raises:
        ValueError: the problem is of another kind, or `theta` has the wrong shape.

    Source: Chen, Lin, King, Lyu and Chen (2014), equation (1).
    """
    check_problem(problem)
    gaps = needed(kind_of(problem).reward_gaps, problem, "be a Table or Enumerated")
    theta = checks.array("theta", theta, (arm_count(problem),), least=0, most=1).astype(float_dtype(problem))
    return gaps(problem, theta)


def exchange_width(rows: Any) -> int:
    """Computes the width of a class of 0/1 decisions: the number of arms that must be exchanged at once, at worst.

    For decisions S and S' and an arm i of S that S' lacks, take the smallest exchange that removes i from S, moves S
    towards S', and can be undone from S' as well. The width is the largest of them. Matroids have width 2.

    Args:
        rows: (N, m), zeros and ones, N <= 60, such as the rows of an `Enumerated`; concrete.

    Returns:
        int.

    Raises:
        ValueError: `rows` are not as above.

    Cost: O(N^3 m), on the host.

    Source: Chen, Lin, King, Lyu and Chen (2014), section 3.
    """
    require(is_concrete(rows), "rows", "be known", rows)
    checks.array("rows", rows, ("N", "m"))
    rows = np.asarray(rows)
    require(len(rows) <= MAX_EXCHANGE_ROWS, "rows", f"be at most {MAX_EXCHANGE_ROWS}", len(rows))
    require(np.isin(rows, (0, 1)), "rows", "hold zeros and ones only", rows)
    decisions = {tuple(row) for row in rows.tolist()}
    distance = np.abs(rows[:, None] - rows).sum(axis=2)
    widest = 0
    for s, start in enumerate(rows):
        for end in rows:
            # If the exchange turns S into row t, its reverse turns S' into `undone[t]`, with the same sum.
            undone = start + end - rows
            valid = [t for t, row in enumerate(undone.tolist()) if tuple(row) in decisions]
            for i in np.flatnonzero(start > end):
                widest = max(widest, min(distance[s, t] for t in valid if rows[t, i] == 0))
    return int(widest)
