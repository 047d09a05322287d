"""Classes of 0/1 decisions: any that can be listed, and the spanning trees of a graph that cannot."""

from collections.abc import Iterable, Iterator
from itertools import islice, permutations
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.checks import constant, is_concrete, require
from jaxbandits.cpe._problem.problems import Enumerated, Graphic, floats

# Largest number of decisions in an enumerated class, whose candidates test compares all pairs.
MAX_ROWS = 5000


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


def st_paths(edges: Any, s: int, t: int, *, dtype: Any = None) -> Enumerated:
    """Lists the simple directed paths from s to t; an edge is an arm.

    Args:
        edges: int (m, 2), m >= 2, tail and head of each edge; nodes are numbered from 0. Parallel edges are allowed.
        s: first node, a Python int.
        t: last node, a Python int other than s.
        dtype: dtype of the run; by default JAX's own.

    Returns:
        Enumerated.

    Raises:
        ValueError: `edges` are not as above, s or t is not one of their nodes, s = t, or the number of paths is not in
            2..5000.
    """
    checks.float_dtype("dtype", dtype)
    edges = _checked_edges(edges)
    nodes = int(edges.max()) + 1
    for name, node in (("s", s), ("t", t)):
        checks.whole(name, node, least=0, most=nodes - 1)
    require(s != t, "t", "differ from s", t)

    def walk(node: int, visited: frozenset[int], used: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if node == t:
            yield used
            return
        for edge in np.flatnonzero(edges[:, 0] == node):
            following = int(edges[edge, 1])
            if following not in visited:
                yield from walk(following, visited | {following}, (*used, int(edge)))

    return _listed(walk(s, frozenset({s}), ()), len(edges), f"connect {s} to {t}", dtype)


def perfect_matchings(n: int, *, dtype: Any = None) -> Enumerated:
    """Lists the perfect matchings of the complete bipartite graph on n + n nodes; arm n r + c joins row r and column c.

    Args:
        n: 2 to 6.
        dtype: dtype of the run; by default JAX's own.

    Returns:
        Enumerated with n! rows.

    Raises:
        ValueError: `n` is out of range.
    """
    checks.float_dtype("dtype", dtype)
    checks.whole("n", n, least=2, most=6)  # 6! = 720, 7! = 5040 > MAX_ROWS
    matchings = (tuple(n * r + c for r, c in enumerate(columns)) for columns in permutations(range(n)))
    return _listed(matchings, n * n, "have a perfect matching", dtype)


def spanning_trees(nodes: int, edges: Any, *, dtype: Any = None) -> Enumerated:
    """Lists the spanning trees of a connected graph; an edge is an arm. If there are too many, use `graphic`.

    Args:
        nodes: number of nodes, a Python int.
        edges: int (m, 2), m >= 2, the ends of each edge in 0..nodes-1. Parallel edges are allowed.
        dtype: dtype of the run; by default JAX's own.

    Returns:
        Enumerated.

    Raises:
        ValueError: `edges` are not as above or do not connect the nodes, or the number of trees is not in 2..5000.
    """
    checks.float_dtype("dtype", dtype)
    edges = _checked_edges(edges, checks.whole("nodes", nodes, least=2))

    def grow(kept: tuple[int, ...], edge: int) -> Iterator[tuple[int, ...]]:
        """Yields the trees that hold the kept edges and no other edge before `edge`; there is at least one."""
        if len(kept) == nodes - 1:
            yield kept
            return
        if components(nodes, edges[[*kept, edge]]) == nodes - len(kept) - 1:
            yield from grow((*kept, edge), edge + 1)
        if components(nodes, edges[[*kept, *range(edge + 1, len(edges))]]) == 1:
            yield from grow(kept, edge + 1)

    trees = grow((), 0) if components(nodes, edges) == 1 else iter(())
    return _listed(trees, len(edges), f"connect all {nodes} nodes", dtype)


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
    edges = _checked_edges(edges, checks.whole("nodes", nodes, least=2))
    cyclic = len(edges) > nodes - components(nodes, edges)
    require(cyclic, "edges", "have a cycle, or the only decision is known without a pull", edges)
    return Graphic(nodes, constant(edges, jnp.int32))


def _checked_edges(edges: Any, nodes: int | None = None) -> np.ndarray:
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


def _listed(decisions: Iterable[tuple[int, ...]], m: int, purpose: str, dtype: Any) -> Enumerated:
    """Builds the class of decisions given by their arms."""
    # One decision above the limit is enough to refuse the class.
    chosen = list(islice(decisions, MAX_ROWS + 1))
    require(len(chosen) > 0, "edges", purpose, f"{m} edges that do not")
    rows = np.zeros((len(chosen), m), int)
    for row, arms in zip(rows, chosen, strict=True):
        row[list(arms)] = 1
    return enumerated(rows, dtype=dtype)
