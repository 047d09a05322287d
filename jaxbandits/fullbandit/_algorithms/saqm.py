"""SAQM: stops when the gap of the estimates exceeds twice the largest confidence width, found by greedy peeling."""

from typing import Literal, get_args

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array
from jaxbandits.checks import require
from jaxbandits.fullbandit._problem.design import Design
from jaxbandits.fullbandit._shared.confidence import confidence_radius
from jaxbandits.fullbandit._shared.enumeration import largest_squared_norm, superarm_table
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
from jaxbandits.numerics.densest_subgraph import Reduction, quadratic_maximization, theorem1_ratio
from jaxbandits.numerics.linalg import squared_norms

Ratio = Literal["theorem1", "exact"]


def saqm(
    design: Design,
    *,
    delta: Array | float,
    epsilon: Array | float,
    noise_scale: Array | float = 1.0,
    alpha: Array | float | Ratio = 0.9,
    reduction: Reduction = "paper",
    pace: Pace = PACE,
) -> Algorithm:
    """Tracks a design until the gap of the estimates exceeds the widths of the best super-arm and of any other.

    Greedy peeling approximates the widest super-arm, within the ratio alpha. Other arguments, actions and answers: see
    `icb`.

    Args:
        design: the design to track.
        delta: () in (0, 1).
        epsilon: () >= 0.
        noise_scale: () > 0.
        alpha: () in (0, 1], share of the largest norm of a super-arm that peeling is assumed to reach. The published
            experiments have 0.9, which small designs do not reach: 0.83 in the mean for 2 n random super-arms, n = 10
            and k = 5. "theorem1" is the proven ratio for the present A, 0.01 to 0.15, which costs 10 to 2500 times more
            pulls. "exact" is the ratio for Lambda^-1, from trying all super-arms once.
        reduction: see `quadratic_maximization`. "exact" peels better: 0.985 and more in the mean.
        pace: times and matrix of the tests. With `design_matrix="limit"` the peeling is done once, in the factory.

    Returns:
        Algorithm.

    Raises:
        ValueError: as `icb`, or `alpha` is "exact" and there are more than 5e6 super-arms.

    **Guarantee**: P(loss of the answer > epsilon) <= delta, up to the constants that `ellipsoid_radius` names, if alpha
    is at most the ratio that peeling attains. This holds for "theorem1" with k >= 3 and the "paper" reduction, and in
    general not for 0.9. **Cost**: O(n^2) per test, and the estimate (see `estimator`).

    **float32**: as for `icb`; where two removals nearly tie, peeling may remove another arm.

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama, Polynomial-time algorithms for multiple-arm identification with
    full-bandit feedback, Algorithm 2.
    """
    check_rule(design, delta=delta, epsilon=epsilon, noise_scale=noise_scale)
    _check_choices(alpha, reduction)
    check_pace(design, pace)
    k, ratio = design.k, alpha
    if isinstance(alpha, str) and alpha == "exact":
        longest = jnp.sqrt(largest_squared_norm(design.inverse, superarm_table(design.support.shape[1], k)))
        ratio = _peeled_norm(design.inverse, k, reduction) / longest
    fixed_bound = _norm_bound(design.inverse, k, ratio, reduction) if pace.design_matrix == "limit" else None

    def test(estimate: Estimate, t: Array) -> tuple[Verdict, Array]:
        if fixed_bound is None:
            bound = _norm_bound(estimate.inverse, k, ratio, reduction)
        else:
            bound = fixed_bound / jnp.sqrt(estimate.level)
        return _rule(estimate, t, k=k, delta=delta, epsilon=epsilon, noise_scale=noise_scale, bound=bound)

    # Only single swaps enter the gap.
    reach = largest_change(design.spectral, 1)
    return algorithm_from_test(design, test, reach=reach, pace=pace)


def saqm_rule(
    design: Design,
    estimate: Estimate,
    t: Array | float,
    *,
    delta: Array | float,
    epsilon: Array | float,
    noise_scale: Array | float = 1.0,
    alpha: Array | float | Ratio = 0.9,
    reduction: Reduction = "paper",
) -> Verdict:
    """Tests the stopping rule of `saqm`. Other arguments and errors: see `icb_rule`.

    Args:
        design: the tracked design.
        estimate: an estimate of `estimator(design)`.
        t: () >= 1, pulls.
        delta: () in (0, 1).
        epsilon: () >= 0.
        noise_scale: () > 0.
        alpha: () in (0, 1], "theorem1", or "exact" for the ratio of this very inverse.
        reduction: "paper" or "exact".

    Returns:
        Verdict. The margin is gap + epsilon - C_t (|chi_M^| + Z / alpha), norms in A_t^-1, with Z the norm of
        `quadratic_maximization(inverse, k)`. The rule holds if it is at least 0.
    """
    check_rule(design, delta=delta, epsilon=epsilon, noise_scale=noise_scale)
    check_estimate(design, estimate, t)
    _check_choices(alpha, reduction)
    if isinstance(alpha, str) and alpha == "exact":
        table = superarm_table(design.support.shape[1], design.k)
        bound = jnp.sqrt(largest_squared_norm(estimate.inverse, table))
    else:
        bound = _norm_bound(estimate.inverse, design.k, alpha, reduction)
    return _rule(estimate, t, k=design.k, delta=delta, epsilon=epsilon, noise_scale=noise_scale, bound=bound)[0]


def _rule(estimate: Estimate, t, *, k: int, delta, epsilon, noise_scale, bound: Array) -> tuple[Verdict, Array]:
    """Tests the rule, and returns its width too; `bound` is an upper bound of the norm of a super-arm."""
    theta, dtype = estimate.theta, estimate.theta.dtype
    radius = confidence_radius(
        "ellipsoid", jnp.asarray(t, dtype), n=theta.size, k=k, delta=delta, noise_scale=noise_scale
    )
    answer = top_k_mask(theta, k)
    gap = jnp.min(jnp.where(answer, theta, jnp.inf)) - jnp.max(jnp.where(answer, -jnp.inf, theta))
    # ERRATUM: Algorithm 2 puts C_t into Z, and equation (4) multiplies by it again. It is meant once.
    width = radius * (jnp.sqrt(squared_norms(answer.astype(dtype)[None], estimate.inverse)[0]) + bound)
    margin = gap + jnp.asarray(epsilon, dtype) - width
    return Verdict(answer, margin >= 0, margin, radius), width


def _norm_bound(inverse: Array, k: int, alpha: Array | float | str, reduction: Reduction) -> Array:
    """Computes the assumed largest norm of a super-arm: the norm of the peeled set over the ratio."""
    ratio = jnp.sqrt(theorem1_ratio(inverse, k)) if isinstance(alpha, str) else jnp.asarray(alpha, inverse.dtype)
    return _peeled_norm(inverse, k, reduction) / ratio


def _peeled_norm(inverse: Array, k: int, reduction: Reduction) -> Array:
    return jnp.sqrt(jnp.maximum(quadratic_maximization(inverse, k, reduction=reduction).value, 0))


def _check_choices(alpha: Array | float | Ratio, reduction: Reduction) -> None:
    if isinstance(alpha, str):
        require(alpha in get_args(Ratio), "alpha", f"be a number or one of {get_args(Ratio)}", alpha)
    else:
        checks.real("alpha", alpha, above=0, most=1)
    checks.one_of("reduction", reduction, Reduction)
