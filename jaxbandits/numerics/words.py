"""Random words of 32 bits, two of each hash, of which `jax.random.uniform` makes one number.

For what a rule samples, not for the noise of rewards.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry_2x32

from jaxbandits.base import Array, Key


def words(key: Key, number: int) -> Array:
    """Random words, two of each hash.

    Args:
        key: the key. One of threefry, JAX's own, gives the same words with 64 bits enabled and without.
        number: how many.

    Returns:
        uint32 (number,).
    """
    if jax.random.key_impl(key) != "threefry2x32":
        return jax.random.bits(key, (number,), jnp.uint32)
    hashes = -(-number // 2)
    # The halves of `jax.random.bits(key, (hashes,), jnp.uint64)`, which needs 64 bits.
    counts = np.concatenate([np.zeros(hashes, np.uint32), np.arange(hashes, dtype=np.uint32)])
    return threefry_2x32(jax.random.key_data(key), counts)[:number]


def of_words(words: Array, dtype: jnp.dtype) -> Array:
    """Uniform numbers, float (...), multiples of 2^-24 in [0, 1), of words, uint32 (...)."""
    return (words >> 8).astype(dtype) * 2.0**-24
