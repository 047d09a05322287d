"""Recorded rewards of super-arms, for algorithms that make many pulls per round."""

import jax
import jax.numpy as jnp
import numpy as np
from drivers import tape as driver

KEY = driver.KEY


def cumulate(tape):
    """Sums the first m rewards of every super-arm; tape[i, m] is the m-th reward of super-arm i."""
    return jnp.concatenate([jnp.zeros((tape.shape[0], 1), tape.dtype), jnp.cumsum(tape, axis=1)], axis=1)


def answers(tape):
    sums = cumulate(tape)

    def upto(counts):
        return jnp.take_along_axis(sums, counts[:, None], axis=1)[:, 0]

    return lambda state, action: upto(state.counts + action.counts) - upto(state.counts)


def trace(algorithm, tape, rounds):
    """Returns the states and decisions of `rounds` rounds, stacked; after the stop the state stays."""
    return driver.record(algorithm, answers(tape), rounds)[1]


def follow(algorithm, tape, max_rounds=5000):
    """Returns the state at the stop, or after the last round, and the rounds."""
    return driver.finish(algorithm, answers(tape), max_rounds)[:2]


def every_state(algorithm, tape, max_rounds):
    """Returns every state up to the stop, as a list."""
    states, decisions = jax.device_get(jax.jit(lambda tape: trace(algorithm, tape, max_rounds + 1))(tape))
    stop = int(np.argmax(decisions.stop)) if decisions.stop.any() else max_rounds
    return [jax.tree.map(lambda x, t=t: x[t], states) for t in range(stop + 1)]


def rewards(theta, support, pulls, seed, scale=1.0):
    """Draws the m-th reward of every super-arm, each of its arms with normal noise, float (s, pulls)."""
    noise = jax.random.normal(jax.random.key(seed), (support.shape[0], pulls))
    return (support @ theta)[:, None] + scale * jnp.sqrt(support.sum(1))[:, None] * noise
