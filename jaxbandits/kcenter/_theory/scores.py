"""Scores of an answer."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.kcenter._problem.problem import DimensionInstance, DistanceInstance, check_instance
from jaxbandits.kcenter._shared.stages import Centers


class Match(NamedTuple):
    """Agreement of an answer with greedy's centers."""

    ordered: Array  # bool ()  same centers in the same order
    members: Array  # bool ()  same set of centers


def is_right(instance: DimensionInstance | DistanceInstance, answer: Centers) -> Array:
    """Checks whether an answer has the centers of greedy from the same first center, in order.

    Ties go to the lowest node.

    Args:
        instance: the truth.
        answer: Centers; an answer that holds -1 is not right.

    Returns:
        bool (). Traceable. Cost: O(n k).

    Raises:
        ValueError: the instance is not valid, or the answer does not have its number of centers.
    """
    check_instance(instance)
    checks.instance("answer", answer, Centers)
    n, k = instance.problem.n, instance.problem.k
    indices = checks.array("answer.indices", answer.indices, (k,), kind="int", least=-1, most=n - 1)
    table = jnp.asarray(instance.exact if isinstance(instance, DimensionInstance) else instance.distances)
    points = jnp.arange(n) if instance.rows is None else jnp.asarray(instance.rows)
    far = jnp.iinfo(table.dtype).max if jnp.issubdtype(table.dtype, jnp.integer) else jnp.inf

    def add_center(index: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        centers, nearest = carry
        newest = centers[index - 1]
        nearest = jnp.minimum(nearest, table[points, points[newest]]).at[newest].set(-1)
        return centers.at[index].set(jnp.argmax(nearest).astype(centers.dtype)), nearest

    start = jnp.full(k, indices[0]), jnp.full(n, far, table.dtype)
    return jnp.all(indices == lax.fori_loop(1, k, add_center, start)[0])


def centers_match(indices: Array, truth: Array) -> Match:
    """Checks whether an answer has greedy's centers, in order and as a set.

    Args:
        indices: int (k,), as in `Centers`; an answer that holds -1 matches nothing.
        truth: int (k,), the centers of `greedy`.

    Returns:
        Match.

    Raises:
        ValueError: an argument does not hold nodes, or the two differ in length.
    """
    truth = checks.array("truth", truth, ("k",), kind="int", least=0)
    indices = checks.array("indices", indices, truth.shape, kind="int", least=-1)
    return Match(jnp.all(indices == truth), jnp.all(jnp.sort(indices) == jnp.sort(truth)))


def radius(indices: Array, distances: Array, rows: Array | None = None) -> Array:
    """Computes the distance of the point farthest from its nearest center.

    Args:
        indices: int (k,), centers as nodes of the instance. The first entry must be a node; entries -1 are skipped.
        distances: (N, N), at least 0, in any unit.
        rows: int (n,), the points of the instance, in the order of its nodes. If None, all.

    Returns:
        (), in the unit and the dtype of the distances. Cost: O(n k).

    Raises:
        ValueError: `distances` is not such a table, or an index does not lie in it.
    """
    return _radius("indices", indices, distances, rows)


def radius_ratio(indices: Array, truth: Array, distances: Array, rows: Array | None = None) -> Array:
    """Computes the radius of an answer over the radius of greedy's centers: the cost of wrong centers.

    Args:
        indices: int (k,), as in `Centers`.
        truth: int (k,), the centers of `greedy`.
        distances: (N, N), in any unit; squared distances give the square of the ratio of the distances themselves.
        rows: int (n,), the points of the instance, in the order of its nodes. If None, all.

    Returns:
        float (), in JAX's default dtype; below 1 where the answer is better than greedy's.

    Raises:
        ValueError: as `radius`.
    """
    checks.array("truth", truth, ("k",), kind="int")
    ours = _radius("indices", indices, distances, rows).astype(float)
    return ours / _radius("truth", truth, distances, rows).astype(float)


def _radius(name: str, indices: Array, distances: Array, rows: Array | None) -> Array:
    # The given dtype keeps integers as integers.
    distances = checks.array("distances", distances, ("N", "N"), dtype=getattr(distances, "dtype", None), least=0)
    size = distances.shape[0]
    if rows is not None:
        rows = checks.array("rows", rows, ("n",), kind="int", least=0, most=size - 1)
    n = size if rows is None else rows.size
    indices = checks.array(name, indices, ("k",), kind="int", least=-1, most=n - 1)
    return _largest_distance(indices, distances, jnp.arange(n) if rows is None else rows)


@partial(jax.jit, inline=True)
def _largest_distance(indices: Array, distances: Array, points: Array) -> Array:
    centers = points[jnp.where(indices >= 0, indices, indices[0])]
    return jnp.max(jnp.min(distances[points[:, None], centers], axis=1))
