"""Uniform sampling: pulls all arms in turn."""

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem
from jaxbandits.mab._shared.confidence import has_separated, stop_settings
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, algorithm_from_rule, argmax, one_arm
from jaxbandits.numerics.thresholds import Threshold


def uniform(
    problem: Problem,
    *,
    delta: Array | float,
    threshold: Threshold | None = None,
    epsilon: Array | float = 0.0,
) -> Algorithm:
    """Pulls the arms in turn until the likelihood ratio of the best mean against every other exceeds the threshold.

    Args:
        problem: any problem of this family.
        delta: () in (0, 1), allowed probability of error.
        threshold: one of `numerics.thresholds`. If None, `gk16`, a heuristic. `kk_pair` is proved for Gaussian arms,
            `gk_union` for Bernoulli arms, `kt` for these and bounded ones, `poisson_mixture` and `exponential_mixture`
            for others.
        epsilon: () >= 0, allowed suboptimality of the answer, in units of reward; below 1 for Bernoulli arms.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean.

    Raises:
        ValueError: an argument lies outside the range above, or the threshold needs evidence that the rule lacks.

    **Guarantee**: with a proved threshold, P(the answer is not epsilon-best) <= delta. **Cost**: O(K) per
    round. **Limit**: 2^31 - 1 pulls.

    Source: baseline of Garivier and Kaufmann (2016), Optimal best arm identification with fixed confidence.
    """
    settings = stop_settings(problem, delta, threshold, epsilon)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        arm = state.pulls % problem.arms
        return Choice(one_arm(arm), has_separated(settings, state, estimates), argmax(estimates.means, estimates.lots))

    return algorithm_from_rule(problem, Rule(choose))
