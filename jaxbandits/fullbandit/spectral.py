"""Spectral: a polynomial upper bound of the exhaustive rule, small enough to be of use."""

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array
from jaxbandits.fullbandit.confidence import ellipsoid_radius
from jaxbandits.fullbandit.design import Design
from jaxbandits.fullbandit.state import Estimate, Gram, Look, check_run, top_set, track_and_test
from jaxbandits.fullbandit.stride import largest_change


def spectral(
    design: Design,
    k: int,
    *,
    delta: Array | float,
    epsilon: Array | float,
    sigma: Array | float | None = None,
    first_test: Array | int | None = None,
    resolution: Array | float | None = 1e-3,
    stride_z: Array | float = 8.0,
    stride_variance: Array | float | None = None,
    gram: Gram = "counts",
) -> Algorithm:
    """Tracks a design until no r swaps of arms can gain epsilon, for any r, with one width for all sets r swaps away.

    The rule bounds that of `exhaustive` from above, and equals it where the design is uniform over all super-arms.

    Args:
        design: as in `icb`.
        k: as in `icb`.
        delta: as in `icb`.
        epsilon: as in `icb`.
        sigma: as in `icb`.
        first_test: as in `icb`.
        resolution: as in `icb`.
        stride_z: as in `icb`.
        stride_variance: as in `icb`.
        gram: as in `icb`.

    Returns:
        Algorithm with actions `Block` and answers bool (n,), the k arms.

    Raises:
        ValueError: an argument lies outside the range above, or the design is too ill-conditioned for its dtype.

    **Guarantee**: P(loss of the answer > epsilon) <= delta, up to the constants that `ellipsoid_radius` names.
    **Cost**: O(n log n) a test, and that of the estimate (see `estimator`). In the mean 1.40 to 1.47 times the pulls of
    `exhaustive` at n = 10, k = 5 on a G-optimal design of 50 super-arms, 2.3 to 3.0 times on one of 20.

    **float32**: as `icb`.

    Source: not in the literature; it relaxes equation (5) of Kuroki, Xu, Miyauchi, Honda and Sugiyama,
    Polynomial-time algorithms for multiple-arm identification with full-bandit feedback.
    """
    check_run(design, k, delta=delta, epsilon=epsilon, sigma=sigma)
    reach = largest_change(design.spectral, min(k, design.support.shape[1] - k))

    def look(estimate: Estimate, t: Array) -> tuple[Look, Array]:
        # A >= level Lambda: no eigenvalue is computed during a run.
        seen = spectral_rule(
            design.spectral / estimate.level, estimate.theta, t, k=k, delta=delta, epsilon=epsilon, sigma=sigma
        )
        return seen, seen.radius * reach / jnp.sqrt(t)

    return track_and_test(
        design,
        k,
        look,
        reach=reach,
        first_test=first_test,
        resolution=resolution,
        stride_z=stride_z,
        stride_variance=stride_variance,
        gram=gram,
    )


def spectral_rule(
    eigenvalue: Array | float,
    theta: Array,
    t: Array | int,
    *,
    k: int,
    delta: Array | float,
    epsilon: Array | float,
    sigma: Array | float | None = None,
) -> Look:
    """The stopping rule of `spectral`, whose other arguments it takes.

    Args:
        eigenvalue: float (), all that the rule reads of A_t^-1: at least the largest eigenvalue of P A_t^-1 P, P the
            projection off the constant vector; `design.spectral / t` for A_t = t Lambda.
        theta: float (n,), the estimate.
        t: () >= 1, pulls.
        k: as in `spectral`.
        delta: as in `spectral`.
        epsilon: as in `spectral`.
        sigma: as in `spectral`.

    Returns:
        Look; the margin is epsilon - V, and the rule holds where V < epsilon. V is the maximum over r of
        C_t sqrt(2 r eigenvalue) less D_r, the least loss of value in r swaps.
    """
    dtype = theta.dtype
    swaps = min(k, theta.size - k)
    radius = ellipsoid_radius(jnp.asarray(t, dtype), theta.size, k, delta, sigma)
    answer = top_set(theta, k)
    outside, _ = lax.top_k(jnp.where(answer, -jnp.inf, theta), swaps)
    inside = -lax.top_k(jnp.where(answer, -theta, -jnp.inf), swaps)[0]
    loss = jnp.cumsum(inside - outside)
    # A difference y of two super-arms r swaps apart sums to 0, and |y|_2^2 = 2 r.
    widths = jnp.sqrt(2 * jnp.arange(1, swaps + 1, dtype=dtype) * jnp.asarray(eigenvalue, dtype))
    margin = jnp.asarray(epsilon, dtype) - (radius * widths - loss).max()
    return Look(answer, margin > 0, margin, radius)
