"""What all algorithms of the family share: the state, its estimates, and how a rule becomes an algorithm.

Bernoulli arms tie: two of them often have equal counts and means. Lots break these ties (`numerics.ties`), so that the
law of a run is the same for arms in any other order. Normal rewards do not tie, and most of their runs draw no lots.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array, Decision, Key, PyTree
from jaxbandits.mab._problem.environment import Pull, Rewards, receive
from jaxbandits.mab._problem.problems import Bernoulli, Gaussian, Problem, float_dtype
from jaxbandits.numerics import compensated, ties
from jaxbandits.numerics.compensated import Sum


class Ones(NamedTuple):
    """Sums of rewards that are 0 or 1."""

    counts: Array  # int32 (K,)
    poison: Array  # float ()   0; NaN after a reward that is no count of ones, which ends the run


class State(NamedTuple):
    """All rewards so far, and what the rule remembers beyond them."""

    pulls: Array  # int ()
    counts: Array  # int32 (K,)   pulls of every arm
    sums: Array | Sum | Ones  # of every arm's rewards: Gaussian float (K,), compensated in 32 bit; Bernoulli integers
    own: PyTree = ()  # of the rule
    ties: Array | tuple[()] = ()  # uint32 (K,), random words of the lots; () where there are none


class Estimates(NamedTuple):
    """What a rule reads."""

    pulls: Array  # int ()     t
    counts: Array  # float (K,)   N, at least 1
    means: Array  # float (K,)   m; 0 for an arm that was never pulled
    # int32 (K,)   of arms that tie, the one with the largest lot comes first; () where the first arm does
    lots: Array | tuple[()] = ()


class Choice(NamedTuple):
    """What a rule makes of the estimates."""

    action: Pull
    stop: Array  # bool ()
    answer: Array  # int32 (), an arm


class Rule(NamedTuple):
    """How the next pull is chosen, from the estimates and from memories of the rule's own."""

    choose: Callable[[Key, State, Estimates], Choice]
    start: PyTree = ()  # the first memories
    # (state, estimates) -> the memories after the pull that is chosen there; None if they never change
    remember: Callable[[State, Estimates], PyTree] | None = None


def algorithm_of(
    problem: Problem,
    rule: Rule,
    *,
    slots: int = 1,
    in_turn: bool = True,
    own_slots: bool = False,
    draws_lots: bool | None = None,
) -> Algorithm:
    """Makes an algorithm of a rule.

    Args:
        problem: the kind of the rewards.
        rule: what chooses.
        slots: of an action.
        in_turn: whether every arm is pulled once, in turn, before the rule is asked. It never stops before.
        own_slots: whether slot i of every action, of which there are K, is arm i's.
        draws_lots: whether lots break ties; None for Bernoulli arms alone, whose means tie.

    Returns:
        Algorithm with actions `Pull` and answers int32 ().
    """
    K = problem.arms
    draws_lots = isinstance(problem, Bernoulli) if draws_lots is None else draws_lots

    def init(key: Key) -> State:
        words = ties.draw_words(key, K) if draws_lots else ()
        return State(jnp.zeros((), int), jnp.zeros(K, jnp.int32), _no_rewards(problem), rule.start, words)

    def decide(key: Key, state: State) -> Decision:
        choice = rule.choose(key, state, estimates(problem, state))
        if not in_turn:
            return Decision(*choice)
        is_first = state.pulls < K
        first = one_arm(jnp.minimum(state.pulls, K - 1).astype(jnp.int32), slots)
        action = jax.tree.map(lambda a, b: jnp.where(is_first, a, b), first, choice.action)
        return Decision(action, choice.stop & ~is_first, choice.answer)

    def observe(state: State, action: Pull, observation: Rewards) -> State:
        own = state.own
        if rule.remember is not None:
            moves = jnp.any(observation.times > 0)
            if in_turn:
                moves &= state.pulls >= K
            later = rule.remember(state, estimates(problem, state))
            own = jax.tree.map(lambda new, old: jnp.where(moves, new, old), later, own)
        pulled = action.arms[None] == jnp.arange(K, dtype=jnp.int32)[:, None]

        def of_arms(x: Array) -> Array:
            """From slots to arms. XLA:CPU computes what a sum reads anew for each of its K results, binomials too."""
            return x if own_slots else jnp.sum(jnp.where(pulled, x[None], 0), axis=1, dtype=x.dtype)

        counts = state.counts + of_arms(observation.times)
        pulls = state.pulls + jnp.sum(observation.times).astype(state.pulls.dtype)
        if isinstance(state.sums, Sum) and slots <= 2 and not own_slots:
            sums = state.sums
            for i in range(slots):  # one entry after the other: for all arms at once LUCB takes a sixth longer
                sums = compensated.add_entry(sums, action.arms[i], observation.sums[i])
        else:
            sums = _add(state.sums, observation, of_arms)
        return State(pulls, counts, sums, own, state.ties)

    idle = jax.tree.map(lambda x: jnp.zeros(slots, x.dtype), Pull(jnp.int32(0), jnp.int32(0)))
    return Algorithm(
        init,
        decide,
        observe,
        idle,
        before=lambda state, action: pulled_before(state.counts, action),
        problem=lambda: {"arms": K},
        receive=partial(receive, problem),
    )


