"""One round of one lane: its keys, its plan, its decision, and what the environment answers.

`advance` (behind `run` and `sweep`), `trace`, `replay`, the preflight of a sweep and `jaxbandits.testing.check` differ
in what they watch and whom they let wait. Their rounds are this one.
"""

from collections.abc import Callable
from typing import NamedTuple

from jax import lax

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Environment, Key, PyTree
from jaxbandits.numerics.indexing import select
from jaxbandits.numerics.kernels import apart
from jaxbandits.numerics.random_bits import fold_in_each, folded


class Streams(NamedTuple):
    """The keys of one task, one per purpose, so that no two purposes share randomness."""

    build: Key  # key of a random instance
    init: Key  # key of the algorithm's initial state
    decide: Key  # key of randomised decisions, folded with the round number
    noise: Key  # key of the environment's noise, folded with the round number
    plan: Key  # key of randomised planning, folded with the round number
    memory: Key  # key of the environment's initial memory


class Played(NamedTuple):
    """A round that has been carried out."""

    state: PyTree  # state after the round
    memory: PyTree  # the environment's memory after the round
    action: PyTree  # the decision's action, or the idle one
    observation: PyTree  # answer to the action
    active: Array  # bool ()    False if the lane idled


def streams(key: Key) -> Streams:
    """Splits a task's key by purpose, as `run` and `sweep` do, to draw a run's instance or its noise again.

    Args:
        key: the task's key, as given to `run`; in a sweep, `task_key(key, row, seed)`.

    Returns:
        Streams. A sweep's `build` function gets `build`. The noise of round r is drawn from `fold_in(noise, r)`.

    Raises:
        ValueError: `key` is no key.

    Example:
        >>> import jax
        >>> from jaxbandits import linear, trace
        >>> key, environment = jax.random.key(0), linear.environment(linear.canonical(0.5))
        >>> tape = trace(key, linear.lingape(linear.canonical(0.5).arms, delta=0.1), environment, rounds=1)
        >>> noise = environment.noise(jax.random.fold_in(streams(key).noise, 0))
        >>> first = jax.tree.map(lambda x: x[0], tape.actions)
        >>> observation, memory = environment.respond(environment.init(key), first, noise)
        >>> print(jax.numpy.isclose(observation, tape.observations[0]), memory)
        True ()
    """
    checks.key("key", key)
    return Streams(*fold_in_each(key, range(len(Streams._fields))))


def noise_of(environment: Environment, keys: Streams, r: Array) -> PyTree:
    """Draws the noise of round r."""
    return environment.noise(folded(keys.noise, r))


def decision_of(algorithm: Algorithm, keys: Streams, r: Array, state: PyTree) -> Decision:
    """Returns the decision of round r."""
    return algorithm.decide(folded(keys.decide, r), state)


def planned(algorithm: Algorithm, key: Key, state: PyTree) -> PyTree:
    """Returns the state, planned if that is due. Under `vmap`, every lane plans; `advance` has batches that wait."""
    plan, stale = algorithm.plan, algorithm.stale
    if plan is None or stale is None:
        return state
    return lax.cond(stale(state), lambda state: plan(key, state), lambda state: state, state)


def play(
    algorithm: Algorithm,
    state: PyTree,
    memory: PyTree,
    decision: Decision,
    respond: Callable[[PyTree, PyTree], tuple[PyTree, PyTree]],
    *,
    ready: Array | None = None,
    accepts: Callable[[PyTree], Array] | None = None,
    available: Callable[[PyTree, PyTree], Array] | None = None,
) -> Played:
    """Carries out a decision: its action is answered, and the state observes the answer.

    The action is masked, never the state. A lane that stops, is not ready, or has an action that does not exist or has
    no answer gets the idle action. It costs a round of time, but changes nothing.

    Args:
        algorithm: the algorithm that decided.
        state: the state that decided.
        memory: the environment's memory.
        decision: the decision.
        respond: (memory, action) -> (observation, memory).
        ready: bool (), False if the lane idles for another reason. If None, it is True.
        accepts: (action) -> bool (), True if the action exists. If None, all do.
        available: (memory, action) -> bool (), True if the environment has an answer. If None, it always has.
    """
    active = ~decision.stop
    if ready is not None:
        active &= ready
    if accepts is not None:
        active &= accepts(decision.action)
    if available is not None:
        active &= available(memory, decision.action)
    action = select(active, decision.action, algorithm.idle)
    # Otherwise XLA copies the whole decision into each of the kernels that update the state, on a CPU in spite of a
    # barrier (core-ns of a round with a barrier, and so: LUCB 42 and 38, UCB1 18.0 and 17.1).
    action, active = apart(_decided, (action, active), elsewhere=lax.optimization_barrier)
    observation, memory = respond(memory, action)
    return Played(algorithm.observe(state, action, observation), memory, action, observation, active)


def _decided(decision: PyTree) -> PyTree:
    return decision
