"""How many pulls a stopping rule may wait for without missing the first at which it holds."""

import jax.numpy as jnp

from jaxbandits.base import Array


def safe_leap(
    t: Array,
    margin: Array,
    width: Array,
    *,
    reach: Array | float,
    z: Array | float,
    pull_variance: Array | float,
    growth: Array | float | None,
) -> Array:
    """Pulls until the next test of a rule that has just failed.

    While t grows to t (1 + x), the confidence width inside the margin loses at most width x / 2, new noise moves the
    margin by at most q sqrt(x) (reflection principle, tail 2 exp(-z^2 / 2)), and the unknown error of the estimate so
    far by q x; q = z sqrt(pull_variance) reach / sqrt(t). The leap is t x where these three just make up for the
    margin. It is a bound for the worst difference of super-arms, pointwise, not a theorem over all of them at once
    (that would take z^2 = 64 + 2 log K): tests on the same rewards found no first passage missed.

    Args:
        t: float (), pulls so far, at least 1.
        margin: float (), below 0 where the rule fails; 0 or more, or NaN, gives the shortest leap.
        width: float (), at least the confidence width in the margin, of the order 1 / sqrt(t).
        reach: float (), the largest |y| in Lambda^-1 over the differences y of super-arms that decide: see
            `largest_change`.
        z: () > 0, as in `Pace`.
        pull_variance: () > 0, as in `Pace`.
        growth: () >= 0 or None, as in `Pace`.

    Returns:
        int (), at least 1, of the default integer type, at most a quarter of its range.
    """
    if growth is None:
        return jnp.ones((), int)
    dtype = t.dtype
    z, variance, growth = (jnp.asarray(x, dtype) for x in (z, pull_variance, growth))
    noise = z * jnp.sqrt(variance) * jnp.asarray(reach, dtype) / jnp.sqrt(t)
    loss = noise + width / 2
    lacking = jnp.where(margin < 0, -margin, 0)
    # The positive root of loss y^2 + noise y = lacking, in the form that does not cancel where little is lacking.
    root = 2 * lacking / (noise + jnp.sqrt(noise**2 + 4 * loss * lacking))
    return whole_pulls(jnp.maximum(growth, root**2) * t).astype(int)


def whole_pulls(pulls: Array) -> Array:
    """A number of pulls, float (), rounded down to a whole one, at least 1 and at most a quarter of the integers."""
    return jnp.clip(jnp.floor(pulls), 1, float(jnp.iinfo(jnp.result_type(int)).max // 4))


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
