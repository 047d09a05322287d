"""Frame of all algorithms of the family: the state, its estimates, and the algorithm that a rule makes.

Two arms whose rewards are whole numbers often have equal counts and means. Lots break these ties (`numerics.ties`), so
the distribution of a run does not depend on the order of the arms. Other rewards do not tie, and most of their runs
draw no lots.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array, Decision, Key, PyTree
from jaxbandits.checks import require
from jaxbandits.mab._problem.environment import Pull, Rewards, idle_pull, receive
from jaxbandits.mab._problem.problems import Problem, float_dtype, has_unknown_variances, law_of
from jaxbandits.mab._shared import moments
from jaxbandits.mab._shared.moments import Moments
from jaxbandits.numerics import compensated, ties
from jaxbandits.numerics.compensated import Sum
from jaxbandits.numerics.indexing import first_argmax, first_argmin, row_sums, select
from jaxbandits.numerics.kernels import added, apart


class Ones(NamedTuple):
    """Sums of rewards that are 0 or 1."""

    counts: Array  # int32 (K,)
    poison: Array  # float ()   0; NaN after a reward that is not a number of ones, which ends the run


class State(NamedTuple):
    """Rewards so far, and the rule's memory."""

    pulls: Array  # int ()
    counts: Array  # int32 (K,)   pulls of every arm
    sums: Array | Sum | Ones | Moments  # rewards of every arm: float (K,), compensated in 32 bit; Bernoulli integers
    memory: PyTree = ()  # the rule's own statistics
    ties: Array | tuple[()] = ()  # uint32 (K,), random bits of the lots; () without lots


class Estimates(NamedTuple):
    """Input of a rule."""

    pulls: Array  # int ()     t
    counts: Array  # float (K,)   N, at least 1
    means: Array  # float (K,)   m; 0 for an arm that was never pulled
    # int32 (K,)   among arms that tie, the one with the largest lot comes first; if (), the one with the lowest index
    lots: Array | tuple[()] = ()
    variances: Array | tuple[()] = ()  # float (K,), empirical variances, positive; () if variances are known
    sums: Array | tuple[()] = ()  # float (K,), sums of the rewards


class Choice(NamedTuple):
    """Decision of a rule at the estimates."""

    action: Pull
    stop: Array  # bool ()
    answer: Array  # int32 (), an arm; bool (K,) where the answer is a set
    # () -> float (K,), proportions in which a batch is divided; None if all its pulls are of the action's first arm
    shares: Callable[[], Array] | None = None


class Proposal(NamedTuple):
    """Next arm of a rule."""

    arm: Array  # int32 ()
    shares: Callable[[], Array] | None = None  # as for `Choice`


Allot = Callable[[State, Estimates, int], tuple[Array, PyTree]]


class Rule(NamedTuple):
    """Choice of the next pull from the estimates and from a memory of the rule's own."""

    choose: Callable[[Key, State, Estimates], Choice]
    start: PyTree = ()  # memory before the first pull
    # (state, estimates) -> memory after the pull that is chosen there; None if it never changes
    remember: Callable[[State, Estimates], PyTree] | None = None
    # (state, action, rewards) -> memory after a round, also while every arm is pulled once; for statistics that depend
    # on the order of the rewards. The state has the counts and sums after the round and the memory before it. Rewards
    # of 0 pulls must leave every bit of the memory unchanged.
    learn: Callable[[State, Pull, Rewards], PyTree] | None = None
    # The last two are for batches (`batches.algorithm_in_batches`), which call neither `remember` nor `learn`.
    # (state, estimates, number of pulls) -> the pulls of each arm int32 (K,), and the memory after them; None if they
    # are divided by the shares of `choose`
    allot: Allot | None = None
    # (state, arms bool (K,)) -> memory once all pulls of these arms in a batch are made; None if it never changes
    end: Callable[[State, Array], PyTree] | None = None


