"""Normal variables without the inverse of the error function, which is most of what one costs on a CPU.

Box and Muller's form takes a logarithm, a root and a polynomial instead, and as many random bits.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits.base import Array, Key

# sin(pi h) = h times a polynomial in h^2, right to 1e-15 for |h| <= 1/2.
SINE = tuple((-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(11))


def normal(key: Key, shape: tuple[int, ...], dtype: Any) -> Array:
    """Draws standard normal variables.

    Args:
        key: the key.
        shape: of the result.
        dtype: a float dtype.

    Returns:
        float, of that shape. None is larger than 6.7 in size, which one of 5e10 would be. Two words of 32 random bits
        each.

    Source: Box and Muller (1958), A note on the generation of random normal deviates.
    """
    return normal_of(jax.random.bits(key, (2, *shape), jnp.uint32), dtype)


def normal_of(bits: Array, dtype: Any) -> Array:
    """A standard normal variable of two words of random bits, uint32 (2, ...); float (...)."""
    radius = jnp.sqrt(-2 * jnp.log(uniform_of(bits[0], dtype)))
    return radius * _cosine(2 * uniform_of(bits[1], dtype) - 1)


def uniform_of(bits: Array, dtype: Any) -> Array:
    """A uniform variable in (0, 1] of each word of random bits, uint32 (...), from 31 of them; float (...)."""
    # What fits a signed integer is converted by one instruction.
    return ((bits >> 1).astype(jnp.int32).astype(dtype) + 0.5) * 2.0**-31


def _cosine(x: Array) -> Array:
    """cos(pi x) for x in [-1, 1]."""
    h = 0.5 - jnp.abs(x)
    square = h * h
    total = jnp.zeros_like(h)
    for coefficient in reversed(SINE):
        total = coefficient + square * total
    return h * total
