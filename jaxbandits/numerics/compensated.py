"""Running sums that carry their own rounding error: float32 sums over 10^6 rounds and more, to the last digit."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array


class Sum(NamedTuple):
    """An unevaluated sum of two floats of any common shape; see `value`."""

    total: Array  # float (...)   the sum, rounded
    lost: Array  # float (...)    rounding error of `total`, at most half its spacing


def zeros(shape: tuple[int, ...], dtype: jnp.dtype) -> Sum:
    """Returns empty sums.

    Args:
        shape: shape of the sums.
        dtype: a float type.

    Returns:
        Sum (*shape).
    """
    return Sum(jnp.zeros(shape, dtype), jnp.zeros(shape, dtype))


def add(s: Sum, x: Array) -> Sum:
    """Adds one term to every sum.

    The rounding error of an addition is itself a float, and six operations compute it, whichever of the two terms is
    larger (no branch). It is added to `lost`. As soon as `lost` reaches a digit of the total, it moves into the total:
    otherwise `lost` would be a plain sum, which itself loses terms. A term of 0 changes no bit.

    Args:
        s: Sum (...).
        x: (...), of the sums' dtype and shape.

    Returns:
        Sum (...). Each addition is off by at most 2 u^2 of the sum, with u = 6e-8 in float32, so `value` is off by one
        rounding for millions of terms. Measured in float32: after 3.2 10^6 terms of 1.3 the error is below half a
        spacing, 0.25, and the error of a plain sum is 1.1 10^5. After 10^6 terms of mean 0.8, the relative errors are
        1e-8 and 2e-5.

    Source: Knuth (1969), the art of computer programming 2, section 4.2.2 theorem B; Joldes, Muller and Popescu (2017),
    Tight and rigorous error bounds for basic building blocks of double-word arithmetic, Algorithm 4.
    """
    total = s.total + x
    arrived = total - s.total
    lost = s.lost + ((s.total - (total - arrived)) + (x - arrived))
    folded = total + lost
    return Sum(folded, lost - (folded - total))


def value(s: Sum) -> Array:
    """Returns the sums as plain floats (...)."""
    return s.total + s.lost


def no_loss(shape: tuple[int, ...], dtype: jnp.dtype) -> Array | tuple[()]:
    """Returns the initial `lost` for `add_to`: zeros in 32 bit, () in 64 bit.

    In 64 bit a plain sum keeps 9 digits over any number of pulls that fits the counts.

    Args:
        shape: shape of the sums.
        dtype: a float type.

    Returns:
        float (*shape), or ().
    """
    return jnp.zeros(shape, dtype) if jnp.finfo(dtype).bits <= 32 else ()


def add_to(total: Array, lost: Array | tuple[()], x: Array) -> tuple[Array, Array | tuple[()]]:
    """Adds one term to sums that are kept as two arrays, so that the first of them reads as the sums.

    Args:
        total: float (...), the sums.
        lost: float (...), as in `Sum`, or () for a plain addition; see `no_loss`.
        x: (...), broadcast against the sums.

    Returns:
        The new sums and the new `lost`.
    """
    if isinstance(lost, tuple):
        return total + x, ()
    after = add(Sum(total, lost), x)
    return after.total, after.lost


def add_at(total: Array, lost: Array | tuple[()], index: Array, x: Array) -> tuple[Array, Array | tuple[()]]:
    """Adds one term to one of several sums; otherwise as `add_to`.

    Args:
        total: float (K,), the sums.
        lost: float (K,) or (), as in `add_to`.
        index: int (), in [0, K).
        x: ().

    Returns:
        The new sums and the new `lost`.
    """
    if isinstance(lost, tuple):
        return total + jnp.where(_is_at(index, total), x, 0), ()
    after = add_entry(Sum(total, lost), index, x)
    return after.total, after.lost


def add_entry(s: Sum, index: Array, x: Array) -> Sum:
    """Adds one term to one of several sums.

    `add` is applied to this sum alone. LinGapE with 6 arms in float32 makes 2 % fewer rounds per second than with plain
    sums, and 20 % fewer if the other sums are given a term of 0.

    Args:
        s: Sum (K,).
        index: int (), in [0, K).
        x: ().

    Returns:
        Sum (K,).
    """
    old = Sum(*(lax.dynamic_index_in_dim(values, jnp.asarray(index), keepdims=False) for values in s))
    after, is_index = add(old, x), _is_at(index, s.total)
    return Sum(*(jnp.where(is_index, new, kept) for new, kept in zip(after, s, strict=True)))


def _is_at(index: Array, like: Array) -> Array:
    """Returns the indicator of an index, bool (K,)."""
    index = jnp.asarray(index)
    return jnp.arange(like.shape[0], dtype=index.dtype) == index
