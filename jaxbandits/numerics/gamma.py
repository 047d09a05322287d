"""Gamma draws of scale 1 for shapes of at least 1, by proposals that may be rejected.

Source: Marsaglia and Tsang, A simple method for generating gamma variables (2000).
"""

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.numerics.elementary import log
from jaxbandits.numerics.quantile import normal_of

PROPOSALS = 4  # number of proposals, of which the first accepted one counts
UNIFORMS = 2 * PROPOSALS  # uniform numbers for them
SERIES = 8  # terms of the logarithm's series, enough for float32


def gamma_of(uniform: Array, shape: Array) -> Array:
    """Transforms uniform numbers to gamma variables of scale 1.

    Args:
        uniform: float (8, ...), uniform on [0, 1) and independent.
        shape: float (...), at least 1.

    Returns:
        float (...), positive. If none of the four proposals is accepted, which has a probability below 7e-6, reached at
        shape 1, the last one is used.
    """
    return gamma_or_not(uniform, shape)[0]


def gamma_or_not(uniform: Array, shape: Array) -> tuple[Array, Array]:
    """Returns the gamma variables of `gamma_of`, and whether they were accepted, bool (...).

    Whether all proposals were rejected does not depend on a variable that is accepted later, so drawing again with
    fresh numbers gives the exact law.
    """
    chosen, is_accepted = shape, jnp.zeros(shape.shape, bool)
    # Proposal by proposal: as an array with an axis of proposals they take twice as long.
    for n in reversed(range(PROPOSALS)):
        gamma, log_chance = proposal(normal_of(uniform[n]), shape)
        accepts = is_below(uniform[PROPOSALS + n], log_chance)
        chosen = jnp.where(accepts | (n == PROPOSALS - 1), gamma, chosen)
        is_accepted = is_accepted | accepts
    return chosen, is_accepted


def is_below(coin: Array, log_chance: Array) -> Array:
    """Tosses a coin: true with a probability whose logarithm is given, for a uniform number."""
    return log(coin + jnp.finfo(coin.dtype).eps / 2) < log_chance


def proposal(x: Array, shape: Array) -> tuple[Array, Array]:
    """Returns the gamma variable that a normal one proposes, and the log of its chance to be accepted.

    It is d (1 + c x)^3 with d = shape - 1/3 and c = 1 / (3 sqrt(d)), accepted with a probability of .95 at shape 1,
    which tends to 1 for large shapes.
    """
    d = shape - jnp.asarray(1 / 3, shape.dtype)
    t = x / (3 * jnp.sqrt(d))
    is_positive = t > -1
    t = jnp.where(is_positive, t, 0)
    v = (1 + t) ** 3
    # The log of the chance, x^2 / 2 + d (1 - v + log v) with x = 3 sqrt(d) t, is 3 d times the series of log(1 + t)
    # from its fourth term on. In float32 and for large shapes the digits of the first form cancel.
    chance = x * x / 2 + d * (1 - v + 3 * log(1 + t))
    if shape.dtype == jnp.float32:
        tail = jnp.zeros_like(t)
        for power in range(3 + SERIES, 3, -1):
            tail = 1 / power - t * tail
        chance = jnp.where(jnp.abs(t) < 0.125, -3 * d * (t * t) ** 2 * tail, chance)
    return d * v, jnp.where(is_positive, chance, -jnp.inf)
