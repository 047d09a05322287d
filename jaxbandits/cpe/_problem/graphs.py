"""Graphs whose edges are Gaussian arms: the two published ones, and complete graphs of any size."""

import json
from importlib import resources
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Key
from jaxbandits.cpe._problem.arms import gaussian
from jaxbandits.cpe._problem.instances import Instance, instance
from jaxbandits.cpe._problem.kinds.graphic import graphic


def spanning_trees_e20(*, dtype: Any = None) -> Instance:
    """Builds a 5-regular graph of 8 nodes and 20 edges with 20,736 trees, the closest .0989 from the best.

    Args:
        dtype: dtype of the samples; by default JAX's own.

    Returns:
        Instance with noise_scale 1 and characteristic time 409.18.

    Source: Tzeng, Wang, Proutiere and Lu (2023), Closing the Computational-Statistical Gap in Best Arm Identification
    for Combinatorial Semi-bandits; the graph and the means as their public code prints them.
    """
    return _published("E20", dtype)


def spanning_trees_e25(*, dtype: Any = None) -> Instance:
    """Builds a 5-regular graph of 10 nodes and 25 edges with 332,787 trees, the closest .0999 from the best.

    Args:
        dtype: dtype of the samples; by default JAX's own.

    Returns:
        Instance with noise_scale 1 and characteristic time 400.65.

    Source: as `spanning_trees_e20`.
    """
    return _published("E25", dtype)


def complete_graph(nodes: int, key: Key, bonus: Any = 1.5, *, dtype: Any = None) -> Instance:
    """Draws a complete graph with nodes^(nodes - 2) spanning trees, one of which stands out.

    An edge has mean 1 + U / 10 with U uniform on [0, 1], and the edges of a random tree have the bonus on top. In the
    tree, each node except the first of a random order is joined to a random one before it.

    Args:
        nodes: number of nodes, a Python int, at least 3; there are nodes (nodes - 1) / 2 arms.
        key: random key for the tree and the means.
        bonus: () > 0.1, so that the tree with the bonus is the best one.
        dtype: dtype of the samples; by default JAX's own.

    Returns:
        Instance with noise_scale 1.

    Raises:
        ValueError: an argument is not as above.

    Source: ours.
    """
    checks.whole("nodes", nodes, least=3)
    checks.key("key", key)
    checks.real("bonus", bonus, above=0.1)
    dtype = checks.float_dtype("dtype", dtype)
    number = np.zeros((nodes, nodes), int)
    tail, head = np.triu_indices(nodes, 1)
    number[tail, head] = number[head, tail] = np.arange(len(tail))
    order_key, tree_key, means_key = jax.random.split(key, 3)
    order = jax.random.permutation(order_key, nodes)
    later = jnp.arange(1, nodes)
    joined = jax.random.randint(tree_key, (nodes - 1,), 0, later)
    tree = jnp.asarray(number)[order[later], order[joined]]
    means = 1 + jax.random.uniform(means_key, (len(tail),), dtype) / 10
    means = means.at[tree].add(jnp.asarray(bonus, dtype))
    return instance(graphic(nodes, np.stack([tail, head], axis=1)), gaussian(means, dtype=dtype))


def _published(name: str, dtype: Any) -> Instance:
    dtype = checks.float_dtype("dtype", dtype)
    text = resources.files("jaxbandits.cpe").joinpath("spanning_trees.json").read_text(encoding="utf-8")
    graph = json.loads(text)["graphs"][name]
    return instance(graphic(graph["nodes"], np.asarray(graph["edges"])), gaussian(graph["means"], dtype=dtype))
