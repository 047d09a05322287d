"""Bases of largest weight: the greedy algorithm on three kinds of matroids.

Each factory returns a pure function `maximize(weights (n,)) -> bool (n,)`, the indicator of a base with the largest
total weight. It visits the elements by decreasing weight, the lowest index first among ties, and keeps every element
that is independent of the elements kept before. This is optimal for every matroid (Rado 1957; Edmonds 1971). The result
is a base, not just an independent set, so elements with negative weights are kept too. An element with weight -inf is
in the base only if it is in every base.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array

Oracle = Callable[[Array], Array]


def uniform(k: int) -> Oracle:
    """Builds the oracle of the matroid whose bases are all sets of k elements.

    Args:
        k: Python int, at least 0.

    Returns:
        `maximize(weights (n,)) -> bool (n,)`. It raises `ValueError` for n < k. Cost: O(n log n).

    Raises:
        ValueError: `k` is negative.
    """
    k = checks.whole("k", k, least=0)

    def maximize(weights: Array) -> Array:
        _check_weights(weights, None)
        checks.require(weights.shape[0] >= k, "weights", f"have at least {k} entries", weights.shape)
        return _heaviest(weights, k)

    return maximize


@partial(jax.jit, static_argnums=1, inline=True)
def _heaviest(weights: Array, k: int) -> Array:
    return jnp.zeros(weights.shape, bool).at[_falling(weights)[:k]].set(True)


def partition(groups: Array, capacities: Array) -> Oracle:
    """Builds the oracle of a partition matroid: bases hold `capacities[g]` elements of group g, or all if it has fewer.

    Args:
        groups: int (n,), group of each element, in 0..G-1.
        capacities: int (G,), at least 0.

    Returns:
        `maximize(weights (n,)) -> bool (n,)`. Cost: O(n (G + log n)).

    Raises:
        ValueError: a shape or a dtype does not fit, a capacity is negative, or a group is out of range.
    """
    capacities = checks.array("capacities", capacities, ("G",), kind="int", least=0)
    count = capacities.shape[0]
    groups = checks.array("groups", groups, ("n",), kind="int", least=0, most=count - 1)
    belongs = groups[:, None] == jnp.arange(count, dtype=groups.dtype)[None]

    def maximize(weights: Array) -> Array:
        _check_weights(weights, groups.shape[0])
        return _heaviest_of_groups(weights, belongs, capacities)

    return maximize


@partial(jax.jit, inline=True)
def _heaviest_of_groups(weights: Array, belongs: Array, capacities: Array) -> Array:
    order = _falling(weights)
    rank = jnp.cumsum(belongs[order], axis=0, dtype=capacities.dtype)  # rank within each group, 1 for its heaviest
    kept = jnp.any(belongs[order] & (rank <= capacities[None]), axis=1)
    return jnp.zeros(weights.shape, bool).at[order].set(kept)


def graphic(edges: Array) -> Oracle:
    """Builds the oracle of a graph's matroid: the elements are the edges, the bases the spanning forests.

    Args:
        edges: int (n, 2), the two ends of each edge. Vertices are any integers. Parallel edges are allowed; a loop is
            in no base.

    Returns:
        `maximize(weights (n,)) -> bool (n,)`. Cost: O(n^2).

    Raises:
        ValueError: `edges` is not an integer array (n, 2).

    Source: Kruskal (1956).
    """
    edges = checks.array("edges", edges, ("n", 2), kind="int")
    n = edges.shape[0]

    def maximize(weights: Array) -> Array:
        _check_weights(weights, n)
        return _forest(weights, edges)

    return maximize


@partial(jax.jit, inline=True)
def _forest(weights: Array, edges: Array) -> Array:
    n, order = weights.shape[0], _falling(weights)

    def take(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        # A tree of the forest is named after one of its vertices; its edges have that name at both ends.
        base, trees = carry
        a, b = trees[order[i], 0], trees[order[i], 1]
        return base.at[order[i]].set(a != b), jnp.where(trees == b, a, trees)

    return lax.fori_loop(0, n, take, (jnp.zeros(n, bool), edges))[0]


def _falling(weights: Array) -> Array:
    """Sorts the elements by decreasing weight, the lowest index first among ties."""
    return jnp.argsort(weights, stable=True, descending=True)


def _check_weights(weights: Array, n: int | None) -> None:
    shape = jnp.shape(weights)
    fits = len(shape) == 1 and n in (None, shape[0])
    checks.require(fits, "weights", f"have shape ({'n' if n is None else n},)", shape)
