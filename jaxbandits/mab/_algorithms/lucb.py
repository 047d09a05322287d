"""LUCB: pulls both the empirical best arm and its most optimistic rival (Kalyanakrishnan et al., 2012)."""

from collections.abc import Callable

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.environment import Pull
from jaxbandits.mab._problem.problems import Problem, check_sub_gaussian, scale
from jaxbandits.mab._shared.confidence import StopSettings, argmax_except, level, stop_settings
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, algorithm_from_rule, argmax, unfused
from jaxbandits.numerics.indexing import entry, is_entry
from jaxbandits.numerics.thresholds import Threshold


def lucb(
    problem: Problem,
    *,
    delta: Array | float,
    threshold: Threshold | None = None,
    epsilon: Array | float = 0.0,
) -> Algorithm:
    """Pulls the arm with the best mean and its rival with the best upper bound, until their intervals separate.

    The intervals are mean -+ noise_scale sqrt(2 threshold / N), with noise_scale 1/2 for Bernoulli arms. The test comes
    before the two pulls. An action has two slots.

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`.
        delta: () in (0, 1), allowed probability of error.
        threshold: one of `numerics.thresholds` that reads only the pulls. If None, `gk16`, a heuristic. `kl_lucb` is
            proved.
        epsilon: () >= 0, allowed suboptimality of the answer, in units of reward; below 1 for Bernoulli arms.

    Returns:
        Algorithm with actions `Pull` of two slots and answers int32 (), the arm with the best mean.

    Raises:
        ValueError: an argument lies outside the range above, or the threshold needs evidence that the rule lacks.

    **Guarantee**: with a proved threshold, P(the answer is not epsilon-best) <= delta. With small
    probability a run never stops; set `max_rounds`. **Cost**: O(K) per round of two pulls. **Limit**: 2^31 - 1 pulls.

    Source: Kalyanakrishnan, Tewari, Auer and Stone (2012), PAC subset selection in stochastic multi-armed bandits.
    """
    check_sub_gaussian(problem, "kl_lucb")
    settings = stop_settings(problem, delta, threshold, epsilon, compared=0)

    def bound(state: State, estimates: Estimates, is_upper: Array) -> Array:
        radius = scale(problem) * jnp.sqrt(2 * level(settings, state) / estimates.counts)
        return estimates.means + jnp.where(is_upper, radius, -radius)

    return algorithm_from_bounds(settings, bound)


def algorithm_from_bounds(settings: StopSettings, bound: Callable[[State, Estimates, Array], Array]) -> Algorithm:
    """Builds the algorithm that pulls the arm with the best mean and its rival.

    Args:
        settings: settings of the stopping test.
        bound: (state, estimates, is_upper (K,)) -> upper bounds of the arms where `is_upper`, otherwise lower ones,
            (K,).

    Returns:
        Algorithm with actions `Pull` of two slots.
    """

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        best = argmax(estimates.means, estimates.lots)
        # The rule reads only the lower bound of the best arm and the upper bounds of the others.
        is_best = is_entry(best, estimates.means)
        ends = unfused(bound(state, estimates, ~is_best))
        rival = argmax_except(best, ends, estimates.lots)
        overlap = entry(ends, rival) - entry(ends, best)
        action = Pull(jnp.stack([best, rival]), jnp.ones(2, jnp.int32))
        return Choice(action, overlap <= (0 if settings.epsilon is None else settings.epsilon), best)

    return algorithm_from_rule(settings.problem, Rule(choose), slots=2)
