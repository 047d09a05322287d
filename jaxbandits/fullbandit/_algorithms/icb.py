"""ICB: stops when no super-arm can beat the estimated best one within independent widths of the single arms."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array
from jaxbandits.fullbandit._problem.design import Design
from jaxbandits.fullbandit._shared.confidence import Radius, confidence_radius
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
from jaxbandits.numerics.indexing import largest_first

Oracle = Callable[[Array], Array]  # (weights float (n,)) -> bool (n,)


def icb(
    design: Design,
    *,
    delta: Array | float,
    epsilon: Array | float,
    noise_scale: Array | float = 1.0,
    radius: Radius = "lemma1",
    feasible: Oracle | None = None,
    pace: Pace = PACE,
) -> Algorithm:
    """Tracks a design until no other super-arm can lead the estimated best one by epsilon, arm by arm.

    Every arm has a confidence interval of its own. The rule takes the best case for all other super-arms: the upper
    ends outside the estimated best one, the lower ends inside.

    Args:
        design: the design to track, `make_design(support, k)`; the run has its dtype.
        delta: () in (0, 1), allowed probability of error.
        epsilon: () >= 0, allowed loss of the answer, in units of reward.
        noise_scale: () > 0, sub-Gaussian constant of the noise of an arm, in units of reward: 1 suffices for noise in
            [-1, 1]. The constant of a pull, the literature's sigma, is taken to be k times as large: see
            `ellipsoid_radius`.
        radius: "lemma1", as printed, for `lemma1_radius`; or "ellipsoid" for `ellipsoid_radius`. The latter reproduces
            the published numbers of pulls, and bounds the rule of `exhaustive` from above.
        feasible: an oracle of the class of super-arms, (weights float (n,)) -> bool (n,), that returns a heaviest set
            of the class for weights of any sign. If None, the class is all sets of k arms. A weight of -inf forbids an
            arm. If every set has a forbidden arm, the oracle returns one with it, or one of fewer than k arms. All sets
            of the class have k arms, like the bases of a matroid: see `numerics.matroid`.
        pace: times and matrix of the tests.

    Returns:
        Algorithm with actions `Pulls` and answers bool (n,), the k arms.

    Raises:
        ValueError: an argument lies outside the range above, or the design is too ill-conditioned for its dtype.

    **Guarantee**: P(loss of the answer > epsilon) <= delta, up to the constants that `lemma1_radius` names.
    **Cost**: O(n log n) per test, and the estimate (see `estimator`); with `feasible` k + 1 calls of the oracle.

    **float32** is for designs with cond(Lambda) up to 1e3. Its sums are compensated: they lose no single reward.

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama, Polynomial-time algorithms for multiple-arm identification with
    full-bandit feedback, Algorithm 4.
    """
    check_rule(design, delta=delta, epsilon=epsilon, noise_scale=noise_scale)
    _check_choices(radius, feasible)
    check_pace(design, pace)
    swaps = min(design.k, design.support.shape[1] - design.k)
    reach = largest_change(design.spectral, swaps)
    widest = jnp.maximum(reach, 2 * swaps * jnp.sqrt(jnp.diagonal(design.inverse).max()))

    def test(estimate: Estimate, t: Array) -> tuple[Verdict, Array]:
        verdict = _rule(
            estimate,
            t,
            k=design.k,
            delta=delta,
            epsilon=epsilon,
            noise_scale=noise_scale,
            radius=radius,
            feasible=feasible,
        )
        return verdict, verdict.radius * widest / jnp.sqrt(t)

    return algorithm_from_test(design, test, reach=reach, pace=pace)


def icb_rule(
    design: Design,
    estimate: Estimate,
    t: Array | float,
    *,
    delta: Array | float,
    epsilon: Array | float,
    noise_scale: Array | float = 1.0,
    radius: Radius = "lemma1",
    feasible: Oracle | None = None,
) -> Verdict:
    """Tests the stopping rule of `icb`. Other arguments: see `icb`.

    Args:
        design: the tracked design.
        estimate: an estimate of `estimator(design)`.
        t: () >= 1, pulls.
        delta: () in (0, 1).
        epsilon: () >= 0.
        noise_scale: () > 0.
        radius: "lemma1" or "ellipsoid".
        feasible: an oracle of the class of super-arms.

    Returns:
        Verdict. The margin is epsilon - V, with V of `best_rival`, and the rule holds if V < epsilon.

    Raises:
        ValueError: an argument is out of range.
    """
    check_rule(design, delta=delta, epsilon=epsilon, noise_scale=noise_scale)
    check_estimate(design, estimate, t)
    _check_choices(radius, feasible)
    return _rule(
        estimate, t, k=design.k, delta=delta, epsilon=epsilon, noise_scale=noise_scale, radius=radius, feasible=feasible
    )


def _rule(
    estimate: Estimate, t, *, k: int, delta, epsilon, noise_scale, radius: Radius, feasible: Oracle | None
) -> Verdict:
    theta = estimate.theta
    c = confidence_radius(radius, jnp.asarray(t, theta.dtype), n=theta.size, k=k, delta=delta, noise_scale=noise_scale)
    answer, rival = best_rival(theta, c * jnp.sqrt(jnp.diagonal(estimate.inverse)), k=k, feasible=feasible)
    margin = jnp.asarray(epsilon, theta.dtype) - rival
    return Verdict(answer, margin > 0, margin, c)


def best_rival(theta: Array, widths: Array, *, k: int, feasible: Oracle | None = None) -> tuple[Array, Array]:
    """Finds the best super-arm, and the largest possible lead of another one if every arm may be off by its width.

    Args:
        theta: float (n,), values of the arms.
        widths: float (n,), at least 0.
        k: arms in a super-arm, a Python int in 1..n-1.
        feasible: as in `icb`.

    Returns:
        bool (n,), M^ with the largest sum of theta, and float (), V. V is the largest value, over all other sets M, of
        the sum of theta + widths over the arms of M outside M^, less the sum of theta - widths over the arms of M^
        outside M; -inf if there is no other set.

    Cost: O(n log n), or k + 1 calls of the oracle.

    Source: Kuroki et al., problem P1, solved exactly.
    """
    if feasible is not None:
        return _best_feasible_rival(theta, widths, k, feasible)
    swaps = min(k, theta.size - k)
    answer = top_k_mask(theta, k)
    gains = largest_first(jnp.where(answer, -jnp.inf, theta + widths), swaps)
    losses = -largest_first(jnp.where(answer, widths - theta, -jnp.inf), swaps)
    # One swap is forced, as the rival must be another set. The others are made if they gain, and the gains decrease.
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

    # ERRATUM: all bases except one do not form a matroid, so one greedy run does not solve P1. Any other set of the
    # class misses some arm of M^, so the best over the arms that it may miss is the optimum.
    return answer, jax.vmap(without)(jnp.flatnonzero(answer, size=k)).max()


def _check_choices(radius: Radius, feasible: Oracle | None) -> None:
    checks.one_of("radius", radius, Radius)
    if feasible is not None:
        checks.function("feasible", feasible, "weights (n,)")
