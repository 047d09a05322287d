"""Leaps: pulls until the next test that do not miss the first pull at which a stopping rule holds."""

from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Array


class Growth(NamedTuple):
    """Growth of the pulls between two tests of a rule: the smallest one, and the safety of longer leaps."""

    # () >= 0, smallest number of pulls between two tests, as a share of the pulls so far. 0 finds the first passage of
    # a rule to the pull, 0.001 delays it by about 0.05 %
    share: Array | float = 1e-3
    # () > 0, safety of the leaps, in standard deviations. Too small a value stops late, never wrongly
    z: Array | float = 8.0
    # () > 0, upper bound of a pull's variance, in squared units of reward. If None, k. Too small a value stops late
    pull_variance: Array | float | None = None


def safe_leap(
    t: Array,
    margin: Array,
    width: Array,
    *,
    reach: Array | float,
    growth: Growth | None,
) -> Array:
    """Computes the pulls until the next test of a rule that has just failed.

    While t grows to t (1 + x), three terms can raise the margin. The confidence width in it shrinks by at most
    width x / 2. New noise moves it by at most q sqrt(x) (reflection principle, tail 2 exp(-z^2 / 2)), and the unknown
    error of the present estimate by q x, with q = z sqrt(pull_variance) reach / sqrt(t). The leap is t x at the x where
    these three add up to the missing margin. The bound holds pointwise, for the worst difference of super-arms, and is
    no theorem over all of them at once (which would take z^2 = 64 + 2 log K). In tests on the same rewards no first
    passage was missed.

    Args:
        t: float (), pulls so far, at least 1.
        margin: float (), below 0 if the rule fails; 0 or more, or NaN, gives the shortest leap.
        width: float (), upper bound of the confidence width in the margin, of the order 1 / sqrt(t).
        reach: float (), the largest |y| in Lambda^-1 over the differences y of super-arms that decide: see
            `largest_change`.
        growth: as in `Pace`, with its `pull_variance`. If None, the leap is one pull.

    Returns:
        int (), at least 1, of the default integer type, at most a quarter of its range.
    """
    if growth is None:
        return jnp.ones((), int)
    dtype = t.dtype
    share, z, variance = (jnp.asarray(x, dtype) for x in growth)
    noise = z * jnp.sqrt(variance) * jnp.asarray(reach, dtype) / jnp.sqrt(t)
    loss = noise + width / 2
    lacking = jnp.where(margin < 0, -margin, 0)
    # The positive root of loss y^2 + noise y = lacking, in the form without cancellation for small `lacking`.
    root = 2 * lacking / (noise + jnp.sqrt(noise**2 + 4 * loss * lacking))
    return whole_pulls(jnp.maximum(share, root**2) * t).astype(int)


def whole_pulls(pulls: Array) -> Array:
    """Rounds pulls, float (), down to a whole number, at least 1 and at most a quarter of the integer range."""
    return jnp.clip(jnp.floor(pulls), 1, float(jnp.iinfo(jnp.result_type(int)).max // 4))


def largest_change(spectral: Array, swaps: int) -> Array:
    """Bounds the norm, in Lambda^-1, of a difference of two super-arms that are `swaps` exchanges of arms apart.

    Such a difference y sums to 0 and has |y|_2^2 at most 2 swaps.

    Args:
        spectral: float (), the largest eigenvalue of P Lambda^-1 P, P the projection off the constant vector.
        swaps: a Python int.

    Returns:
        float (), an upper bound.
    """
    return jnp.sqrt(2 * swaps * spectral)
