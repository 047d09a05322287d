"""SAQM: stops when the gap of the estimates exceeds twice the largest confidence width, found by greedy peeling."""

from typing import Literal, get_args

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array
from jaxbandits.checks import known, require
from jaxbandits.fullbandit.confidence import ellipsoid_radius
from jaxbandits.fullbandit.design import Design
from jaxbandits.fullbandit.exhaustive import largest_squared_norm, superarm_table
from jaxbandits.fullbandit.state import Estimate, Gram, Look, check_run, top_set, track_and_test
from jaxbandits.fullbandit.stride import largest_change
from jaxbandits.numerics.densest_subgraph import Reduction, quadratic_maximization, theorem1_ratio
from jaxbandits.numerics.linalg import squared_norms

Ratio = Literal["theorem1", "exact"]


def saqm(
    design: Design,
    k: int,
    *,
    delta: Array | float,
    epsilon: Array | float,
    sigma: Array | float | None = None,
    alpha: Array | float | Ratio = 0.9,
    reduction: Reduction = "paper",
    first_test: Array | int | None = None,
    resolution: Array | float | None = 1e-3,
    stride_z: Array | float = 8.0,
    stride_variance: Array | float | None = None,
    gram: Gram = "counts",
) -> Algorithm:
    """Tracks a design until the gap of the estimates exceeds the widths of the best super-arm and of any other.

    The widest super-arm is approximated by greedy peeling, within the ratio alpha.

    Args:
        design: as in `icb`.
        k: as in `icb`.
        delta: as in `icb`.
        epsilon: as in `icb`.
        sigma: as in `icb`.
        alpha: () in (0, 1], the share of the largest norm of a super-arm that peeling is taken to reach. 0.9 is that of
            the published experiments, and on small designs not reached: 0.83 in the mean for 2 n random super-arms,
            n = 10 and k = 5. "theorem1": the proven one for the present A, 0.01 to 0.15, which costs 10 to 2500 times
            more pulls. "exact": that of Lambda^-1, by trying all super-arms once.
        reduction: as in `quadratic_maximization`. "exact" peels better: 0.985 and more in the mean.
        first_test: as in `icb`.
        resolution: as in `icb`.
        stride_z: as in `icb`.
        stride_variance: as in `icb`.
        gram: as in `icb`; with "limit" the peeling is done once, in the factory.

    Returns:
        Algorithm with actions `Block` and answers bool (n,), the k arms.

    Raises:
        ValueError: an argument lies outside the range above, the design is too ill-conditioned for its dtype, or
            `alpha` is "exact" and there are more than 5e6 super-arms.

    **Guarantee**: P(loss of the answer > epsilon) <= delta, up to the constants that `ellipsoid_radius` names, if alpha
    is at most the ratio that peeling attains. "theorem1" is, for k >= 3 and the "paper" reduction; 0.9 is not in
    general. **Cost**: O(n^2) a test, and that of the estimate (see `estimator`).

    **float32**: as `icb`; where two removals nearly tie, peeling may go another way.

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama, Polynomial-time algorithms for multiple-arm identification with
    full-bandit feedback, Algorithm 2.
    """
    check_run(design, k, delta=delta, epsilon=epsilon, sigma=sigma)
    _check_alpha(alpha)
    require(reduction in get_args(Reduction), "reduction", f"be one of {get_args(Reduction)}", reduction)
    n = design.support.shape[1]
    ratio = alpha
    if isinstance(alpha, str) and alpha == "exact":
        largest = jnp.sqrt(largest_squared_norm(design.inverse, superarm_table(n, k)))
        ratio = _peeled_norm(design.inverse, k, reduction) / largest
    fixed_bound = _norm_bound(design.inverse, k, ratio, reduction) if gram == "limit" else None

    def look(estimate: Estimate, t: Array) -> tuple[Look, Array]:
        if fixed_bound is None:
            bound = _norm_bound(estimate.inverse, k, ratio, reduction)
        else:
            bound = fixed_bound / jnp.sqrt(estimate.level)
        return _rule(estimate.inverse, estimate.theta, t, bound, k=k, delta=delta, epsilon=epsilon, sigma=sigma)

    return track_and_test(
        design,
        k,
        look,
        reach=largest_change(design.spectral, 1),  # only single swaps enter the gap
        first_test=first_test,
        resolution=resolution,
        stride_z=stride_z,
        stride_variance=stride_variance,
        gram=gram,
    )


