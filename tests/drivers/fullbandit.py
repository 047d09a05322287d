"""Recorded rewards of super-arms, for algorithms that make many pulls a round."""

import jax
import jax.numpy as jnp
import numpy as np
from drivers import tape as driver

KEY = driver.KEY


def cumulate(tape):
    """tape[i, m], the m-th reward of super-arm i, as sums of the first m."""
    return jnp.concatenate([jnp.zeros((tape.shape[0], 1), tape.dtype), jnp.cumsum(tape, axis=1)], axis=1)


def answers(tape):
    sums = cumulate(tape)

    def upto(counts):
        return jnp.take_along_axis(sums, counts[:, None], axis=1)[:, 0]

    return lambda state, action: upto(state.counts + action.counts) - upto(state.counts)


def trace(algorithm, tape, rounds):
    """Every state and decision of so many rounds, stacked; after the stop the state stays."""
    return driver.record(algorithm, answers(tape), rounds)[1]


def follow(algorithm, tape, max_rounds=5000):
    """The state of the stop, or of the last round, and the rounds."""
    return driver.finish(algorithm, answers(tape), max_rounds)[:2]


def every_state(algorithm, tape, max_rounds):
    """Every state up to the stop, as a list."""
    states, decisions = jax.device_get(jax.jit(lambda tape: trace(algorithm, tape, max_rounds + 1))(tape))
    stop = int(np.argmax(decisions.stop)) if decisions.stop.any() else max_rounds
    return [jax.tree.map(lambda x, t=t: x[t], states) for t in range(stop + 1)]


def rewards(theta, support, pulls, seed, scale=1.0):
    """The m-th reward of every super-arm, each of its arms with normal noise, float (s, pulls)."""
    noise = jax.random.normal(jax.random.key(seed), (support.shape[0], pulls))
    return (support @ theta)[:, None] + scale * jnp.sqrt(support.sum(1))[:, None] * noise
