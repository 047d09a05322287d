"""One task from its first round to its last; `jax.vmap` makes a batch of it.

`advance` is the only loop over rounds in the library: `run` repeats it until the task ends, `jaxbandits.sweep` calls it
for thousands of lanes and refills those that have ended.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array, Environment, Key, Outcome, PyTree, Status, identity, never
from jaxbandits.checks import known, require

DEFAULT_CHUNK = 256  # rounds between two refreshes


class Streams(NamedTuple):
    """The keys of one task, one for each purpose, so that no two purposes ever share randomness."""

    build: Key  # for the instance, where it is random
    init: Key  # for the algorithm's initial state
    decide: Key  # folded with the round number: randomised decisions
    noise: Key  # folded with the round number: the environment


def streams(key: Key) -> Streams:
    """Splits a task's key by purpose."""
    return Streams(*(jax.random.fold_in(key, purpose) for purpose in range(len(Streams._fields))))


def advance(
    algorithm: Algorithm,
    environment: Environment,
    keys: Streams,
    state: PyTree,
    rounds: Array,
    *,
    max_rounds: Array | int,
    chunk: int,
    axis_name: str | None = None,
) -> Outcome:
    """Carries one lane through at most `chunk` further rounds.

    The lane is refreshed first, so rounding errors of a cache live for at most one chunk. A lane that has stopped, or
    has spent its budget, gets the idle action: it costs a round of time but changes nothing. A lane without budget is
    not refreshed either: it keeps every bit.

    Args:
        algorithm: what decides.
        environment: what answers.
        keys: the task's `streams`.
        state: the algorithm's state.
        rounds: int32 (), rounds carried out so far; round r draws its noise from `fold_in(keys.noise, r)`, so the
            stream of a task does not depend on how its rounds are cut into chunks.
        max_rounds: the budget of rounds.
        chunk: rounds of this call, a Python int; the trip count is fixed.
        axis_name: name of the enclosing `vmap` axis, if any. With it, an algorithm's heavy refresh stays a real branch,
            entered when half of the running lanes wait for it: a batch pays for the work of all its lanes, whoever
            asks. A waiting lane idles, which spends none of its rounds and changes nothing in its run. Without an
            axis name, `vmap` runs both branches in every round.

    Returns:
        Outcome whose status is RUNNING if rounds remain.
    """
    if algorithm.refresh is not identity:
        state = _where(rounds < max_rounds, algorithm.refresh(state), state)
    first = rounds
    noise = jax.vmap(lambda r: environment.noise(jax.random.fold_in(keys.noise, r)))(
        first + jnp.arange(chunk, dtype=rounds.dtype)
    )

    def one_round(r: Array, carry: tuple[PyTree, Array]) -> tuple[PyTree, Array]:
        state, rounds = carry
        ready = rounds < max_rounds
        if algorithm.stale is not never:
            state, ready = _refresh_stale(algorithm, state, ready, axis_name)
        decision = algorithm.decide(jax.random.fold_in(keys.decide, rounds), state)
        active = ~decision.stop & ready
        action = jax.tree.map(lambda a, idle: jnp.where(active, a, idle), decision.action, algorithm.idle)
        # Without the barrier XLA copies the whole decision into each of the kernels that update the state
        # (measured on LinGapE, K = 6, two cores: 1.4e7 rounds a second without, 1.7e7 with).
        action = lax.optimization_barrier(action)
        # A lane that never waits is active for a prefix of the chunk: its r-th noise is that of its own round number.
        own = r if algorithm.stale is never else jnp.minimum(rounds - first, chunk - 1)
        observation = environment.respond(action, jax.tree.map(lambda x: x[own], noise))
        return algorithm.observe(state, action, observation), rounds + active.astype(rounds.dtype)

    state, rounds = lax.fori_loop(0, chunk, one_round, (state, rounds))
    decision = algorithm.decide(jax.random.fold_in(keys.decide, rounds), state)
    status = jnp.select(
        [~_is_finite(state), decision.stop & ~algorithm.stale(state), rounds >= max_rounds],
        [jnp.int32(Status.NONFINITE), jnp.int32(Status.STOPPED), jnp.int32(Status.MAX_ROUNDS)],
        jnp.int32(Status.RUNNING),
    )
    return Outcome(status, state.pulls, rounds, decision.answer, state)


