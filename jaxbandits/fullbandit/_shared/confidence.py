"""Confidence radii for least squares from sums over super-arms."""

import math
from typing import Literal

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.fullbandit._problem.design import check_size

Radius = Literal["lemma1", "ellipsoid"]


def ellipsoid_radius(
    t: Array | int,
    n: int,
    k: int,
    delta: Array | float,
    noise_scale: Array | float = 1.0,
    *,
    log_sets: Array | float | None = None,
) -> Array:
    """Computes C_t of the ellipsoid: theta(M) is estimated within C_t |chi_M| for every super-arm M, norms in A_t^-1.

    C_t = 2 sqrt(2) k R sqrt(log c' + 2 log t + log K - log delta), with c' = 6/pi^2, K = C(n, k) and R = `noise_scale`.

    Args:
        t: int or float (...), pulls, at least 1, placed without regard to the rewards.
        n: number of arms, a Python int.
        k: arms in a super-arm, a Python int in 2..n-1.
        delta: () in (0, 1), allowed probability of error.
        noise_scale: () > 0, R, sub-Gaussian constant of the noise of an arm, in units of reward; 1 suffices for noise
            in [-1, 1]. The constant of a pull, the sigma of the literature, is taken to be k R, an upper bound for any
            dependence between the arms' noises. (Independent noises would have sqrt(k) R.)
        log_sets: () >= 0, replaces log K. 2 log K, with c' replaced, would be the union over differences of super-arms.

    Returns:
        float (...), of t's dtype, or of the default dtype if t is an integer.

    Raises:
        ValueError: an argument is out of range.

    Source: Kuroki et al., Proposition 1.
    """
    return _checked_radius("ellipsoid", t, n=n, k=k, delta=delta, noise_scale=noise_scale, log_sets=log_sets)


def lemma1_radius(
    t: Array | int,
    n: int,
    k: int,
    delta: Array | float,
    noise_scale: Array | float = 1.0,
    *,
    log_sets: Array | float | None = None,
) -> Array:
    """Computes C_t of the single arms: theta_i is estimated within C_t sqrt((A_t^-1)_ii) for every arm i.

    C_t = k R sqrt(2 (log c' + 2 log t + log n - log delta)), with c' = 6/pi^2. It is smaller than `ellipsoid_radius` by
    a factor of 2 to 2.5. `log_sets` replaces log n. Other arguments, result and errors: see `ellipsoid_radius`.

    Source: Kuroki et al., Lemma 1.
    """
    return _checked_radius("lemma1", t, n=n, k=k, delta=delta, noise_scale=noise_scale, log_sets=log_sets)


def confidence_radius(
    radius: Radius,
    t: Array,
    *,
    n: int,
    k: int,
    delta: Array | float,
    noise_scale: Array | float,
    log_sets: Array | float | None = None,
) -> Array:
    """Computes C_t of either kind, without checks, in t's dtype."""
    if log_sets is None:
        log_sets = math.log(n) if radius == "lemma1" else _log_binomial(n, k)
    # ERRATUM, kept as printed in both radii: the union over t takes pi^2/6 where this has c' = 6/pi^2, 0.8 % of C_t
    # at 1e8 pulls; Lemma 1 lacks the factor 2 of a two-sided bound, and differences of super-arms would take K^2.
    # A sum of logarithms, because t^2 would overflow an integer.
    log_sets, delta = jnp.asarray(log_sets, t.dtype), jnp.asarray(delta, t.dtype)
    log_union = math.log(6 / math.pi**2) + 2 * jnp.log(t) + log_sets - jnp.log(delta)
    c = k * jnp.asarray(noise_scale, t.dtype) * jnp.sqrt(2 * log_union)
    return c if radius == "lemma1" else 2 * c


def _checked_radius(radius: Radius, t, *, n, k, delta, noise_scale, log_sets) -> Array:
    t = checks.array("t", t, ("...",), least=1)
    check_size(n, k)
    checks.probability("delta", delta)
    checks.positive("noise_scale", noise_scale)
    if log_sets is not None:
        checks.not_negative("log_sets", log_sets)
    return confidence_radius(radius, t, n=n, k=k, delta=delta, noise_scale=noise_scale, log_sets=log_sets)


def _log_binomial(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
