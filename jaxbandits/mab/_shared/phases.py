"""Fixed budgets in phases: all remaining arms are pulled equally often, then the worst are dropped.

Within a phase, arms are pulled in the order of their numbers. No distribution depends on that order, since all of them
reach the same count.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.checks import is_concrete
from jaxbandits.mab._problem.environment import Pull
from jaxbandits.mab._problem.problems import Problem, float_dtype
from jaxbandits.mab._shared.accepts import leaving
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
from jaxbandits.questions import largest


class Phase(NamedTuple):
    """Phase of a schedule. `kept` is known before tracing."""

    pulls: Array | int  # total pulls of every remaining arm at the end of the phase
    kept: int  # arms that remain after it


class Schedule(NamedTuple):
    """Phases as arrays; their last entries stand for the time after the last phase."""

    targets: Array  # int32 (n,)   `Phase.pulls`
    sizes: Array  # int32 (n,)     `Phase.kept`
    phases: Array | int  # number of phases, < n


class Progress(NamedTuple):
    """Position of a run in its schedule. The drop at a phase's end is made with the next pull."""

    active: Array  # bool (K,)    remaining arms
    phase: Array  # int32 ()      phases that are over
    # Pulls and rewards before the phase if only the phase's own samples count; otherwise 0.
    counts: Array  # int32 (K,)
    rewards: Array  # float (K,)
    accepted: Array | tuple[()] = ()  # bool (K,)   arms that belong to the answer; () for rules that accept none


def harmonic_half(K: int) -> Fraction:
    """Returns L = 1/2 + sum_{i=2..K} 1/i; a rational, since floats are off by one where a ratio is a whole number."""
    return Fraction(1, 2) + sum(Fraction(1, i) for i in range(2, K + 1))