def run(
    key: Key,
    algorithm: Algorithm,
    environment: Environment,
    *,
    max_rounds: Array | int,
    chunk: int = DEFAULT_CHUNK,
    axis_name: str | None = None,
) -> Outcome:
    """Runs one task to its end.

    Under `jax.vmap` every lane waits for the slowest one; `jaxbandits.sweep` does not, and gives the same results.

    Args:
        key: the task's key; equal keys give equal runs.
        algorithm: what decides.
        environment: what answers.
        max_rounds: the budget of rounds, at least 1; a run that reaches it ends as `Status.MAX_ROUNDS`.
        chunk: rounds between two refreshes of the algorithm's cache.
        axis_name: name of the enclosing `vmap` axis, for algorithms whose refresh is heavy (see `advance`).

    Returns:
        Outcome, whose status is never RUNNING.

    Raises:
        ValueError: `max_rounds` or `chunk` is below 1.

    Example:
        >>> from jaxbandits import Status, linear, run
        >>> bandit = linear.canonical(0.5)
        >>> algorithm, environment = linear.lingape(bandit.arms, delta=0.1), linear.gaussian(bandit)
        >>> outcome = run(jax.random.key(0), algorithm, environment, max_rounds=10**6)
        >>> print(Status(int(outcome.status)).name, outcome.answer)
        STOPPED 0
    """
    require(known(max_rounds) >= 1, "max_rounds", "be at least 1", max_rounds)
    require(chunk >= 1, "chunk", "be at least 1", chunk)
    keys = streams(key)

    def more(carry: tuple[Array, Array, PyTree]) -> tuple[Array, Array, PyTree]:
        _, rounds, state = carry
        outcome = advance(
            algorithm, environment, keys, state, rounds, max_rounds=max_rounds, chunk=chunk, axis_name=axis_name
        )
        return outcome.status, outcome.rounds, outcome.state

    start = jnp.int32(Status.RUNNING), jnp.zeros((), jnp.int32), algorithm.init(keys.init)
    status, rounds, state = lax.while_loop(lambda carry: carry[0] == Status.RUNNING, more, start)
    answer = algorithm.decide(jax.random.fold_in(keys.decide, rounds), state).answer
    return Outcome(status, state.pulls, rounds, answer, state)


def _refresh_stale(
    algorithm: Algorithm, state: PyTree, in_budget: Array, axis_name: str | None
) -> tuple[PyTree, Array]:
    """Does the heavy work of the lanes that ask for it once enough of them do; says which lanes need not wait."""
    due = algorithm.stale(state) & in_budget
    if axis_name is None:
        now = due
    else:
        waiting, running = lax.psum((due.astype(jnp.int32), in_budget.astype(jnp.int32)), axis_name)
        now = (waiting > 0) & (2 * waiting >= running)

    def refresh(state: PyTree) -> PyTree:
        return _where(due, algorithm.refresh(state), state)

    state = lax.cond(now, refresh, lambda state: state, state)
    return state, in_budget & (now | ~due)


def _where(condition: Array, new: PyTree, old: PyTree) -> PyTree:
    return jax.tree.map(lambda new, old: jnp.where(condition, new, old), new, old)


def _is_finite(state: PyTree) -> Array:
    finite = jnp.ones((), bool)
    for leaf in jax.tree.leaves(state):
        if jnp.issubdtype(leaf.dtype, jnp.inexact):
            finite &= jnp.all(jnp.isfinite(leaf))
    return finite
