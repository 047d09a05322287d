"""Characteristic times that several questions share."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.mab._problem.questions.kind import CharacteristicTime
from jaxbandits.numerics.maximin import maximin


def time_of(
    nearest: Callable[[Array], tuple[Array, ...]],
    rates: Callable[[Array], Array],
    exists: Array,
    is_tie: Array,
    means: Array,
    *,
    steps: int,
) -> CharacteristicTime:
    """Computes 1 / T = max over w of the smallest cost of an alternative, with certificates.

    Args:
        nearest: (w (K,)) -> the point of each alternative that costs least at these weights, float (n,); several arrays
            where one of several points does.
        rates: (x (n,)) -> divergence of every arm from the means of each alternative at its point, float (n, K).
        exists: bool (n,), the alternatives that exist.
        is_tie: bool (), whether one of them costs nothing. Its cost may come out as a rounding error.
        means: float (K,), the truth.
        steps: steps of the solver.

    Returns:
        CharacteristicTime; infinite with uniform weights where an alternative costs nothing.
    """
    K = means.shape[0]
    forms = len(jax.eval_shape(nearest, means))

    def points(w: Array) -> Array:
        return jnp.concatenate(nearest(w))

    def tables(x: Array) -> Array:
        return jnp.concatenate([rates(part) for part in jnp.split(x, forms)])

    start = jnp.full(K, 1 / K, means.dtype)
    solution = maximin(points, tables, jnp.tile(exists, forms), start, steps=steps)
    is_tie = is_tie | (solution.upper == 0)
    lower, upper = (jnp.where(is_tie, jnp.inf, 1 / jnp.where(is_tie, 1, x)) for x in (solution.upper, solution.lower))
    return CharacteristicTime((lower + upper) / 2, lower, upper, jnp.where(is_tie, start, solution.weights))


def time_of_arms(rates: Array) -> CharacteristicTime:
    """Computes the sum of 1 / rates, the time of K separate tests, with weights in this proportion."""
    is_tie = jnp.any(rates <= 0)
    value = jnp.where(is_tie, jnp.inf, jnp.sum(1 / jnp.where(rates > 0, rates, 1)))
    # A rate of 0 takes all weight.
    inverse = 1 / jnp.maximum(rates, jnp.finfo(rates.dtype).tiny)
    shares = inverse / jnp.max(inverse)
    return CharacteristicTime(value, value, value, shares / jnp.sum(shares))
