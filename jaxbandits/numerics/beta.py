"""Beta draws for shapes of at least 1: posteriors of probabilities under a uniform prior."""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array, Key
from jaxbandits.numerics.box_muller import normal_pair
from jaxbandits.numerics.gamma import is_below, proposal
from jaxbandits.numerics.indexing import entry, first_true, is_entry
from jaxbandits.numerics.normal import FEW, one_by_one
from jaxbandits.numerics.platforms import by_platform
from jaxbandits.numerics.random_bits import centred, uniform_from_pairs, words_in_block

Words = tuple[Array, Array]  # uint32 each
Coordinates = tuple[Array, Array, Array]  # uniform numbers of a proposal: its distance, its direction, and a coin
PROPOSALS = 2  # number of proposals that are made at once, of which the first accepted one counts
UNIFORMS = 3 * PROPOSALS  # uniform numbers for them in `beta_or_nan`
TIMES = 3  # largest number of times that proposals are made
MOST = PROPOSALS * TIMES  # largest number of proposals for one variable


@jax.jit
def beta(key: Key, a: Array, b: Array) -> Array:
    """Draws from Beta(a, b).

    Of a variable's proposals the first accepted one counts. A CPU makes one for each variable, then further ones for
    the first variable of each lane that lacks one, until no lane of the batch lacks any. For more than 32 variables it
    makes two for each, as often as one lacks any. A GPU, which would wait for the host, always makes all six.

    Args:
        key: PRNG key.
        a: float (...), at least 1.
        b: float (...), at least 1, of a's shape and dtype.

    Returns:
        float (...), in (0, 1), independent, distributed as Beta(a, b). If none of six proposals is accepted, which has
        a probability below 8e-7, reached at shapes of 1, the mean.
    """
    on_cpu = _draw_few if 0 < a.size <= FEW else _draw_many
    return by_platform(a, b, cpu=partial(on_cpu, key), default=partial(_draw_all, key))


