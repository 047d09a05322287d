"""Normal random variables for the few arms of a lane, at the price of an elementwise operation."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.base import Array, Key

FEW = 16  # entries: more are a loop that is longer than what it saves


def erf_inv(x: Array) -> Array:
    """The inverse error function, entry by entry where there are few entries.

    Under a batch of lanes each entry is a vector over the lanes, and is computed as one. As an array with a row a lane
    it would be copied into the reduction that reads it, an argmax over arms above all, and computed there in scalar
    code: core-ns a round with 5 arms and 256 lanes, 232 and 130 (T3C), 272 and 150 (Thompson sampling).

    Args:
        x: float (...), in (-1, 1).

    Returns:
        float (...).
    """
    if not 1 < x.size <= FEW:
        return lax.erf_inv(x)
    return lax.map(lax.erf_inv, x.reshape(-1)).reshape(x.shape)


def normal(key: Key, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
    """`jax.random.normal`, from the same random bits, by `erf_inv`.

    Args:
        key: the key.
        shape: of the result.
        dtype: of the result, a float.

    Returns:
        float `shape`.
    """
    above = np.nextafter(np.array(-1, dtype), np.array(0, dtype))
    return jnp.asarray(math.sqrt(2), dtype) * erf_inv(jax.random.uniform(key, shape, dtype, above, 1))
