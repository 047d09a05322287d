"""Allocations of pulls that the fixed designs track."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.linear._problem.arms import checked_arms, inverse_squares, leads
from jaxbandits.numerics.design import Design, design
from jaxbandits.numerics.linalg import gram, spd_inverse, squared_norms


def pair_directions(arms: Array) -> Array:
    """Returns the differences x_i - x_j of all pairs i < j, in the order (0, 1), (0, 2), ..., (K-2, K-1).

    Args:
        arms: float (K, d).

    Returns:
        float (K (K-1)/2, d).

    Raises:
        ValueError: `arms` is not a valid (K, d) array.
    """
    return _differences(checked_arms(arms))


@partial(jax.jit, inline=True)
def _differences(arms: Array) -> Array:
    first, second = np.triu_indices(arms.shape[0], 1)
    return arms[first] - arms[second]


def xy_allocation(arms: Array, *, steps: int = 1000) -> Design:
    """Computes the allocation that minimises the largest squared width of all pairs of arms.

    Args:
        arms: float (K, d), spanning R^d.
        steps: iterations of the solver, a Python int, at least 1.

    Returns:
        Design, whose value is the maximum over pairs of ||x_i - x_j||^2 in A(p)^-1: n pulls in these
        proportions give the worst pair the squared width value/n.

    Raises:
        ValueError: an argument is not valid, or the arms do not span R^d (see `reduce_rank`).

    Cost: O(d^3 + K^3 d) per step.

    Source: Soare, Lazaric and Munos (2014), the XY-allocation.
    """
    # The continuous optimum replaces the published greedy increments. These stall on ties, where no single pull
    # lowers the maximum (on K orthogonal arms they never pull any but the first).
    arms, steps = checked_arms(arms, full_rank=True), checks.whole("steps", steps, least=1)
    return design(arms, pair_directions(arms), steps=steps)


def xy_value(arms: Array, allocation: Array, *, directions: Array | None = None) -> Array:
    """Computes the largest squared width under an allocation, max over directions y of ||y||^2 in A(p)^-1.

    Args:
        arms: float (K, d), spanning R^d.
        allocation: float (K,), at least 0; proportions, or pulls. The arms that it pulls must span R^d.
        directions: float (N, d). If None, the differences of all pairs of arms, as for `xy_allocation`.

    Returns:
        float (). For the allocation of `xy_allocation(arms)` and the default directions, its value.

    Raises:
        ValueError: an argument is not as above.

    Cost: O(K d^2 + d^3 + N d^2), N = K (K-1) / 2 by default.

    Source: Soare, Lazaric and Munos (2014), the XY-allocation.
    """
    features = checked_arms(arms, full_rank=True)
    (K, d), dtype = features.shape, features.dtype
    shares = checks.array("allocation", allocation, (K,), least=0, dtype=dtype)
    if checks.is_concrete(arms, allocation):
        pulled = np.asarray(arms, np.float64)[np.asarray(allocation) > 0]
        rank = int(np.linalg.matrix_rank(pulled)) if len(pulled) else 0
        checks.require(rank == d, "allocation", f"pull arms of rank {d}", rank)
    if directions is None:
        compared = pair_directions(features)
    else:
        compared = checks.array("directions", directions, ("N", d), dtype=dtype)
    return jnp.max(squared_norms(compared, spd_inverse(gram(features, shares))))


def g_allocation(arms: Array, *, steps: int = 1000) -> Design:
    """Computes the allocation that minimises the largest squared width of a single arm; its value is d.

    Args:
        arms: float (K, d), spanning R^d.
        steps: iterations of the solver, a Python int, at least 1.

    Returns:
        Design.

    Raises:
        ValueError: an argument is not valid, or the arms do not span R^d (see `reduce_rank`).

    Cost: O(d^3 + K^2 d) per step.

    Source: Soare, Lazaric and Munos (2014), the G-allocation; Kiefer and Wolfowitz (1960) for the value.
    """
    arms, steps = checked_arms(arms, full_rank=True), checks.whole("steps", steps, least=1)
    return design(arms, arms, steps=steps)


def oracle_allocation(arms: Array, *, theta: Array, steps: int = 1000) -> Design:
    """Computes the allocation that best separates the best arm from each other arm, given the truth.

    Args:
        arms: float (K, d), spanning R^d.
        theta: float (d,), the truth, under which the best arm must be unique.
        steps: iterations of the solver, a Python int, at least 1.

    Returns:
        Design, whose value is max over i of ||x_best - x_i||^2 / Delta_i^2 in A(p)^-1.

    Raises:
        ValueError: an argument is not valid, the arms do not span R^d, or two tie for the best.

    Cost: O(d^3 + K^2 d) per step.

    Source: Xu, Honda and Sugiyama (2018), equation (18).
    """
    arms, steps = checked_arms(arms, full_rank=True), checks.whole("steps", steps, least=1)
    _, directions, gaps = leads(arms, theta)
    return design(arms, directions, weights=inverse_squares(gaps), steps=steps)
