"""Drives algorithms for noisy distances with recorded noise: query number q of a run has noise[q]."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from drivers import tape as driver

KEY = jax.random.key(3)


def distances(seed, n, dim=3):
    points = np.random.default_rng(seed).random((n, dim))
    return ((points[:, None] - points) ** 2).sum(-1) / dim


def tape(seed, size, noise="gaussian"):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(size) if noise == "gaussian" else rng.random(size)


def follow(make, instance, noise, rounds, k):
    """Runs `make(*instance)`, an algorithm and its environment; compiles once for each `make`.

    Returns the last state, and the queries as (node, slot) pairs.
    """
    state, nodes, slots = _scan(make, rounds)(instance, jnp.asarray(noise))
    n = state.samples.counts.shape[0]
    queried = (nodes < n) & (slots < k - 1)
    return state, list(zip(nodes[queried].tolist(), slots[queried].tolist(), strict=True))


@functools.cache
def _scan(make, rounds):
    @jax.jit
    def scan(instance, noise):
        algorithm, environment = make(*instance)

        def answer(state, action):
            numbers = state.pulls + jnp.arange(action.node.size).reshape(action.node.shape)
            return environment.respond(action, noise[numbers])

        state, (_, decisions) = driver.record(
            algorithm, answer, rounds, start=KEY, key=lambda r, state: jax.random.fold_in(KEY, state.pulls)
        )
        return state, decisions.action.node, decisions.action.slot

    return scan
