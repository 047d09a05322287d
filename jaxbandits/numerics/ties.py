"""Ties that are broken at random, as a function of the time and of words that a run draws once.

Entries that tie exactly with positive probability, such as means of rewards that are 0 or 1, must not be ordered by
their indices. Otherwise the law of a run depends on the order of the arms: a best arm that stands first wins every tie.
Lots are drawn anew at every time. A fixed order per run is not enough: an arm that won a tie would also win the next
one, so an arm that advanced by its rewards alone would compete with such winners. On one arm with mean .05 and seven
with mean .01, sequential halving with 120 pulls then errs with probability .74 instead of .70.
"""

import jax.numpy as jnp

from jaxbandits.base import Array, Key
from jaxbandits.numerics.indexing import largest, smallest
from jaxbandits.numerics.kernels import apart
from jaxbandits.numerics.random_bits import word_noise

# Source of the hash: Wellons (2018), Prospecting for hash functions, https://nullprogram.com/blog/2018/07/31
STEP, FIRST, SECOND = 0x9E3779B9, 0x21F0AAAD, 0x735A2D97


def draw_words(key: Key, n: int) -> Array:
    """Draws the random words that determine all lots of a run, uint32 (n,)."""
    return apart(lambda key: word_noise(key, (n,)), key)


def lots(words: Array, time: Array) -> Array:
    """Returns distinct numbers, one per index. Of several tied entries, the one with the largest lot comes first.

    At any time the lots are in every order with the same probability, up to 2^-(32 - ceil(log2 n)) per pair. The lowest
    bits of a lot are its index, so the largest of several lots gives its index without a search.

    Args:
        words: uint32 (n,), see `draw_words`.
        time: int ().

    Returns:
        int32 (n,). Cost: one product per entry, and a hash of the time. Random bits would cost more than many rules.
    """
    # A product with an odd number permutes the words, so the products are as independent as the words are. Another odd
    # number at another time gives another order. Hashing each word would triple the round of successive rejects.
    x = time.astype(jnp.uint32) * jnp.uint32(STEP)
    x = (x ^ (x >> 16)) * jnp.uint32(FIRST)
    x = (x ^ (x >> 15)) * jnp.uint32(SECOND)
    products = words * ((x ^ (x >> 15)) | 1)
    n = words.shape[0]
    return ((products & jnp.uint32(0xFFFFFFFF ^ _index_bits(n))) | jnp.arange(n, dtype=jnp.uint32)).astype(jnp.int32)


def argmax(x: Array, lots: Array) -> Array:
    """Returns the index of the largest entry. Of several, it is the one with the largest lot.

    Args:
        x: (n,), already computed: each entry is compared with the largest, and must not be rounded differently there.
        lots: int32 (n,), see `lots`.

    Returns:
        int32 (), 0 if an entry is NaN. Cost: two reductions, by chains of few entries (`indexing`).
    """
    return _first(x == largest(x), lots)


def argmin(x: Array, lots: Array) -> Array:
    """Returns the index of the smallest entry. Of several, it is the one with the largest lot. See `argmax`."""
    return _first(x == smallest(x), lots)


def _first(is_tied: Array, lots: Array) -> Array:
    # A reduction of XLA:CPU computes its operand anew for each entry: TTUCB on Bernoulli arms took 334 ns, not 190.
    return largest(jnp.where(is_tied, lots, jnp.iinfo(jnp.int32).min)) & jnp.int32(_index_bits(lots.shape[0]))


def _index_bits(n: int) -> int:
    """Returns a mask of the bits that hold an index."""
    return (1 << (n - 1).bit_length()) - 1
