"""Uniform sampling: pulls all arms in turn."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key, PyTree
from jaxbandits.mab._problem.problems import Problem
from jaxbandits.mab._problem.questions.asked import Question
from jaxbandits.mab._shared.asking import algorithm_from_question, asked
from jaxbandits.mab._shared.batches import algorithm_in_batches
from jaxbandits.mab._shared.confidence import first_pulls, has_separated, stop_settings
from jaxbandits.mab._shared.frame import Choice, Estimates, Proposal, Rule, State, argmax, one_arm
from jaxbandits.numerics.thresholds import Threshold


def uniform(
    problem: Problem,
    *,
    question: Question | None = None,
    delta: Array | float,
    threshold: Threshold | None = None,
    epsilon: Array | float = 0.0,
    every: int = 1,
    start: int | None = None,
) -> Algorithm:
    """Pulls the arms in turn until the likelihood ratio against every other answer exceeds the threshold.

    Args:
        problem: any problem of this family.
        question: one of `BestArm`, `TopM`, `Above`, `GoodArm` and `AllGood`. If None, the best arm.
        delta: () in (0, 1), allowed probability of error.
        threshold: one of `numerics.thresholds`. If None, `gk16`, a heuristic. `kk_pair` is proved for Gaussian arms,
            `gk_union` for Bernoulli arms, `kt` for these and bounded ones, `poisson_mixture` and `exponential_mixture`
            for others, `student` with unknown variances. Other questions: see `eb_tc`.
        epsilon: () >= 0, allowed suboptimality of the answer, in units of reward; below 1 for Bernoulli arms. 0 with a
            question.
        every: pulls per decision, an int >= 1. With more than 1 it works in batches, as `eb_tc` does.
        start: pulls of each arm before the rule applies, an int >= 1, with unknown variances >= 2. If None, 1; with
            unknown variances 3 with `gk16` and 10 with another threshold.

    Returns:
        Algorithm with actions `Pull` of one slot and the answers of the question; for the best arm int32 ().

    Raises:
        ValueError: an argument lies outside the range above, or the threshold needs evidence that the rule lacks.

    **Guarantee**: with a proved threshold, P(the answer is not epsilon-best) <= delta. **Cost**: O(K) per
    round, for `TopM` and `AllGood` O(K^2). **Limit**: 2^31 - 1 pulls.

    Source: baseline of Garivier and Kaufmann (2016), Optimal best arm identification with fixed confidence.
    """
    question, epsilon = asked(problem, question, epsilon, every=every)

    def allot(state: State, estimates: Estimates, number: int) -> tuple[Array, PyTree]:
        del estimates
        arms = jnp.arange(problem.arms, dtype=state.pulls.dtype)
        before, after = ((t + problem.arms - 1 - arms) // problem.arms for t in (state.pulls, state.pulls + number))
        return after - before, state.memory

    if question is not None:
        in_turn = lambda key, state, estimates: Proposal(state.pulls % problem.arms)  # noqa: E731
        return algorithm_from_question(
            problem, question, in_turn, delta=delta, threshold=threshold, every=every, allot=allot, start=start
        )
    settings = stop_settings(problem, delta, threshold, epsilon)
    start = first_pulls(problem, start, threshold)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        arm = state.pulls % problem.arms
        return Choice(one_arm(arm), has_separated(settings, state, estimates), argmax(estimates.means, estimates.lots))

    return algorithm_in_batches(problem, Rule(choose, allot=allot), every=every, start=start)
