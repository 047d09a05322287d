"""Exhaustive: tries all super-arms, and stops when none can beat the estimated best one within the ellipsoid."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxbandits.base import Algorithm, Array
from jaxbandits.fullbandit._problem.design import Design
from jaxbandits.fullbandit._shared.confidence import confidence_radius
from jaxbandits.fullbandit._shared.enumeration import best_row, largest_score, superarm_table
from jaxbandits.fullbandit._shared.leap import largest_change
from jaxbandits.fullbandit._shared.tracking import (
    PACE,
    Estimate,
    Pace,
    Verdict,
    algorithm_from_test,
    check_estimate,
    check_pace,
    check_rule,
    top_k_mask,
)
from jaxbandits.numerics.linalg import squared_norms


def exhaustive(
    design: Design,
    *,
    delta: Array | float,
    epsilon: Array | float,
    noise_scale: Array | float = 1.0,
    superarms: ArrayLike | None = None,
    pace: Pace = PACE,
) -> Algorithm:
    """Tracks a design until no other super-arm can lead the estimated best one by epsilon, trying them all.

    Other arguments, actions, answers and float32: see `icb`.

    Args:
        design: the design to track.
        delta: () in (0, 1).
        epsilon: () >= 0.
        noise_scale: () > 0.
        superarms: 0/1 (K, n), concrete: the class of super-arms, at least two different rows of k ones. If None, all
            sets of k arms. The union bound is over all sets of k arms in any case.
        pace: times and matrix of the tests.

    Returns:
        Algorithm.

    Raises:
        ValueError: as `icb`, or there are more than 5e6 super-arms.

    **Guarantee**: P(loss of the answer > epsilon) <= delta, up to the constants that `ellipsoid_radius` names.
    **Cost**: O(K n^2) per test with K super-arms, K = C(n, k) by default, and 4096 n numbers of memory per lane; K n
    bytes for the table.

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama, Polynomial-time algorithms for multiple-arm identification with
    full-bandit feedback, Algorithm 5 and equation (5).
    """
    check_rule(design, delta=delta, epsilon=epsilon, noise_scale=noise_scale)
    check_pace(design, pace)
    n = design.support.shape[1]
    table = superarm_table(n, design.k, superarms=superarms)
    reach = largest_change(design.spectral, min(design.k, n - design.k))

    def test(estimate: Estimate, t: Array) -> tuple[Verdict, Array]:
        verdict = _rule(
            estimate,
            t,
            table,
            k=design.k,
            delta=delta,
            epsilon=epsilon,
            noise_scale=noise_scale,
            is_whole=superarms is None,
        )
        return verdict, verdict.radius * reach / jnp.sqrt(t)

    return algorithm_from_test(design, test, reach=reach, pace=pace)


def exhaustive_rule(
    design: Design,
    estimate: Estimate,
    t: Array | float,
    *,
    delta: Array | float,
    epsilon: Array | float,
    noise_scale: Array | float = 1.0,
    superarms: ArrayLike | None = None,
) -> Verdict:
    """Tests the stopping rule of `exhaustive`. Other arguments and errors: see `icb_rule`.

    Args:
        design: the tracked design.
        estimate: an estimate of `estimator(design)`.
        t: () >= 1, pulls.
        delta: () in (0, 1).
        epsilon: () >= 0.
        noise_scale: () > 0.
        superarms: 0/1 (K, n), as in `exhaustive`.

    Returns:
        Verdict. The margin is epsilon - V, and the rule holds if V < epsilon. V, equation (5) less the value of the
        best set M^, is the maximum over all M except M^ of theta(M) - theta(M^) + C_t |chi_M - chi_M^|, norms in
        A_t^-1.
    """
    check_rule(design, delta=delta, epsilon=epsilon, noise_scale=noise_scale)
    check_estimate(design, estimate, t)
    table = superarm_table(design.support.shape[1], design.k, superarms=superarms)
    return _rule(
        estimate,
        t,
        table,
        k=design.k,
        delta=delta,
        epsilon=epsilon,
        noise_scale=noise_scale,
        is_whole=superarms is None,
    )


@partial(jax.jit, static_argnames=("k", "is_whole"), inline=True)
def _rule(estimate: Estimate, t, table: np.ndarray, *, k: int, delta, epsilon, noise_scale, is_whole: bool) -> Verdict:
    theta, inverse, _ = estimate
    dtype = theta.dtype
    radius = confidence_radius(
        "ellipsoid", jnp.asarray(t, dtype), n=theta.size, k=k, delta=delta, noise_scale=noise_scale
    )
    answer = top_k_mask(theta, k) if is_whole else best_row(theta, table)
    best = answer.astype(dtype)

    def lead(rows: Array) -> Array:
        # The norm is computed from the difference itself: the Gram form would lose the digits of short differences.
        change = rows - best[None]
        value = jnp.matmul(change, theta, precision="highest") + radius * jnp.sqrt(squared_norms(change, inverse))
        return jnp.where(jnp.any(change != 0, axis=1), value, -jnp.inf)

    # ERRATUM: the norm is printed with the unknown best super-arm M* instead of M^.
    margin = jnp.asarray(epsilon, dtype) - largest_score(table, lead, dtype)
    return Verdict(answer, margin > 0, margin, radius)
