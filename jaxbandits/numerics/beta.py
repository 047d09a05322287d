"""Beta and gamma draws of shapes of at least 1, without a loop: posteriors of probabilities under a uniform prior."""

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array, Key

PROPOSALS = 4  # the first accepted one counts
UNIFORMS = 4 * PROPOSALS  # that one beta variable takes


def beta(key: Key, a: Array, b: Array) -> Array:
    """Draws from Beta(a, b).

    Args:
        key: the key.
        a: float (...), at least 1.
        b: float (...), at least 1, of a's shape and dtype.

    Returns:
        float (...), in (0, 1), independent draws; as `beta_of`. `jax.random.beta` loops until the slowest lane of a
        batch has accepted.
    """
    return beta_of(jax.random.uniform(key, (UNIFORMS, *a.shape), a.dtype), a, b)


def beta_of(uniform: Array, a: Array, b: Array) -> Array:
    """Makes beta variables, each the share of one gamma variable in the sum of two.

    Args:
        uniform: float (16, ...), uniform on [0, 1) and independent.
        a: float (...), at least 1.
        b: float (...), at least 1, of a's shape and dtype.

    Returns:
        float (...), in (0, 1), distributed as Beta(a, b), but for some 10^-5 of them (see `gamma_of`).
    """
    half = UNIFORMS // 2
    ones, zeros = gamma_of(uniform[:half], a), gamma_of(uniform[half:], b)
    return ones / (ones + zeros)


def gamma_of(uniform: Array, shape: Array) -> Array:
    """Makes gamma variables of scale 1.

    A normal x proposes d (1 + c x)^3 with d = shape - 1/3, c = 1 / sqrt(9 d), and is accepted with a probability of .95
    at shape 1, tending to 1 for large shapes.

    Args:
        uniform: float (8, ...), uniform on [0, 1) and independent.
        shape: float (...), at least 1.

    Returns:
        float (...), positive. The number of proposals is fixed: if none of the four is accepted, which has a
        probability below 7e-6, the last one is used.

    Source: Marsaglia and Tsang, A simple method for generating gamma variables (2000).
    """
    # Above -1, where the normal would be infinite.
    x = jnp.sqrt(jnp.asarray(2, shape.dtype)) * lax.erf_inv(
        jnp.maximum(2 * uniform[:PROPOSALS] - 1, -1 + jnp.finfo(shape.dtype).eps)
    )
    d = shape - jnp.asarray(1 / 3, shape.dtype)
    v = (1 + x / (3 * jnp.sqrt(d))) ** 3
    is_positive = v > 0
    v = jnp.where(is_positive, v, 1)
    accepted = is_positive & (jnp.log(uniform[PROPOSALS:]) < x * x / 2 + d * (1 - v + jnp.log(v)))
    chosen = v[-1]
    for proposal in range(PROPOSALS - 2, -1, -1):
        chosen = jnp.where(accepted[proposal], v[proposal], chosen)
    return d * chosen
