"""Drives algorithms for dimension sampling with recorded dimensions: query number q of a run draws tape[q]."""

import jax
import jax.numpy as jnp
import numpy as np
from drivers.tape import answered, whole

import jaxbandits
from jaxbandits import kcenter

KEY = jax.random.key(5)


def follow(make, points, *, rounds, k, levels=None, leap=1):
    """Returns a compiled `run(tape, *parameters)`, which returns the last state and the queries of every round.

    `make(problem, *parameters, leap=)` returns the algorithm.
    """
    instance = kcenter.dimension_instance(points, k=k, levels=levels)

    @jax.jit
    def scan(tape, *parameters):
        algorithm = make(instance.problem, *parameters, leap=leap)
        environment = kcenter.environment(instance, algorithm)

        def answer(state, action):
            return environment.respond((), action, tape[state.pulls + jnp.arange(leap)])[0]

        course = jaxbandits.trace(KEY, *answered(algorithm, answer), rounds=rounds + 1, watch=whole)
        actions = jax.tree.map(lambda x: x[:-1], course.actions)
        return jax.tree.map(lambda x: x[-1], course.watched), (
            actions.node,
            actions.slot,
            jnp.diff(course.watched.pulls),
        )

    def run(tape, *parameters):
        state, (node, slot, queries) = scan(jnp.asarray(tape), *parameters)
        return state, np.stack([node, slot, queries], axis=1)

    return run


def tape(seed, m, size=20_000):
    return np.random.default_rng(seed).integers(m, size=size).astype(np.int32)
