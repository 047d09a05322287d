"""Random words of 32 bits, two of each hash, and `jax.random.uniform` with constants to count its hashes.

`jax.random` computes what it counts with, for which a GPU launched two kernels in each round of DS-TS.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
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
    if not _is_threefry(key):
        return jax.random.bits(key, (number,), jnp.uint32)
    # The halves of `jax.random.bits(key, (hashes,), jnp.uint64)`, which needs 64 bits.
    return _pairs(key, -(-number // 2))[:number]


def of_words(words: Array, dtype: jnp.dtype) -> Array:
    """Uniform numbers, float (...), multiples of 2^-24 in [0, 1), of words, uint32 (...)."""
    return (words >> 8).astype(dtype) * 2.0**-24


def uniform(key: Key, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
    """`jax.random.uniform`, to the bit where its option `threefry_partitionable` is on, as it is by default.

    Args:
        key: the key.
        shape: of the result.
        dtype: of the result, a float.

    Returns:
        float `shape`, in [0, 1).
    """
    dtype = jnp.dtype(dtype)
    if not _is_threefry(key) or dtype not in (jnp.float32, jnp.float64):
        return jax.random.uniform(key, shape, dtype)
    high, low = jnp.split(_pairs(key, math.prod(shape)), 2)
    bits = high ^ low if dtype == jnp.float32 else (high.astype(jnp.uint64) << 32) | low.astype(jnp.uint64)
    kind, digits = bits.dtype, jnp.finfo(dtype).nmant
    one = np.ones((), dtype).view(kind)
    from_one = lax.bitcast_convert_type((bits >> np.array(8 * kind.itemsize - digits, kind)) | one, dtype)
    return (from_one - 1).reshape(shape)


def _is_threefry(key: Key) -> bool:
    """Whether the key is of JAX's own generator."""
    return jax.random.key_impl(key) == "threefry2x32"


def _pairs(key: Key, hashes: int) -> Array:
    """The first word of each hash, then the second ones, uint32 (2 hashes,)."""
    counts = np.concatenate([np.zeros(hashes, np.uint32), np.arange(hashes, dtype=np.uint32)])
    return threefry_2x32(jax.random.key_data(key), counts)
