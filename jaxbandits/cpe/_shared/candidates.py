"""Candidates: the arms on which the best decision is still open, given that the parameter lies in a box.

Arm i is a candidate of the box [lo, hi] if its level phi_i(theta) in the best decision is not the same for all theta of
the box. A run may stop once there is none. The set can only shrink with the box.

Each kind of problem has an exact test. Tables, opinion sampling and matroids are bi-monotone, so two corners of the box
decide, see `kinds.corners`. Paths and matchings are not: each decision is tried at the corner that favours it most.
"""

from collections.abc import Callable

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import known, require
from jaxbandits.cpe._problem.kinds.oracle import called_at_corners
from jaxbandits.cpe._problem.problems import Problem, arm_count, check_problem, float_dtype, kind_of


def candidates(problem: Problem, lo: Array, hi: Array, levels: Array) -> Array:
    """Returns the arms whose level is not the same everywhere in a box.

    Args:
        problem: the class of decisions and its reward.
        lo: float (m,), lower corner of the box.
        hi: float (m,), upper corner, at least `lo`.
        levels: int (m,), the best decision at any one point of the box.

    Returns:
        bool (m,). Exact, ties included; for an `Oracle`, if it is bi-monotone as promised.

    Raises:
        ValueError: an argument is not as above.

    Cost: O(m^2 W) for a `Table` with rows of W entries, O(m^2) for `OpinionSampling`, O(N^2 m) for `Enumerated` with N
    decisions, O(m nodes^3 log nodes) for `Graphic`, 2 m calls of an `Oracle`.

    Source: Huang, Ok, Li and Chen (2018), section 4 and Theorem 3.
    """
    return open_arms(problem, *_checked_box(problem, lo, hi, levels))


def stops(problem: Problem, lo: Array, hi: Array, levels: Array) -> Array:
    """True if a box has no candidate: equals `~candidates(...).any()`, and is cheaper for some problems.

    Arguments and errors are as for `candidates`.

    Returns:
        bool ().

    Cost: O(m^2 + m W) for a `Table`, O(N m) for `Enumerated`, as for `candidates` otherwise.
    """
    return is_decided(problem, *_checked_box(problem, lo, hi, levels))


def two_call(solve: Callable[[Array], Array], lo: Array, hi: Array) -> Array:
    """Returns the arms whose level differs between their two extreme corners.

    For bi-monotone classes these are the candidates. For others, such as paths and matchings, it misses candidates and
    keeps arms that are none: an algorithm would stop too early or never.

    Args:
        solve: theta (m,) -> levels int (m,).
        lo: float (m,).
        hi: float (m,), at least `lo`.

    Returns:
        bool (m,). Cost: 2 m calls.

    Raises:
        ValueError: an argument is not as above.

    Source: Huang, Ok, Li and Chen (2018), Theorem 3.
    """
    checks.function("solve", solve, "theta")
    lo, hi = _checked_corners(lo, hi, "m")
    lowest, highest = called_at_corners(solve, lo, hi)
    return highest != lowest


# The tests that the algorithms call, without checks


def open_arms(problem: Problem, lo: Array, hi: Array, levels: Array) -> Array:
    """Returns `candidates` without its checks, bool (m,)."""
    return kind_of(problem).open_arms(problem, lo, hi, levels)


def lasting_arms(problem: Problem, lo: Array, hi: Array, levels: Array) -> Array:
    """Returns arms that are candidates of every box that contains the given one, which may be empty (lo > hi).

    Args:
        problem: any, as in `candidates`.
        lo: float (m,), upper bounds of the lower corners.
        hi: float (m,), lower bounds of the upper corners.
        levels: int32 (m,), any decision. For a `Table` and `OpinionSampling` the best one at a point in the box, or
            near it, finds more arms than others.

    Returns:
        bool (m,).

    Cost: twice `candidates` for a `Table` and `OpinionSampling`, once for the others.
    """
    return kind_of(problem).lasting_arms(problem, lo, hi, levels)


def is_decided(problem: Problem, lo: Array, hi: Array, levels: Array) -> Array:
    """Returns `stops` without its checks, bool ()."""
    decided = kind_of(problem).is_decided
    return ~open_arms(problem, lo, hi, levels).any() if decided is None else decided(problem, lo, hi, levels)


# Checks


def _checked_box(problem: Problem, lo: Array, hi: Array, levels: Array) -> tuple[Array, Array, Array]:
    check_problem(problem)
    m, dtype = arm_count(problem), float_dtype(problem)
    lo, hi = _checked_corners(lo, hi, m)
    levels = checks.array("levels", levels, (m,), kind="int", least=0)
    return lo.astype(dtype), hi.astype(dtype), levels.astype(jnp.int32)


def _checked_corners(lo: Array, hi: Array, size: int | str) -> tuple[Array, Array]:
    lo = checks.array("lo", lo, (size,))
    hi = checks.array("hi", hi, lo.shape)
    require(known(hi) >= known(lo), "hi", "be at least lo", hi)
    return lo, hi
