"""The contract: what an algorithm, an environment and the result of a run are.

Everything here describes a single lane. No function has a batch axis; `jax.vmap` stands outside.
"""

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

PyTree = Any
Array = jax.Array
Key = jax.Array


class Decision(NamedTuple):
    """What an algorithm makes of its state before a round."""

    action: PyTree  # what to query next
    stop: Array  # bool ()     the stopping rule holds
    answer: PyTree  # the recommendation if the run ended now


def identity(state: PyTree) -> PyTree:
    """The default `refresh`: nothing is derived, so nothing is rebuilt."""
    return state


def never(state: PyTree) -> Array:
    """The default `stale`: there is no heavy, rare work.

    The engine recognises this very function and then compiles no branch for the work.
    """
    del state
    return jnp.zeros((), bool)


class Algorithm(NamedTuple):
    """A sequential algorithm as pure functions of one lane's state.

    A state is a NamedTuple with an integer field `pulls` (): the oracle queries spent so far, kept by `observe`.
    Its exact statistics (integer counts, reward sums) are the truth; everything else in it is a cache. All its
    floating-point entries are finite as long as the run is healthy: the engine ends a run whose state holds
    a NaN or an infinity as `Status.NONFINITE`.

    `stop` is a function of the state alone, so that a lane that has stopped stays stopped. A state that is stale
    gets the idle action until it is refreshed, and a state that stops is never stale.
    """

    init: Callable[[Key], PyTree]  # (key) -> state
    decide: Callable[[Key, PyTree], Decision]  # (key, state) -> Decision
    observe: Callable[[PyTree, PyTree, PyTree], PyTree]  # (state, action, observation) -> state
    idle: PyTree  # an action that does nothing: observing it leaves every bit of the state as it was, at no query
    refresh: Callable[[PyTree], PyTree] = identity  # (state) -> state  rebuilds all that is derived from the statistics
    stale: Callable[[PyTree], Array] = never  # (state) -> bool ()  heavy, rare work is due


class Environment(NamedTuple):
    """A source of observations. Its randomness is apart from the response, so that it can be drawn ahead."""

    noise: Callable[[Key], PyTree]  # (key) -> noise  the randomness of one round, whatever the action
    respond: Callable[[PyTree, PyTree], PyTree]  # (action, noise) -> observation


class Status(enum.IntEnum):
    """How a run ended."""

    RUNNING = 0  # it has not
    STOPPED = 1  # the stopping rule held: the only status whose pulls are a stopping time
    MAX_ROUNDS = 2  # censored: the budget of rounds ran out first
    NONFINITE = 3  # failed: a NaN or an infinity in the state


class Outcome(NamedTuple):
    """The end of one run."""

    status: Array  # int32 ()   a `Status`
    pulls: Array  # int ()      oracle queries spent
    rounds: Array  # int32 ()   decisions carried out
    answer: PyTree  # the recommendation
    state: PyTree  # the algorithm's last state
