"""ICB: stops when no super-arm can beat the estimated best one within independent widths of the single arms."""

from collections.abc import Callable
from typing import Literal, get_args

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array
from jaxbandits.checks import require
from jaxbandits.fullbandit.confidence import ellipsoid_radius, lemma1_radius
from jaxbandits.fullbandit.design import Design
from jaxbandits.fullbandit.state import Estimate, Gram, Look, check_run, top_set, track_and_test
from jaxbandits.fullbandit.stride import largest_change

Width = Literal["lemma1", "ellipsoid"]
Oracle = Callable[[Array], Array]  # (weights float (n,)) -> bool (n,)


def icb(
    design: Design,
    k: int,
    *,
    delta: Array | float,
    epsilon: Array | float,
    sigma: Array | float | None = None,
    width: Width = "lemma1",
    feasible: Oracle | None = None,
    first_test: Array | int | None = None,
    resolution: Array | float | None = 1e-3,
    stride_z: Array | float = 8.0,
    stride_variance: Array | float | None = None,
    gram: Gram = "counts",
) -> Algorithm:
    """Tracks a design until no other super-arm can lead the estimated best one by epsilon, arm by arm.

    Every arm has a confidence interval of its own. The rule takes the best case for all other super-arms: the upper
    ends outside the estimated best one, the lower ends inside.

    Args:
        design: what to pull, `make_design(support, k)`; the run has its dtype.
        k: size of a super-arm, a Python int in 2..n-1.
        delta: () in (0, 1), admitted probability of error.
        epsilon: () >= 0, admitted loss of the answer, in units of reward.
        sigma: () > 0, bound of the noise of one pull; k by default, for arms whose noise lies in [-1, 1].
        width: "lemma1", as printed: `lemma1_radius`; or "ellipsoid": `ellipsoid_radius`, with which the published
            numbers of pulls come out, and which bounds the rule of `exhaustive` from above.
        feasible: the class of super-arms, if not all sets of k arms: an oracle (weights float (n,)) -> bool (n,) that
            returns a heaviest set of the class, whatever the signs; a weight of -inf forbids an arm, and if no set can
            do without it, it returns one with that arm, or one of fewer than k arms. All sets of the class have k
            arms, as the bases of a matroid have: see `numerics.matroid`.
        first_test: () at least s, the number of pulls before the first test; s, the size of the support, by default.
        resolution: () >= 0, least number of pulls between two tests as a share of those so far; 0 finds the first
            passage of the rule to the pull, the default delays it by about 0.05 %. None: one pull a round.
        stride_z: () > 0, how safe the strides between tests are, in standard deviations; see `safe_stride`.
        stride_variance: () > 0, at least the variance of any pull; k by default.
        gram: "counts": A of the pulls made; "limit": t Lambda in its place, without an inversion a test. With "limit"
            a uniform design is tested after whole cycles, unless `resolution` is None.

    Returns:
        Algorithm with actions `Block` and answers bool (n,), the k arms.

    Raises:
        ValueError: an argument lies outside the range above, or the design is too ill-conditioned for its dtype.

    **Guarantee**: P(loss of the answer > epsilon) <= delta, up to the constants that `lemma1_radius` names.
    **Cost**: O(n log n) a test, and that of the estimate (see `estimator`); with `feasible` k + 1 calls of the oracle.

    **float32** is for designs with cond(Lambda) up to 1e3, and not for single pulls: its sums lose rewards beyond some
    10^6 pulls.

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama, Polynomial-time algorithms for multiple-arm identification with
    full-bandit feedback, Algorithm 4.
    """
    check_run(design, k, delta=delta, epsilon=epsilon, sigma=sigma)
    require(width in get_args(Width), "width", f"be one of {get_args(Width)}", width)
    n = design.support.shape[1]
    swaps = min(k, n - k)
    reach = largest_change(design.spectral, swaps)
    widest = jnp.maximum(reach, 2 * swaps * jnp.sqrt(jnp.diagonal(design.inverse).max()))

    def look(estimate: Estimate, t: Array) -> tuple[Look, Array]:
        seen = icb_rule(
            estimate.inverse,
            estimate.theta,
            t,
            k=k,
            delta=delta,
            epsilon=epsilon,
            sigma=sigma,
            width=width,
            feasible=feasible,
        )
        return seen, seen.radius * widest / jnp.sqrt(t)

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


