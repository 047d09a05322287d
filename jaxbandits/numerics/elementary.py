"""Logarithms, exponentials and roots of few operations, and differences of them that lose no digits.

XLA:CPU takes 3.3 ns for `log` in float64, 4.3 ns for `log1p` and 2 to 2.8 ns for `expm1`; these take 1.3, 1.3 and 1.1.
`sqrt` takes .5 instead of 1.0 beside quotients, since a processor has one unit for both.
Nothing here branches or calls a library, so that a compiler turns whole expressions into vector code. In float32 they
are JAX's own functions, which are as fast. Derivatives are given, since bits have none.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.base import Array

Coefficients = tuple[Sequence[float], Sequence[float]]  # numerator and denominator, from the highest power

# log(1 + x) = x - x^2 / 2 + x^3 P(x) / Q(x) for 1 + x in [sqrt(1/2), sqrt(2)].
LOGARITHM = (
    (
        1.01875663804580931796e-4,
        4.97494994976747001425e-1,
        4.70579119878881725854e0,
        1.44989225341610930846e1,
        1.79368678507819816313e1,
        7.70838733755885391666e0,
    ),
    (
        1.0,
        1.12873587189167450590e1,
        4.52279145837532221105e1,
        8.29875266912776603211e1,
        7.11544750618563894466e1,
        2.31251620126765340583e1,
    ),
)
LOG_2 = (0.693359375, -2.121944400546905827679e-4)  # a few bits, and the rest
# The bits of five numbers in float64, as integers.
TINY, ROOT_HALF, ONE, TWO_52, INFINITY = np.array([2.0**-1022, 0.5**0.5, 1, 2.0**52, np.inf]).view(np.int64)
# exp(x) - 1 = 2 x P(x^2) / (Q(x^2) - x P(x^2)) for x in [-1/2, 1/2].
EXPONENTIAL = (
    (1.2617719307481059087798e-4, 3.0299440770744196129956e-2, 9.9999999999999999991025e-1),
    (
        3.0019850513866445504159e-6,
        2.5244834034968410419224e-3,
        2.2726554820815502876593e-1,
        2.0000000000000000000897e0,
    ),
)


@jax.custom_jvp
@jax.jit
def log(x: Array) -> Array:
    """Computes the natural logarithm, float (...), of positive floats; NaN of 0, subnormal numbers, inf and others.

    The error is below 1 ulp, or 2e-16 near 1.

    Source: Moshier (1989), Methods and programs for mathematical functions (the Cephes library).
    """
    if x.dtype != jnp.float64:
        return jnp.log(x)
    exponent, near = _split(x)
    return near + _tail(near, exponent) + exponent * LOG_2[0]


@jax.custom_jvp
@jax.jit
def log1p(x: Array) -> Array:
    """Computes log(1 + x), float (...), of floats above -1; NaN of others and of inf.

    The relative error is 4e-16 at most.

    Source: see `log`.
    """
    if x.dtype != jnp.float64:
        return jnp.log1p(x)
    exponent, near = _split(1 + x)
    near = jnp.where(exponent == 0, x, near)
    return near + _tail(near, exponent) + exponent * LOG_2[0]


@jax.custom_jvp
@jax.jit
def log1p_deficit(x: Array, ratio: Array) -> Array:
    """Computes x - log(1 + x), at least 0, without loss of digits near 0.

    Args:
        x: float (...), above -1.
        ratio: float (...), 1 + x. It is an argument because 1 + x would lose digits of a ratio near 0.

    Returns:
        float (...), with a relative error of a few roundings.
    """
    if x.dtype != jnp.float64:
        return _deficit_by_series(x, ratio)
    exponent, near = _split(ratio)
    is_near = exponent == 0
    near = jnp.where(is_near, x, near)
    tail = _tail(near, exponent)
    return jnp.where(is_near, -tail, x - (near + tail + exponent * LOG_2[0]))


@jax.custom_jvp
@jax.jit
def expm1(x: Array) -> Array:
    """Computes exp(x) - 1, float (...); inf above 700. The relative error is 5e-16 at most.

    Source: see `log`.
    """
    if x.dtype != jnp.float64:
        return jnp.expm1(x)
    # exp(x) = 2^k exp(within) with |within| <= log(2) / 2. Below -40 the value is -1.
    k = jnp.round(jnp.clip(x, -60, 700) * (1 / np.log(2)))
    within = (jnp.maximum(x, -60) - k * LOG_2[0]) - k * LOG_2[1]
    square = within * within
    above, below = (polynomial(square, each) for each in EXPONENTIAL)
    above = within * above
    power = lax.bitcast_convert_type((k.astype(jnp.int32) + 1023).astype(jnp.int64) << 52, x.dtype)
    return jnp.where(x > 700, jnp.inf, power * (2 * above / (below - above)) + (power - 1))


@log.defjvp
def _log_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return log(*primals), tangents[0] / primals[0]


@log1p.defjvp
def _log1p_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return log1p(*primals), tangents[0] / (1 + primals[0])


@log1p_deficit.defjvp
def _log1p_deficit_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    x, ratio = primals
    return log1p_deficit(x, ratio), tangents[0] * (x / ratio)


@expm1.defjvp
def _expm1_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    value = expm1(*primals)
    return value, tangents[0] * (value + 1)


@jax.custom_jvp
@jax.jit
def rsqrt(x: Array) -> Array:
    """Computes 1 / sqrt(x), float (...), of floats that are positive, finite and not subnormal.

    XLA:CPU takes 1.7 ns for a root and a quotient in float64, which keep the processor's only divider busy. This takes
    0.5: half of the exponent, by a shift of the bits, and two steps of fourth order. The relative error is 2e-16.

    Source: Lomont (2003), Fast inverse square root, the start.
    """
    if x.dtype != jnp.float64:
        return lax.rsqrt(x)
    half = lax.bitcast_convert_type(x, jnp.int64) >> 1
    root = lax.bitcast_convert_type(np.int64(0x5FE6EB50C7B537A9) - half, x.dtype)
    for _ in range(2):
        excess = 1 - x * root * root
        root = root + root * (excess * (0.5 + excess * (0.375 + excess * 0.3125)))
    return root


@jax.custom_jvp
@jax.jit
def sqrt(x: Array) -> Array:
    """Computes the root, float (...), by `rsqrt`, of floats that are not subnormal; NaN of negative ones.

    The relative error is 3.3e-16 at most.
    """
    if x.dtype != jnp.float64:
        return jnp.sqrt(x)
    return jnp.where((x > 0) & (x < jnp.inf), x * rsqrt(x), jnp.where(x < 0, jnp.nan, x))


@rsqrt.defjvp
def _rsqrt_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    value = rsqrt(*primals)
    return value, tangents[0] * (-0.5 * value / primals[0])


@sqrt.defjvp
def _sqrt_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    value = sqrt(*primals)
    return value, tangents[0] * (0.5 / value)


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Computes a polynomial by its coefficients from the highest power."""
    value = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        # `value * x + coefficient` takes three times as long to trace.
        value = lax.add(lax.mul(value, x), value.dtype.type(coefficient))
    return value


