"""LUCB: pulls both the empirical best arm and its most optimistic rival (Kalyanakrishnan et al., 2012)."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.environment import Pull
from jaxbandits.mab._problem.problems import Problem, check_sub_gaussian, float_dtype, scale
from jaxbandits.mab._problem.questions.asked import Question
from jaxbandits.mab._shared.asking import asked, for_question
from jaxbandits.mab._shared.batches import algorithm_in_batches
from jaxbandits.mab._shared.confidence import (
    IntervalName,
    StopSettings,
    argmax_except,
    bernstein_intervals,
    check_intervals,
    level,
    stop_settings,
)
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, argmax, argmin, unfused
from jaxbandits.mab._shared.top_two import Pair, shares_of
from jaxbandits.numerics.elementary import sqrt
from jaxbandits.numerics.indexing import entry, is_entry
from jaxbandits.numerics.thresholds import Threshold
from jaxbandits.questions import TopM, largest


def lucb(
    problem: Problem,
    *,
    question: Question | None = None,
    delta: Array | float,
    threshold: Threshold | None = None,
    epsilon: Array | float = 0.0,
    every: int = 1,
    intervals: IntervalName | None = None,
) -> Algorithm:
    """Pulls the arm with the best mean and its rival with the best upper bound, until their intervals separate.

    The intervals are mean -+ noise_scale sqrt(2 threshold / N), with noise_scale 1/2 for Bernoulli arms. The test comes
    before the two pulls. An action has two slots. For `TopM` the two arms are the one with the smallest lower bound
    among the m best means, and the one with the largest upper bound among the others.

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`.
        question: `BestArm` or `TopM`. If None, the best arm.
        delta: () in (0, 1), allowed probability of error.
        threshold: one of `numerics.thresholds` that reads only the pulls. If None, `gk16`, a heuristic. `kl_lucb` is
            proved.
        epsilon: () >= 0, allowed suboptimality of the answer, in units of reward; below 1 for Bernoulli arms.
        every: pulls per decision, an int >= 1. With more than 1 it works in batches, as `eb_tc` does.
        intervals: "bernstein" for `Bounded` arms: mean -+ (sqrt(2 V e / N) + 7 e / (3 (N - 1))) within [0, 1], with e
            the threshold and V the unbiased empirical variance, after two pulls of each arm. If None, those above.

    Returns:
        Algorithm with actions `Pull` of two slots and answers int32 (), the arm with the best mean; for `TopM` bool
        (K,), the m best means.

    Raises:
        ValueError: an argument lies outside the range above, or the threshold needs evidence that the rule lacks.

    **Guarantee**: with a proved threshold, P(the answer is not epsilon-best) <= delta. For "bernstein" `kl_lucb` is
    proved: one bound after N pulls fails with probability 2 exp(-e) at most, and the sum of these over all N, arms and
    sides is 4 zeta(exponent) / constant delta. With small probability a run never stops; set `max_rounds`. **Cost**:
    O(K) per round of two pulls. **Limit**: 2^31 - 1 pulls.

    Source: Kalyanakrishnan, Tewari, Auer and Stone (2012), PAC subset selection in stochastic multi-armed bandits;
    Maurer and Pontil (2009), Empirical Bernstein bounds and sample-variance penalization.
    """
    check_sub_gaussian(problem, "kl_lucb")
    more = check_intervals(problem, intervals)
    question, epsilon = asked(problem, question, epsilon, every=every, among=(TopM,))
    settings = stop_settings(problem, delta, threshold, epsilon, compared=0)

    def bound(state: State, estimates: Estimates, is_upper: Array) -> Array:
        if intervals is not None:
            return jnp.where(is_upper, *bernstein_intervals(settings, state, estimates))
        radius = scale(problem) * sqrt(2 * level(settings, state) / estimates.counts)
        return estimates.means + jnp.where(is_upper, radius, -radius)

    return algorithm_from_bounds(settings, bound, question, every=every, **more)


def algorithm_from_bounds(
    settings: StopSettings,
    bound: Callable[[State, Estimates, Array], Array],
    question: Question | None,
    *,
    every: int,
    **more: Any,
) -> Algorithm:
    """Builds the algorithm that pulls the arm with the best mean and its rival, or both arms of the weakest pair.

    Args:
        settings: settings of the stopping test.
        bound: (state, estimates, is_upper (K,)) -> upper bounds of the arms where `is_upper`, otherwise lower ones,
            (K,).
        question: `TopM`. If None, the best arm.
        every: pulls per decision, an int >= 1.
        **more: settings of `algorithm_in_batches`.

    Returns:
        Algorithm with actions `Pull` of two slots.
    """

    def both(first: Array, second: Array) -> Pull:
        return Pull(jnp.stack([first, second]), jnp.ones(2, jnp.int32))

    def halves(first: Array, second: Array) -> Array:
        half = jnp.asarray(0.5, float_dtype(settings.problem))
        return shares_of(Pair(first, second), half, settings.problem.arms)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        best = argmax(estimates.means, estimates.lots)
        # The rule reads only the lower bound of the best arm and the upper bounds of the others.
        is_best = is_entry(best, estimates.means)
        ends = unfused(bound(state, estimates, ~is_best))
        rival = argmax_except(best, ends, estimates.lots)
        overlap = entry(ends, rival) - entry(ends, best)
        action, stop = both(best, rival), overlap <= (0 if settings.epsilon is None else settings.epsilon)
        return Choice(action, stop, best, lambda: halves(best, rival))

    def choose_pair(key: Key, state: State, estimates: Estimates) -> Choice:
        """Pulls the arm inside that is most likely to be too many, and the arm outside that may be missing."""
        del key
        assert isinstance(question, TopM)
        members = largest(question.m, estimates.means)
        ends = unfused(bound(state, estimates, ~members))
        lower, upper = jnp.where(members, ends, jnp.inf), jnp.where(members, -jnp.inf, ends)
        first, second = argmin(lower), argmax(upper)
        action = both(first, second)
        return Choice(action, entry(upper, second) <= entry(lower, first), members, lambda: halves(first, second))

    if question is not None:
        algorithm = algorithm_in_batches(
            settings.problem, Rule(choose_pair), every=every, slots=2, draws_lots=False, **more
        )
        return for_question(algorithm, settings.problem, question)
    return algorithm_in_batches(settings.problem, Rule(choose), every=every, slots=2, **more)
