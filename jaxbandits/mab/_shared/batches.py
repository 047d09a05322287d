"""Batches: a rule of fixed confidence that decides for many pulls at once, as a laboratory or a website does.

The stop, the answer and the choice are computed from all rewards of the batches before. The pulls of a batch are
allotted without a look at its rewards. Where a rule tosses a coin between arms, each arm is owed its share of every
pull instead, and the arm that is owed most is pulled.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array, Key, PyTree
from jaxbandits.mab._problem.environment import Pull, Rewards
from jaxbandits.mab._problem.problems import Problem, float_dtype, law_of
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, algorithm_from_rule, argmax, estimates
from jaxbandits.numerics.indexing import is_entry


class Batch(NamedTuple):
    """Memory of a rule that works in batches. The first batch pulls every arm as often as any other."""

    due: Array  # int32 (K,)   pulls of the batch that remain
    owed: Array  # float (K,)   shares of all pulls so far less the pulls, of the arms that share pulls; sum 0
    rule: PyTree  # the rule's own memory


def algorithm_in_batches(
    problem: Problem,
    rule: Rule,
    *,
    every: int,
    slots: int = 1,
    in_turn: bool = True,
    draws_lots: bool | None = None,
    start: int | None = None,
    keeps_squares: bool = False,
) -> Algorithm:
    """Builds the algorithm that follows a rule, and applies it once in `every` pulls.

    Args:
        problem: kind of the rewards.
        rule: choice of the next pull.
        every: pulls per decision, an int >= 1. With 1, this is `algorithm_from_rule`.
        slots: as for `algorithm_from_rule`, if `every` is 1.
        in_turn: as `slots`.
        draws_lots: as for `algorithm_from_rule`.
        start: as for `algorithm_from_rule`; the pulls of each arm in the first batch.
        keeps_squares: as `draws_lots`.

    Returns:
        Algorithm with actions `Pull`. In batches they have K slots, slot i for arm i, and a round is a batch, except
        where a sampler misses an arm, or where rewards have no law of their sum: then further rounds pull what remains.
    """
    if every == 1:
        return algorithm_from_rule(
            problem,
            rule,
            slots=slots,
            in_turn=in_turn,
            draws_lots=draws_lots,
            start=start,
            keeps_squares=keeps_squares,
        )
    K, most = problem.arms, law_of(problem).largest_leap
    leap = every if most is None else min(every, most)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        choice = rule.choose(key, _inner(state), estimates)
        action = Pull(jnp.arange(K, dtype=jnp.int32), jnp.minimum(state.memory.due, leap))
        return Choice(action, choice.stop & _is_over(state), choice.answer)

    def learn(state: State, action: Pull, rewards: Rewards) -> Batch:
        del action
        due = state.memory.due - rewards.times
        memory = state.memory.rule
        if rule.end is not None:
            memory = rule.end(_inner(state), (rewards.times > 0) & (due == 0))
        return state.memory._replace(due=due, rule=memory)

    def plan(key: Key, state: State) -> State:
        batch, now = state.memory, estimates(problem, state)
        if rule.allot is not None:
            due, memory = rule.allot(_inner(state), now, every)
            return state._replace(memory=batch._replace(due=due.astype(jnp.int32), rule=memory))
        choice = rule.choose(key, _inner(state), now)
        if choice.shares is None:
            due, owed = jnp.where(is_entry(choice.action.arms[0], batch.due), every, 0), batch.owed
        else:
            due, owed = shared_out(choice.shares(), owed=batch.owed, pulls=every)
        return state._replace(memory=batch._replace(due=due.astype(jnp.int32), owed=owed))

    def stale(state: State) -> Array:
        # A stop depends on the state alone, so any key will do.
        return _is_over(state) & ~rule.choose(jax.random.key(0), _inner(state), estimates(problem, state)).stop

    first = jnp.full(K, 1 if start is None else start, jnp.int32)
    memory = Batch(first, jnp.zeros(K, float_dtype(problem)), rule.start)
    algorithm = algorithm_from_rule(
        problem,
        Rule(choose, memory, learn=learn),
        slots=K,
        in_turn=False,
        leap=leap,
        draws_lots=draws_lots,
        start=start,
        keeps_squares=keeps_squares,
    )
    # An observation reduces what is due in the state that pulled.
    return algorithm._replace(plan=plan, stale=stale, needs_order=True)


def shared_out(shares: Array, *, owed: Array, pulls: int) -> tuple[Array, Array]:
    """Divides pulls between the arms that have a share, each to the arm that is owed most, ties to the lowest index.

    Args:
        shares: float (K,), with sum 1.
        owed: float (K,), shares less pulls so far.
        pulls: number of pulls.

    Returns:
        int32 (K,), pulls of each arm; float (K,), `owed` after them. Cost: O(K) per pull.
    """

    def next_arm(i: Array, times: Array, owed: Array) -> tuple[Array, Array]:
        del i, times
        owed = owed + shares
        arm = argmax(jnp.where(shares > 0, owed, -jnp.inf))
        return arm, owed - is_entry(arm, owed).astype(owed.dtype)

    return one_by_one(next_arm, owed, arms=shares.shape[0], pulls=pulls)


def one_by_one(
    next_arm: Callable[[Array, Array, PyTree], tuple[Array, PyTree]], carry: PyTree, *, arms: int, pulls: int
) -> tuple[Array, PyTree]:
    """Allots pulls one after the other.

    Args:
        next_arm: (number of the pull from 0, pulls of each arm so far, carry) -> arm int32 (), carry.
        carry: memory of `next_arm`.
        arms: K.
        pulls: number of pulls.

    Returns:
        int32 (K,), pulls of each arm; the carry after them.
    """

    def allot(i: Array, state: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
        times, carry = state
        arm, carry = next_arm(i, times, carry)
        return times + is_entry(arm, times).astype(jnp.int32), carry

    return lax.fori_loop(0, pulls, allot, (jnp.zeros(arms, jnp.int32), carry))


def _inner(state: State) -> State:
    """Returns the state as the rule knows it."""
    return state._replace(memory=state.memory.rule)


def _is_over(state: State) -> Array:
    """True if every pull of the batch is made, bool ()."""
    return jnp.all(state.memory.due == 0)
