"""Theorem 2 of Xu, Honda and Sugiyama (2018): bounds on LinGapE's pulls under the ratio rule."""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import known, require


def theorem2_ridge_limit(
    *, K: int, delta: Array | float, noise_scale: Array | float, norm_bound: Array | float
) -> Array:
    """Computes the largest ridge for which `theorem2_bound` holds, 2 R^2 / S^2 log(K^2 / delta).

    Args:
        K: number of arms, a Python int, at least 2.
        delta: float (), error probability, in (0, 1).
        noise_scale: float (), R, sub-Gaussian constant of the noise, in units of reward, above 0.
        norm_bound: float (), S, bound of theta's norm, above 0.

    Returns:
        float ().

    Raises:
        ValueError: an argument is out of range.

    Source: Xu, Honda and Sugiyama (2018), the condition of Theorem 2.
    """
    _check(K, delta, norm_bound, noise_scale=noise_scale)
    checks.positive("norm_bound", norm_bound)
    return 2 * (noise_scale / norm_bound) ** 2 * _log_union(K, delta)


def theorem2_bound(
    hardness: Array | float,
    *,
    K: int,
    d: int,
    delta: Array | float,
    ridge: Array | float,
    noise_scale: Array | float,
    norm_bound: Array | float,
    arm_norm: Array | float,
    printed: bool = False,
) -> Array:
    """Computes the bound on LinGapE's pulls under the ratio rule, with probability 1 - delta, for a small ridge.

    It is N + 4 H R^2 d log(1 + M^2 L^2 / (ridge d)), with N = 8 H R^2 log(K^2 / delta) + K.

    Args:
        hardness: float (), H = `hardness_lingape`, above 0.
        K: number of arms, a Python int, at least 2.
        d: dimension, a Python int, at least 1.
        delta: float (), error probability, in (0, 1).
        ridge: float (), regularisation, above 0 and at most `theorem2_ridge_limit`.
        noise_scale: float (), R, sub-Gaussian constant of the noise, in units of reward, above 0.
        norm_bound: float (), S, bound of theta's norm, above 0.
        arm_norm: float (), L, the largest norm of an arm, above 0.
        printed: if True, M^2 = 4 (a^2 + N^2) with a = 4 H R^2 sqrt(d L^2 / ridge), as printed. If False, M is the root
            of M^2 = a M + N, which is what the proof requires, and smaller.

    Returns:
        float (), pulls.

    Raises:
        ValueError: an argument is out of range, the ridge among them.

    Source: Xu, Honda and Sugiyama (2018), Theorem 2, equation (16).
    """
    _check(K, delta, norm_bound, d, hardness=hardness, noise_scale=noise_scale, arm_norm=arm_norm, ridge=ridge)
    printed = checks.flag("printed", printed)
    limit = theorem2_ridge_limit(K=K, delta=delta, noise_scale=noise_scale, norm_bound=norm_bound)
    require(known(ridge) <= known(limit), "ridge", f"lie in (0, {limit}]", ridge)
    variance = hardness * noise_scale**2
    leading = 8 * variance * _log_union(K, delta) + K
    a = 4 * variance * arm_norm * jnp.sqrt(d / ridge)
    m_squared = 4 * (a**2 + leading**2) if printed else ((a + jnp.sqrt(a**2 + 4 * leading)) / 2) ** 2
    return leading + 4 * variance * d * jnp.log1p(m_squared * arm_norm**2 / (ridge * d))


def theorem2_large_ridge_bound(
    hardness: Array | float,
    *,
    K: int,
    delta: Array | float,
    ridge: Array | float,
    noise_scale: Array | float,
    norm_bound: Array | float,
    arm_norm: Array | float,
) -> Array:
    """Computes the bound on LinGapE's pulls under the ratio rule, with probability 1 - delta, for a large ridge.

    It is 8 H R^2 log(K^2 / delta) + 4 H ridge S^2 + 2 K.

    Arguments: as for `theorem2_bound`, except that `ridge` is above 4 H R^2 L^2 and `norm_bound` may be 0.

    Returns:
        float (), pulls.

    Raises:
        ValueError: an argument is out of range, the ridge among them.

    Source: Xu, Honda and Sugiyama (2018), Theorem 2, equation (17).
    """
    _check(K, delta, norm_bound, hardness=hardness, noise_scale=noise_scale, arm_norm=arm_norm, ridge=ridge)
    variance = hardness * noise_scale**2
    limit = 4 * variance * arm_norm**2
    require(known(ridge) > known(limit), "ridge", f"be above {limit}", ridge)
    return 8 * variance * _log_union(K, delta) + 4 * hardness * ridge * norm_bound**2 + 2 * K


def theorem2_implicit(
    hardness: Array | float,
    *,
    K: int,
    d: int,
    delta: Array | float,
    ridge: Array | float,
    noise_scale: Array | float,
    norm_bound: Array | float,
    arm_norm: Array | float,
) -> Array:
    """Solves the inequality behind Theorem 2 instead of relaxing it, for every ridge; five times sharper on soare(5).

    It is the largest t with t <= H C(t)^2 + K, where C(t) = R sqrt(2 log(K^2 / delta) + d log(1 + t L^2 / (ridge d)))
    + sqrt(ridge) S bounds LinGapE's confidence radius after t pulls.

    Arguments: as for `theorem2_bound`, except that `ridge` has no limit and `norm_bound` may be 0.

    Returns:
        float (), pulls.

    Raises:
        ValueError: an argument is out of range.

    Source: Xu, Honda and Sugiyama (2018), the proof of Theorem 2.
    """
    _check(K, delta, norm_bound, d, hardness=hardness, noise_scale=noise_scale, arm_norm=arm_norm, ridge=ridge)
    return _largest(K, d, (jnp.asarray(hardness, float), delta, ridge, noise_scale, norm_bound, arm_norm))


@partial(jax.jit, static_argnums=(0, 1), inline=True)
def _largest(K: int, d: int, numbers: tuple[Array, ...]) -> Array:
    """Computes the largest t of `theorem2_implicit`, float (), from its other arguments in their order."""
    hardness, delta, ridge, noise_scale, norm_bound, arm_norm = numbers
    union = _log_union(K, delta)

    def right_hand_side(t: Array) -> Array:
        logdet = d * jnp.log1p(t * arm_norm**2 / (ridge * d))
        radius = noise_scale * jnp.sqrt(2 * union + logdet) + jnp.sqrt(ridge) * norm_bound
        return hardness * radius**2 + K

    # The right-hand side is concave and positive at 0, so it crosses t once; from above the crossing the iteration
    # falls towards it. The loop carries both values, because a value computed twice may be rounded in two ways.
    above = lax.while_loop(lambda t: t < right_hand_side(t), lambda t: 2 * t, jnp.asarray(K, float))
    t, _ = lax.while_loop(
        lambda pair: pair[1] < pair[0],
        lambda pair: (pair[1], right_hand_side(pair[1])),
        (above, right_hand_side(above)),
    )
    return t


def _check(K: int, delta: Array | float, norm_bound: Array | float, d: int = 1, **positive: Array | float) -> None:
    checks.whole("K", K, least=2)
    checks.whole("d", d, least=1)
    checks.probability("delta", delta)
    checks.not_negative("norm_bound", norm_bound)
    for name, value in positive.items():
        checks.positive(name, value)


def _log_union(K: int, delta: Array | float) -> Array:
    """Computes log(K^2 / delta)."""
    return 2 * math.log(K) - jnp.log(delta)
