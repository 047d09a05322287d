"""Confidence radii of the least-squares estimate from sums over super-arms."""

import math

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.checks import known, require, require_positive


def check_confidence(
    n: int, k: int, delta: Array | float, sigma: Array | float | None = None, *, log_sets: Array | float | None = None
) -> None:
    """Raises `ValueError` unless the arguments of the radii are in range; see `ellipsoid_radius`."""
    require(2 <= k <= n - 1, "k", f"lie in 2..{n - 1}", k)
    require((known(delta) > 0) & (known(delta) < 1), "delta", "lie in (0, 1)", delta)
    if sigma is not None:
        require_positive("sigma", sigma)
    if log_sets is not None:
        require(known(log_sets) >= 0, "log_sets", "be at least 0", log_sets)


def ellipsoid_radius(
    t: Array | int,
    n: int,
    k: int,
    delta: Array | float,
    sigma: Array | float | None = None,
    *,
    log_sets: Array | float | None = None,
) -> Array:
    """C_t of the ellipsoid: theta(M) is estimated within C_t |chi_M| for every super-arm M, norms in A_t^-1.

    C_t = 2 sqrt(2) sigma sqrt(log c' + 2 log t + log K - log delta), with c' = 6/pi^2 and K = C(n, k).

    Args:
        t: int or float (...), pulls, at least 1, placed without regard to the rewards.
        n: number of arms, a Python int.
        k: size of a super-arm, a Python int in 2..n-1.
        delta: () in (0, 1), admitted probability of error.
        sigma: () > 0, bound of the noise of one pull; k by default, for arms whose noise lies in [-1, 1].
        log_sets: () >= 0, in place of log K. 2 log K, with c' replaced, would be the union over differences of
            super-arms.

    Returns:
        float (...), of t's dtype, or the default one where t counts in integers.

    Raises:
        ValueError: an argument is out of range.

    Source: Kuroki et al., Proposition 1.
    """
    return 2 * lemma1_radius(t, n, k, delta, sigma, log_sets=_log_binomial(n, k) if log_sets is None else log_sets)


def lemma1_radius(
    t: Array | int,
    n: int,
    k: int,
    delta: Array | float,
    sigma: Array | float | None = None,
    *,
    log_sets: Array | float | None = None,
) -> Array:
    """C_t of the single arms: theta_i is estimated within C_t sqrt((A_t^-1)_ii) for every arm i.

    C_t = sigma sqrt(2 (log c' + 2 log t + log n - log delta)), with c' = 6/pi^2: smaller than `ellipsoid_radius` by a
    factor of 2 to 2.5.

    Args:
        t: as in `ellipsoid_radius`.
        n: as in `ellipsoid_radius`.
        k: as in `ellipsoid_radius`.
        delta: as in `ellipsoid_radius`.
        sigma: as in `ellipsoid_radius`.
        log_sets: () >= 0, in place of log n.

    Returns:
        float (...), of t's dtype, or the default one where t counts in integers.

    Raises:
        ValueError: an argument is out of range.

    Source: Kuroki et al., Lemma 1.
    """
    check_confidence(n, k, delta, sigma, log_sets=log_sets)
    t = jnp.asarray(t)
    t = t if jnp.issubdtype(t.dtype, jnp.inexact) else t.astype(float)
    sigma = jnp.asarray(k if sigma is None else sigma, t.dtype)
    log_sets = jnp.asarray(math.log(n) if log_sets is None else log_sets, t.dtype)
    # ERRATUM, left as printed in both radii: the union over t takes pi^2/6 where this has c' = 6/pi^2, 0.8 % of C_t
    # at 1e8 pulls; Lemma 1 lacks the factor 2 of a two-sided bound, and differences of super-arms would take K^2.
    # The sum of logarithms: t^2 would overflow an integer.
    log_union = math.log(6 / math.pi**2) + 2 * jnp.log(t) + log_sets - jnp.log(jnp.asarray(delta, t.dtype))
    return sigma * jnp.sqrt(2 * log_union)


def _log_binomial(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
