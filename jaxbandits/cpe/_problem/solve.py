"""The best decision at a known theta: the maximiser that the algorithms call."""

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.cpe._problem.entries import best_entries
from jaxbandits.cpe._problem.opinions import levels_by_bisection
from jaxbandits.cpe._problem.problems import (
    Enumerated,
    Graphic,
    OpinionSampling,
    Oracle,
    Problem,
    Table,
    arm_count,
    check_problem,
    float_dtype,
)
from jaxbandits.cpe._problem.rows import best_row
from jaxbandits.cpe._problem.trees import best_tree


def solve(problem: Problem, theta: Array) -> Array:
    """Finds the leading optimum: the lexicographically smallest of the decisions that pay most at theta.

    For a `Table` and for `OpinionSampling`, exact ties of rational numbers are ties. There coef, cost and theta may be
    dyadic or decimal fractions, or quotients of counts, each rounded to the dtype. Entries with the same worth in exact
    arithmetic count as equal. So do entries whose worths differ by less than rounding can resolve: 1e-15 (64 bit) or
    1e-6 (32 bit) times the sum of both entries' coef theta + |cost|. A `Graphic` problem and top-k compare thetas
    themselves. An `Enumerated` class compares rounded sums, added in the order of the arms.

    Args:
        problem: any.
        theta: float (m,).

    Returns:
        int32 (m,), its levels; for an `Oracle` the result of its function.

    Raises:
        ValueError: an argument is not as above.

    Cost: O((m W)^2) for a `Table` of at most 64 entries, otherwise O(m W) 32 or 64 times; O(N m) for `Enumerated`;
    O(m^2) for `Graphic`; O(m) 32 or 64 times for `OpinionSampling`.

    Example:
        >>> from jaxbandits import cpe
        >>> print(cpe.solve(cpe.top_k(4, 2), jnp.asarray([0.2, 0.9, 0.4, 0.1])))
        [0 1 1 0]
    """
    check_problem(problem)
    theta = checks.array("theta", theta, (arm_count(problem),))
    return best_levels(problem, theta.astype(float_dtype(problem)))


def best_levels(problem: Problem, theta: Array) -> Array:
    """Returns `solve` without its checks."""
    match problem:
        case Table():
            return best_entries(problem, theta)
        case OpinionSampling():
            return levels_by_bisection(problem.sizes**2 * theta, problem.budget)
        case Enumerated():
            return best_row(problem, theta)
        case Graphic():
            return best_tree(problem, theta)
        case Oracle():
            return problem.solve(theta).astype(jnp.int32)
