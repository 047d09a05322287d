"""Hardness of an instance: characteristic times, hardness of fixed budgets, the smallest regret."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import require
from jaxbandits.mab._problem.instances import Instance, checked_instance, checked_sd
from jaxbandits.mab._problem.problems import (
    Problem,
    check_problem,
    check_sub_gaussian,
    checked_means,
    divergence,
    has_unknown_variances,
    measured_problem,
    scale,
)
from jaxbandits.mab._problem.questions.asked import Question, check_question, kind_of
from jaxbandits.mab._problem.questions.kind import CharacteristicTime
from jaxbandits.mab._shared.frame import argmax
from jaxbandits.mab._shared.weights import EXACT, checked_margin, optimal_weights
from jaxbandits.numerics.indexing import is_entry
from jaxbandits.questions import BestArm, require_no_epsilon

SOLVER_STEPS = 30  # for `TopM`, `AllGood`, unknown variances: certified within 1e-14, in the hardest cases 1e-11


def characteristic_time(
    problem: Problem,
    means: Array,
    sd: Array | Sequence[float] | None = None,
    *,
    question: Question | None = None,
    leader_share: Array | float | None = None,
    epsilon: Array | float = 0.0,
) -> CharacteristicTime:
    """Computes 1 / T = max over w of the smallest sum_a w_a kl(mu_a, lambda_a) over means lambda with another answer.

    For the best arm b that is the minimum over a of w_b kl(mu_b, m_a) + w_a kl(mu_a, m_a), with pooled means m_a.

    Args:
        problem: any problem of this family.
        means: float (K,), the truth.
        sd: float (K,), positive, the true standard deviations of arms of unknown variance. Otherwise None, or () as in
            an `Instance`, of which this takes all fields: `characteristic_time(*instance)`. The adaptive cost gives the
            time of learners that do not know them, the plug-in cost of those that do.
        question: the question. If None, the best arm.
        leader_share: () in (0, 1), share of the best arm, as for top-two rules. If None, the optimal one. None with a
            question.
        epsilon: () >= 0, allowed suboptimality of the answer, in units of reward. Gaussian arms only; 0 with a
            question.

    Returns:
        CharacteristicTime. Both certificates hold for any weights, so they also bound the error of T: about 1e-10 of
        itself in 64 bit. A tie of the best mean (divergence below 1e-14) gives T = inf and uniform weights.

    Raises:
        ValueError: an argument is out of range.

    **Cost**: O(K), 7 steps; for `TopM` and unknown variances 30 steps of O(m K^3), for `AllGood` of O(K^4). May be
    traced.

    Source: Garivier and Kaufmann (2016), Optimal best arm identification with fixed confidence, Theorem 5.
    """
    check_problem(problem)
    means = checked_means("means", problem, means)
    has_none = sd is None or (isinstance(sd, tuple) and sd == ())
    sds: Any = ()
    if has_unknown_variances(problem):
        require(not has_none, "sd", "be given with unknown variances", sd)
        sds = checked_sd("sd", problem, sd)
        # The solver of a question takes the place of the equation of the best arm.
        question, epsilon = (BestArm(epsilon), 0.0) if question is None else (question, epsilon)
    else:
        require(has_none, "sd", "be None unless variances are unknown", sd)
    if question is not None:
        check_question(question, problem)
        require(leader_share is None, "leader_share", "be None with a question", leader_share)
        require_no_epsilon(epsilon)
        measured = problem if isinstance(sds, tuple) else measured_problem(problem, sds**2)
        return kind_of(question).characteristic_time(question, measured, means, SOLVER_STEPS)
    share = None
    if leader_share is not None:
        checks.probability("leader_share", leader_share)
        share = jnp.asarray(leader_share, means.dtype)
    margin = checked_margin(problem, epsilon)
    weights, balance, is_tie = optimal_weights(problem, means, epsilon=margin, leader_share=share, steps=EXACT)

    is_best = is_entry(argmax(means), means)
    w_b = jnp.sum(jnp.where(is_best, weights, 0))
    rates = w_b * balance.below + weights * balance.above
    attained = jnp.min(jnp.where(is_best, jnp.inf, rates))
    dual = jnp.sum(jnp.where(is_best, 0, 1 / balance.above))
    F = jnp.sum(balance.below / balance.above)
    bound = jnp.maximum(F, 1) if share is None else share * F + 1 - share
    value = (1 + jnp.sum(balance.ratios)) / balance.value
    lower = dual / bound
    # Rounding may exchange the two where they are equal.
    upper = jnp.maximum(1 / attained, lower)
    value, lower, upper = (jnp.where(is_tie, jnp.inf, x) for x in (jnp.clip(value, lower, upper), lower, upper))
    return CharacteristicTime(value, lower, upper, weights)


class Hardness(NamedTuple):
    """Hardness of an instance for a fixed budget, in units of reward^-2."""

    H1: Array  # float ()   sum of gap^-2, the smallest gap standing for the best arm's
    H2: Array  # float ()   max over i of i gap_(i)^-2, the gaps in ascending order; H2 <= H1 <= log(2 K) H2


def hardness(instance: Instance) -> Hardness:
    """Computes the hardness from the gaps to the best mean; the best arm counts with the smallest gap of the others.

    Args:
        instance: the truth, means float (K,). Two arms that tie for the best make it infinite.

    Returns:
        Hardness.

    Raises:
        ValueError: the instance is not valid.

    Source: Audibert, Bubeck and Munos (2010), Best arm identification in multi-armed bandits, section 2.
    """
    means = checked_instance(instance).means
    gaps = jnp.sort(jnp.max(means) - means)
    gaps = gaps.at[0].set(gaps[1])
    ranks = jnp.arange(1, len(means) + 1).astype(means.dtype)
    return Hardness(jnp.sum(gaps**-2), jnp.max(ranks * gaps**-2))


def successive_rejects_bound(instance: Instance, *, horizon: Array | int) -> Array:
    """Computes K (K - 1) / 2 exp(-(T - K) / (L H2)), a bound of the error probability of `successive_rejects`.

    Args:
        instance: the truth, means float (K,). The bound is for rewards in [0, 1]; other gaps are divided by twice the
            noise_scale.
        horizon: T, pulls, int () > K.

    Returns:
        float (), often more than 1.

    Raises:
        ValueError: an argument is out of range, or the rewards have no sub-Gaussian constant.

    Source: Audibert, Bubeck and Munos (2010), Theorem 2.
    """
    instance = checked_instance(instance)
    check_sub_gaussian(instance.problem, "hardness")
    K = instance.problem.arms
    checks.integer("horizon", horizon, least=K + 1)
    H2 = hardness(instance).H2 * (2 * scale(instance.problem)) ** 2
    pulls = jnp.asarray(horizon, instance.means.dtype) - K
    rate = pulls / (0.5 + sum(1 / i for i in range(2, K + 1)))
    return math.comb(K, 2) * jnp.exp(-rate / H2)


def lai_robbins(instance: Instance) -> Array:
    """Computes the sum of gap / kl(mean, best): the smallest limit of regret / log(pulls) of a consistent algorithm.

    Args:
        instance: the truth, means float (K,).

    Returns:
        float (), in units of reward. Arms as good as the best one add nothing.

    Raises:
        ValueError: the instance is not valid.

    Source: Lai and Robbins (1985), Asymptotically efficient adaptive allocation rules, Theorem 1.
    """
    problem, means, sd = checked_instance(instance)
    is_known = isinstance(sd, tuple)
    require(is_known, "instance", "have known variances", instance.problem)
    gaps = jnp.max(means) - means
    rates = divergence(problem, means, jnp.max(means))
    return jnp.sum(jnp.where(gaps > 0, gaps / jnp.where(gaps > 0, rates, 1), 0))