@jax.jit
def _draw_few(key: Key, a: Array, b: Array) -> Array:
    """Draws by one proposal at a time, each of which is a vector over the lanes of a batch."""
    ones, zeros = a.reshape(-1), b.reshape(-1)

    def proposed(n: Array | int, index: Array, a: Array, b: Array) -> Array:
        # Block by block, or else XLA:CPU would hash in each of the kernels that read a word. What differs between
        # lanes is added here: it takes 11 us to transpose three blocks of 1,024 lanes.
        first = _first_block(n, 1)
        words = _one_by_one(lambda i: words_in_block(key, first + i, index), _blocks(1), a.dtype)
        return _accepted(_coordinates(words, a.dtype), a, b)

    def is_missing(drawn: Array) -> Array:
        return jnp.isnan(drawn) & ~jnp.isnan(ones + zeros)

    def again(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        n, before, drawn = carry
        index = first_true(is_missing(drawn))
        n = jnp.where(index == before, n + 1, 1)
        x, y = entry(ones, index), entry(zeros, index)
        new = proposed(n, index.astype(jnp.uint32), x, y)
        new = jnp.where(jnp.isnan(new) & (n == MOST - 1), x / (x + y), new)
        return n, index, jnp.where(is_entry(index, drawn), new, drawn)

    indices = jnp.arange(a.size, dtype=jnp.uint32)
    first = lax.map(lambda each: proposed(0, *each), (indices, ones, zeros))
    start = jnp.zeros((), jnp.int32), jnp.full((), -1, jnp.int32), first
    return lax.while_loop(lambda carry: jnp.any(is_missing(carry[2])), again, start)[2].reshape(a.shape)


@jax.jit
def _draw_many(key: Key, a: Array, b: Array) -> Array:
    """Draws by two proposals at a time for all variables, as often as one lacks any."""

    def is_missing(carry: tuple[Array, Array]) -> Array:
        n, drawn = carry
        return (n < TIMES) & jnp.any(jnp.isnan(drawn))

    def again(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        n, drawn = carry
        first = _first_block(n, PROPOSALS)
        words = _one_by_one(lambda i: words_in_block(key, first + i, _entries(a)), _blocks(PROPOSALS), a.dtype)
        return n + 1, jnp.where(jnp.isnan(drawn), _accepted(_coordinates(words, a.dtype), a, b), drawn)

    drawn = lax.while_loop(is_missing, again, (jnp.zeros((), jnp.int32), jnp.full_like(a, jnp.nan)))[1]
    return jnp.where(jnp.isnan(drawn), a / (a + b), drawn)


@jax.jit
def _draw_all(key: Key, a: Array, b: Array) -> Array:
    """Draws by all proposals."""
    drawn = jnp.full_like(a, jnp.nan)
    for n in range(TIMES):
        blocks = _first_block(n, PROPOSALS) + _blocks(PROPOSALS)
        words = jax.vmap(lambda block: words_in_block(key, block, _entries(a)))(blocks)
        drawn = jnp.where(jnp.isnan(drawn), _accepted(_coordinates(words, a.dtype), a, b), drawn)
    return jnp.where(jnp.isnan(drawn), a / (a + b), drawn)


def _first_block(n: Array | int, proposals: int) -> Array:
    """Returns the first block of words for the n-th proposals."""
    return 2 * proposals * jnp.asarray(n, jnp.uint32)


def _blocks(proposals: int) -> Array:
    """Returns the blocks of words for proposals that are made together, counted from the first one."""
    return jnp.arange(2 * proposals, dtype=jnp.uint32)


def _one_by_one(hashed: Callable[[Array], Words], blocks: Array, dtype: jnp.dtype) -> Words:
    """Hashes block after block; in float64, whose words fit into one, as one: XLA:CPU would hash once for each."""
    if dtype != jnp.float64:
        return lax.map(hashed, blocks)

    def joined(block: Array) -> Array:
        high, low = hashed(block)
        return (high.astype(jnp.uint64) << 32) | low.astype(jnp.uint64)

    both = lax.map(joined, blocks)
    return (both >> 32).astype(jnp.uint32), both.astype(jnp.uint32)


def _entries(a: Array) -> Array:
    return jnp.arange(a.size, dtype=jnp.uint32).reshape(a.shape)


def _coordinates(words: Words, dtype: jnp.dtype) -> list[Coordinates]:
    """Converts words, uint32 (2 n, ...) each, to the uniform numbers of n proposals.

    The first pair of words is for the tails; a direction and a coin are as good with 32 bits.
    """
    high, low = words
    return [
        (uniform_from_pairs(high[i], low[i], dtype), centred(high[i + 1], dtype), centred(low[i + 1], dtype))
        for i in range(0, high.shape[0], 2)
    ]


def beta_or_nan(uniform: Array, a: Array, b: Array) -> Array:
    """Transforms uniform numbers to beta variables by two proposals, for callers that tolerate missing ones.

    A proposal is the share of one gamma variable in the sum of two (`gamma.proposal`). One coin accepts both.

    Args:
        uniform: float (6, ...), uniform on [0, 1) and independent, as `random_bits.uniform` draws them.
        a: float (...), at least 1.
        b: float (...), at least 1, of a's shape and dtype.

    Returns:
        float (...), in (0, 1), distributed as Beta(a, b) up to the ends of the normal variables (`normal_pair`).
        NaN if neither proposal was accepted, which has a probability of at most 9e-3, reached at shapes of 1.

    Source: Marsaglia and Tsang, A simple method for generating gamma variables (2000).
    """

    def make(uniform: Array, a: Array, b: Array) -> Array:
        distance, direction, coin, *others = jnp.moveaxis(uniform, -1, 0)
        return _accepted([(distance, direction, coin), tuple(others)], a, b)

    numbers = jnp.moveaxis(uniform.reshape(UNIFORMS, -1), 0, -1)
    return one_by_one(make, numbers, a.reshape(-1), b.reshape(-1)).reshape(a.shape)


def _accepted(coordinates: Sequence[Coordinates], a: Array, b: Array) -> Array:
    """Returns the first accepted one of the proposals by uniform numbers, float (...), otherwise NaN."""
    drawn = jnp.full_like(a, jnp.nan)
    for distance, direction, coin in reversed(coordinates):
        x, y = normal_pair(distance, direction)
        share, log_chance = _proposed(x, y, a, b)
        drawn = jnp.where(is_below(coin, log_chance), share, drawn)
    return drawn


def _proposed(x: Array, y: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """Returns a proposed share of a gamma variable of shape a, and the log of its chance to be accepted."""
    (ones, chance), (zeros, other) = proposal(x, a), proposal(y, b)
    return ones / (ones + zeros), chance + other
