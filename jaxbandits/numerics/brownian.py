"""A Gaussian random walk with random access: its position S(n) is a function of a key and of n alone.

Therefore the sum of pulls a to b of an arm, S(b) - S(a), depends neither on the algorithm that draws them nor on
whether it draws them one by one or at once.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Array, Key

HEIGHT = 31  # number of levels of the tree over 0..2^31
LONGEST = 2**HEIGHT - 1  # largest number of steps of a position


def position(key: Key, n: Array, dtype: jnp.dtype) -> Array:
    """Computes S(n), the sum of the first n steps, each standard normal and independent of the others.

    The walk is a Brownian motion at whole times. Lévy's construction bisects the time from 0 to 2^31 down to single
    steps: half-way between two known positions, w steps apart, a new one is normal around their mean with variance
    w / 4. Summed over the levels, S(n) has one normal variable per level, times the height at n of a tent over the
    interval of this level that contains n. A midpoint belongs to one interval only, and numbers its variable.

    Args:
        key: key of the walk.
        n: int (), in 0..2^31 - 1; NaN beyond.
        dtype: dtype of the result. The walks of two dtypes differ.

    Returns:
        float (), 0 at n = 0. In float32 the relative error is 1e-7; the position has the size of sqrt(n).

    Cost: 32 normal variables, whatever n is.

    Source: Lévy (1940), Le mouvement brownien plan; the tents are Schauder's.
    """
    width = (2 << np.arange(HEIGHT)).astype(np.uint32)
    time = n.astype(jnp.uint32)
    start = time & ~(width - np.uint32(1))
    inside = (time - start).astype(dtype) / width.astype(dtype)
    tents = jnp.minimum(inside, 1 - inside) * np.sqrt(width).astype(dtype)
    heights = jnp.append(tents, time.astype(dtype) / math.sqrt(2**HEIGHT))
    numbers = jnp.append(start + width // np.uint32(2), jnp.uint32(0))
    normal = jax.vmap(lambda number: jax.random.normal(jax.random.fold_in(key, number), (), dtype))(numbers)
    return jnp.where((n >= 0) & (n <= LONGEST), jnp.sum(heights * normal), jnp.nan)


def increment(key: Key, start: Array, steps: Array, dtype: jnp.dtype) -> Array:
    """Computes S(start + steps) - S(start), float (), exactly 0 for no step. Costs two calls of `position`."""
    before, after = jax.vmap(lambda n: position(key, n, dtype))(jnp.stack([start, start + steps]))
    return after - before


def one_step(key: Key, start: Array, dtype: jnp.dtype) -> Array:
    """Computes S(start + 1) - S(start), float (), at half the cost of `increment`, which it equals up to rounding.

    Between neighbours every tent is straight, even at the end of an interval, where it falls to 0.

    Args:
        key: key of the walk.
        start: int (), in 0..2^31 - 2; NaN beyond.
        dtype: as for `position`.

    Cost: 32 normal variables.
    """
    width = (2 << np.arange(HEIGHT)).astype(np.uint32)
    time = start.astype(jnp.uint32)
    interval_start = time & ~(width - np.uint32(1))
    slope = np.concatenate([1 / np.sqrt(width), [1 / math.sqrt(2**HEIGHT)]]).astype(dtype)
    rises = jnp.append(time - interval_start < width // np.uint32(2), True)
    numbers = jnp.append(interval_start + width // np.uint32(2), jnp.uint32(0))
    normal = jax.vmap(lambda number: jax.random.normal(jax.random.fold_in(key, number), (), dtype))(numbers)
    return jnp.where((start >= 0) & (start < LONGEST), jnp.sum(jnp.where(rises, slope, -slope) * normal), jnp.nan)
