"""Observations that depend on the state, such as the n-th reward of an arm, for the library's `trace` and `run`."""

import jax
import jax.numpy as jnp

from jaxbandits import memoryless

KEY = jax.random.key(0)
SILENT = memoryless(noise=lambda key: jnp.zeros(()), respond=lambda action, noise: noise)


def answered(algorithm, answer):
    """Returns an algorithm that observes `answer(state, action)`, and an environment that tells it nothing."""

    def observe(state, action, nothing):
        return algorithm.observe(state, action, answer(state, action))

    return algorithm._replace(observe=observe, receive=None), SILENT


def whole(state):
    """Watches the whole state of a trace."""
    return state
