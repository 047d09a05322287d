"""All items with means above a level: an alternative moves one mean to the level."""

from typing import Any

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.linear._problem.questions.kind import Kind
from jaxbandits.numerics.linalg import dot
from jaxbandits.questions import Above, is_above_in_band


def _check(question: Above, items: int, name: str) -> None:
    del items
    checks.real(f"{name}.level", question.level)


def _answer(question: Above, means: Array) -> Array:
    return means > jnp.asarray(question.level, means.dtype)


def _directions(question: Above, answer: Array, points: Array) -> Array:
    del question
    return jnp.where(answer[:, None], points, -points)


def _offsets(question: Above, answer: Array, dtype: Any) -> Array:
    level = jnp.asarray(question.level, dtype)
    return jnp.where(answer, level, -level)


def _exists(question: Above, items: Array) -> Array:
    # The mean of an item without features is 0 under every theta.
    del question
    return jnp.any(items != 0, axis=1)


def _is_right(question: Above, items: Array, theta: Array, answer: Array, epsilon: Array) -> Array:
    return is_above_in_band(question, dot(items, theta), answer, epsilon)


KIND = Kind(
    check=_check,
    answer=_answer,
    directions=_directions,
    offsets=_offsets,
    exists=_exists,
    is_right=_is_right,
)
