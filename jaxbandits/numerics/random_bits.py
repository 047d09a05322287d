"""Random words of 32 bits, two per hash, and `jax.random.uniform` with its hash counters as constants.

`jax.random` computes these counters, for which a GPU launched two kernels in each round of DS-TS.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import threefry_2x32

from jaxbandits.base import Array, Key
from jaxbandits.checks import is_concrete
from jaxbandits.numerics.kernels import apart

# Distances of a hash's rotations. After each row, words of the key are added, of which the third has the parity.
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24), (13, 15, 26, 6), (17, 29, 16, 24), (13, 15, 26, 6))
PARITY = 0x1BD11BDA


def bits(key: Key, number: int) -> Array:
    """Draws random words of 32 bits, two per hash.

    Args:
        key: PRNG key. A threefry key, JAX's default, gives the same words with 64 bits enabled and without.
        number: number of words.

    Returns:
        uint32 (number,).
    """
    if not _is_threefry(key):
        return jax.random.bits(key, (number,), jnp.uint32)
    # The halves of `jax.random.bits(key, (hashes,), jnp.uint64)`, which needs 64 bits.
    return _pairs(key, -(-number // 2))[:number]


def uniform_from_bits(bits: Array, dtype: jnp.dtype) -> Array:
    """Converts 32-bit words, uint32 (...), to uniform numbers, float (...), multiples of 2^-24 in [0, 1)."""
    return (bits >> 8).astype(dtype) * 2.0**-24


def uniform(key: Key, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
    """Draws the same bits as `jax.random.uniform` does with its option `threefry_partitionable`, on by default.

    Args:
        key: PRNG key.
        shape: shape of the result.
        dtype: dtype of the result, a float.

    Returns:
        float `shape`, in [0, 1).
    """
    dtype = jnp.dtype(dtype)
    if not _is_threefry(key) or dtype not in (jnp.float32, jnp.float64):
        return jax.random.uniform(key, shape, dtype)
    high, low = jnp.split(_pairs(key, math.prod(shape)), 2)
    return uniform_from_pairs(high, low, dtype).reshape(shape)


def uniform_in_block(key: Key, block: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
    """Draws uniform numbers by a hash without a loop, which takes a CPU 2.9 ns instead of 4.8.

    XLA:CPU repeats the hash in every kernel that reads the numbers, so they pay as the result of a loop over blocks.

    Args:
        key: PRNG key.
        block: uint32 (), number of a block. Blocks of one key are independent; block 0 has the bits of `uniform`.
        shape: shape of the result.
        dtype: dtype of the result, a float.

    Returns:
        float `shape`, in [0, 1).

    Source: Salmon, Moraes, Dror and Shaw (2011), Parallel random numbers: as easy as 1, 2, 3: Threefry-2x32-20.
    """
    dtype = jnp.dtype(dtype)
    if not _is_threefry(key) or dtype not in (jnp.float32, jnp.float64):
        return jax.random.uniform(jax.random.fold_in(key, block), shape, dtype)
    entries = np.arange(math.prod(shape), dtype=np.uint32)
    high, low = _unrolled(key, jnp.full(entries.shape, block, jnp.uint32), entries)
    return uniform_from_pairs(high, low, dtype).reshape(shape)


def uniform_entry(key: Key, block: Array, entry: Array, dtype: jnp.dtype) -> Array:
    """Draws one number of `uniform_in_block`, float ().

    Args:
        key: PRNG key.
        block: uint32 (), number of a block.
        entry: uint32 (), place of the number in the block. With other generators than threefry, JAX's default, it is
            another number than the block's own, but the same in every call.
        dtype: dtype of the result, a float.
    """
    dtype = jnp.dtype(dtype)
    if not _is_threefry(key) or dtype not in (jnp.float32, jnp.float64):
        return jax.random.uniform(jax.random.fold_in(jax.random.fold_in(key, block), entry), (), dtype)
    high, low = _unrolled(key, block, entry)
    return uniform_from_pairs(high, low, dtype)


def words_in_block(key: Key, block: Array, entries: Array) -> tuple[Array, Array]:
    """Draws two words for each number of a block, uint32 (...) each; `uniform_from_pairs` makes its number of them.

    Args:
        key: PRNG key.
        block: uint32 (), number of a block.
        entries: uint32 (...), places in the block. Other generators than threefry give other words than in the block.
    """
    if _is_threefry(key):
        return _unrolled(key, jnp.broadcast_to(block, entries.shape), entries)
    here = jax.random.fold_in(key, block)

    def both(entry: Array) -> Array:
        return jax.random.bits(jax.random.fold_in(here, entry), (2,), jnp.uint32)

    words = jax.vmap(both)(entries.reshape(-1)).reshape(*entries.shape, 2)
    return words[..., 0], words[..., 1]


def centred(words: Array, dtype: jnp.dtype) -> Array:
    """Converts words, uint32 (...), to uniform numbers in the middle of intervals of 2^-32, in float32 of 2^-23."""
    if jnp.dtype(dtype) == jnp.float32:
        return ((words >> 9).astype(dtype) + 0.5) * 2.0**-23
    return (words.astype(dtype) + 0.5) * 2.0**-32


def uniform_noise(key: Key, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
    """Draws the numbers of `jax.random.uniform` by a hash without a loop, for the noise of an environment.

    Noise is drawn for all rounds of a chunk at once and stored, so that nothing repeats the hash.

    Args:
        key: PRNG key.
        shape: shape of the result.
        dtype: dtype of the result, a float.

    Returns:
        float `shape`, in [0, 1).
    """
    return uniform_in_block(key, jnp.zeros((), jnp.uint32), shape, dtype)


def word_noise(key: Key, shape: tuple[int, ...]) -> Array:
    """Draws words, uint32 `shape`, as `jax.random.bits` does, by a hash without a loop, for noise of environments."""
    if not _is_threefry(key):
        return jax.random.bits(key, shape, jnp.uint32)
    entries = np.arange(math.prod(shape), dtype=np.uint32)
    x, y = _unrolled(key, np.zeros_like(entries), entries)
    return (x ^ y).reshape(shape)


def folded(key: Key, number: Array, *, is_kept: bool = True) -> Key:
    """Returns `jax.random.fold_in(key, number)`, the same bits, by a hash without a loop.

    XLA:CPU takes 4 ns for it, and 10 with JAX's loop; in a program's own loop over rounds, some 20 kernels less.

    Args:
        key: PRNG key.
        number: int32 (), at least 0.
        is_kept: if True, a CPU writes the key to memory, in a kernel of its own: Thompson sampling takes 33 core-ns a
            round instead of 37 (Gaussian arms), 95 instead of 101 (Bernoulli arms). Otherwise it hashes in each kernel
            that reads the key, which takes 1 ns less if there is one.
    """
    if not _is_threefry(key):
        return jax.random.fold_in(key, number)
    return apart(_folded_once, key, number, elsewhere=_folded_stacked) if is_kept else _folded_once(key, number)


def fold_in(key: Key, number: Array | int) -> Key:
    """Returns `jax.random.fold_in(key, number)`, the same bits, for keys that a program makes once.

    XLA:CPU compiles it in 0.05 s, and JAX's loop in 0.25, longer than most rules. Other platforms take the loop, into
    which XLA fuses nothing that reads the key.

    Args:
        key: PRNG key.
        number: int32 (), at least 0.
    """
    if is_concrete(key, number) or not _is_threefry(key):
        return jax.random.fold_in(key, number)
    return apart(_folded_once, key, jnp.asarray(number, jnp.int32), elsewhere=jax.random.fold_in)


def fold_in_each(key: Key, numbers: Sequence[int]) -> list[Key]:
    """Returns `fold_in(key, number)` for several numbers, which takes no longer to compile than one."""
    if is_concrete(key) or not _is_threefry(key):
        return [jax.random.fold_in(key, number) for number in numbers]
    several = np.array(numbers, np.int32)
    return list(apart(_folded_each, key, several, elsewhere=jax.vmap(jax.random.fold_in, in_axes=(None, 0))))


def _folded_stacked(key: Key, number: Array) -> Key:
    """Stacks both words of the key."""
    return _key_of(jnp.stack(_folded_words(key, number)))


def _folded_once(key: Key, number: Array) -> Key:
    """Selects each word of the key from both: stacked, a CPU would hash for each of them."""
    return _key_of(jnp.where(np.arange(2) == 0, *_folded_words(key, number)))


def _folded_words(key: Key, number: Array) -> tuple[Array, Array]:
    return _unrolled(key, jnp.zeros((), jnp.uint32), number.astype(jnp.uint32))


def _key_of(words: Array) -> Key:
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def _folded_each(key: Key, numbers: Array) -> Key:
    return jax.vmap(partial(_folded_once, key))(numbers)


@jax.jit
def _unrolled(key: Key, block: Array | np.ndarray, entry: Array | np.ndarray) -> tuple[Array, Array]:
    """Hashes pairs of numbers, uint32 (...): two words of each hash, uint32 (...)."""
    first, second = jax.random.key_data(key)
    words = first, second, first ^ second ^ np.uint32(PARITY)
    x, y = jnp.broadcast_arrays(block + words[0], entry + words[1])
    words = [jnp.broadcast_to(word, x.shape) for word in words]
    # The third word is added with 1 after the first row, as a difference from its complement. To add 1, LLVM subtracts
    # a register of ones, whose instruction waits for what was in the register before: a loop then waits for its last
    # turn, and LUCB takes 27 core-ns a round instead of 22.
    complement = jnp.broadcast_to(first ^ second ^ np.uint32(PARITY ^ 0xFFFFFFFF), x.shape)
    for n, distances in enumerate(ROTATIONS, start=1):
        for distance in distances:
            # `x + y` takes three times as long to trace.
            x = lax.add(x, y)
            left, right = lax.shift_left(y, np.uint32(distance)), lax.shift_right_logical(y, np.uint32(32 - distance))
            y = lax.bitwise_xor(x, lax.bitwise_or(left, right))
        x = lax.add(x, words[n % 3])
        y = lax.sub(y, complement) if n == 1 else lax.add(lax.add(y, words[(n + 1) % 3]), np.uint32(n))
    return x, y


def uniform_from_pairs(high: Array, low: Array, dtype: Any) -> Array:
    """Converts pairs of words, uint32 (...) each, to uniform numbers in [0, 1), float (...)."""
    bits = high ^ low if dtype == jnp.float32 else (high.astype(jnp.uint64) << 32) | low.astype(jnp.uint64)
    kind, digits = bits.dtype, jnp.finfo(dtype).nmant
    one = np.ones((), dtype).view(kind)
    from_one = lax.bitcast_convert_type((bits >> np.array(8 * kind.itemsize - digits, kind)) | one, dtype)
    return from_one - 1


def _is_threefry(key: Key) -> bool:
    """Checks whether the key belongs to JAX's default generator."""
    return jax.random.key_impl(key) == "threefry2x32"


def _pairs(key: Key, hashes: int) -> Array:
    """Returns the first word of each hash, then the second words, uint32 (2 hashes,)."""
    counts = np.concatenate([np.zeros(hashes, np.uint32), np.arange(hashes, dtype=np.uint32)])
    return threefry_2x32(jax.random.key_data(key), counts)
