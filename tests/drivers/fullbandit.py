"""Recorded rewards of super-arms, for algorithms that make many pulls per round."""

import jax
import jax.numpy as jnp
import numpy as np
from drivers.tape import KEY, answered, whole

import jaxbandits


def cumulate(tape):
    """Sums the first m rewards of every super-arm; tape[i, m] is the m-th reward of super-arm i."""
    return jnp.concatenate([jnp.zeros((tape.shape[0], 1), tape.dtype), jnp.cumsum(tape, axis=1)], axis=1)


def answers(tape):
    sums = cumulate(tape)

    def upto(counts):
        return jnp.take_along_axis(sums, counts[:, None], axis=1)[:, 0]

    return lambda state, action: upto(state.counts + action.counts) - upto(state.counts)


def trace(algorithm, tape, rounds):
    """Returns the tape of `rounds` rounds, which watches the states; after the stop the state stays."""
    return jaxbandits.trace(KEY, *answered(algorithm, answers(tape)), rounds=rounds, watch=whole)


def follow(algorithm, tape, max_rounds=5000):
    """Returns the state at the stop, or after the last round, and the rounds."""
    outcome = jaxbandits.run(KEY, *answered(algorithm, answers(tape)), max_rounds=max_rounds)
    return outcome.state, outcome.rounds


def every_state(algorithm, tape, max_rounds):
    """Returns every state up to the stop, as a list."""
    course = jax.device_get(jax.jit(lambda tape: trace(algorithm, tape, max_rounds + 1))(tape))
    stop = int(np.argmax(course.stops)) if course.stops.any() else max_rounds
    return [jax.tree.map(lambda x, t=t: x[t], course.watched) for t in range(stop + 1)]


def rewards(theta, support, pulls, seed, scale=1.0):
    """Draws the m-th reward of every super-arm, each of its arms with normal noise, float (s, pulls)."""
    noise = jax.random.normal(jax.random.key(seed), (support.shape[0], pulls))
    return (support @ theta)[:, None] + scale * jnp.sqrt(support.sum(1))[:, None] * noise
