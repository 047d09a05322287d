"""Rules that answer a question: the stop by the likelihood ratio of its nearest alternative, and the answer."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.checks import require
from jaxbandits.mab._problem.problems import Problem, check_problem, float_dtype, measured_problem
from jaxbandits.mab._problem.questions.asked import Question, check_question, kind_of
from jaxbandits.mab._problem.questions.good_arm import GoodArm
from jaxbandits.mab._shared.batches import algorithm_in_batches
from jaxbandits.mab._shared.confidence import StopSettings, evidence_of, first_pulls, stop_settings
from jaxbandits.mab._shared.frame import Allot, Choice, Estimates, Proposal, Rule, State, one_arm
from jaxbandits.numerics.thresholds import Threshold
from jaxbandits.questions import BestArm, require_no_epsilon

PullOf = Callable[[Key, State, Estimates], Proposal]


def asked(
    problem: Problem, question: Question | None, epsilon: Any, *, every: Any, among: tuple[type, ...] | None = None
) -> tuple[Question | None, Any]:
    """Checks a rule's question, and its pulls per decision.

    Args:
        problem: kind of the rewards.
        question: the question. If None, the best arm.
        epsilon: the rule's own epsilon, for the best arm.
        every: pulls per decision, an int >= 1.
        among: kinds of questions that the rule answers beside the best arm. If None, all.

    Returns:
        The question, None for the best arm; and its epsilon.

    Raises:
        ValueError: an argument is out of range, or the rule does not answer the question.
    """
    check_problem(problem)
    checks.whole("every", every, least=1)
    if question is None:
        return None, epsilon
    check_question(question, problem)
    if among is not None:
        kinds = (BestArm, *among)
        names = " or ".join(kind.__name__ for kind in kinds)
        require(isinstance(question, kinds), "question", f"be None or {names} for this rule", type(question).__name__)
    require_no_epsilon(epsilon)
    return (None, question.epsilon) if isinstance(question, BestArm) else (question, 0.0)


def question_settings(
    problem: Problem, question: Question, delta: Array | float, threshold: Threshold | None
) -> StopSettings:
    """Checks the settings of a stop, as `stop_settings` does, with the evidence of the question's alternatives."""
    K, dtype = problem.arms, float_dtype(problem)
    row = jax.ShapeDtypeStruct((K,), dtype)
    alternatives = jax.eval_shape(
        lambda N, m: kind_of(question).alternatives(question, measured_problem(problem, m), N, m), row, row
    )
    return stop_settings(problem, delta, threshold, compared=alternatives.counts.shape[-1])


def has_cleared(settings: StopSettings, question: Question, state: State, estimates: Estimates) -> Array:
    """True if every alternative costs more than the threshold at its counts, bool ()."""
    problem = settings.problem

    def threshold(counts: Array, sums: Array) -> Array:
        return settings.threshold(settings.delta, evidence_of(problem, state.pulls, counts, sums))

    measured = measured_problem(problem, estimates.variances)
    costs, counts, sums = kind_of(question).alternatives(question, measured, estimates.counts, estimates.means)
    # A threshold that reads no counts gives one number for all alternatives, and the compiler sees that.
    return jnp.all(costs > jax.vmap(threshold)(counts, sums))


def algorithm_from_question(
    problem: Problem,
    question: Question,
    pull_of: PullOf,
    *,
    delta: Array | float,
    threshold: Threshold | None,
    every: int,
    allot: Allot | None = None,
    start: int | None = None,
) -> Algorithm:
    """Builds the algorithm that pulls by a function of the estimates, until no alternative is left.

    Ties go to the lowest index. `allot` is the rule's (`frame.Rule`), `start` as for `first_pulls`.
    """
    start = first_pulls(problem, start, threshold)
    settings = question_settings(problem, question, delta, threshold)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        answer = answer_of(problem, question, estimates)
        arm, shares = pull_of(key, state, estimates)
        return Choice(one_arm(arm), has_cleared(settings, question, state, estimates), answer, shares)

    algorithm = algorithm_in_batches(problem, Rule(choose, allot=allot), every=every, draws_lots=False, start=start)
    return for_question(algorithm, problem, question)


def answer_of(problem: Problem, question: Question, estimates: Estimates) -> Array:
    """Returns the answer at the estimates."""
    measured = measured_problem(problem, estimates.variances)
    return kind_of(question).answer(question, measured, estimates.counts, estimates.means)


def for_question(algorithm: Algorithm, problem: Problem, question: Question | None) -> Algorithm:
    """Declares the question that the algorithm answers, by which `jaxbandits.rare` judges, and answers beside arms."""
    if question is None:
        return algorithm
    assert algorithm.problem is not None
    declared = {**algorithm.problem(), "question": question}
    if isinstance(question, GoodArm):
        declared["answers"] = problem.arms + 1
    return algorithm._replace(problem=lambda: declared)