def estimates(problem: Problem, state: State) -> Estimates:
    """Returns the empirical means, the counts as floats, and the lots of this round."""
    counts = jnp.maximum(state.counts, 1).astype(float_dtype(problem))
    # The pulls do not depend on how many of them were a round's.
    lots = () if isinstance(state.ties, tuple) else apart(ties.lots(state.ties, state.pulls))
    return Estimates(state.pulls, counts, total_rewards(problem, state) / counts, lots)


def pulled_before(counts: Array, action: Pull) -> Array:
    """How often the arm of each slot was pulled in earlier rounds, int32 (slots,); the slots of a round differ."""
    return jax.vmap(lambda arm: at(counts, arm))(action.arms)


def total_rewards(problem: Problem, state: State) -> Array:
    """The sums of the rewards, float (K,)."""
    if isinstance(state.sums, Ones):
        return state.sums.counts.astype(float_dtype(problem))
    return compensated.value(state.sums) if isinstance(state.sums, Sum) else state.sums


def one_arm(arm: Array, slots: int = 1) -> Pull:
    """Pulls one arm once; further slots are idle."""
    arms = jnp.broadcast_to(arm.astype(jnp.int32), (slots,))
    return Pull(arms, (jnp.arange(slots) == 0).astype(jnp.int32))


def argmax(x: Array, lots: Array | tuple[()] = ()) -> Array:
    """Returns the place of the largest entry, of several the one with the largest lot, or without lots the first.

    Args:
        x: (K,).
        lots: int32 (K,), of the estimates; () for entries that do not tie, or whose order changes no law.

    Returns:
        int32 ().
    """
    return jnp.argmax(x).astype(jnp.int32) if isinstance(lots, tuple) else ties.argmax(apart(x), lots)


def argmin(x: Array, lots: Array | tuple[()] = ()) -> Array:
    """Returns the place of the smallest entry; otherwise as `argmax`."""
    return jnp.argmin(x).astype(jnp.int32) if isinstance(lots, tuple) else ties.argmin(apart(x), lots)


def precedence(lots: Array | tuple[()], K: int) -> Array:
    """Returns numbers of which the largest comes first where arms tie: the lots, or without lots -arm, int32 (K,)."""
    return -jnp.arange(K, dtype=jnp.int32) if isinstance(lots, tuple) else lots


def at(x: Array, i: Array) -> Array:
    """x[i] without a gather, which a batch makes slow."""
    return jnp.sum(jnp.where(is_arm(i, x), x, 0), dtype=x.dtype)


def apart(x: PyTree) -> PyTree:
    """The same, in kernels of its own.

    Else XLA:CPU copies elementwise work into each of the reductions over arms that read it, where it is not vectorised:
    six times the time of `kl_lucb`'s intervals. It changes no value, and is nothing to the engine's scalar form.
    """
    return lax.optimization_barrier(x)


def is_arm(i: Array, like: Array) -> Array:
    """Whether an arm is arm i, bool (K,)."""
    return jnp.arange(like.shape[0], dtype=jnp.int32) == i


def _no_rewards(problem: Problem) -> Array | Sum | Ones:
    K, dtype = problem.arms, float_dtype(problem)
    if not isinstance(problem, Gaussian):
        return Ones(jnp.zeros(K, jnp.int32), jnp.zeros((), dtype))
    # In 64 bit a plain sum keeps 9 digits over any number of pulls that fits the counts.
    return jnp.zeros(K, dtype) if dtype == jnp.float64 else compensated.zeros((K,), dtype)


def _add(sums: Array | Sum | Ones, rewards: Rewards, of_arms: Callable[[Array], Array]) -> Array | Sum | Ones:
    """Adds the rewards of one round; `of_arms` brings them from slots to arms."""
    if isinstance(sums, Ones):
        whole = jnp.round(rewards.sums)
        is_lawful = (whole == rewards.sums) & (whole >= 0) & (whole <= rewards.times.astype(whole.dtype))
        ones = jnp.where(is_lawful, whole, 0).astype(jnp.int32)
        return Ones(sums.counts + of_arms(ones), jnp.where(jnp.all(is_lawful), sums.poison, jnp.nan))
    added = of_arms(rewards.sums)
    return compensated.add(sums, added) if isinstance(sums, Sum) else sums + added
