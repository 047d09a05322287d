"""Fixed budgets in phases: all arms that are left are pulled equally often, then the worst are dropped.

In a phase arms are pulled by their numbers. No law depends on that, since all of them reach the same count.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.environment import Pull
from jaxbandits.mab._problem.problems import Problem, float_dtype
from jaxbandits.mab._shared.core import (
    Choice,
    Estimates,
    Rule,
    State,
    algorithm_of,
    argmax,
    one_arm,
    total_rewards,
)


class Phase(NamedTuple):
    """One phase of a schedule; their number and `left` are known before the run."""

    pulls: Array | int  # that every arm which is left has had, in all, when the phase ends
    left: int  # arms that are left after it


class Course(NamedTuple):
    """Where a run stands. The drop at a phase's end is made with the next pull."""

    active: Array  # bool (K,)    arms that are left
    phase: Array  # int32 ()      phases that are over
    # Pulls and rewards before the phase, where the phase's own samples alone count; else 0.
    counts: Array  # int32 (K,)
    rewards: Array  # float (K,)


def successive_rejects_schedule(K: int, horizon: int) -> list[Phase]:
    """Phase k ends at n_k = ceil((T - K) / (L (K + 1 - k))) pulls of an arm, L = 1/2 + sum_{i=2..K} 1/i, and drops one.

    In rationals, since floats are off by one where the ratio is a whole number. Phases of equal n_k become one.
    """
    L = Fraction(1, 2) + sum(Fraction(1, i) for i in range(2, K + 1))
    phases: list[Phase] = []
    for k in range(1, K):
        pulls = -(-(horizon - K) // (L * (K + 1 - k)))
        if phases and phases[-1].pulls == pulls:
            phases.pop()
        phases.append(Phase(int(pulls), K - k))
    return phases


def sequential_halving_schedule(K: int, horizon: Array | int) -> list[Phase]:
    """R = ceil(log2 K) phases of floor(T / (|S_r| R)) pulls of every arm of S_r, of which ceil(|S_r| / 2) are left."""
    rounds, left, pulls = (K - 1).bit_length(), K, 0
    phases = []
    for _ in range(rounds):
        pulls += horizon // (left * rounds)
        left = -(-left // 2)
        phases.append(Phase(pulls, left))
    return phases


def in_phases(problem: Problem, schedule: Sequence[Phase], *, leap: int, all_samples: bool) -> Algorithm:
    """The algorithm of a schedule.

    Args:
        problem: the kind of the rewards.
        schedule: its phases; after the last one arm is left.
        leap: the most pulls of a round.
        all_samples: whether all samples of an arm count at a phase's end, or those of the phase.

    Returns:
        Algorithm with actions `Pull` of one slot, or with leaps of one for every arm, and answers int32 ().
    """
    K = problem.arms
    # One entry more: what holds after the last phase.
    targets = jnp.asarray([phase.pulls for phase in schedule] + [schedule[-1].pulls], jnp.int32)
    sizes = jnp.asarray([phase.left for phase in schedule] + [1], jnp.int32)
    arms = jnp.arange(K, dtype=jnp.int32)

    def stand(state: State, estimates: Estimates) -> tuple[Course, Array]:
        """The course, after a drop where a phase is complete, and the means that count, float (K,)."""
        course = state.own
        fresh = estimates.means
        if not all_samples:
            counts = jnp.maximum(state.counts - course.counts, 1).astype(fresh.dtype)
            fresh = (total_rewards(problem, state) - course.rewards) / counts
        is_complete = jnp.all(~course.active | (state.counts >= _of(targets, course.phase)))
        is_complete &= course.phase < len(schedule)
        lots = estimates.lots
        better, ties = fresh[None] > fresh[:, None], fresh[None] == fresh[:, None]
        better |= ties & (arms[None] < arms[:, None] if isinstance(lots, tuple) else lots[None] > lots[:, None])
        rank = jnp.sum(better & course.active[None], axis=1, dtype=jnp.int32)
        active = course.active & (~is_complete | (rank < _of(sizes, course.phase)))
        phase = course.phase + is_complete.astype(jnp.int32)
        if all_samples:
            return Course(active, phase, course.counts, course.rewards), fresh
        counts = jnp.where(is_complete, state.counts, course.counts)
        rewards = jnp.where(is_complete, total_rewards(problem, state), course.rewards)
        return Course(active, phase, counts, rewards), fresh

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        course, fresh = stand(state, estimates)
        missing = jnp.where(course.active, jnp.maximum(_of(targets, course.phase) - state.counts, 0), 0)
        if leap == 1:
            action = one_arm(argmax(missing > 0))
        else:
            before = jnp.cumsum(missing, dtype=jnp.int32) - missing
            action = Pull(arms, jnp.clip(leap - before, 0, missing))
        best = argmax(jnp.where(course.active, fresh, -jnp.inf), estimates.lots)
        return Choice(action, course.phase == len(schedule), best)

    def remember(state: State, estimates: Estimates) -> Course:
        return stand(state, estimates)[0]

    nothing = jnp.zeros(K, jnp.int32)
    start = Course(jnp.ones(K, bool), jnp.zeros((), jnp.int32), nothing, jnp.zeros(K, float_dtype(problem)))
    rule = Rule(choose, start, remember)
    return algorithm_of(problem, rule, slots=1 if leap == 1 else K, in_turn=False, own_slots=leap > 1)


def _of(table: Array, phase: Array) -> Array:
    """table[phase], without a gather."""
    return jnp.sum(jnp.where(jnp.arange(table.shape[0], dtype=jnp.int32) == phase, table, 0), dtype=jnp.int32)
