"""Sharper lower bounds from the triangle inequality, with the centers as third points.

A candidate far from one center is also far from every center near that one. Pairs of candidates are never sampled, so
only centers can be third points. Bounds here are of r, a metric: r = d where d is one ("metric"), or r = sqrt(d) where
d is the square of one ("squared"), as with dimension sampling.
"""

from typing import Literal, NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array

Triangle = Literal["metric", "squared"]


class CenterBounds(NamedTuple):
    """Bounds of r between the centers, symmetric with zero diagonals, and closed under the triangle inequality."""

    lower: Array  # float (k-1, k-1)
    upper: Array  # float (k-1, k-1)  `far` where nothing is known


def far(dtype: jnp.dtype) -> Array:
    """Returns the value that stands for an infinite r; sums of a few of them are finite."""
    return jnp.asarray(jnp.sqrt(jnp.finfo(dtype).max) / 64, dtype)


def unknown(k: int, dtype: jnp.dtype) -> CenterBounds:
    """Returns the bounds of k - 1 slots of which nothing is known."""
    apart = ~jnp.eye(k - 1, dtype=bool)
    return CenterBounds(jnp.zeros((k - 1, k - 1), dtype), jnp.where(apart, far(dtype), 0))


def join(between: CenterBounds, slot: Array, lower: Array, upper: Array, kind: Triangle) -> CenterBounds:
    """Adds the node that becomes the center of a slot.

    Args:
        between: CenterBounds of the slots before it.
        slot: int32 (), slot of the node; beyond the last slot nothing changes.
        lower: float (k-1,), the node's lower bounds of d to the slots before it; others are not read.
        upper: float (k-1,), the node's upper bounds.
        kind: the relation of r and d.

    Returns:
        CenterBounds, closed. Cost: O(k^3).
    """
    slots = jnp.arange(lower.size, dtype=jnp.int32)
    near, wide = _metric(lower, upper, kind)
    in_row, in_column = slots[:, None] == slot, slots[None, :] == slot
    row, column = in_row & (slots[None, :] < slot), in_column & (slots[:, None] < slot)
    shortest = jnp.where(row, near[None, :], jnp.where(column, near[:, None], between.lower))
    longest = jnp.where(row, wide[None, :], jnp.where(column, wide[:, None], between.upper))
    for middle in range(lower.size):  # Floyd-Warshall
        longest = jnp.minimum(longest, longest[:, middle, None] + longest[None, middle, :])
    detour = jnp.max(shortest[:, :, None] - longest[None, :, :], axis=1)
    sharper = jnp.maximum(shortest, jnp.maximum(detour, detour.T))
    return CenterBounds(jnp.where(slots[:, None] == slots[None], 0, sharper), longest)


def tighten(between: CenterBounds, lower: Array, upper: Array, slots: Array, kind: Triangle) -> Array:
    """Sharpens the lower bounds of one node's distances to the centers, by way of the other centers.

    The result is valid if all given bounds are. Upper bounds gain nothing: r to a center by way of another is at least
    r to the other, so the smallest upper bound of the node would not change.

    Args:
        between: CenterBounds.
        lower: float (k-1,), the node's lower bounds of d.
        upper: float (k-1,), the node's upper bounds.
        slots: bool (k-1,), the slots that hold a center.
        kind: the relation of r and d.

    Returns:
        float (k-1,), at least `lower`, with the same bits where there is no gain. Cost: O(k^2).
    """
    near, wide = _metric(lower, upper, kind)
    by_way = jnp.maximum(near[:, None] - between.upper, between.lower - wide[:, None])
    reach = jnp.max(jnp.where(slots[:, None], by_way, -far(lower.dtype)), axis=0)
    gain = slots & (reach > near)
    return jnp.where(gain, jnp.maximum(lower, reach if kind == "metric" else jnp.square(reach)), lower)


def is_out_of_reach(
    between: CenterBounds, slot: Array, lower: Array, upper: Array, slots: Array, kind: Triangle
) -> Array:
    """Checks whether the center of a slot, against which a node was never queried, cannot be its nearest.

    Args:
        between: CenterBounds.
        slot: int32 (), the slot.
        lower: float (k-1,), the node's lower bounds of d.
        upper: float (k-1,), the node's upper bounds.
        slots: bool (k-1,), the slots that hold a center.
        kind: the relation of r and d.

    Returns:
        bool (). Cost: O(k).
    """
    others = slots & (jnp.arange(slots.size, dtype=jnp.int32) != slot)
    _, wide = _metric(lower, upper, kind)
    largest = far(lower.dtype)
    nearest = jnp.max(jnp.where(others, between.lower[:, slot] - wide, -largest))
    return nearest > jnp.min(jnp.where(others, wide, largest))


def check_triangle(triangle: Triangle | None) -> None:
    """Raises `ValueError` unless `triangle` is None or a known kind."""
    if triangle is not None:
        checks.one_of("triangle", triangle, Triangle)


def _metric(lower: Array, upper: Array, kind: Triangle) -> tuple[Array, Array]:
    """Converts bounds of d to bounds of r."""
    largest = far(lower.dtype)
    if kind == "metric":
        return jnp.clip(lower, 0, largest), jnp.clip(upper, 0, largest)
    return jnp.sqrt(jnp.clip(lower, 0, largest)), jnp.minimum(jnp.sqrt(jnp.maximum(upper, 0)), largest)