def algorithm_from_rule(
    problem: Problem,
    rule: Rule,
    *,
    slots: int = 1,
    in_turn: bool = True,
    leap: int = 1,
    draws_lots: bool | None = None,
    start: int | None = None,
    keeps_squares: bool = False,
) -> Algorithm:
    """Builds the algorithm that follows a rule.

    Args:
        problem: kind of the rewards.
        rule: choice of the next pull.
        slots: number of slots of an action without leaps.
        in_turn: whether every arm is pulled `start` times, in turn, before the rule applies. No run stops before.
        leap: largest number of pulls of a slot. With more than 1, an action has K slots, slot i for arm i.
        draws_lots: whether lots break ties. If None, only for arms whose means tie, such as Bernoulli arms.
        start: pulls of each arm before the rule applies. If None, 1, and the rule estimates no variances.
        keeps_squares: whether variances are estimated although the law of the rewards asks for none.

    Returns:
        Algorithm with actions `Pull` and answers int32 ().

    Raises:
        ValueError: variances are unknown and the rule does not estimate them.
    """
    if start is None:
        is_known = not has_unknown_variances(problem)
        require(is_known, "problem", "have a noise_scale, since this rule estimates no variances", problem)
        start = 1
    K, slot_per_arm = problem.arms, leap > 1
    slots = K if slot_per_arm else slots
    draws_lots = law_of(problem).ties if draws_lots is None else draws_lots

    def init(key: Key) -> State:
        words = ties.draw_words(key, K) if draws_lots else ()
        pulls, counts = jnp.zeros((), int), jnp.zeros(K, jnp.int32)
        return State(pulls, counts, no_rewards(problem, keeps_squares), memory=rule.start, ties=words)

    def decide(key: Key, state: State) -> Decision:
        choice = rule.choose(key, state, estimates(problem, state))
        if not in_turn:
            return Decision(choice.action, choice.stop, choice.answer)
        is_first = state.pulls < start * K
        turn = jnp.minimum(state.pulls, K - 1) if start == 1 else state.pulls % K
        first = one_arm(turn.astype(jnp.int32), slots)
        action = select(is_first, first, choice.action)
        return Decision(action, choice.stop & ~is_first, choice.answer)

    def observe(state: State, action: Pull, observation: Rewards) -> State:
        memory, observation = state.memory, _poisoned(problem, observation)
        if rule.remember is not None:
            moves = jnp.any(observation.times > 0)
            if in_turn:
                moves &= state.pulls >= start * K
            memory = select(moves, rule.remember(state, estimates(problem, state)), memory)
        pulled = action.arms[None] == jnp.arange(K, dtype=jnp.int32)[:, None]

        def by_arm(x: Array) -> Array:
            """Sums the slots of each arm."""
            # XLA:CPU recomputes the operand of this sum for each of its K results, binomials too.
            return x if slot_per_arm else row_sums(jnp.where(pulled, x[None], 0))

        counts = state.counts + by_arm(observation.times)
        pulls = added(state.pulls, jnp.sum(observation.times))
        if isinstance(state.sums, Moments):
            moments.require_squares(observation, leap)
            sums = moments.add(state.sums, state.counts, action, observation, is_slot_per_arm=slot_per_arm)
        elif isinstance(state.sums, Sum) and slots <= 2 and not slot_per_arm:
            sums = state.sums
            # One entry after the other: with all arms at once, LUCB takes a sixth longer.
            for i in range(slots):
                sums = compensated.add_entry(sums, action.arms[i], observation.sums[i])
        else:
            sums = _add(state.sums, observation, by_arm)
        updated = State(pulls, counts, sums, memory=memory, ties=state.ties)
        return updated if rule.learn is None else updated._replace(memory=rule.learn(updated, action, observation))

    return Algorithm(
        init,
        decide,
        observe,
        idle_pull(slots),
        problem=lambda: {"arms": K, "leap": leap},
        receive=partial(receive, problem),
    )


def estimates(problem: Problem, state: State) -> Estimates:
    """Returns the empirical means, the counts as floats, and the lots of this round."""
    counts = jnp.maximum(state.counts, 1).astype(float_dtype(problem))
    # Lots depend on the pulls and not on the round, so leaps draw the same ones.
    lots = () if isinstance(state.ties, tuple) else unfused(ties.lots(state.ties, state.pulls))
    sums = total_rewards(problem, state)
    variances = variances_at(problem, state, counts)
    return Estimates(state.pulls, counts, sums / counts, lots=lots, variances=variances, sums=sums)


def upper_index(estimates: Estimates, factor: Array | float, level: Array) -> Array:
    """Returns mean + factor sqrt(level / N) of every arm, float (K,), with one division: a CPU's time goes there.

    Args:
        estimates: estimates of the arms.
        factor: () >= 0.
        level: float () or (K,), at least 0.
    """
    assert not isinstance(estimates.sums, tuple)
    return (estimates.sums + factor * jnp.sqrt(level * estimates.counts)) / estimates.counts


