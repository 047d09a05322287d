"""Drives algorithms for dimension sampling with recorded dimensions: query number q of a run draws tape[q]."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.kcenter.problem import Pull, dimension_sampling

KEY = jax.random.key(5)


def follow(make, points, *, rounds, levels=None, burst=1):
    """A compiled function of a tape and of what `make` takes: the last state, and what was asked in every round.

    `make(*parameters)` gives the algorithm.
    """
    environment = dimension_sampling(points, levels=levels, burst=burst)

    @jax.jit
    def scan(tape, *parameters):
        algorithm = make(*parameters)

        def one_round(state, r):
            action: Pull = algorithm.decide(jax.random.fold_in(KEY, r), state).action
            sample = environment.respond(action, tape[state.pulls + jnp.arange(burst)])
            after = algorithm.observe(state, action, sample)
            return after, (action.node, action.slot, after.pulls - state.pulls)

        return lax.scan(one_round, algorithm.init(KEY), jnp.arange(rounds))

    def run(tape, *parameters):
        state, (node, slot, queries) = scan(jnp.asarray(tape), *parameters)
        return state, np.stack([node, slot, queries], axis=1)

    return run


def one_by_one(asked, m):
    """The rounds' bursts as single queries: (node, slot, cost) each."""
    singles = []
    for node, slot, queries in asked.tolist():
        singles += [(node, slot, queries)] if queries == m else [(node, slot, 1)] * queries
    return singles


def tape(seed, m, size=20_000):
    return np.random.default_rng(seed).integers(m, size=size).astype(np.int32)
