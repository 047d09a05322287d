"""One arm with a mean above a level, if there is any."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.mab._problem.problems import Problem
from jaxbandits.mab._problem.questions.above import check_level, level_costs
from jaxbandits.mab._problem.questions.kind import Alternatives, CharacteristicTime, Kind, Nearest, alternatives_of
from jaxbandits.mab._problem.questions.times import time_of_arms
from jaxbandits.numerics.indexing import is_entry, smallest_entry


class GoodArm(NamedTuple):
    """Question for one arm with a mean above a level. Its answers are int32 (): an arm, or K if there is none.

    Several answers may be right.
    """

    level: Array | float  # ()   in units of reward, inside the range of the means; may be traced


def _answer(question: GoodArm, problem: Problem, counts: Array, means: Array) -> Array:
    is_good = means > jnp.asarray(question.level, means.dtype)
    costs = jnp.where(is_good, level_costs(question, problem, counts, means), -1)
    return jnp.where(jnp.any(is_good), jnp.argmax(costs), means.shape[0]).astype(jnp.int32)


def _costs(question: GoodArm, problem: Problem, counts: Array, means: Array) -> Array:
    """Computes the cost of each alternative, float (K,): of the answer's arm alone, or without one of every arm."""
    answer = _answer(question, problem, counts, means)
    differs = is_entry(answer, means) | (answer == means.shape[0])
    return jnp.where(differs, level_costs(question, problem, counts, means), jnp.inf)


def _alternatives(question: GoodArm, problem: Problem, counts: Array, means: Array) -> Alternatives:
    return alternatives_of(_costs(question, problem, counts, means), counts[:, None], means[:, None])


def _nearest(question: GoodArm, problem: Problem, counts: Array, means: Array) -> Nearest:
    costs = _costs(question, problem, counts, means)
    arm, cost = smallest_entry(costs)
    return Nearest(cost, jnp.where(is_entry(arm, means), cost, 0), arm)


def _is_right(question: GoodArm, means: Array, answer: Array) -> Array:
    is_good = means > jnp.asarray(question.level, means.dtype)
    return jnp.where(answer == means.shape[0], ~jnp.any(is_good), jnp.any(is_good & is_entry(answer, means)))


def _characteristic_time(question: GoodArm, problem: Problem, means: Array, steps: int) -> CharacteristicTime:
    del steps
    rates = level_costs(question, problem, jnp.ones_like(means), means)
    is_good = means > jnp.asarray(question.level, means.dtype)
    good_rates = jnp.where(is_good, rates, 0)
    # The good arm that is told from the level soonest, which is the best one if all variances are equal.
    fastest = is_entry(jnp.argmax(good_rates).astype(jnp.int32), means).astype(means.dtype)
    none = time_of_arms(rates)
    value = jnp.where(jnp.any(is_good), 1 / jnp.max(good_rates), none.value)
    return CharacteristicTime(value, value, value, jnp.where(jnp.any(is_good), fastest, none.allocation))


def _check_answer(question: GoodArm, answer: Any, K: int) -> Any:
    del question
    return checks.integer("answer", answer, least=0, most=K)


KIND = Kind(
    check=check_level,
    answer=_answer,
    alternatives=_alternatives,
    nearest=_nearest,
    is_right=_is_right,
    characteristic_time=_characteristic_time,
    check_answer=_check_answer,
)
