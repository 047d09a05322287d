"""Characteristic times that several questions share."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.mab._problem.questions.kind import CharacteristicTime
from jaxbandits.numerics.maximin import maximin


def time_of(slopes: Callable[[Array], list[Array]], exists: Array, means: Array, steps: int) -> CharacteristicTime:
    """Computes 1 / T = max over w of the smallest cost of an alternative, with certificates.

    Args:
        slopes: (w (K,)) -> divergence of every arm from the means of each alternative that are nearest at these
            weights, float (n, K); several arrays where one of several points is nearest.
        exists: bool (n,), the alternatives that exist.
        means: float (K,), the truth.
        steps: steps of the solver.

    Returns:
        CharacteristicTime; infinite with uniform weights where an alternative costs nothing.
    """
    K = means.shape[0]
    forms = len(jax.eval_shape(slopes, means))

    def stacked(w: Array) -> Array:
        return slopes(w)[0] if forms == 1 else jnp.concatenate(slopes(w))

    exists = exists if forms == 1 else jnp.tile(exists, forms)
    solution = maximin(stacked, exists, jnp.full(K, 1 / K, means.dtype), steps=steps)
    is_tie = solution.upper == 0
    lower, upper = (jnp.where(is_tie, jnp.inf, 1 / jnp.where(is_tie, 1, x)) for x in (solution.upper, solution.lower))
    return CharacteristicTime((lower + upper) / 2, lower, upper, solution.weights)


def time_of_arms(rates: Array) -> CharacteristicTime:
    """Computes the sum of 1 / rates, the time of K separate tests, with weights in this proportion."""
    is_tie = jnp.any(rates <= 0)
    value = jnp.where(is_tie, jnp.inf, jnp.sum(1 / jnp.where(rates > 0, rates, 1)))
    # A rate of 0 takes all weight.
    inverse = 1 / jnp.maximum(rates, jnp.finfo(rates.dtype).tiny)
    shares = inverse / jnp.max(inverse)
    return CharacteristicTime(value, value, value, shares / jnp.sum(shares))
