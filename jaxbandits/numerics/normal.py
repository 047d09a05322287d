"""Normal random variables for the few arms of a lane: from few random words, and computed as vectors over the lanes."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.base import Array, Key
from jaxbandits.numerics.random_bits import of_words, words

FEW = 32  # entries: more are a loop that is longer than what it saves


def one_by_one(make: Callable[..., Array], *arrays: Array) -> Array:
    """`make` of each of a few entries by itself on a CPU, where that is faster; elsewhere of all at once.

    Under a batch of lanes each entry is a vector over the lanes, and is computed as one. As an array with a row a lane
    it would be copied into the reduction that reads it, an argmax over arms above all, and computed there in scalar
    code: core-ns a round with 5 arms and 256 lanes, 232 and 130 (T3C), 272 and 150 (Thompson sampling); the draws of
    two nodes in NS-TS 1,109 and 754, nine beta variables in DS-TS 3,400 and 1,500.

    Args:
        make: of arrays, entry by entry over their first axis, an array with that axis.
        arrays: (n, ...).

    Returns:
        (n, ...).
    """
    if not 1 < arrays[0].shape[0] <= FEW:
        return make(*arrays)
    return lax.platform_dependent(
        *arrays, cpu=lambda *x: lax.map(lambda each: make(*each), x), default=lambda *x: make(*x)
    )


def erf_inv(x: Array) -> Array:
    """The inverse error function, float (...), of floats in (-1, 1), by `one_by_one`."""
    return one_by_one(lax.erf_inv, x.reshape(-1)).reshape(x.shape)


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


def normals_and_uniforms(key: Key, n: int, m: int, dtype: jnp.dtype) -> tuple[Array, Array]:
    """Draws for a posterior and the coins beside it, from words of 32 bits, in single precision in every dtype.

    Two words come of each hash, and the inverse of erf costs a quarter of what it does in float64. The normal variables
    end at 5.3 standard deviations, beyond which there is a probability of 1.2e-7: for what a rule samples, not for the
    noise of rewards.

    Args:
        key: the key.
        n: number of normal variables.
        m: number of uniform ones.
        dtype: of the results, a float.

    Returns:
        float (n,), normal, and float (m,), uniform in [0, 1).
    """
    drawn = words(key, n + m)
    u = ((drawn[:n] >> 9).astype(jnp.float32) + 0.5) * 2.0**-22 - 1  # in (-1, 1), and exact
    return (2**0.5 * erf_inv(u)).astype(dtype), of_words(drawn[n:], dtype)
