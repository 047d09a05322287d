"""Runs of combinatorial rules on recorded samples."""

import jax
import jax.numpy as jnp
import numpy as np
from drivers.tape import KEY, answered

import jaxbandits
from experiments.bench.reference import cpe as reference
from jaxbandits import cpe


def answers(tape):
    """Returns the function that answers an action from a tape, where `tape[i, s]` is sample s of arm i."""
    m = tape.shape[0]

    def answer(state, action):
        arms = jnp.minimum(action.arms, m - 1)
        earlier = jnp.sum(jnp.tril(action.arms[None] == action.arms[:, None], -1), axis=1, dtype=jnp.int32)
        return jnp.where(action.arms < m, tape[arms, state.statistics.counts[arms] + earlier], 0)

    return answer


def record(algorithm, tape, rounds):
    """Traces a run, and watches pulls and counts."""

    @jax.jit
    def traced(tape):
        pair = answered(algorithm, answers(tape))
        return jaxbandits.trace(KEY, *pair, rounds=rounds, watch=lambda state: (state.pulls, state.statistics.counts))

    return jax.device_get(traced(tape))


def follow(algorithm, theta, *, max_rounds=20_000, hold=lambda state: state):
    """Returns the last state, rounds and answer of a run whose samples are always theta; `hold` changes each state."""

    @jax.jit
    def end(theta):
        tape = theta[:, None]  # its only sample answers every number
        plain, environment = answered(algorithm, answers(tape))
        held = plain._replace(observe=lambda *arguments: hold(plain.observe(*arguments)))
        return jaxbandits.run(KEY, held, environment, max_rounds=max_rounds)

    outcome = jax.device_get(end(np.asarray(theta)))
    return outcome.state, int(outcome.rounds), outcome.answer.tolist()


@jax.jit
def best(problem, theta):
    """Solves a problem, int (m,)."""
    return cpe.solve(problem, theta)


def best_of_concave(theta):
    """Solves the water planning with falling marginal costs, int (3,)."""
    y, cost = reference.concave_costs()
    return jnp.asarray(y)[jnp.argmax(jnp.asarray(y, float) @ theta - jnp.asarray(cost))]


def hold_variance(theta):
    """Returns a function that sets a state's sums of squares so that its variance estimates are theta."""

    def hold(state):
        statistics = state.statistics
        second = statistics.sums.second._replace(total=theta * (statistics.counts - 1).astype(theta.dtype))
        first = statistics.sums.first._replace(total=jnp.zeros_like(theta))
        return state._replace(statistics=statistics._replace(sums=statistics.sums._replace(first=first, second=second)))

    return hold