def icb_rule(
    inverse: Array,
    theta: Array,
    t: Array | int,
    *,
    k: int,
    delta: Array | float,
    epsilon: Array | float,
    sigma: Array | float | None = None,
    width: Width = "lemma1",
    feasible: Oracle | None = None,
) -> Look:
    """The stopping rule of `icb`, whose other arguments it takes.

    Args:
        inverse: float (n, n), A_t^-1.
        theta: float (n,), the estimate.
        t: () >= 1, pulls.
        k: as in `icb`.
        delta: as in `icb`.
        epsilon: as in `icb`.
        sigma: as in `icb`.
        width: as in `icb`.
        feasible: as in `icb`.

    Returns:
        Look; the margin is epsilon - V, with V of `best_rival`, and the rule holds where V < epsilon.
    """
    require(width in get_args(Width), "width", f"be one of {get_args(Width)}", width)
    radius = {"lemma1": lemma1_radius, "ellipsoid": ellipsoid_radius}[width](
        jnp.asarray(t, theta.dtype), theta.size, k, delta, sigma
    )
    answer, rival = best_rival(theta, radius * jnp.sqrt(jnp.diagonal(inverse)), k=k, feasible=feasible)
    margin = jnp.asarray(epsilon, theta.dtype) - rival
    return Look(answer, margin > 0, margin, radius)


def best_rival(theta: Array, widths: Array, *, k: int, feasible: Oracle | None = None) -> tuple[Array, Array]:
    """The best super-arm, and by how much another one can lead it if every arm may be off by its width.

    Args:
        theta: float (n,), values of the arms.
        widths: float (n,), at least 0.
        k: size of a super-arm, a Python int in 1..n-1.
        feasible: as in `icb`.

    Returns:
        bool (n,), M^ with the largest sum of theta, and float (), V: the largest value, over all other sets M, of
        theta + widths summed over what M has and M^ has not, less theta - widths summed over what M^ has and M has
        not. -inf if there is no other set.

    Cost: O(n log n), or k + 1 calls of the oracle.

    Source: Kuroki et al., problem P1, solved exactly.
    """
    if feasible is not None:
        return _best_feasible_rival(theta, widths, k, feasible)
    swaps = min(k, theta.size - k)
    answer = top_set(theta, k)
    gains, _ = lax.top_k(jnp.where(answer, -jnp.inf, theta + widths), swaps)
    losses = -lax.top_k(jnp.where(answer, widths - theta, -jnp.inf), swaps)[0]
    # One swap is forced, as the rival must be another set; the others are made where they gain, and the gains fall.
    swapped = gains - losses
    return answer, swapped[0] + jnp.maximum(swapped[1:], 0).sum()


def _best_feasible_rival(theta: Array, widths: Array, k: int, feasible: Oracle) -> tuple[Array, Array]:
    answer = feasible(theta)
    weights = jnp.where(answer, theta - widths, theta + widths)

    def without(arm: Array) -> Array:
        banned = weights.at[arm].set(-jnp.inf)
        rival = feasible(banned)
        value = jnp.where(rival, banned, 0).sum() - jnp.where(answer, weights, 0).sum()
        return jnp.where(rival.sum() == k, value, -jnp.inf)

    # ERRATUM: all bases but one do not form a matroid, so one greedy run does not solve P1. Any other set of the
    # class misses some arm of M^, so the best over the arms that it may miss is the optimum.
    return answer, jax.vmap(without)(jnp.flatnonzero(answer, size=k)).max()
