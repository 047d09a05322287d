"""UGapE: the arm with the smallest possible gap to a better one, and its strongest rival (Gabillon et al., 2012)."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem
from jaxbandits.mab._problem.questions.asked import Question
from jaxbandits.mab._shared.asking import asked, for_question
from jaxbandits.mab._shared.batches import algorithm_in_batches
from jaxbandits.mab._shared.confidence import (
    IntervalName,
    argmax_except,
    bernstein_intervals,
    check_intervals,
    stop_settings,
)
from jaxbandits.mab._shared.confidence import intervals as own_intervals
from jaxbandits.mab._shared.frame import (
    Choice,
    Estimates,
    Rule,
    State,
    argmax,
    argmin,
    one_arm,
    precedence,
    unfused,
)
from jaxbandits.numerics import indexing
from jaxbandits.numerics.indexing import entry, is_entry
from jaxbandits.numerics.kernels import apart
from jaxbandits.numerics.thresholds import Threshold
from jaxbandits.questions import TopM, largest


def ugape(
    problem: Problem,
    *,
    question: Question | None = None,
    delta: Array | float,
    threshold: Threshold | None = None,
    epsilon: Array | float = 0.0,
    every: int = 1,
    intervals: IntervalName | None = None,
) -> Algorithm:
    """Pulls the arm J with the smallest B_a = max over c != a of U_c - L_a, or its rival, whichever has fewer pulls.

    U and L are the bounds of the intervals with N kl(mean, q) <= threshold. The rival is the other arm with the largest
    U. It stops when B_J <= epsilon. For `TopM` B_a takes the m-th largest U of the other arms, and J has the m smallest
    B. The two arms are the one of J with the smallest L and the other arm with the largest U. It stops when all B of J
    are at most 0.

    Args:
        problem: any problem of this family.
        question: `BestArm` or `TopM`. If None, the best arm.
        delta: () in (0, 1), allowed probability of error.
        threshold: one of `numerics.thresholds` that reads only the pulls. If None, `gk16`, a heuristic. `kl_lucb` is
            proved.
        epsilon: () >= 0, allowed suboptimality of the answer, in units of reward; below 1 for Bernoulli arms.
        every: pulls per decision, an int >= 1. With more than 1 it works in batches, as `eb_tc` does.
        intervals: "bernstein" for `Bounded` arms, as for `lucb`. If None, those above.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm J; for `TopM` bool (K,).

    Raises:
        ValueError: an argument lies outside the range above, or the threshold needs evidence that the rule lacks.

    **Guarantee**: with a proved threshold, P(the answer is not epsilon-best) <= delta. With small probability a run
    never stops; set `max_rounds`. **Cost**: O(K) per round, for Bernoulli arms 4 K relative entropies. **Limit**:
    2^31 - 1 pulls.

    Source: Gabillon, Ghavamzadeh and Lazaric (2012), Best arm identification: a unified approach to fixed budget and
    fixed confidence.
    """
    question, epsilon = asked(problem, question, epsilon, every=every, among=(TopM,))
    settings = stop_settings(problem, delta, threshold, epsilon, compared=0)
    more = check_intervals(problem, intervals)
    intervals_of = own_intervals if intervals is None else bernstein_intervals

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        upper, lower = unfused(intervals_of(settings, state, estimates))
        first = argmax(upper, estimates.lots)
        second = argmax_except(first, upper, estimates.lots)
        gaps = jnp.where(is_entry(first, upper), entry(upper, second), entry(upper, first)) - lower
        best = argmin(gaps, estimates.lots)
        rival = jnp.where(best == first, second, first)
        count, count_rival = entry(state.counts, best), entry(state.counts, rival)
        order = precedence(estimates.lots, problem.arms)
        is_best = (count < count_rival) | ((count == count_rival) & (entry(order, best) > entry(order, rival)))
        stop = entry(gaps, best) <= (0 if settings.epsilon is None else settings.epsilon)
        return Choice(one_arm(jnp.where(is_best, best, rival)), stop, best)

    def choose_set(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        assert isinstance(question, TopM)
        upper, lower = unfused(intervals_of(settings, state, estimates))
        is_high = largest(question.m, upper)
        within = apart(indexing.smallest, jnp.where(is_high, upper, jnp.inf))
        beyond = apart(indexing.largest, jnp.where(is_high, -jnp.inf, upper))
        gaps = unfused(jnp.where(is_high, beyond, within) - lower)
        members = largest(question.m, -gaps)
        first, second = argmin(jnp.where(members, lower, jnp.inf)), argmax(jnp.where(members, -jnp.inf, upper))
        count, count_other = entry(state.counts, first), entry(state.counts, second)
        is_first = (count < count_other) | ((count == count_other) & (first < second))
        stop = apart(indexing.largest, jnp.where(members, gaps, -jnp.inf)) <= 0
        return Choice(one_arm(jnp.where(is_first, first, second)), stop, members)

    if question is not None:
        algorithm = algorithm_in_batches(problem, Rule(choose_set), every=every, draws_lots=False, **more)
        return for_question(algorithm, problem, question)
    return algorithm_in_batches(problem, Rule(choose), every=every, **more)
