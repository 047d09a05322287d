"""The m arms with the largest means."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Array
from jaxbandits.mab._problem.problems import Problem, sample_of
from jaxbandits.mab._problem.questions.kind import Alternatives, CharacteristicTime, Kind, Nearest, alternatives_of
from jaxbandits.mab._problem.questions.pairs import at_arm, moved_divergences, pair_of, pooled_costs, table_of
from jaxbandits.mab._problem.questions.times import time_of
from jaxbandits.numerics.indexing import entries, entry, is_entry, smallest_entry
from jaxbandits.numerics.kernels import apart
from jaxbandits.questions import TopM, check_m, checked_set, largest


class Swaps(NamedTuple):
    """Swaps of an arm inside a set and an arm outside it.

    The smaller side is listed, n arms; the other has a place for each of the K arms, and `inf` where one is not of it.
    """

    inside: Array  # int32 (r,), arms of the rows; r, c = n, K or K, n
    outside: Array  # int32 (c,), arms of the columns
    costs: Array  # float (r, c)   smallest cost of means with lambda_i <= lambda_j, 0 where m_i <= m_j already
    pulls: tuple[Array, Array]  # float (r, 1), (1, c), of both arms


class Swap(NamedTuple):
    """Arm of the answer and arm outside it that change places."""

    inside: Array  # int32 ()
    outside: Array  # int32 ()
    cost: Array  # float ()


def swaps(problem: Problem, question: TopM, members: Array, counts: Array, means: Array) -> Swaps:
    """Computes the cost of every swap.

    Args:
        problem: kind of the rewards.
        question: the size m of the set.
        members: bool (K,), a set of m arms.
        counts: float (K,).
        means: float (K,).

    Returns:
        Swaps.
    """
    K, m = problem.arms, question.m
    every, sample = jnp.arange(K, dtype=jnp.int32), sample_of(problem, counts, means)
    is_listed = members if 2 * m <= K else ~members
    listed = apart(partial(_in_order, n=min(m, K - m)), is_listed)
    at_listed = jax.tree.map(lambda x: entries(x, listed), sample)
    if 2 * m <= K:
        arms, pair, is_swap = (listed, every), pair_of(at_listed, sample), ~is_listed[None]
    else:
        arms, pair, is_swap = (every, listed), pair_of(sample, at_listed), ~is_listed[:, None]
    costs = jnp.where(is_swap, pooled_costs(problem, *pair), jnp.inf)
    return Swaps(*arms, costs, (pair[0].pulls, pair[1].pulls))


def _in_order(mask: Array, n: int) -> Array:
    """Returns the indices of the n entries that hold, in order, int32 (n,)."""
    # A running sum, which is faster in `linear`, takes longer here.
    arms = np.arange(mask.shape[0], dtype=np.int32)
    before = jnp.sum(mask[None] & (arms[None] < arms[:, None]), axis=1, dtype=jnp.int32)
    is_at = mask[None] & (before[None] == np.arange(n, dtype=np.int32)[:, None])
    return jnp.sum(jnp.where(is_at, arms[None], 0), axis=1, dtype=jnp.int32)


def cheapest_swap(swaps: Swaps, costs: Array) -> Swap:
    """Returns the swap with the smallest entry of costs (r, c); of several, the lowest arm inside, then outside."""
    columns = costs.shape[1]
    index, cost = smallest_entry(costs.reshape(-1))
    return Swap(entry(swaps.inside, index // columns), entry(swaps.outside, index % columns), cost)


def _check(question: TopM, problem: Problem, name: str) -> None:
    check_m(name, question, problem.arms)


def _answer(question: TopM, problem: Problem, counts: Array, means: Array) -> Array:
    del problem, counts
    return largest(question.m, means)


def _alternatives(question: TopM, problem: Problem, counts: Array, means: Array) -> Alternatives:
    inside, outside, costs, _ = swaps(problem, question, largest(question.m, means), counts, means)

    def pairs(x: Array) -> Array:
        both = entries(x, inside)[:, None], entries(x, outside)[None]
        return jnp.stack(jnp.broadcast_arrays(*both), axis=-1).reshape(-1, 2)

    return alternatives_of(costs.reshape(-1), pairs(counts), pairs(means))


def _nearest(question: TopM, problem: Problem, counts: Array, means: Array) -> Nearest:
    every = swaps(problem, question, largest(question.m, means), counts, means)
    i, j, cost = cheapest_swap(every, every.costs)
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
    K, m = problem.arms, question.m
    members = largest(m, means)
    is_listed = members if 2 * m <= K else ~members
    rows = _in_order(is_listed, n=min(m, K - m))
    table = table_of(problem, rows, means, rows_are_first=2 * m <= K)
    is_tie = jnp.min(jnp.where(members, means, jnp.inf)) <= jnp.max(jnp.where(members, -jnp.inf, means))
    return time_of(*table, jnp.tile(~is_listed, rows.shape[0]), is_tie, means, steps=steps)


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
