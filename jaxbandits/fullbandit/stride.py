"""How many pulls a stopping rule may wait for without missing the first at which it holds."""

import jax.numpy as jnp

from jaxbandits.base import Array


def safe_stride(
    t: Array,
    margin: Array,
    width: Array,
    *,
    reach: Array | float,
    stride_z: Array | float = 8.0,
    stride_variance: Array | float,
    resolution: Array | float | None = 1e-3,
) -> Array:
    """Pulls until the next test of a rule that has just failed.

    While t grows to t (1 + x), the confidence width inside the margin loses at most width x / 2, new noise moves the
    margin by at most q sqrt(x) (reflection principle, tail 2 exp(-z^2 / 2)), and what is wrong with the estimate so
    far, unknown, by q x; q = z sqrt(variance) reach / sqrt(t). The stride is t x where these three just make up for
    the margin. It is a bound for the worst difference of super-arms, pointwise, not a theorem over all of them at
    once (that would take z^2 = 64 + 2 log K): tests on the same rewards found no first passage missed.

    Args:
        t: float (), pulls so far, at least 1.
        margin: float (), below 0 where the rule fails; 0 or more, or NaN, gives the shortest stride.
        width: float (), at least the confidence width in the margin, of the order 1 / sqrt(t).
        reach: float (), the largest |y| in Lambda^-1 over the differences y of super-arms that decide: see
            `largest_change`.
        stride_z: () > 0, z, standard deviations.
        stride_variance: () > 0, at least the largest variance of a pull. Too small a value stops late, never wrongly.
        resolution: () >= 0, the least stride as a share of t; it delays the stop by about half of that. 0 allows
            none: the stop is exact to the pull. None tests after every pull.

    Returns:
        int (), at least 1, of the default integer type, at most a quarter of its range.
    """
    if resolution is None:
        return jnp.ones((), int)
    dtype = t.dtype
    z, variance, resolution = (jnp.asarray(x, dtype) for x in (stride_z, stride_variance, resolution))
    noise = z * jnp.sqrt(variance) * jnp.asarray(reach, dtype) / jnp.sqrt(t)
    loss = noise + width / 2
    lacking = jnp.where(margin < 0, -margin, 0)
    # The positive root of loss y^2 + noise y = lacking, in the form that does not cancel where little is lacking.
    root = 2 * lacking / (noise + jnp.sqrt(noise**2 + 4 * loss * lacking))
    stride = jnp.floor(jnp.maximum(resolution, root**2) * t)
    return jnp.clip(stride, 1, float(jnp.iinfo(jnp.result_type(int)).max // 4)).astype(int)


def largest_change(spectral: Array, swaps: int) -> Array:
    """The largest norm, in Lambda^-1, of a difference of two super-arms that are `swaps` exchanges of arms apart.

    Such a difference y sums to 0 and has |y|_2^2 = 2 swaps at most.

    Args:
        spectral: float (), the largest eigenvalue of P Lambda^-1 P, P the projection off the constant vector.
        swaps: a Python int.

    Returns:
        float (), an upper bound.
    """
    return jnp.sqrt(2 * swaps * spectral)
