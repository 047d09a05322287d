"""Driver of an algorithm on recorded samples, without an environment."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from drivers import tape as driver

from jaxbandits import cpe


class Trace(NamedTuple):
    """Course of a run, one entry per round, before its pulls; after the stop nothing changes."""

    stop: np.ndarray  # bool (rounds,)
    arms: np.ndarray  # int32 (rounds, leap)
    pulls: np.ndarray  # int32 (rounds,)
    counts: np.ndarray  # int32 (rounds, m)
    answer: np.ndarray  # int32 (rounds, m)


def answers(algorithm, tape):
    """Returns the function that answers an action from a tape, where `tape[i, s]` is sample s of arm i."""
    m = tape.shape[0]

    def answer(state, action):
        numbers = algorithm.before(state, action)
        return jnp.where(action.arms < m, tape[jnp.minimum(action.arms, m - 1), numbers], 0)

    return answer


def record(algorithm, tape, rounds):
    @jax.jit
    def traced(tape):
        _, (states, decisions) = driver.record(algorithm, answers(algorithm, tape), rounds)
        return Trace(decisions.stop, decisions.action.arms, states.pulls, states.statistics.counts, decisions.answer)

    return jax.device_get(traced(tape))


def follow(algorithm, theta, *, max_rounds=20_000, hold=lambda state: state):
    """Returns the last state, rounds and answer of a run whose samples are always theta."""

    @jax.jit
    def end(theta):
        tape = theta[:, None]  # its only sample answers every number
        return driver.finish(algorithm, answers(algorithm, tape), max_rounds, hold=hold)

    state, rounds, decision = jax.device_get(end(np.asarray(theta)))
    return state, int(rounds), decision.answer.tolist()


@jax.jit
def best(problem, theta):
    """Solves a problem, int (m,)."""
    return cpe.solve(problem, theta)


def hold_variance(theta):
    """Returns a function that sets a state's sums of squares so that its variance estimates are theta."""

    def hold(state):
        statistics = state.statistics
        second = statistics.sums.second._replace(total=theta * (statistics.counts - 1).astype(theta.dtype))
        first = statistics.sums.first._replace(total=jnp.zeros_like(theta))
        return state._replace(statistics=statistics._replace(sums=statistics.sums._replace(first=first, second=second)))

    return hold
