"""The best action at known weights with ties to the lowest index, its swaps, and covers.

An action is a 0/1 decision that is played as a whole. Weights here are often counts of samples, nearly all of them
tied. Ties of `solve` go to the largest index instead.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, known, require
from jaxbandits.cpe._problem.classes import components
from jaxbandits.cpe._problem.problems import Enumerated, Graphic, Oracle, Table, arm_count, check_problem
from jaxbandits.cpe._problem.rows import row_values
from jaxbandits.numerics.indexing import first_smallest
from jaxbandits.numerics.linalg import aligned

Playable = Table | Enumerated | Graphic

UNROLL = 16  # largest number of nodes for which Prim's steps are unrolled
MANY = 4096  # number of arms above which the size of the table of swaps raises a warning


class Swaps(NamedTuple):
    """The best action of a matroid, which has D arms, and the actions that differ from it by one arm."""

    action: Array  # bool (K,)
    out: Array  # int32 (D,)     its arms
    into: Array  # bool (D, K)   the arms that can replace each of them


class Row(NamedTuple):
    """The best action of a class that is listed."""

    action: Array  # bool (K,)
    row: Array  # int ()


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
    match problem:
        case Graphic():
            return _prim(problem, weights)[0]
        case Table():
            return _ones(lax.top_k(weights, int(problem.quota))[1], weights.shape[0]).any(axis=0)
        case Enumerated():
            return best_of(problem, weights).action


def best_of(problem: Playable, weights: Array) -> Swaps | Row:
    """Finds the action with the largest weight, and the actions that it is compared with."""
    match problem:
        case Graphic():
            return _swaps_of_tree(problem, weights)
        case Table():
            out = lax.top_k(weights, int(problem.quota))[1]
            action = _ones(out, weights.shape[0]).any(axis=0)
            return Swaps(action, out, jnp.broadcast_to(~action, (out.shape[0], *action.shape)))
        case Enumerated():
            # Rows ascend lexicographically, so the last of tied rows holds the lowest index.
            row = len(problem.rows) - 1 - jnp.argmax(row_values(problem, weights)[::-1])
            return Row(problem.rows[row] > 0, row)


# Trees


def _prim(problem: Graphic, weights: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    """Returns the tree bool (K,), and for each edge in the order of growth its number, far node and near node.

    Far and near refer to node 0. The numbers are int32 (D,), the nodes one-hot bool (D, V).
    """
    (K,), V = weights.shape, problem.nodes
    incidence = _incidence(problem)
    meets, ends = jnp.asarray(incidence, weights.dtype), jnp.asarray(incidence.T != 0)

    def grow(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
        tree, inside = carry
        leaves = _cut(inside, meets)
        edge = first_smallest(jnp.where(leaves, -weights, jnp.inf))
        both = jnp.any(_ones(edge, K)[:, None] & ends, axis=0)
        return (tree | _ones(edge, K), inside | both), (edge, both & ~inside, both & inside)

    start = jnp.zeros(K, bool), jnp.arange(V) == 0
    (tree, _), grown = lax.scan(grow, start, None, length=V - 1, unroll=V - 1 if V <= UNROLL else 1)
    return tree, grown


def _swaps_of_tree(problem: Graphic, weights: Array) -> Swaps:
    """Finds the best tree's swaps: f can replace edge e if f joins the two parts of the tree without e."""
    V = problem.nodes
    tree, (edges, far, near) = _prim(problem, weights)

    def attach(beyond: Array, grown: tuple[Array, Array, Array]) -> tuple[Array, None]:
        is_edge, far, near = grown
        # A node lies beyond the same edges as its neighbour nearer to node 0, and beyond the edge between the two.
        is_beyond = jnp.any(beyond & near[None], axis=1) | is_edge
        return beyond | (is_beyond[:, None] & far[None]), None

    beyond = jnp.zeros((V - 1, V), bool)
    beyond, _ = lax.scan(attach, beyond, (jnp.eye(V - 1, dtype=bool), far, near), unroll=V - 1 if V <= UNROLL else 1)
    return Swaps(tree, edges, _cut(beyond, jnp.asarray(_incidence(problem), weights.dtype)) & ~tree[None])


def _cut(nodes: Array, incidence: Array) -> Array:
    """Returns the edges with one end in a set of nodes, bool (..., K)."""
    # A product with a constant, because gathers are slow under `vmap`.
    return jnp.matmul(nodes.astype(incidence.dtype), incidence, precision="highest") != 0


