"""Unlisted spanning trees at a theta: the best one, and the edges that can join it in a box."""

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.cpe._problem.problems import Graphic
from jaxbandits.numerics import matroid


def best_tree(problem: Graphic, theta: Array) -> Array:
    """Finds the leading optimum, int32 (m,). Cost: O(m^2)."""
    # `graphic` keeps the lowest index among ties, and the leading tree has the largest.
    return matroid.graphic(problem.ends[::-1])(theta[::-1])[::-1].astype(jnp.int32)


def joins(problem: Graphic, *, at_i: Array, others: Array) -> Array:
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
