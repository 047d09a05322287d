"""Thresholds of linear means, from the design matrix of the pulls."""

import math

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.numerics.thresholds.evidence import Evidence, Threshold, as_count, as_float, check_arms, read


def ellipsoid(*, norm_bound: float, ridge: float = 1.0, noise_scale: float = 1.0, arms: int | None = None) -> Threshold:
    """Builds the threshold (sqrt(log_det + 2 log(1 / delta)) + sqrt(ridge) norm_bound / noise_scale)^2 / 2.

    Args:
        norm_bound: () >= 0, at least the norm of theta.
        ridge: () > 0, ridge of the statistic.
        noise_scale: () > 0, in units of reward.
        arms: int >= 2, ignored.

    Returns:
        The threshold; reads `log_det`.

    Raises:
        ValueError: an argument is out of range; when the threshold is called, if `log_det` is missing.

    **Proved** for linear means and any sampling; no union over challengers is needed. Source: Abbasi-Yadkori, Pal and
    Szepesvari (2011), Theorem 2.
    """
    check_arms(arms)
    checks.not_negative("norm_bound", norm_bound)
    checks.positive("ridge", ridge)
    checks.positive("noise_scale", noise_scale)

    def ellipsoid(delta: Array | float, evidence: Evidence) -> Array:
        delta = as_float(delta)
        log_det = read("ellipsoid", "log_det", evidence.log_det, delta)
        return _squared_radius(log_det, delta, norm_bound=norm_bound, ridge=ridge, noise_scale=noise_scale)

    return ellipsoid


def ellipsoid_trace(
    *,
    dimension: int,
    arm_norm: float,
    norm_bound: float,
    ridge: float = 1.0,
    noise_scale: float = 1.0,
    arms: int | None = None,
) -> Threshold:
    """Builds `ellipsoid` with its log_det replaced by the upper bound d log(1 + t arm_norm^2 / (ridge d)).

    Args:
        dimension: d, int >= 1.
        arm_norm: () > 0, at least the norm of every arm's features.
        norm_bound: () >= 0, at least the norm of theta.
        ridge: () > 0, ridge of the statistic.
        noise_scale: () > 0, in units of reward.
        arms: int >= 2, ignored.

    Returns:
        The threshold; reads `pulls`.

    Raises:
        ValueError: an argument is out of range.

    **Proved** as for `ellipsoid`, by the inequality of determinant and trace. Source: Abbasi-Yadkori, Pal and
    Szepesvari (2011), Theorem 2 and Lemma 10.
    """
    d = checks.whole("dimension", dimension, least=1)
    check_arms(arms)
    checks.positive("arm_norm", arm_norm)
    checks.not_negative("norm_bound", norm_bound)
    checks.positive("ridge", ridge)
    checks.positive("noise_scale", noise_scale)

    def ellipsoid_trace(delta: Array | float, evidence: Evidence) -> Array:
        delta = as_float(delta)
        log_det = d * jnp.log1p(as_count(evidence.pulls, delta) * (arm_norm**2 / (ridge * d)))
        return _squared_radius(log_det, delta, norm_bound=norm_bound, ridge=ridge, noise_scale=noise_scale)

    return ellipsoid_trace


def jp(*, dimension: int, ridge: float, least: float, excess: float = 0.1, arms: int | None = None) -> Threshold:
    """Builds (1 + u) (D / 2 + log(1 / delta)) with u = excess and D >= log det(I + V / (u c)); inf while V < c I.

    Here c is `least`. D is computed from the log-determinant at another ridge, as
    log_det + d log(ridge / (u c)) + d max(0, log(r(e))), with r(v) = (u c + v) / (ridge + v) and e the smallest
    eigenvalue of V. For v >= e, r(v) is at most max(1, r(e)). D is exact if ridge = u c; for u c < ridge its excess
    vanishes as V grows.

    Args:
        dimension: d, int >= 1.
        ridge: () > 0, ridge of `log_det`.
        least: c > 0, a constant of the arms: the smallest eigenvalue that V must reach.
        excess: u > 0.
        arms: int >= 2, ignored.

    Returns:
        The threshold; reads `log_det` and `least_eigenvalue`.

    Raises:
        ValueError: an argument is out of range; when the threshold is called, if one of the two is missing.

    **Proved** for least squares without ridge. Source: Jedra and Proutiere (2020), the threshold "LT" of later papers.
    """
    d = checks.whole("dimension", dimension, least=1)
    check_arms(arms)
    checks.positive("ridge", ridge)
    checks.positive("least", least)
    checks.positive("excess", excess)
    scale = excess * least  # u c, the ridge in D

    def jp(delta: Array | float, evidence: Evidence) -> Array:
        delta = as_float(delta)
        log_det = read("jp", "log_det", evidence.log_det, delta)
        e = read("jp", "least_eigenvalue", evidence.least_eigenvalue, delta)
        change = jnp.log(ridge / scale) + jnp.maximum(0, jnp.log((scale + e) / (ridge + e)))
        bound = (1 + excess) * ((log_det + d * change) / 2 - jnp.log(delta))
        return jnp.where(e < least, jnp.inf, bound.astype(delta.dtype))

    return jp


def jp_heuristic(*, dimension: int, excess: float = 0.1, arms: int | None = None) -> Threshold:
    """Builds the threshold (1 + u) (log(1 / delta) + log(t) / 2 + (d / 2) log(1 + 1 / u)) with u = excess.

    Args:
        dimension: d, int >= 1.
        excess: u > 0.
        arms: int >= 2, ignored.

    Returns:
        The threshold; reads `pulls`.

    Raises:
        ValueError: an argument is out of range.

    **Heuristic**. Source: Jedra and Proutiere (2020), the threshold "LT-H" of later papers.
    """
    d = checks.whole("dimension", dimension, least=1)
    check_arms(arms)
    checks.positive("excess", excess)

    def jp_heuristic(delta: Array | float, evidence: Evidence) -> Array:
        delta = as_float(delta)
        log1p = math.log1p if checks.is_concrete(excess) else jnp.log1p
        shape = d * log1p(1 / excess)
        return (1 + excess) * ((jnp.log(as_count(evidence.pulls, delta)) + shape) / 2 - jnp.log(delta))

    return jp_heuristic


def _squared_radius(log_det: Array, delta: Array, *, norm_bound: float, ridge: float, noise_scale: float) -> Array:
    bias = (ridge**0.5) * (norm_bound / noise_scale)
    return ((jnp.sqrt(log_det - 2 * jnp.log(delta)) + bias) ** 2 / 2).astype(delta.dtype)