def saqm_rule(
    inverse: Array,
    theta: Array,
    t: Array | int,
    *,
    k: int,
    delta: Array | float,
    epsilon: Array | float,
    sigma: Array | float | None = None,
    alpha: Array | float | Ratio = 0.9,
    reduction: Reduction = "paper",
) -> Look:
    """The stopping rule of `saqm`, whose other arguments it takes.

    Args:
        inverse: float (n, n), A_t^-1.
        theta: float (n,), the estimate.
        t: () >= 1, pulls.
        k: as in `saqm`.
        delta: as in `saqm`.
        epsilon: as in `saqm`.
        sigma: as in `saqm`.
        alpha: as in `saqm`, "exact" for the ratio of this very inverse.
        reduction: as in `saqm`.

    Returns:
        Look; the margin is gap + epsilon - C_t (|chi_M^| + Z / alpha), norms in A_t^-1, with Z the norm of
        `quadratic_maximization(inverse, k)`. The rule holds where it is at least 0.
    """
    _check_alpha(alpha)
    if isinstance(alpha, str) and alpha == "exact":
        bound = jnp.sqrt(largest_squared_norm(inverse, superarm_table(theta.size, k)))
    else:
        bound = _norm_bound(inverse, k, alpha, reduction)
    return _rule(inverse, theta, t, bound, k=k, delta=delta, epsilon=epsilon, sigma=sigma)[0]


def _rule(
    inverse: Array,
    theta: Array,
    t: Array | int,
    bound: Array,
    *,
    k: int,
    delta: Array | float,
    epsilon: Array | float,
    sigma: Array | float | None,
) -> tuple[Look, Array]:
    """The rule and its width; `bound` stands for the largest norm of a super-arm."""
    dtype = theta.dtype
    radius = ellipsoid_radius(jnp.asarray(t, dtype), theta.size, k, delta, sigma)
    answer = top_set(theta, k)
    ranked, _ = lax.top_k(theta, k + 1)
    # ERRATUM: Algorithm 2 puts C_t into Z, and equation (4) multiplies by it once more. It is meant once.
    width = radius * (jnp.sqrt(squared_norms(answer.astype(dtype)[None], inverse)[0]) + bound)
    margin = ranked[k - 1] - ranked[k] + jnp.asarray(epsilon, dtype) - width
    return Look(answer, margin >= 0, margin, radius), width


def _norm_bound(inverse: Array, k: int, alpha: Array | float | str, reduction: Reduction) -> Array:
    """What the largest norm of a super-arm is taken to be: that of the peeled set over the ratio."""
    ratio = jnp.sqrt(theorem1_ratio(inverse, k)) if isinstance(alpha, str) else jnp.asarray(alpha, inverse.dtype)
    return _peeled_norm(inverse, k, reduction) / ratio


def _peeled_norm(inverse: Array, k: int, reduction: Reduction) -> Array:
    return jnp.sqrt(jnp.maximum(quadratic_maximization(inverse, k, reduction=reduction).value, 0))


def _check_alpha(alpha: Array | float | Ratio) -> None:
    if isinstance(alpha, str):
        require(alpha in get_args(Ratio), "alpha", f"be a number or one of {get_args(Ratio)}", alpha)
    else:
        require((known(alpha) > 0) & (known(alpha) <= 1), "alpha", "lie in (0, 1]", alpha)
