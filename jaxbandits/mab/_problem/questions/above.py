"""All arms with means above a level."""

import math
from typing import Any

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.mab._problem.problems import Problem, divergence, mean_range
from jaxbandits.mab._problem.questions.kind import Alternatives, CharacteristicTime, Kind, Nearest, alternatives_of
from jaxbandits.mab._problem.questions.times import time_of_arms
from jaxbandits.numerics.indexing import is_entry, smallest_entry
from jaxbandits.questions import Above, checked_set, is_above_in_band


def check_level(question: Any, problem: Problem, name: str) -> None:
    """Raises `ValueError` unless the level lies inside the range of the means."""
    check_mean(f"{name}.level", question.level, problem)


def check_mean(name: str, value: Any, problem: Problem) -> None:
    """Raises `ValueError` unless a number lies inside the range of the means."""
    least, most = (None if math.isinf(end) else end for end in mean_range(problem))
    checks.real(name, value, above=least, below=most)


def level_costs(question: Any, problem: Problem, counts: Array, means: Array) -> Array:
    """Computes the cost of moving each mean to the level, float (K,)."""
    level = jnp.asarray(question.level, means.dtype)
    return counts * divergence(problem, means, level)


def _answer(question: Above, problem: Problem, counts: Array, means: Array) -> Array:
    del problem, counts
    return means > jnp.asarray(question.level, means.dtype)


def _alternatives(question: Above, problem: Problem, counts: Array, means: Array) -> Alternatives:
    return alternatives_of(level_costs(question, problem, counts, means), counts[:, None], means[:, None])


def _nearest(question: Above, problem: Problem, counts: Array, means: Array) -> Nearest:
    costs = level_costs(question, problem, counts, means)
    arm, cost = smallest_entry(costs)
    return Nearest(cost, jnp.where(is_entry(arm, means), cost, 0), arm)


def _is_right(question: Above, means: Array, answer: Array) -> Array:
    return is_above_in_band(question, means, answer, jnp.zeros((), means.dtype))


def _characteristic_time(question: Above, problem: Problem, means: Array, steps: int) -> CharacteristicTime:
    del steps
    return time_of_arms(level_costs(question, problem, jnp.ones_like(means), means))


def _check_answer(question: Above, answer: Any, K: int) -> Array:
    del question
    return checked_set(answer, K)


KIND = Kind(
    check=check_level,
    answer=_answer,
    alternatives=_alternatives,
    nearest=_nearest,
    is_right=_is_right,
    characteristic_time=_characteristic_time,
    check_answer=_check_answer,
)