def successive_rejects_schedule(K: int, horizon: Array | int) -> Schedule:
    """Computes the phases of successive rejects; phases with equal n_k become one.

    Phase k ends at n_k = ceil((T - K) / (L (K + 1 - k))) pulls of an arm, L = 1/2 + sum_{i=2..K} 1/i, and drops one.
    """
    L = harmonic_half(K)
    if not is_concrete(horizon):
        return merged(rounded_up([1 / (L * (K + 1 - k)) for k in range(1, K)], jnp.asarray(horizon, jnp.int32) - K))
    phases: list[Phase] = []
    for k in range(1, K):
        pulls = -(-(int(horizon) - K) // (L * (K + 1 - k)))
        if phases and phases[-1].pulls == pulls:
            phases.pop()
        phases.append(Phase(int(pulls), K - k))
    return schedule_of(phases)


def rounded_up(ratios: Sequence[Fraction], number: Array) -> Array:
    """Computes ceil(ratio * number) exactly, for ratios in (0, 1) that are known before tracing.

    Args:
        ratios: n rationals, of any size of numerator and denominator.
        number: int32 (), at least 0.

    Returns:
        int32 (n,).
    """
    # Up to 2^31 no fraction with `number` as denominator lies between a ratio and this one, so both round alike.
    ratios = [fraction_above(ratio, 2**31 - 1) for ratio in ratios]
    numerators = jnp.asarray([ratio.numerator for ratio in ratios], jnp.uint32)
    denominators = jnp.asarray([ratio.denominator for ratio in ratios], jnp.uint32)
    bits = jnp.asarray(number, jnp.uint32)

    def double(i: Array, division: tuple[Array, Array]) -> tuple[Array, Array]:
        """Appends the next lower bit of the number: a long division, as 64 bit may be switched off."""
        quotient, remainder = division[0] << 1, division[1] << 1
        carry = remainder >= denominators
        quotient, remainder = quotient + carry.astype(jnp.uint32), jnp.where(carry, remainder - denominators, remainder)
        remainder = remainder + ((bits >> (30 - i.astype(jnp.uint32))) & 1) * numerators
        carry = remainder >= denominators
        return quotient + carry.astype(jnp.uint32), jnp.where(carry, remainder - denominators, remainder)

    nothing = jnp.zeros(len(ratios), jnp.uint32)
    quotient, remainder = lax.fori_loop(0, 31, double, (nothing, nothing))
    return (quotient + (remainder > 0).astype(jnp.uint32)).astype(jnp.int32)


def fraction_above(ratio: Fraction, largest: int) -> Fraction:
    """Returns the smallest fraction that is at least a ratio in (0, 1), with a denominator of at most `largest`."""
    if ratio.denominator <= largest:
        return ratio
    # Two convergents in turn enclose the ratio; the last of them and a semiconvergent are neighbours in the Farey
    # sequence, as in `Fraction.limit_denominator`.
    (p, q), (a, b), (c, d) = ratio.as_integer_ratio(), (0, 1), (1, 0)
    while b + p // q * d <= largest:
        whole = p // q
        (a, b), (c, d) = (c, d), (a + whole * c, b + whole * d)
        p, q = q, p - whole * q
    steps = (largest - b) // d
    return max(Fraction(c, d), Fraction(a + steps * c, b + steps * d))


def merged(targets: Array) -> Schedule:
    """Merges phases that end at the same number of pulls.

    Args:
        targets: int32 (K - 1,), not decreasing: total pulls of every remaining arm at the end of phase k, which drops
            one arm.

    Returns:
        Schedule with K entries, of which the last ones may repeat the end.
    """
    number = targets.shape[0]
    is_last = jnp.append(targets[1:] != targets[:-1], True)
    phases = jnp.sum(is_last, dtype=jnp.int32)
    position = jnp.cumsum(is_last, dtype=jnp.int32) - 1
    positions = jnp.arange(number + 1, dtype=jnp.int32)
    is_there = is_last[None] & (position[None] == positions[:, None])
    kept = number - jnp.arange(number, dtype=jnp.int32)
    is_over = positions >= phases
    ends = jnp.sum(jnp.where(is_there, targets[None], 0), axis=1, dtype=jnp.int32)
    sizes = jnp.sum(jnp.where(is_there, kept[None], 0), axis=1, dtype=jnp.int32)
    return Schedule(jnp.where(is_over, targets[-1], ends), jnp.where(is_over, 1, sizes), phases)


def halved(K: int, m: int = 1) -> list[int]:
    """Returns the sizes K, ceil(K / 2), .. down to m, at least which each keeps."""
    sizes = [K]
    while sizes[-1] > m:
        sizes.append(max(m, -(-sizes[-1] // 2)))
    return sizes


def sequential_halving_schedule(K: int, horizon: Array | int, m: int = 1) -> Schedule:
    """Computes the R phases of sequential halving, which end with m arms.

    Phase r makes floor(T / (|S_r| R)) pulls of every arm of S_r, and keeps max(m, ceil(|S_r| / 2)) of them.
    """
    sizes, pulls = halved(K, m), 0
    phases = []
    for size, kept in pairwise(sizes):
        pulls += horizon // (size * (len(sizes) - 1))
        phases.append(Phase(pulls, kept))
    return schedule_of(phases)


def schedule_of(phases: Sequence[Phase]) -> Schedule:
    """Returns the schedule of a list of phases."""
    targets = jnp.asarray([phase.pulls for phase in phases] + [phases[-1].pulls], jnp.int32)
    sizes = jnp.asarray([phase.kept for phase in phases] + [1], jnp.int32)
    return Schedule(targets, sizes, len(phases))


def algorithm_from_schedule(
    problem: Problem,
    schedule: Schedule,
    *,
    leap: int,
    all_samples: bool,
    places: int | None = None,
    accepts: bool = False,
) -> Algorithm:
    """Builds the algorithm that follows a schedule.

    Args:
        problem: kind of the rewards.
        schedule: the phases.
        leap: largest number of pulls per round.
        all_samples: whether all samples of an arm count at a phase's end, or only the phase's own.
        places: number of arms of an answer that is a set; ties then go to the lowest index. If None, the best arm.
        accepts: whether a phase may drop the best arms too, which then belong to the answer.

    Returns:
        Algorithm with actions `Pull` and answers int32 (), or bool (K,) for sets. Its actions have one slot, or with
        leaps one for every arm.
    """
    K = problem.arms
    targets, sizes, phases = schedule
    arms = jnp.arange(K, dtype=jnp.int32)

    def sought(progress: Progress) -> Array | int:
        """Returns the number of arms that are still sought, for answers that are sets."""
        number = 0 if places is None else places
        if isinstance(progress.accepted, tuple):
            return number
        return number - jnp.sum(progress.accepted, dtype=jnp.int32)

    def advanced(state: State, estimates: Estimates) -> tuple[Progress, Array]:
        """Returns the progress after the drop, if a phase is complete, and the means that count, float (K,)."""
        progress = state.memory
        means = estimates.means
        if not all_samples:
            counts = jnp.maximum(state.counts - progress.counts, 1).astype(means.dtype)
            means = (total_rewards(problem, state) - progress.rewards) / counts
        is_complete = jnp.all(~progress.active | (state.counts >= entry(targets, progress.phase)))
        is_complete &= progress.phase < phases
        lots = estimates.lots
        better, ties = means[None] > means[:, None], means[None] == means[:, None]
        better |= ties & (arms[None] < arms[:, None] if isinstance(lots, tuple) else lots[None] > lots[:, None])
        rank = jnp.sum(better & progress.active[None], axis=1, dtype=jnp.int32)
        if accepts:
            number = jnp.sum(progress.active, dtype=jnp.int32) - entry(sizes, progress.phase)
            number = jnp.where(is_complete, number, 0)
            goes, accepted = leaving(means, progress.active, rank, sought(progress), number)
            progress = progress._replace(active=progress.active & ~goes, accepted=progress.accepted | accepted)
            return progress._replace(phase=progress.phase + is_complete.astype(jnp.int32)), means
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
        remaining = jnp.where(progress.active, means, -jnp.inf)
        if places is None:
            answer = argmax(remaining, estimates.lots)
        else:
            answer = largest(sought(progress), remaining)
            answer = answer if isinstance(progress.accepted, tuple) else answer | progress.accepted
        return Choice(action, progress.phase == phases, answer)

    def remember(state: State, estimates: Estimates) -> Progress:
        return advanced(state, estimates)[0]

    nothing = jnp.zeros(K, jnp.int32)
    accepted = jnp.zeros(K, bool) if accepts else ()
    start = Progress(jnp.ones(K, bool), jnp.zeros((), jnp.int32), nothing, jnp.zeros(K, float_dtype(problem)), accepted)
    rule = Rule(choose, start, remember)
    draws_lots = None if places is None else False
    return algorithm_from_rule(problem, rule, in_turn=False, leap=leap, draws_lots=draws_lots)
