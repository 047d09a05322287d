"""Ties that are broken at random, as a function of words that a run draws once and of the time.

Entries that tie exactly with positive probability, such as means of rewards that are 0 or 1, must not be told apart by
their places. Otherwise the law of a run depends on the order of the arms: a best arm that stands first wins every tie.
Lots are drawn anew at every time. An order that a run keeps is not enough: who has won a tie wins the next one too, so
an arm that its rewards alone have brought this far meets winners. On one arm of mean .05 and seven of .01, sequential
halving with 120 pulls then errs with probability .74 instead of .70.
"""

import jax
import jax.numpy as jnp

from jaxbandits.base import Array, Key

# Source of the hash: Wellons (2018), Prospecting for hash functions, https://nullprogram.com/blog/2018/07/31
STEP, FIRST, SECOND = 0x9E3779B9, 0x21F0AAAD, 0x735A2D97


def draw_words(key: Key, n: int) -> Array:
    """Draws the random words from which all lots of a run are made, uint32 (n,)."""
    return jax.random.bits(key, (n,), jnp.uint32)


def lots(words: Array, time: Array) -> Array:
    """Returns distinct numbers, one a place: of entries that tie, the one with the largest lot comes first.

    At any time the lots are in every order with the same probability, up to 2^-(32 - ceil(log2 n)) a pair. The lowest
    bits of a lot are its place, so that the largest of some lots says where it is without a search.

    Args:
        words: uint32 (n,), see `draw_words`.
        time: int ().

    Returns:
        int32 (n,). Cost: a product an entry, and a hash of the time. Random bits would cost more than many a rule.
    """
    # A product with an odd number permutes the words, so the products are as independent as they; another odd number
    # at another time gives another order. Hashing each word would triple the round of successive rejects.
    x = time.astype(jnp.uint32) * jnp.uint32(STEP)
    x = (x ^ (x >> 16)) * jnp.uint32(FIRST)
    x = (x ^ (x >> 15)) * jnp.uint32(SECOND)
    products = words * ((x ^ (x >> 15)) | 1)
    n = words.shape[0]
    return ((products & jnp.uint32(0xFFFFFFFF ^ _places(n))) | jnp.arange(n, dtype=jnp.uint32)).astype(jnp.int32)


def argmax(x: Array, lots: Array) -> Array:
    """Returns the place of the largest entry, of several the one with the largest lot.

    Args:
        x: (n,), already computed: each entry is compared with the largest, and must not be rounded anew for that.
        lots: int32 (n,), see `lots`.

    Returns:
        int32 (), 0 if an entry is NaN. Cost: two plain reductions, which XLA:CPU vectorises, unlike those of
        `jnp.argmax`.
    """
    return _first(x == jnp.max(x), lots)


def argmin(x: Array, lots: Array) -> Array:
    """Returns the place of the smallest entry, of several the one with the largest lot; otherwise as `argmax`."""
    return _first(x == jnp.min(x), lots)


def _first(is_tied: Array, lots: Array) -> Array:
    largest = jnp.max(jnp.where(is_tied, lots, jnp.iinfo(jnp.int32).min))
    return largest & jnp.int32(_places(lots.shape[0]))


def _places(n: int) -> int:
    """The bits that hold a place."""
    return (1 << (n - 1).bit_length()) - 1
