"""Matroids whose bases are played: single swaps of the best action are its only rivals.

The action that is hardest to tell from the best one minimises f_x = <means, x* - x>^2 / (2 sum over the arms on which
x* and x differ of 1 / weight). On a matroid single swaps suffice, where the published algorithms play games of
thousands of steps. By Brualdi's theorem the arms of x* - x and of x - x* can be matched so that every single swap x* -
e + f is an action. Gap and sum of 1 / weight add over the pairs (g_i, h_i). If g_i^2 >= m h_i for all of them, then
(sum g_i)^2 >= m (sum sqrt(h_i))^2 >= m sum h_i. So no exchange of several arms is harder to tell than the hardest swap
in it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Array
from jaxbandits.cpe._problem.kinds.kind import Closest
from jaxbandits.numerics.indexing import first_smallest
from jaxbandits.numerics.linalg import aligned


class Swaps(NamedTuple):
    """The best action of a matroid, which has D arms, and the actions that differ from it by one arm."""

    action: Array  # bool (K,)
    out: Array  # int32 (D,)     its arms
    into: Array  # bool (D, K)   the arms that can replace each of them


def swap_gaps(problem: Any, best: Swaps, means: Array) -> Array:
    """Computes the best action's lead over each swap, float (D, K); inf where there is none."""
    del problem
    return jnp.where(best.into, means[best.out][:, None] - means[None], jnp.inf)


def closest_swap(problem: Any, best: Swaps, gaps: Array, inverse: Array) -> Closest:
    """Finds the swap that minimises gap^2 / (2 sum of `inverse` (K,) over its two arms)."""
    del problem
    arms, out = jnp.arange(inverse.shape[0], dtype=jnp.int32), best.out
    # The table is reduced where it is computed. An argmin, or reading one of its columns, would make XLA write it out
    # for every lane.
    inverse_out = inverse[out]
    by_into = jnp.min(gaps**2 / (inverse_out[:, None] + inverse[None]), axis=0)
    least, into = jnp.min(by_into), first_smallest(by_into)
    values = gaps.T[into] ** 2 / (inverse_out + inverse[into])
    arm_out = jnp.min(jnp.where(values == least, out, inverse.shape[0]))
    differs = (arms == arm_out) | (arms == into)
    return Closest(least / 2, root_slope(least, differs, inverse), differs, out=arm_out, into=into)


def root_slope(least: Array, differs: Array, inverse: Array) -> Array:
    """Computes gap / h from the smallest gap^2 / h; gaps are not negative."""
    return jnp.sqrt(least / jnp.sum(jnp.where(differs, inverse, 0)))


def matroid_diameter(rank: int, arms: int) -> float:
    """Returns an upper bound of the Euclidean distance of two actions."""
    return float(np.sqrt(2 * min(rank, arms - rank)))


def swaps_on_host(action: np.ndarray, fits: Callable[[int], Any]) -> np.ndarray:
    """Returns action minus swap for all swaps, float (S, K); `fits(out)` (K,) are the arms that can replace `out`."""
    unit = np.eye(len(action))
    return np.array(
        [
            unit[out] - unit[into]
            for out in np.flatnonzero(action)
            for into in np.flatnonzero((action == 0) & fits(int(out)))
        ]
    )


def one_hot(index: Array, size: int) -> Array:
    """Returns one-hot vectors, bool (..., size)."""
    return index[..., None] == aligned(jnp.arange(size, dtype=index.dtype), index.ndim + 1)
