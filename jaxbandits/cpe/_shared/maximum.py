"""The best action at known weights with ties to the lowest index, its swaps, and covers.

An action is a 0/1 decision that is played as a whole. Weights here are often counts of samples, nearly all of them
tied. Ties of `solve` go to the largest index instead.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, known, require
from jaxbandits.cpe._problem.kinds.enumerated import Enumerated, Row
from jaxbandits.cpe._problem.kinds.graphic import Graphic
from jaxbandits.cpe._problem.kinds.kind import Actions, Closest
from jaxbandits.cpe._problem.kinds.matroids import Swaps
from jaxbandits.cpe._problem.kinds.table import Table
from jaxbandits.cpe._problem.problems import arm_count, check_problem, kind_of, needed

Playable = Table | Enumerated | Graphic
Best = Swaps | Row  # the best action, and what its rivals are found from

MANY = 4096  # number of arms above which the size of the table of swaps raises a warning


def maximum(problem: Playable, weights: Array) -> Array:
    """Finds the action with the largest weight; ties go to the lowest index.

    Args:
        problem: a `Graphic` of a connected graph without loops, `top_k`, `best_arm`, or an `Enumerated` class without
            offsets; known, not traced.
        weights: float (K,), of any sign.

    Returns:
        int32 (K,), 0 or 1. Trees and top-k take arms by falling weight, the lowest index first among ties. Among tied
        rows it is the last one, which holds the lowest index on which they differ.

    Raises:
        ValueError: an argument is not as above.

    Cost: O(K nodes) for `Graphic` (Prim), O(K log K) for top-k, O(N K) for `Enumerated`.

    Source: Prim (1957), Shortest connection networks and some generalizations.

    Example:
        >>> from jaxbandits import cpe
        >>> print(cpe.maximum(cpe.graphic(3, [[0, 1], [1, 2], [0, 2]]), jnp.asarray([0.5, 0.5, 0.5])))
        [1 1 0]
    """
    check_playable(problem)
    weights = checks.array("weights", weights, (arm_count(problem),))
    return best_action(problem, weights).astype(jnp.int32)


def best_action(problem: Playable, weights: Array) -> Array:
    """Returns `maximum` without its checks, bool (K,)."""
    return actions_of(problem).maximum(problem, weights)


def best_of(problem: Playable, weights: Array) -> Best:
    """Finds the action with the largest weight, and the actions that it is compared with."""
    return actions_of(problem).best(problem, weights)


def gaps_of(problem: Playable, best: Best, means: Array) -> Array:
    """Computes the best action's lead over each swap (D, K) or each row (N,); inf where there is no other action."""
    return actions_of(problem).gaps(problem, best, means)


def closest(problem: Playable, best: Best, gaps: Array, inverse: Array) -> Closest:
    """Finds the action that minimises gap^2 / (2 sum of `inverse` (K,) over the arms in which it differs)."""
    return actions_of(problem).closest(problem, best, gaps, inverse)


# Covers


def small_cover(problem: Playable) -> Array:
    """Returns few actions that together hold every arm: each holds as many as possible of the arms not yet held.

    Args:
        problem: as in `maximum`.

    Returns:
        int32 (M, K), 0 or 1. Computed on the host.

    Raises:
        ValueError: the problem is not as above.

    Example:
        >>> from jaxbandits import cpe
        >>> print(cpe.small_cover(cpe.top_k(5, 2)))
        [[1 1 0 0 0]
         [0 0 1 1 0]
         [1 0 0 0 1]]
    """
    check_playable(problem)
    rows: list[np.ndarray] = []
    uncovered = np.ones(arm_count(problem))
    while uncovered.any():
        rows.append(actions_of(problem).on_host(problem, uncovered))
        uncovered = uncovered * (1 - rows[-1])
    return checks.constant(np.stack(rows), jnp.int32)


def unit_cover(problem: Playable) -> Array:
    """Returns actions that together hold every arm: for each arm not yet held, the first action with that arm.

    The public code of P-FWS starts with this cover. It is several times as long as `small_cover`.

    Args:
        problem: as in `maximum`.

    Returns:
        int32 (M, K), 0 or 1. Computed on the host.

    Raises:
        ValueError: the problem is not as above.
    """
    check_playable(problem)
    rows: list[np.ndarray] = []
    for arm in np.eye(arm_count(problem)):
        if not rows or not np.any(np.stack(rows) @ arm):
            rows.append(actions_of(problem).on_host(problem, arm))
    return checks.constant(np.stack(rows), jnp.int32)


# Checks


def actions_of(problem: Playable) -> Actions:
    """Returns the functions of the problem's actions; raises `ValueError` if they cannot be played."""
    expected = (
        "be Graphic, top_k or Enumerated: no linear oracle minimises the quotient gap^2 / variance over the actions"
    )
    return needed(kind_of(problem).actions, problem, expected)


def check_playable(problem: Any) -> None:
    """Raises `ValueError` unless the actions of a problem can be played, and every arm is in some of them."""
    check_problem(problem)
    actions = actions_of(problem)
    require(is_concrete(problem), "problem", "be known when the algorithm is made, not traced", problem)
    actions.check(problem)
    if arm_count(problem) > MANY:
        checks.warn(f"the table of swaps has {arm_count(problem)} columns for every lane", stacklevel=3)


def check_actions(name: str, problem: Playable, rows: Any) -> np.ndarray:
    """Returns a list of actions as int (M, K); raises `ValueError` unless all are actions of the problem."""
    require(is_concrete(rows), name, "be known when the algorithm is made", rows)
    checks.array(name, rows, ("M", arm_count(problem)), kind="int", least=0, most=1)
    rows = np.asarray(rows)
    is_action = actions_of(problem).contains(problem, rows)
    require(np.all(is_action), name, "be actions of the problem", f"row {int(np.argmin(is_action))} that is none")
    return rows


def check_cover(problem: Playable, cover: Any) -> np.ndarray:
    """Returns a cover as int (M, K), `small_cover` for None; raises `ValueError` unless it is one."""
    if cover is None:
        return known(small_cover(problem))
    rows = check_actions("cover", problem, cover)
    missing = np.flatnonzero(~rows.any(axis=0))
    require(missing.size == 0, "cover", "hold every arm", f"none with arm {missing[:1]}")
    return rows
