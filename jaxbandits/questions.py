"""Questions about the means that several families answer, and their checks.

A family gives each question its functions: the answer at some means, and the nearest means with another answer.
"""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, static_fields
from jaxbandits.checks import is_concrete, require
from jaxbandits.numerics.indexing import ranks
from jaxbandits.numerics.kernels import apart


class BestArm(NamedTuple):
    """Question for an arm with a mean of at least the largest minus epsilon. Its answers are int32 ()."""

    epsilon: Array | float = 0.0  # () >= 0, in units of reward, below the length of the range of the means


@static_fields("m")
class TopM(NamedTuple):
    """Question for the m arms with the largest means. Its answers are bool (K,), true for m arms."""

    m: int  # at least 1, below the number of arms


class Above(NamedTuple):
    """Question for all arms with means above a level. Its answers are bool (K,)."""

    level: Array | float  # ()   in units of reward, inside the range of the means; may be traced


def largest(m: Array | int, values: Array) -> Array:
    """Returns a mask of the m largest values, bool (K,); the lowest index comes first among equal ones."""
    return apart(partial(_largest, m), values)


def _largest(m: Array | int, values: Array) -> Array:
    return ranks(values) < m


def check_m(name: str, question: TopM, arms: int) -> None:
    """Raises `ValueError` unless m is at least 1 and below the number of arms."""
    checks.whole(f"{name}.m", question.m, least=1, most=arms - 1)


def is_above_in_band(question: Above, means: Array, answer: Array, epsilon: Array) -> Array:
    """True if the answer has all arms of at least level + epsilon, and none below level - epsilon, bool ()."""
    level = jnp.asarray(question.level, means.dtype)
    is_wrong = jnp.where(answer, means < level - epsilon, means >= level + epsilon)
    return ~jnp.any(is_wrong)


def checked_set(answer: Any, K: int) -> Array:
    """Returns a set of arms as bool (K,); raises `ValueError` unless it is one."""
    return checks.array("answer", answer, (K,), kind="bool")


def require_no_epsilon(epsilon: Any, name: str = "epsilon") -> None:
    """Raises `ValueError` unless an epsilon beside a question is 0."""
    checks.not_negative(name, epsilon)
    is_zero = is_concrete(epsilon) and epsilon == 0
    require(is_zero, name, "be 0 with a question", epsilon, advice="Write BestArm(epsilon)")
