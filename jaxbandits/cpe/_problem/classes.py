"""Classes of 0/1 decisions on graphs that are listed: paths, matchings, spanning trees."""

from collections.abc import Iterable, Iterator
from itertools import islice, permutations
from typing import Any

import numpy as np

from jaxbandits import checks
from jaxbandits.checks import require
from jaxbandits.cpe._problem.kinds.enumerated import MAX_ROWS, Enumerated, enumerated
from jaxbandits.cpe._problem.kinds.graphic import checked_edges, components


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
    edges = checked_edges(edges)
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
    edges = checked_edges(edges, checks.whole("nodes", nodes, least=2))

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


def _listed(decisions: Iterable[tuple[int, ...]], m: int, purpose: str, dtype: Any) -> Enumerated:
    """Builds the class of decisions given by their arms."""
    # One decision above the limit is enough to refuse the class.
    chosen = list(islice(decisions, MAX_ROWS + 1))
    require(len(chosen) > 0, "edges", purpose, f"{m} edges that do not")
    rows = np.zeros((len(chosen), m), int)
    for row, arms in zip(rows, chosen, strict=True):
        row[list(arms)] = 1
    return enumerated(rows, dtype=dtype)
