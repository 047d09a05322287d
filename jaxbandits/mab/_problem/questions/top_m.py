"""The m arms with the largest means."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.mab._problem.problems import Problem, sample_of
from jaxbandits.mab._problem.questions.kind import Alternatives, CharacteristicTime, Kind, Nearest, alternatives_of
from jaxbandits.mab._problem.questions.pairs import (
    at_arm,
    candidate_divergences,
    moved_divergences,
    pair_of,
    placed,
    pooled_costs,
)
from jaxbandits.mab._problem.questions.times import time_of
from jaxbandits.numerics.indexing import is_entry, smallest_entry
from jaxbandits.questions import TopM, check_m, checked_set, largest


class Swap(NamedTuple):
    """Arm of the answer and arm outside it that change places."""

    inside: Array  # int32 ()
    outside: Array  # int32 ()
    cost: Array  # float ()


def swap_costs(problem: Problem, members: Array, counts: Array, means: Array) -> Array:
    """Computes the cost of each swap, float (K, K).

    Args:
        problem: kind of the rewards.
        members: bool (K,), a set of arms.
        counts: float (K,).
        means: float (K,).

    Returns:
        Entry (i, j), for i in the set and j outside: the smallest cost of means with lambda_i <= lambda_j, 0 where
        m_i <= m_j already; inf elsewhere.
    """
    costs = pooled_costs(problem, *pair_of(sample_of(problem, counts, means)))
    return jnp.where(members[:, None] & ~members[None], costs, jnp.inf)


def cheapest_swap(costs: Array) -> Swap:
    """Returns the swap with the smallest entry (K, K); among several, the lowest arm inside, then outside."""
    K = costs.shape[0]
    index, cost = smallest_entry(costs.reshape(-1))
    return Swap(index // K, index % K, cost)


def _check(question: TopM, problem: Problem, name: str) -> None:
    check_m(name, question, problem.arms)


def _answer(question: TopM, problem: Problem, counts: Array, means: Array) -> Array:
    del problem, counts
    return largest(question.m, means)


def _alternatives(question: TopM, problem: Problem, counts: Array, means: Array) -> Alternatives:
    costs = swap_costs(problem, largest(question.m, means), counts, means)

    def pairs(x: Array) -> Array:
        return jnp.stack(jnp.broadcast_arrays(x[:, None], x[None]), axis=-1).reshape(-1, 2)

    return alternatives_of(costs.reshape(-1), pairs(counts), pairs(means))


def _nearest(question: TopM, problem: Problem, counts: Array, means: Array) -> Nearest:
    i, j, cost = cheapest_swap(swap_costs(problem, largest(question.m, means), counts, means))
    sample = sample_of(problem, counts, means)
    inside, outside = at_arm(sample, i), at_arm(sample, j)
    first, second = moved_divergences(problem, inside, outside)
    first, second = inside.pulls * first, outside.pulls * second
    return Nearest(cost, jnp.where(is_entry(i, means), first, jnp.where(is_entry(j, means), second, 0)), i)


def _is_right(question: TopM, means: Array, answer: Array) -> Array:
    worst = jnp.min(jnp.where(answer, means, jnp.inf))
    best = jnp.max(jnp.where(answer, -jnp.inf, means))
    return (jnp.sum(answer, dtype=jnp.int32) == question.m) & (worst >= best)


def _characteristic_time(question: TopM, problem: Problem, means: Array, steps: int) -> CharacteristicTime:
    members = largest(question.m, means)

    def slopes(w: Array) -> list[Array]:
        return [placed(*moved) for moved in candidate_divergences(problem, *pair_of(sample_of(problem, w, means)))]

    return time_of(slopes, (members[:, None] & ~members[None]).reshape(-1), means, steps)


def _check_answer(question: TopM, answer: Any, K: int) -> Array:
    del question
    return checked_set(answer, K)


KIND = Kind(
    check=_check,
    answer=_answer,
    alternatives=_alternatives,
    nearest=_nearest,
    is_right=_is_right,
    characteristic_time=_characteristic_time,
    check_answer=_check_answer,
)
