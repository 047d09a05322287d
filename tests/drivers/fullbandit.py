"""Drives an algorithm that makes many pulls a round with recorded rewards in place of an environment."""

import jax
import jax.numpy as jnp
from jax import lax

KEY = jax.random.key(0)


def cumulate(tape):
    """tape[i, m], the m-th reward of super-arm i, as sums of the first m."""
    return jnp.concatenate([jnp.zeros((tape.shape[0], 1), tape.dtype), jnp.cumsum(tape, axis=1)], axis=1)


def step(algorithm, sums, state):
    action = algorithm.decide(KEY, state).action

    def upto(counts):
        return jnp.take_along_axis(sums, counts[:, None], axis=1)[:, 0]

    return algorithm.observe(state, action, upto(state.counts + action.counts) - upto(state.counts))


def follow(algorithm, tape, max_rounds=5000):
    """The state of the stop, or of the last round, and the rounds."""
    sums = cumulate(tape)

    def more(carry):
        return ~algorithm.decide(KEY, carry[0]).stop & (carry[1] < max_rounds)

    def advance(carry):
        return step(algorithm, sums, carry[0]), carry[1] + 1

    return lax.while_loop(more, advance, (algorithm.init(KEY), jnp.zeros((), int)))


def every_state(algorithm, tape, max_rounds):
    """Every state up to the stop, as a list."""
    sums, decide = cumulate(tape), jax.jit(algorithm.decide)
    advance = jax.jit(lambda state: step(algorithm, sums, state))
    states = [algorithm.init(KEY)]
    while not decide(KEY, states[-1]).stop and len(states) <= max_rounds:
        states.append(advance(states[-1]))
    return states


def rewards(theta, support, pulls, seed, scale=1.0):
    """The m-th reward of every super-arm, each of its arms with normal noise, float (s, pulls)."""
    noise = jax.random.normal(jax.random.key(seed), (support.shape[0], pulls))
    return (support @ theta)[:, None] + scale * jnp.sqrt(support.sum(1))[:, None] * noise