def rational(x: Array, coefficients: Coefficients) -> Array:
    """Computes the quotient of two polynomials."""
    above, below = (polynomial(x, each) for each in coefficients)
    return above / below


def _split(x: Array) -> tuple[Array, Array]:
    """Writes x as 2^exponent (1 + near) with 1 + near in [sqrt(1/2), sqrt(2)); both are float64 (...)."""
    bits = lax.bitcast_convert_type(x, jnp.int64)
    shifted = bits + (ONE - ROOT_HALF)  # sqrt(1/2) becomes 1, so this has the exponent of the result
    near = lax.bitcast_convert_type((shifted & (2**52 - 1)) + ROOT_HALF, x.dtype) - 1
    # As the last bits of 2^52, an integer is turned into a float by a difference.
    exponent = lax.bitcast_convert_type(lax.shift_right_logical(shifted, np.int64(52)) | TWO_52, x.dtype)
    # As unsigned integers less the smallest, bits of 0, subnormal and negative numbers, inf and NaN are too large.
    is_inside = lax.bitcast_convert_type(bits - TINY, jnp.uint64) < np.uint64(INFINITY - TINY)
    return exponent - (2.0**52 + 1023), jnp.where(is_inside, near, jnp.nan)


def _tail(near: Array, exponent: Array) -> Array:
    """Computes what is left of a logarithm after `near` and the first part of the exponent's."""
    square = near * near
    return near * (square * rational(near, LOGARITHM)) + exponent * LOG_2[1] - 0.5 * square


def _deficit_by_series(x: Array, ratio: Array) -> Array:
    # log(1 + x) = 2 artanh(r) with r = x / (2 + x): the deficit is r x - 2 (r^3/3 + r^5/5 + ...).
    r = x / (2 + x)
    near = jnp.abs(r) < 0.1
    square = jnp.where(near, r * r, 0)
    tail = jnp.zeros_like(square)
    for power in range(9, 1, -2):
        tail = 1 / power + square * tail
    return jnp.where(near, r * x - 2 * r * square * tail, x - jnp.log(ratio))
