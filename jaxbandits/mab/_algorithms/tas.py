"""Track-and-Stop: tracks the proportions that would be optimal at the estimates (Garivier, Kaufmann, 2016)."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.checks import require
from jaxbandits.mab._problem.problems import Problem, float_dtype, has_unknown_variances, measured_problem
from jaxbandits.mab._problem.questions.all_good import AllGood
from jaxbandits.mab._problem.questions.asked import Question, kind_of
from jaxbandits.mab._problem.questions.good_arm import GoodArm
from jaxbandits.mab._shared.asking import answer_of, asked, for_question, has_cleared, question_settings
from jaxbandits.mab._shared.batches import algorithm_in_batches, one_by_one
from jaxbandits.mab._shared.confidence import first_pulls, has_separated, stop_settings
from jaxbandits.mab._shared.frame import (
    Choice,
    Estimates,
    Rule,
    State,
    argmax,
    argmin,
    estimates,
    one_arm,
)
from jaxbandits.mab._shared.good_arm_tracking import accumulated, best_answer_weights, held_answer_weights
from jaxbandits.mab._shared.weights import checked_margin, optimal_weights
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.thresholds import Threshold
from jaxbandits.questions import Above, BestArm, TopM

TrackingName = Literal["D", "C"]
SOLVED = (BestArm, TopM, AllGood)  # questions whose weights take a solver; the best arm only with unknown variances
STEPS = 8  # steps for their weights: within 1e-5 of the largest value, seldom 1e-2 (K = 5)
GRID = 2**20  # such weights are multiples of 1 / GRID
LAZY = 64  # without `replan_every`, such weights are computed anew once a run is longer by this part


class Plan(NamedTuple):
    """Memory of the weights, if there is any. A field that a form does not need never changes."""

    weights: Array  # float (K,)      weights at the last plan, if they are a plan
    planned: Array  # int ()          pulls at the last plan; -1 before the first
    # float (K,)   C: the sum of all projected weights so far; the first pulls of each arm at first, with GoodArm 0
    tracked: Array


class Target(NamedTuple):
    """Functions of the estimates that depend on the question."""

    weights: Callable[[Estimates], Array]  # optimal proportions, float (K,)
    is_reached: Callable[[State, Estimates], Array]  # bool ()   the run may stop
    answer: Callable[[Estimates], Array]


def tas(
    problem: Problem,
    *,
    question: Question | None = None,
    delta: Array | float,
    threshold: Threshold | None = None,
    epsilon: Array | float = 0.0,
    tracking: TrackingName | None = None,
    sticky: bool = False,
    replan_every: int | None = None,
    every: int = 1,
    start: int | None = None,
) -> Algorithm:
    """Pulls the arm that is furthest behind its optimal proportion at the estimates, or one with too few pulls.

    Args:
        problem: any problem of this family.
        question: one of `BestArm`, `TopM`, `Above`, `GoodArm` and `AllGood`. If None, the best arm.
        delta: () in (0, 1), allowed probability of error.
        threshold: one of `numerics.thresholds`. If None, `gk16`, a heuristic. `kk_pair` is proved for Gaussian arms,
            `gk_union` for Bernoulli arms, `kt` for these and bounded ones, `poisson_mixture` and `exponential_mixture`
            for others, `student` with unknown variances. Other questions: see `eb_tc`; for `GoodArm` None is `gk16` for
            K comparisons.
        epsilon: () >= 0, allowed suboptimality of the answer, in units of reward. Gaussian arms only; 0 with a
            question.
        tracking: "D" tracks the proportions at the current estimates, with a pull for arms that have less than
            sqrt(t) - K / 2. "C" tracks the sum of all proportions so far, each projected on weights of at least
            1 / (2 sqrt(K^2 + t)). C needs 20 to 27 % more pulls, since old weights stay in its sum. `GoodArm` has
            another C alone: weights of at least 1 / sqrt(K^2 + t + 1), for which all others lose the same amount, and
            a sum that starts at 0. If None, "C" for `GoodArm`, otherwise "D".
        sticky: for `GoodArm`, whether it tracks the proportions of the first answer that the data leave open, arms by
            index, and "none" last. An arm is open if it could be the best, and good, at a likelihood ratio of at most
            log t. That needs fewer pulls where several arms are good, and more where none is.
        replan_every: pulls between two computations of the weights, an int >= 1. With more than 1 the weights are a
            plan, which a batch of runs makes together: a cheaper algorithm, but another one. If None, 1, except for
            `TopM`, `AllGood` and unknown variances, whose weights are computed anew once the run is longer by a 64th.
            That needs 2 to 3 % more pulls, but a twentieth of the time in runs of 16,000 pulls.
        every: pulls per decision, an int >= 1. With more than 1 it works in batches, as `eb_tc` does, and needs
            `replan_every` 1. The weights of a batch's beginning are tracked pull by pull.
        start: pulls of each arm before the rule applies, an int >= 1, with unknown variances >= 2. If None, 1; with
            unknown variances 3 with `gk16` and 10 with another threshold.

    Returns:
        Algorithm with actions `Pull` of one slot and the answers of the question; for the best arm int32 (), the arm
        with the best mean.

    Raises:
        ValueError: an argument lies outside the range above, or the threshold needs evidence that the rule lacks.

    **Guarantee**: with a proved threshold, P(the answer is wrong) <= delta, and mean pulls / log(1 / delta) tend
    to the smallest possible limit, the `characteristic_time`; for `GoodArm` if there is one best arm, or no good one.
    **Cost**: about 12 K relative entropies for new weights; for `GoodArm` O(K^2) operations; for `TopM` O(m K^3) with
    m <= K / 2, for `AllGood` O(K^4). **Limit**: 2^31 - 1 pulls.

    Source: Garivier and Kaufmann (2016), Optimal best arm identification with fixed confidence; Degenne and Koolen
    (2019), Pure exploration with multiple correct answers, for `GoodArm` and `sticky`; Jedra and Proutiere (2020),
    Optimal best-arm identification in linear bandits, for weights that are computed ever more rarely.

    Example:
        >>> import jax
        >>> from jaxbandits import mab, run
        >>> instance = mab.gaussian([0.5, 0.4, -0.1])
        >>> algorithm = mab.tas(instance.problem, question=mab.GoodArm(0.0), sticky=True, delta=0.05)
        >>> outcome = run(jax.random.key(0), algorithm, mab.environment(instance, algorithm), max_rounds=10**5)
        >>> print(mab.is_right(instance, outcome.answer, question=mab.GoodArm(0.0)))
        True
    """
    question, epsilon = asked(problem, question, epsilon, every=every, among=(TopM, Above, GoodArm, AllGood))
    is_good_arm = isinstance(question, GoodArm)
    checks.flag("sticky", sticky)
    require(is_good_arm or not sticky, "sticky", "be False unless the question is GoodArm", sticky)
    if is_good_arm:
        is_known = not has_unknown_variances(problem)
        require(is_known, "problem", "have a noise_scale, for GoodArm in this rule", problem)
        threshold = thresholds.gk16(comparisons=problem.arms) if threshold is None else threshold
    if question is None and has_unknown_variances(problem):
        question = BestArm(epsilon)
    start = first_pulls(problem, start, threshold)
    if question is None:
        target = _best_arm(problem, delta, threshold, epsilon)
    else:
        target = _target(problem, question, delta, threshold, sticky=sticky)
    if tracking is None:
        tracking = "C" if is_good_arm else "D"
    checks.one_of("tracking", tracking, TrackingName)
    require(tracking == "C" or not is_good_arm, "tracking", 'be None or "C" for GoodArm', tracking)
    add = accumulated if is_good_arm else cumulative
    # DEVIATION: the paper computes new weights before every pull.
    is_lazy = replan_every is None and every == 1 and isinstance(question, SOLVED)
    replan_every = 1 if replan_every is None else checks.whole("replan_every", replan_every, least=1)
    require(replan_every == 1 or every == 1, "replan_every", "be 1 with every > 1", replan_every)
    plans = is_lazy or replan_every > 1
    K, dtype = problem.arms, float_dtype(problem)

    def weights_of(state: State, estimates: Estimates) -> Array:
        return state.memory.weights if plans else target.weights(estimates)

    def next_arm(state: State, weights: Array, lots: Array | tuple[()]) -> tuple[Array, Plan | tuple[()]]:
        """Returns the next arm, and the memory after its pull."""
        if tracking == "D":
            return direct(weights, counts=state.counts, pulls=state.pulls, lots=lots), state.memory
        tracked = add(state.memory.tracked, weights=weights, pulls=state.pulls)
        behind = tracked - state.counts.astype(dtype)
        return argmax(behind, lots), state.memory._replace(tracked=tracked)

    def allot(state: State, estimates: Estimates, number: int) -> tuple[Array, Plan | tuple[()]]:
        weights = target.weights(estimates)

        def following(i: Array, times: Array, memory: Plan | tuple[()]) -> tuple[Array, Plan | tuple[()]]:
            at = state._replace(
                pulls=state.pulls + i.astype(state.pulls.dtype), counts=state.counts + times, memory=memory
            )
            return next_arm(at, weights, estimates.lots)

        return one_by_one(following, state.memory, arms=K, pulls=number)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        arm, _ = next_arm(state, weights_of(state, estimates), estimates.lots)
        return Choice(one_arm(arm), target.is_reached(state, estimates), target.answer(estimates))

    def remember(state: State, estimates: Estimates) -> Plan:
        tracked = add(state.memory.tracked, weights=weights_of(state, estimates), pulls=state.pulls)
        return state.memory._replace(tracked=tracked)

    memory = Plan(jnp.full(K, 1 / K, dtype), jnp.full((), -1, int), jnp.full(K, 0 if is_good_arm else start, dtype))
    memory = () if tracking == "D" and not plans else memory
    rule = Rule(choose, memory, remember if tracking == "C" else None, allot=allot)
    draws_lots = None if question is None else False
    algorithm = algorithm_in_batches(problem, rule, every=every, draws_lots=draws_lots, start=start)
    algorithm = for_question(algorithm, problem, question)
    if not plans:
        return algorithm

    def plan(key: Key, state: State) -> State:
        del key
        weights = target.weights(estimates(problem, state))
        return state._replace(memory=state.memory._replace(weights=weights, planned=state.pulls))

    def stale(state: State) -> Array:
        planned = state.memory.planned
        wait = jnp.maximum(planned // LAZY, 1) if is_lazy else replan_every
        is_due = (planned < 0) | (state.pulls - planned >= wait)
        return (state.pulls >= start * K) & is_due & ~target.is_reached(state, estimates(problem, state))

    return algorithm._replace(plan=plan, stale=stale)


def _best_arm(problem: Problem, delta: Any, threshold: Threshold | None, epsilon: Any) -> Target:
    settings = stop_settings(problem, delta, threshold, epsilon)
    margin = checked_margin(problem, epsilon)
    return Target(
        lambda estimates: optimal_weights(problem, estimates.means, epsilon=margin)[0],
        lambda state, estimates: has_separated(settings, state, estimates),
        lambda estimates: argmax(estimates.means, estimates.lots),
    )


def _target(problem: Problem, question: Question, delta: Any, threshold: Threshold | None, *, sticky: bool) -> Target:
    settings, kind = question_settings(problem, question, delta, threshold), kind_of(question)

    def weights(estimates: Estimates) -> Array:
        if isinstance(question, GoodArm):
            return (held_answer_weights if sticky else best_answer_weights)(problem, question, estimates)
        measured = measured_problem(problem, estimates.variances)
        allocation = kind.characteristic_time(question, measured, estimates.means, STEPS).allocation
        # Arms of one mean get one weight, so that their order and not rounding decides between them.
        return jnp.round(allocation * GRID) / GRID if isinstance(question, SOLVED) else allocation

    return Target(
        weights,
        lambda state, estimates: has_cleared(settings, question, state, estimates),
        lambda estimates: answer_of(problem, question, estimates),
    )


def direct(weights: Array, counts: Array, pulls: Array, lots: Array | tuple[()] = ()) -> Array:
    """Returns the next arm of D-tracking.

    Args:
        weights: float (K,).
        counts: int (K,).
        pulls: int (), t.
        lots: as for `argmax`.

    Returns:
        int32 (): the arm with the fewest pulls if that is less than sqrt(t) - K / 2, otherwise the furthest behind.
    """
    K, t = counts.shape[0], pulls.astype(weights.dtype)
    pulled = counts.astype(weights.dtype)
    behind = argmax(t * weights - pulled, lots)
    return jnp.where(jnp.any(pulled < jnp.sqrt(t) - K / 2), argmin(counts, lots), behind)


def cumulative(tracked: Array, weights: Array, pulls: Array) -> Array:
    """Adds the projected weights of this round to their sum so far, float (K,)."""
    K = weights.shape[0]
    return tracked + projected(weights, 1 / (2 * jnp.sqrt(K**2 + pulls.astype(weights.dtype))))


def projected(weights: Array, least: Array) -> Array:
    """Projects weights on weights of at least `least`, by one of the smallest changes in the maximum norm.

    Entries below `least` are raised to it. Their total rise is taken from the others, in proportion to their excess.

    Args:
        weights: float (K,), with sum 1.
        least: float (), at most 1 / K.

    Returns:
        float (K,), with sum 1.
    """
    above = jnp.maximum(weights - least, 0)
    raised = jnp.sum(jnp.maximum(least - weights, 0))
    return least + above * (1 - raised / jnp.sum(above))
