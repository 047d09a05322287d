"""Drives algorithms for dimension sampling with recorded dimensions: query number q of a run draws tape[q]."""

import jax
import jax.numpy as jnp
import numpy as np
from drivers import tape as driver

from jaxbandits import kcenter

KEY = jax.random.key(5)


def follow(make, points, *, rounds, k, levels=None, leap=1):
    """Returns a compiled `run(tape, *parameters)`, which returns the last state and the queries of every round.

    `make(problem, *parameters, leap=)` returns the algorithm.
    """
    instance = kcenter.dimension_instance(points, k=k, levels=levels)
    environment = kcenter.environment(instance, leap=leap)

    @jax.jit
    def scan(tape, *parameters):
        algorithm = make(instance.problem, *parameters, leap=leap)

        def answer(state, action):
            return environment.respond(action, tape[state.pulls + jnp.arange(leap)])

        state, (states, decisions) = driver.record(
            algorithm, answer, rounds, start=KEY, key=lambda r, state: jax.random.fold_in(KEY, r)
        )
        pulls = jnp.diff(jnp.append(states.pulls, state.pulls))
        return state, (decisions.action.node, decisions.action.slot, pulls)

    def run(tape, *parameters):
        state, (node, slot, queries) = scan(jnp.asarray(tape), *parameters)
        return state, np.stack([node, slot, queries], axis=1)

    return run


def one_by_one(queried, m):
    """Splits leaps into single queries: (node, slot, cost) each."""
    singles = []
    for node, slot, queries in queried.tolist():
        singles += [(node, slot, queries)] if queries == m else [(node, slot, 1)] * queries
    return singles


def tape(seed, m, size=20_000):
    return np.random.default_rng(seed).integers(m, size=size).astype(np.int32)
