"""The functions by which the rest of the family knows a kind of question.

A new kind is a file beside this one: copy `above.py`, and add the struct to `Question` and `KINDS` in `asked`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxbandits.base import Array


class Alternatives(NamedTuple):
    """Sets of means with another answer."""

    costs: Array  # float (n,)   min over the set of sum_a N_a kl(m_a, lambda_a); inf where there is no such set
    # float (n, arms) each: pulls and sums of rewards of the arms of which the proof of a stop takes the sum
    counts: Array
    sums: Array


def alternatives_of(costs: Array, counts: Array, means: Array) -> Alternatives:
    """Returns alternatives with the statistics (n, arms) of the arms that belong to each."""
    return Alternatives(costs, counts, counts * means)


class Nearest(NamedTuple):
    """Means with another answer that cost least."""

    cost: Array  # float ()   sum_a N_a kl(m_a, lambda_a)
    parts: Array  # float (K,)   its summands
    arm: Array  # int32 ()   arm whose label changes there


class CharacteristicTime(NamedTuple):
    """Characteristic time T: an algorithm of confidence delta needs T kl(delta, 1 - delta) pulls on average."""

    value: Array  # float ()        T; inf where the answer is not unique
    lower: Array  # float ()        certified: T is at least this
    upper: Array  # float ()        certified: T is at most this, the time of the allocation
    allocation: Array  # float (K,)   the proportions of pulls that attain it


class Kind(NamedTuple):
    """Functions of a kind of question. `counts` are floats (K,), at least 0, and `means` floats (K,)."""

    check: Callable[[Any, Any, str], None]  # (question, problem, name): raises `ValueError` unless its parts fit
    answer: Callable[..., Array]  # (question, problem, counts, means) -> answer at these means
    alternatives: Callable[..., Alternatives]  # (question, problem, counts, means)
    nearest: Callable[..., Nearest]  # (question, problem, counts, means)
    is_right: Callable[..., Array]  # (question, true means, answer) -> bool ()
    # (question, problem, means, steps) -> time, with steps of the solver, for kinds that need one
    characteristic_time: Callable[..., CharacteristicTime]
    check_answer: Callable[[Any, Any, int], Any]  # (question, answer, K) -> the answer; raises `ValueError`
