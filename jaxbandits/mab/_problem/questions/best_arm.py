"""The arm with the largest mean, or any arm within epsilon of it."""

from typing import Any

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.mab._problem.laws.pooled import Sample
from jaxbandits.mab._problem.problems import Problem, sample_of
from jaxbandits.mab._problem.questions.all_good import check_epsilon
from jaxbandits.mab._problem.questions.kind import Alternatives, CharacteristicTime, Kind, Nearest, alternatives_of
from jaxbandits.mab._problem.questions.pairs import at_arm, moved_divergences, table_of
from jaxbandits.mab._problem.questions.times import time_of
from jaxbandits.numerics.indexing import entry, is_entry, smallest_entry
from jaxbandits.questions import BestArm


def _leader(means: Array) -> Array:
    return jnp.argmax(means).astype(jnp.int32)


def _answer(question: BestArm, problem: Problem, counts: Array, means: Array) -> Array:
    del question, problem, counts
    return _leader(means)


def _pairs(question: BestArm, problem: Problem, counts: Array, means: Array) -> tuple[Problem, Sample, Sample, Array]:
    """Returns the arguments of `moved_divergences` for the leader and each challenger."""
    sample = sample_of(problem, counts, means)
    return problem, at_arm(sample, _leader(means)), sample, jnp.asarray(question.epsilon, means.dtype)


def _parts(question: BestArm, problem: Problem, counts: Array, means: Array) -> tuple[Array, Array]:
    """Computes the summands of the cost of each challenger, float (K,) each: the leader's, then its own."""
    first, second = moved_divergences(*_pairs(question, problem, counts, means))
    return entry(counts, _leader(means)) * first, counts * second


def _alternatives(question: BestArm, problem: Problem, counts: Array, means: Array) -> Alternatives:
    leader, (first, second) = _leader(means), _parts(question, problem, counts, means)
    costs = jnp.where(is_entry(leader, means), jnp.inf, first + second)

    def pairs(x: Array) -> Array:
        return jnp.stack(jnp.broadcast_arrays(entry(x, leader), x), axis=-1)

    return alternatives_of(costs, pairs(counts), pairs(means))


def _nearest(question: BestArm, problem: Problem, counts: Array, means: Array) -> Nearest:
    leader, (first, second) = _leader(means), _parts(question, problem, counts, means)
    costs = jnp.where(is_entry(leader, means), jnp.inf, first + second)
    challenger, cost = smallest_entry(costs)
    parts = jnp.where(is_entry(challenger, means), second, 0)
    parts = jnp.where(is_entry(leader, means), entry(first, challenger), parts)
    return Nearest(cost, parts, leader)


def _is_right(question: BestArm, means: Array, answer: Array) -> Array:
    return jnp.max(means) - means[answer] <= jnp.asarray(question.epsilon, means.dtype)


def _characteristic_time(question: BestArm, problem: Problem, means: Array, steps: int) -> CharacteristicTime:
    leader, epsilon = _leader(means), jnp.asarray(question.epsilon, means.dtype)
    others = ~is_entry(leader, means)
    table = table_of(problem, leader[None], means, epsilon)
    is_tie = jnp.any(others & (jnp.max(means) - means + epsilon <= 0))
    return time_of(*table, others, is_tie, means, steps=steps)


def _check_answer(question: BestArm, answer: Any, K: int) -> Any:
    del question
    return checks.integer("answer", answer, least=0, most=K - 1)


KIND = Kind(
    check=check_epsilon,
    answer=_answer,
    alternatives=_alternatives,
    nearest=_nearest,
    is_right=_is_right,
    characteristic_time=_characteristic_time,
    check_answer=_check_answer,
)