def _incidence(problem: Graphic) -> np.ndarray:
    """Returns the signed incidence matrix (V, K), with 1 and -1 at the two ends of each edge."""
    tail, head = (np.arange(problem.nodes)[:, None] == known(problem.ends)[:, side] for side in (0, 1))
    return tail.astype(int) - head


def _ones(index: Array, size: int) -> Array:
    """Returns one-hot vectors, bool (..., size)."""
    return index[..., None] == aligned(jnp.arange(size, dtype=index.dtype), index.ndim + 1)


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
        rows.append(best_on_host(problem, uncovered))
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
            rows.append(best_on_host(problem, arm))
    return checks.constant(np.stack(rows), jnp.int32)


def best_on_host(problem: Playable, weights: np.ndarray) -> np.ndarray:
    """Returns `maximum`, int (K,), computed in NumPy before a program is traced."""
    chosen = np.zeros(len(weights), int)
    order = np.argsort(-weights, kind="stable")
    match problem:
        case Graphic():
            names = np.arange(problem.nodes)
            ends = known(problem.ends)
            for edge in order:
                one, other = names[ends[edge]]
                chosen[edge] = one != other
                names[names == other] = one
        case Table():
            chosen[order[: int(problem.quota)]] = 1
        case Enumerated():
            rows = known(problem.rows)
            values = rows @ weights
            chosen[:] = rows[len(rows) - 1 - np.argmax(values[::-1])]
    return chosen


# Checks


def check_playable(problem: Any) -> None:
    """Raises `ValueError` unless the actions of a problem can be played, and every arm is in some of them."""
    require(
        not isinstance(problem, Oracle),
        "problem",
        "be Graphic, top_k or Enumerated: no linear oracle minimises the quotient gap^2 / variance over the actions",
        "an Oracle",
    )
    expected = "be Graphic, top_k or Enumerated"
    require(isinstance(problem, (Table, Enumerated, Graphic)), "problem", expected, type(problem).__name__)
    check_problem(problem)
    require(is_concrete(problem), "problem", "be known when the algorithm is made, not traced", problem)
    match problem:
        case Graphic():
            ends = known(problem.ends)
            require(ends[:, 0] != ends[:, 1], "problem", "have no loops: their arms are in no action", ends)
            parts = components(problem.nodes, ends)
            require(parts == 1, "problem", "be a connected graph", f"{parts} components")
            require(len(ends) >= problem.nodes, "problem", "have a cycle: one action is known without a play", ends)
        case Table():
            fits = (
                problem.coef.shape[1] == 1
                and np.all(known(problem.coef) == 1)
                and np.all(known(problem.cost) == 0)
                and np.isneginf(known(problem.floor))
                and np.isposinf(known(problem.ceiling))
            )
            require(fits, "problem", "be Graphic, Enumerated, or of tables top_k or best_arm", "another table")
            K = arm_count(problem)
            inside = 0 < int(problem.quota) < K
            require(inside, "problem.quota", f"lie in 1..{K - 1}: one action is known without a play", problem.quota)
        case Enumerated():
            require(known(problem.offset) == 0, "problem.offset", "be 0 in what is played", problem.offset)
            rows = known(problem.rows)
            require(len(rows) > 1, "problem.rows", "be at least 2: one action is known without a play", len(rows))
            require(rows.any(axis=0), "problem.rows", "hold every arm in at least one action", rows)
    if arm_count(problem) > MANY:
        checks.warn(f"the table of swaps has {arm_count(problem)} columns for every lane", stacklevel=3)


def check_actions(name: str, problem: Playable, rows: Any) -> np.ndarray:
    """Returns a list of actions as int (M, K); raises `ValueError` unless all are actions of the problem."""
    require(is_concrete(rows), name, "be known when the algorithm is made", rows)
    checks.array(name, rows, ("M", arm_count(problem)), kind="int", least=0, most=1)
    rows = np.asarray(rows)
    match problem:
        case Graphic():
            ends = known(problem.ends)
            is_action = [
                row.sum() == problem.nodes - 1 and components(problem.nodes, ends[row > 0]) == 1 for row in rows
            ]
        case Table():
            is_action = rows.sum(axis=1) == int(problem.quota)
        case Enumerated():
            listed = {tuple(row) for row in known(problem.rows).tolist()}
            is_action = [tuple(row) in listed for row in rows.tolist()]
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
