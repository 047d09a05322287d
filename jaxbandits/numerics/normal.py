"""Normal random variables for the few arms of a lane, made from few random words and computed as vectors over lanes."""

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.base import Array, Key
from jaxbandits.numerics.box_muller import normal_pair
from jaxbandits.numerics.platforms import by_platform
from jaxbandits.numerics.quantile import normal_of
from jaxbandits.numerics.random_bits import bits, uniform_entry, uniform_from_bits, uniform_noise

VECTOR = 8  # numbers that a CPU computes as one vector
FEW = 32  # largest number of entries computed one by one; a longer loop costs more than it saves


def one_by_one(make: Callable[..., Array], *arrays: Array) -> Array:
    """Applies `make` to each of a few entries separately on a CPU, where that is faster, and elsewhere to all at once.

    In a batch of lanes, each entry is a vector over the lanes and is computed as one. As an array with a row per lane,
    XLA would copy it into the reduction that reads it, mainly an argmax over arms, and compute it there in scalar code.
    Measured in core-ns per round with 5 arms and 256 lanes, together and one by one: 232 and 130 (T3C), 272 and 150
    (Thompson sampling), 1,109 and 754 (draws of two nodes in NS-TS), 3,400 and 1,500 (nine beta variables in DS-TS).

    Args:
        make: function of the arrays, elementwise over their first axis, that returns an array with this axis.
        arrays: (n, ...).

    Returns:
        (n, ...).
    """
    if not 1 < arrays[0].shape[0] <= FEW:
        return make(*arrays)
    return by_platform(*arrays, cpu=lambda *x: lax.map(lambda each: make(*each), x), default=lambda *x: make(*x))


def erf_inv(x: Array) -> Array:
    """Computes the inverse error function, float (...), of floats in (-1, 1), by `one_by_one`."""
    return one_by_one(lax.erf_inv, x.reshape(-1)).reshape(x.shape)


@partial(jax.jit, static_argnums=(1, 2))
def normal(key: Key, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
    """Draws normal variables for the samples of a rule: in float64 in pairs, which a CPU makes one by one.

    Args:
        key: PRNG key.
        shape: shape of the result.
        dtype: dtype of the result, a float.

    Returns:
        float `shape`.
    """
    n = math.prod(shape)
    if jnp.dtype(dtype) != jnp.float64:
        above = np.nextafter(np.array(-1, dtype), np.array(0, dtype))
        return jnp.asarray(math.sqrt(2), dtype) * erf_inv(jax.random.uniform(key, shape, dtype, above, 1))
    if n == 1:
        return normal_of(uniform_noise(key, shape, dtype))
    half = (n + 1) // 2

    def together(key: Key) -> tuple[Array, Array]:
        return normal_pair(*uniform_noise(key, (2, half), dtype))

    def each(key: Key) -> tuple[Array, Array]:
        block, starts = jnp.zeros((), jnp.uint32), jnp.array([0, half], jnp.uint32)

        def pair(i: Array) -> tuple[Array, Array]:
            # Number by number, or else XLA:CPU would hash in each of the kernels that read one.
            return normal_pair(*lax.map(lambda start: uniform_entry(key, block, start + i, dtype), starts))

        return lax.map(pair, jnp.arange(half, dtype=jnp.uint32))

    pairs = together(key) if half > FEW else by_platform(key, cpu=each, default=together)
    return jnp.concatenate(pairs)[:n].reshape(shape)


def normal_noise(key: Key, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
    """Draws normal variables for the noise of an environment: `jax.random.normal` up to rounding.

    In float64 this takes XLA:CPU half as long (`quantile.normal_of`, `random_bits.uniform_noise`). In float32 it is
    JAX's own function.

    Args:
        key: PRNG key.
        shape: shape of the result.
        dtype: dtype of the result, a float.

    Returns:
        float `shape`. The tails end at 8.2 standard deviations in float64, and at 5.4 in float32.
    """
    if jnp.dtype(dtype) != jnp.float64:
        return jax.random.normal(key, shape, dtype)
    n = math.prod(shape)
    if not 1 < n < VECTOR:
        return normal_of(uniform_noise(key, shape, dtype))
    return _few_normals(key, n, jnp.dtype(dtype)).reshape(shape)


@partial(jax.jit, static_argnums=(1, 2))
def _few_normals(key: Key, n: int, dtype: jnp.dtype) -> Array:
    """Draws one by one: XLA:CPU vectorises over the last axis, and takes 21 ns for each of two rewards otherwise."""
    block, entries = jnp.zeros((), jnp.uint32), jnp.arange(n, dtype=jnp.uint32)
    return one_by_one(lambda entry: normal_of(uniform_entry(key, block, entry, dtype)), entries)


def normals_and_uniforms(key: Key, n: int, m: int, dtype: jnp.dtype) -> tuple[Array, Array]:
    """Draws normal variables for posterior samples and uniform ones for coins, in single precision in every dtype.

    Each hash gives two words of 32 bits, and the inverse of erf costs a quarter of its cost in float64. The normal
    variables end at 5.3 standard deviations, beyond which there is a probability of 1.2e-7. They suit the samples of a
    rule, not the noise of rewards.

    Args:
        key: PRNG key.
        n: number of normal variables.
        m: number of uniform variables.
        dtype: dtype of the results, a float.

    Returns:
        float (n,), normal, and float (m,), uniform in [0, 1).
    """
    drawn = bits(key, n + m)
    u = ((drawn[:n] >> 9).astype(jnp.float32) + 0.5) * 2.0**-22 - 1  # in (-1, 1), and exact
    return (2**0.5 * erf_inv(u)).astype(dtype), uniform_from_bits(drawn[n:], dtype)
