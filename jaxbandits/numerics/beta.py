"""Beta and gamma draws for shapes of at least 1, without a loop: posteriors of probabilities under a uniform prior."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array, Key
from jaxbandits.numerics.normal import one_by_one

PROPOSALS = 4  # number of proposals, of which the first accepted one counts
UNIFORMS = 4 * PROPOSALS  # uniform numbers for one beta variable
# Uniform numbers for one beta variable from two proposals, which may both be rejected.
UNIFORMS_OF_TWO = 4 * 2


def beta(key: Key, a: Array, b: Array) -> Array:
    """Draws from Beta(a, b).

    Args:
        key: PRNG key.
        a: float (...), at least 1.
        b: float (...), at least 1, of a's shape and dtype.

    Returns:
        float (...), in (0, 1), independent draws with the law of `beta_of`.

    `jax.random.beta` would loop until the slowest lane of a batch has accepted.
    """
    return beta_of(jax.random.uniform(key, (UNIFORMS, *a.shape), a.dtype), a, b)


def beta_of(uniform: Array, a: Array, b: Array) -> Array:
    """Transforms uniform numbers to beta variables, each the share of one gamma variable in the sum of two.

    Args:
        uniform: float (16, ...), uniform on [0, 1) and independent.
        a: float (...), at least 1.
        b: float (...), at least 1, of a's shape and dtype.

    Returns:
        float (...), in (0, 1), distributed as Beta(a, b), except a fraction of about 10^-5 (see `gamma_of`).
    """
    half = UNIFORMS // 2

    def make(uniform: Array, a: Array, b: Array) -> Array:
        uniform = jnp.moveaxis(uniform, -1, 0)
        ones, zeros = gamma_of(uniform[:half], a), gamma_of(uniform[half:], b)
        return ones / (ones + zeros)

    return _of_entries(make, uniform, a, b)


def beta_or_nan(uniform: Array, a: Array, b: Array) -> Array:
    """Transforms half as many uniform numbers to beta variables, for callers that tolerate missing ones.

    Args:
        uniform: float (8, ...), uniform on [0, 1) and independent.
        a: float (...), at least 1.
        b: float (...), at least 1, of a's shape and dtype.

    Returns:
        float (...), in (0, 1), distributed exactly as Beta(a, b). NaN if neither proposal was accepted, which has a
        probability of at most 5e-3, reached at shapes of 1.
    """
    half = UNIFORMS_OF_TWO // 2

    def make(uniform: Array, a: Array, b: Array) -> Array:
        uniform = jnp.moveaxis(uniform, -1, 0)
        (ones, some_ones), (zeros, some_zeros) = proposed(uniform[:half], a), proposed(uniform[half:], b)
        return jnp.where(some_ones & some_zeros, ones / (ones + zeros), jnp.nan)

    return _of_entries(make, uniform, a, b)


def _of_entries(make: Callable[..., Array], uniform: Array, a: Array, b: Array) -> Array:
    """Applies `make` to flat arguments: the uniform numbers, with an axis per variable last, and both shapes."""
    numbers = jnp.moveaxis(uniform.reshape(uniform.shape[0], -1), 0, -1)
    return one_by_one(make, numbers, a.reshape(-1), b.reshape(-1)).reshape(a.shape)


def gamma_of(uniform: Array, shape: Array) -> Array:
    """Transforms uniform numbers to gamma variables of scale 1.

    A normal x proposes d (1 + c x)^3 with d = shape - 1/3, c = 1 / sqrt(9 d), and is accepted with a probability of .95
    at shape 1, tending to 1 for large shapes.

    Args:
        uniform: float (8, ...), uniform on [0, 1) and independent.
        shape: float (...), at least 1.

    Returns:
        float (...), positive. The number of proposals is fixed. If none of the four is accepted, which has a
        probability below 7e-6, the last one is used.

    Source: Marsaglia and Tsang, A simple method for generating gamma variables (2000).
    """
    return proposed(uniform, shape)[0]


def proposed(uniform: Array, shape: Array) -> tuple[Array, Array]:
    """Returns the first accepted proposal of `gamma_of`, and whether there is one.

    Args:
        uniform: float (2 proposals, ...), a pair of uniform numbers for every proposal.
        shape: float (...), at least 1.
    """
    proposals = uniform.shape[0] // 2
    d = shape - jnp.asarray(1 / 3, shape.dtype)
    c = 1 / (3 * jnp.sqrt(d))
    edge = -1 + jnp.finfo(shape.dtype).eps  # just above -1, where the normal would be infinite

    def propose(u: Array, coin: Array) -> tuple[Array, Array]:
        x = jnp.asarray(2**0.5, shape.dtype) * lax.erf_inv(jnp.maximum(2 * u - 1, edge))
        v = (1 + c * x) ** 3
        is_positive = v > 0
        v = jnp.where(is_positive, v, 1)
        return v, is_positive & (jnp.log(coin) < x * x / 2 + d * (1 - v + jnp.log(v)))

    # Proposal by proposal: as an array with an axis of proposals they take twice as long.
    *before, (chosen, is_accepted) = (propose(uniform[n], uniform[proposals + n]) for n in range(proposals))
    for v, accepts in before[::-1]:
        chosen, is_accepted = jnp.where(accepts, v, chosen), is_accepted | accepts
    return d * chosen, is_accepted
