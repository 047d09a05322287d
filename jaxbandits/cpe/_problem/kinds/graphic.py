"""Spanning trees of a graph, however many: they are not listed."""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array, static_fields
from jaxbandits.checks import constant, is_concrete, known, require
from jaxbandits.cpe._problem.kinds.corners import lasting_by_range, open_by_range
from jaxbandits.cpe._problem.kinds.kind import Actions, Kind
from jaxbandits.cpe._problem.kinds.matroids import (
    Swaps,
    closest_swap,
    matroid_diameter,
    one_hot,
    swap_gaps,
    swaps_on_host,
)
from jaxbandits.numerics import matroid
from jaxbandits.numerics.indexing import first_smallest
from jaxbandits.numerics.linalg import dot

UNROLL = 16  # largest number of nodes for which Prim's steps are unrolled


@static_fields("nodes")
class Graphic(NamedTuple):
    """The spanning trees of a graph, not listed; r(theta, y) = y.theta. A disconnected graph has spanning forests."""

    nodes: int  # static
    ends: Array  # int32 (m, 2)    the two ends of each edge


def graphic(nodes: int, edges: Any) -> Graphic:
    """Builds the class of a graph's spanning trees, however many. If they are few, `spanning_trees` lists them.

    Args:
        nodes: number of nodes, a Python int.
        edges: int (m, 2), m >= 2, the ends of each edge in 0..nodes-1; an edge is an arm. Parallel edges are allowed.

    Returns:
        Graphic. Its leading optimum is bi-monotone, as for every matroid.

    Raises:
        ValueError: `edges` are not as above, or have no cycle, so that there is only one decision.
    """
    edges = checked_edges(edges, checks.whole("nodes", nodes, least=2))
    cyclic = len(edges) > nodes - components(nodes, edges)
    require(cyclic, "edges", "have a cycle, or the only decision is known without a pull", edges)
    return Graphic(nodes, constant(edges, jnp.int32))


def _check(problem: Graphic, name: str) -> None:
    checks.whole(f"{name}.nodes", problem.nodes, least=2)
    checks.array(f"{name}.ends", problem.ends, ("m", 2), kind="int", least=0, most=problem.nodes - 1)


def checked_edges(edges: Any, nodes: int | None = None) -> np.ndarray:
    """Returns the edges of a graph as int (m, 2); raises `ValueError` unless they are m >= 2 pairs in 0..nodes-1."""
    require(is_concrete(edges), "edges", "be known when the problem is made", edges)
    checks.array("edges", edges, ("m", 2), kind="int", least=0, most=None if nodes is None else nodes - 1)
    edges = np.asarray(edges)
    require(len(edges) >= 2, "edges", "have shape (m, 2) with m >= 2", edges.shape)
    return edges


def components(nodes: int, edges: np.ndarray) -> int:
    """Counts the connected components of a graph."""
    names = np.arange(nodes)
    for one, other in edges:
        names[names == names[other]] = names[one]
    return len(np.unique(names))


# The best tree, and the edges that can join it in a box


def _best_levels(problem: Graphic, theta: Array) -> Array:
    """Finds the leading optimum, int32 (m,). Cost: O(m^2)."""
    # `graphic` keeps the lowest index among ties, and the leading tree has the largest.
    return matroid.graphic(problem.ends[::-1])(theta[::-1])[::-1].astype(jnp.int32)


def _level_range(problem: Graphic, lo: Array, hi: Array) -> tuple[Array, Array]:
    """Computes the lowest and the highest level of every arm, int32 (m,), at its two extreme corners."""
    return _joins(problem, at_i=lo, others=hi), _joins(problem, at_i=hi, others=lo)