def variances_at(problem: Problem, state: State, counts: Array) -> Array | tuple[()]:
    """Returns the empirical variances, float (K,), at counts of at least 1; () if variances are known."""
    return moments.variances(problem, state.sums, counts) if isinstance(state.sums, Moments) else ()


def total_rewards(problem: Problem, state: State) -> Array:
    """Returns the sums of the rewards, float (K,)."""
    if isinstance(state.sums, Ones):
        return state.sums.counts.astype(float_dtype(problem))
    sums = state.sums.sums if isinstance(state.sums, Moments) else state.sums
    return compensated.value(sums) if isinstance(sums, Sum) else sums


def one_arm(arm: Array, slots: int = 1) -> Pull:
    """Pulls one arm once; further slots are idle."""
    arms = jnp.broadcast_to(arm.astype(jnp.int32), (slots,))
    return Pull(arms, (jnp.arange(slots) == 0).astype(jnp.int32))


def argmax(x: Array, lots: Array | tuple[()] = ()) -> Array:
    """Returns the index of the largest entry; among several, the one with the largest lot, or without lots the first.

    Args:
        x: (K,).
        lots: int32 (K,), lots of the estimates; () if entries do not tie, or if their order changes no distribution.

    Returns:
        int32 ().
    """
    return first_argmax(x) if isinstance(lots, tuple) else apart(ties.argmax, unfused(x), lots)


def argmin(x: Array, lots: Array | tuple[()] = ()) -> Array:
    """Returns the index of the smallest entry; otherwise as `argmax`."""
    return first_argmin(x) if isinstance(lots, tuple) else apart(ties.argmin, unfused(x), lots)


def precedence(lots: Array | tuple[()], K: int) -> Array:
    """Returns the order of arms that tie, largest first: the lots, or without lots -arm, int32 (K,)."""
    return -jnp.arange(K, dtype=jnp.int32) if isinstance(lots, tuple) else lots


def unfused(x: PyTree) -> PyTree:
    """Returns the same values, of which XLA makes no part of what reads them. The engine's scalar form ignores it."""
    # Otherwise XLA:CPU copies the intervals of `kl_lucb` into each reduction over arms that reads them, where they are
    # not vectorised: they then take six times as long. Cheap work is copied in spite of it, but not out of a call that
    # stays one, see `numerics.kernels.apart`.
    return lax.optimization_barrier(x)


def no_rewards(problem: Problem, keeps_squares: bool = False) -> Array | Sum | Ones | Moments:
    """Returns the sums of rewards before the first pull."""
    K, dtype = problem.arms, float_dtype(problem)
    if law_of(problem).counts_ones:
        return Ones(jnp.zeros(K, jnp.int32), jnp.zeros((), dtype))
    # In 64 bit a plain sum keeps 9 digits over any number of pulls that fits the counts.
    nothing = jnp.zeros(K, dtype) if dtype == jnp.float64 else compensated.zeros((K,), dtype)
    return Moments(nothing, nothing) if keeps_squares or has_unknown_variances(problem) else nothing


def _poisoned(problem: Problem, rewards: Rewards) -> Rewards:
    """Returns the rewards, with NaN in the place of sums that rewards of this law cannot have: it ends the run."""
    law = law_of(problem)
    # `Ones` has a poison of its own.
    if law.are_sums is None or law.counts_ones:
        return rewards
    are_sums = law.are_sums(problem, rewards.sums, rewards.times.astype(rewards.sums.dtype))
    return rewards._replace(sums=jnp.where(are_sums, rewards.sums, jnp.nan))


def _add(sums: Array | Sum | Ones, rewards: Rewards, by_arm: Callable[[Array], Array]) -> Array | Sum | Ones:
    """Adds the rewards of one round; `by_arm` sums the slots of each arm."""
    if isinstance(sums, Ones):
        whole = jnp.round(rewards.sums)
        is_lawful = (whole == rewards.sums) & (whole >= 0) & (whole <= rewards.times.astype(whole.dtype))
        ones = jnp.where(is_lawful, whole, 0).astype(jnp.int32)
        return Ones(sums.counts + by_arm(ones), jnp.where(jnp.all(is_lawful), sums.poison, jnp.nan))
    added = by_arm(rewards.sums)
    return compensated.add(sums, added) if isinstance(sums, Sum) else sums + added
