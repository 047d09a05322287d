"""The m items with the largest means: an alternative swaps an item of the answer with one outside."""

from typing import Any

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.linear._problem.questions.kind import Kind
from jaxbandits.numerics.linalg import dot
from jaxbandits.questions import TopM, check_m, largest


def pair_of(question: TopM, answer: Array, alternative: Array) -> tuple[Array, Array]:
    """Returns the items of an alternative, int () each: the one in the answer, and the one outside."""
    outside = answer.shape[0] - question.m
    i, j = alternative // outside, alternative % outside
    return _indices(answer, question.m)[i], _indices(~answer, outside)[j]


def _indices(mask: Array, n: int) -> Array:
    """Returns the first n indices at which a mask holds, int32 (n,)."""
    # The n-th index is the number of places at which at most n have been counted.
    counted = jnp.cumsum(mask, dtype=jnp.int32)
    places = jnp.sum(counted[None] <= jnp.arange(n, dtype=jnp.int32)[:, None], axis=1, dtype=jnp.int32)
    return jnp.minimum(places, mask.shape[0] - 1)


def _check(question: TopM, items: int, name: str) -> None:
    check_m(name, question, items)


def _answer(question: TopM, means: Array) -> Array:
    return largest(question.m, means)


def _directions(question: TopM, answer: Array, points: Array) -> Array:
    M, n = points.shape
    inside, outside = points[_indices(answer, question.m)], points[_indices(~answer, M - question.m)]
    return (inside[:, None] - outside[None]).reshape(-1, n)


def _offsets(question: TopM, answer: Array, dtype: Any) -> Array:
    del question, answer
    return jnp.zeros((), dtype)


def _exists(question: TopM, items: Array) -> Array:
    M = items.shape[0]
    return jnp.ones(question.m * (M - question.m), bool)


def _is_right(question: TopM, items: Array, theta: Array, answer: Array, epsilon: Array) -> Array:
    del epsilon
    # Differences first: the means of two good items agree in their leading digits.
    leads = dot(_directions(question, answer, items), theta)
    return (jnp.sum(answer, dtype=jnp.int32) == question.m) & jnp.all(leads >= 0)


KIND = Kind(
    check=_check,
    answer=_answer,
    directions=_directions,
    offsets=_offsets,
    exists=_exists,
    is_right=_is_right,
)