def _joins(problem: Graphic, *, at_i: Array, others: Array) -> Array:
    """Computes phi_i(at_i at i, others elsewhere) for every edge, int32 (m,).

    It is 1 if no path of better edges joins the edge's ends. Cost: O(m nodes^3 log nodes).
    """
    edge, node = jnp.arange(at_i.shape[0]), jnp.arange(problem.nodes, dtype=problem.ends.dtype)
    others = others[None]
    better = (others > at_i[:, None]) | ((others == at_i[:, None]) & (edge[None] > edge[:, None]))
    better &= edge[None] != edge[:, None]
    tail, head = (problem.ends[:, side, None] == node[None] for side in (0, 1))
    links = tail[:, :, None] & head[:, None, :]
    links |= links.swapaxes(1, 2)
    joined = jnp.any(better[:, :, None, None] & links[None], axis=1) | jnp.eye(problem.nodes, dtype=bool)[None]
    for _ in range(max(problem.nodes - 1, 1).bit_length()):
        joined = jnp.any(joined[:, :, :, None] & joined[:, None, :, :], axis=2)
    apart = ~jnp.any(joined & (tail[:, :, None] & head[:, None, :]), axis=(1, 2))
    return apart.astype(jnp.int32)


def _lead(problem: Graphic, theta: Array, *, one: Array, other: Array) -> Array:
    del problem
    return dot(theta, (one - other).astype(theta.dtype))


# Plays


def _check_playable(problem: Graphic) -> None:
    ends = known(problem.ends)
    require(ends[:, 0] != ends[:, 1], "problem", "have no loops: their arms are in no action", ends)
    parts = components(problem.nodes, ends)
    require(parts == 1, "problem", "be a connected graph", f"{parts} components")
    require(len(ends) >= problem.nodes, "problem", "have a cycle: one action is known without a play", ends)


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
        both = jnp.any(one_hot(edge, K)[:, None] & ends, axis=0)
        return (tree | one_hot(edge, K), inside | both), (edge, both & ~inside, both & inside)

    start = jnp.zeros(K, bool), jnp.arange(V) == 0
    (tree, _), grown = lax.scan(grow, start, None, length=V - 1, unroll=V - 1 if V <= UNROLL else 1)
    return tree, grown


def _best(problem: Graphic, weights: Array) -> Swaps:
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


def _maximum_on_host(problem: Graphic, weights: np.ndarray) -> np.ndarray:
    chosen, names, ends = np.zeros(len(weights), int), np.arange(problem.nodes), known(problem.ends)
    for edge in np.argsort(-weights, kind="stable"):
        one, other = names[ends[edge]]
        chosen[edge] = one != other
        names[names == other] = one
    return chosen


def _is_tree(problem: Graphic, row: np.ndarray) -> bool:
    return row.sum() == problem.nodes - 1 and components(problem.nodes, known(problem.ends)[row > 0]) == 1


def _rivals(problem: Graphic, action: np.ndarray) -> np.ndarray:
    unit = np.eye(len(action), dtype=int)
    return swaps_on_host(action, lambda out: [_is_tree(problem, action - unit[out] + into) for into in unit])


KIND = Kind(
    arm_count=lambda problem: jnp.shape(problem.ends)[0],
    float_dtype=lambda problem: jnp.result_type(float),
    check=_check,
    best_levels=_best_levels,
    open_arms=partial(open_by_range, _level_range),
    lasting_arms=partial(lasting_by_range, _level_range),
    reward=lambda problem, theta, levels: dot(theta, levels.astype(theta.dtype)),
    lead=_lead,
    actions=Actions(
        check=_check_playable,
        maximum=lambda problem, weights: _prim(problem, weights)[0],
        best=_best,
        gaps=swap_gaps,
        closest=closest_swap,
        rank=lambda problem: problem.nodes - 1,
        diameter=lambda problem: matroid_diameter(problem.nodes - 1, len(problem.ends)),
        on_host=_maximum_on_host,
        contains=lambda problem, rows: [_is_tree(problem, row) for row in rows],
        rivals=_rivals,
    ),
    is_binary=True,
)
