"""Beta draws for shapes of at least 1: posteriors of probabilities under a uniform prior."""

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array, Key
from jaxbandits.numerics.gamma import is_below, proposal
from jaxbandits.numerics.normal import one_by_one
from jaxbandits.numerics.quantile import normal_of
from jaxbandits.numerics.random_bits import uniform_in_block

PROPOSALS = 2  # number of proposals that are made at once, of which the first accepted one counts
UNIFORMS = 3 * PROPOSALS  # uniform numbers for them
TIMES = 3  # largest number of times that proposals are made


def beta(key: Key, a: Array, b: Array) -> Array:
    """Draws from Beta(a, b).

    Two proposals are made for every variable, and two more only if one of them accepted neither: on a CPU for a whole
    batch of lanes at a time, elsewhere always, since a GPU would wait for the host.

    Args:
        key: PRNG key.
        a: float (...), at least 1.
        b: float (...), at least 1, of a's shape and dtype.

    Returns:
        float (...), in (0, 1), independent, distributed as Beta(a, b). If none of six proposals is accepted, which has
        a probability below 8e-7, reached at shapes of 1, the mean.
    """

    def row(block: Array) -> Array:
        return uniform_in_block(key, block, a.shape, a.dtype)

    def blocks(n: Array | int) -> Array:
        return UNIFORMS * jnp.asarray(n, jnp.uint32) + jnp.arange(UNIFORMS, dtype=jnp.uint32)

    def made(numbers: Array, drawn: Array) -> Array:
        return jnp.where(jnp.isnan(drawn), _accepted(numbers, a, b), drawn)

    def is_missing(carry: tuple[Array, Array]) -> Array:
        n, drawn = carry
        return (n < TIMES) & jnp.any(jnp.isnan(drawn))

    def again(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        n, drawn = carry
        # Row by row, or else XLA:CPU would hash in each of the kernels that read a number.
        return n + 1, made(lax.map(row, blocks(n)), drawn)

    def until_drawn(drawn: Array) -> Array:
        return lax.while_loop(is_missing, again, (jnp.zeros((), jnp.int32), drawn))[1]

    def always(drawn: Array) -> Array:
        for n in range(TIMES):
            drawn = made(jax.vmap(row)(blocks(n)), drawn)
        return drawn

    drawn = lax.platform_dependent(jnp.full_like(a, jnp.nan), cpu=until_drawn, default=always)
    return jnp.where(jnp.isnan(drawn), a / (a + b), drawn)


def beta_or_nan(uniform: Array, a: Array, b: Array) -> Array:
    """Transforms uniform numbers to beta variables by two proposals, for callers that tolerate missing ones.

    A proposal is the share of one gamma variable in the sum of two (`gamma.proposal`). One coin accepts both.

    Args:
        uniform: float (6, ...), uniform on [0, 1) and independent, as `random_bits.uniform` draws them.
        a: float (...), at least 1.
        b: float (...), at least 1, of a's shape and dtype.

    Returns:
        float (...), in (0, 1), distributed as Beta(a, b) up to the ends of the normal variables (`quantile.normal_of`).
        NaN if neither proposal was accepted, which has a probability of at most 9e-3, reached at shapes of 1.

    Source: Marsaglia and Tsang, A simple method for generating gamma variables (2000).
    """

    def make(uniform: Array, a: Array, b: Array) -> Array:
        return _accepted(jnp.moveaxis(uniform, -1, 0), a, b)

    numbers = jnp.moveaxis(uniform.reshape(UNIFORMS, -1), 0, -1)
    return one_by_one(make, numbers, a.reshape(-1), b.reshape(-1)).reshape(a.shape)


def _accepted(uniform: Array, a: Array, b: Array) -> Array:
    """Returns the first accepted proposal, otherwise NaN."""
    drawn = jnp.full_like(a, jnp.nan)
    for n in reversed(range(PROPOSALS)):
        of_a, of_b, coin = uniform[3 * n : 3 * n + 3]
        share, log_chance = _proposed(normal_of(of_a), normal_of(of_b), a, b)
        drawn = jnp.where(is_below(coin, log_chance), share, drawn)
    return drawn


def _proposed(x: Array, y: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """Returns a proposed share of a gamma variable of shape a, and the log of its chance to be accepted."""
    (ones, chance), (zeros, other) = proposal(x, a), proposal(y, b)
    return ones / (ones + zeros), chance + other
