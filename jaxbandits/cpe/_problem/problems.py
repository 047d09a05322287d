"""Problems: the decisions and their reward, which the learner may know. Only theta is unknown.

A sample of arm i lies in [0, 1]; its unknown mean, or its unknown variance, is theta_i. A decision y gives each arm a
level y_i, and pays r(theta, y) = sum_i r_i(theta_i, y_i). The goal is the decision that pays most at the true theta.
Among decisions that pay the same, the leading one is the lexicographically smallest, so ties between two arms go to the
larger index.
"""

from typing import Any, TypeVar, get_args

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import require
from jaxbandits.cpe._problem.kinds import enumerated, graphic, opinions, oracle, table
from jaxbandits.cpe._problem.kinds.enumerated import Enumerated
from jaxbandits.cpe._problem.kinds.graphic import Graphic
from jaxbandits.cpe._problem.kinds.kind import Kind
from jaxbandits.cpe._problem.kinds.opinions import OpinionSampling
from jaxbandits.cpe._problem.kinds.oracle import Oracle
from jaxbandits.cpe._problem.kinds.table import Table

T = TypeVar("T")

Problem = Table | OpinionSampling | Enumerated | Graphic | Oracle

KINDS = {
    Table: table.KIND,
    OpinionSampling: opinions.KIND,
    Enumerated: enumerated.KIND,
    Graphic: graphic.KIND,
    Oracle: oracle.KIND,
}


def kind_of(problem: Problem) -> Kind:
    """Returns the functions of a problem's kind."""
    return KINDS[type(problem)]


def needed(part: T | None, problem: Problem, expected: str) -> T:
    """Returns a part of the problem's kind; raises `ValueError` if the kind does not have it."""
    require(part is not None, "problem", expected, type(problem).__name__)
    assert part is not None
    return part


def check_problem(problem: Any, name: str = "problem") -> None:
    """Raises `ValueError` unless this is a problem whose parts are as its comments say."""
    checks.instance(name, problem, get_args(Problem))
    kind_of(problem).check(problem, name)


def arm_count(problem: Problem) -> int:
    """Returns the number m of arms."""
    return kind_of(problem).arm_count(problem)


def float_dtype(problem: Problem) -> Any:
    """Returns the dtype of a run: the dtype of the problem's floats, or JAX's default if it has none."""
    return kind_of(problem).float_dtype(problem)


def decision(problem: Problem, levels: Array) -> Array:
    """Converts levels to the decision y.

    Args:
        problem: any.
        levels: int (m,), at least 0, such as an algorithm's answer.

    Returns:
        base + step * levels, float (m,), for a table and for opinion sampling (base and step 1); otherwise the levels
        themselves.

    Raises:
        ValueError: an argument is not as above.
    """
    check_problem(problem)
    levels = checks.array("levels", levels, (arm_count(problem),), kind="int", least=0)
    return kind_of(problem).decision(problem, levels)


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
        >>> import jax.numpy as jnp
        >>> from jaxbandits import cpe
        >>> print(cpe.solve(cpe.top_k(4, 2), jnp.asarray([0.2, 0.9, 0.4, 0.1])))
        [0 1 1 0]
    """
    check_problem(problem)
    theta = checks.array("theta", theta, (arm_count(problem),))
    return best_levels(problem, theta.astype(float_dtype(problem)))


def best_levels(problem: Problem, theta: Array) -> Array:
    """Returns `solve` without its checks."""
    return kind_of(problem).best_levels(problem, theta)
