"""Fixed budgets in phases: all remaining arms are pulled equally often, then the worst are dropped.

Within a phase, arms are pulled in the order of their numbers. No distribution depends on that order, since all of them
reach the same count.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.environment import Pull
from jaxbandits.mab._problem.problems import Problem, float_dtype
from jaxbandits.mab._shared.frame import (
    Choice,
    Estimates,
    Rule,
    State,
    algorithm_from_rule,
    argmax,
    one_arm,
    total_rewards,
)
from jaxbandits.numerics.indexing import entry


class Phase(NamedTuple):
    """Phase of a schedule. The number of phases and `kept` are known before the run."""

    pulls: Array | int  # total pulls of every remaining arm at the end of the phase
    kept: int  # arms that remain after it


class Progress(NamedTuple):
    """Position of a run in its schedule. The drop at a phase's end is made with the next pull."""

    active: Array  # bool (K,)    remaining arms
    phase: Array  # int32 ()      phases that are over
    # Pulls and rewards before the phase if only the phase's own samples count; otherwise 0.
    counts: Array  # int32 (K,)
    rewards: Array  # float (K,)


def successive_rejects_schedule(K: int, horizon: int) -> list[Phase]:
    """Computes the phases of successive rejects; phases with equal n_k become one.

    Phase k ends at n_k = ceil((T - K) / (L (K + 1 - k))) pulls of an arm, L = 1/2 + sum_{i=2..K} 1/i, and drops one.
    """
    # Rationals, since floats are off by one where the ratio is a whole number.
    L = Fraction(1, 2) + sum(Fraction(1, i) for i in range(2, K + 1))
    phases: list[Phase] = []
    for k in range(1, K):
        pulls = -(-(horizon - K) // (L * (K + 1 - k)))
        if phases and phases[-1].pulls == pulls:
            phases.pop()
        phases.append(Phase(int(pulls), K - k))
    return phases


def sequential_halving_schedule(K: int, horizon: Array | int) -> list[Phase]:
    """Computes the R = ceil(log2 K) phases of sequential halving.

    Phase r makes floor(T / (|S_r| R)) pulls of every arm of S_r, and keeps ceil(|S_r| / 2) of them.
    """
    rounds, kept, pulls = (K - 1).bit_length(), K, 0
    phases = []
    for _ in range(rounds):
        pulls += horizon // (kept * rounds)
        kept = -(-kept // 2)
        phases.append(Phase(pulls, kept))
    return phases


def algorithm_from_schedule(problem: Problem, schedule: Sequence[Phase], *, leap: int, all_samples: bool) -> Algorithm:
    """Builds the algorithm that follows a schedule.

    Args:
        problem: kind of the rewards.
        schedule: phases, the last of which keeps one arm.
        leap: largest number of pulls per round.
        all_samples: whether all samples of an arm count at a phase's end, or only the phase's own.

    Returns:
        Algorithm with actions `Pull` and answers int32 (). Its actions have one slot, or with leaps one for every arm.
    """
    K = problem.arms
    # One more entry, for the time after the last phase.
    targets = jnp.asarray([phase.pulls for phase in schedule] + [schedule[-1].pulls], jnp.int32)
    sizes = jnp.asarray([phase.kept for phase in schedule] + [1], jnp.int32)
    arms = jnp.arange(K, dtype=jnp.int32)

    def advanced(state: State, estimates: Estimates) -> tuple[Progress, Array]:
        """Returns the progress after the drop, if a phase is complete, and the means that count, float (K,)."""
        progress = state.memory
        means = estimates.means
        if not all_samples:
            counts = jnp.maximum(state.counts - progress.counts, 1).astype(means.dtype)
            means = (total_rewards(problem, state) - progress.rewards) / counts
        is_complete = jnp.all(~progress.active | (state.counts >= entry(targets, progress.phase)))
        is_complete &= progress.phase < len(schedule)
        lots = estimates.lots
        better, ties = means[None] > means[:, None], means[None] == means[:, None]
        better |= ties & (arms[None] < arms[:, None] if isinstance(lots, tuple) else lots[None] > lots[:, None])
        rank = jnp.sum(better & progress.active[None], axis=1, dtype=jnp.int32)
        active = progress.active & (~is_complete | (rank < entry(sizes, progress.phase)))
        phase = progress.phase + is_complete.astype(jnp.int32)
        if all_samples:
            return Progress(active, phase, progress.counts, progress.rewards), means
        counts = jnp.where(is_complete, state.counts, progress.counts)
        rewards = jnp.where(is_complete, total_rewards(problem, state), progress.rewards)
        return Progress(active, phase, counts, rewards), means

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        progress, means = advanced(state, estimates)
        missing = jnp.where(progress.active, jnp.maximum(entry(targets, progress.phase) - state.counts, 0), 0)
        if leap == 1:
            action = one_arm(argmax(missing > 0))
        else:
            before = jnp.cumsum(missing, dtype=jnp.int32) - missing
            action = Pull(arms, jnp.clip(leap - before, 0, missing))
        best = argmax(jnp.where(progress.active, means, -jnp.inf), estimates.lots)
        return Choice(action, progress.phase == len(schedule), best)

    def remember(state: State, estimates: Estimates) -> Progress:
        return advanced(state, estimates)[0]

    nothing = jnp.zeros(K, jnp.int32)
    start = Progress(jnp.ones(K, bool), jnp.zeros((), jnp.int32), nothing, jnp.zeros(K, float_dtype(problem)))
    rule = Rule(choose, start, remember)
    return algorithm_from_rule(problem, rule, in_turn=False, leap=leap)
