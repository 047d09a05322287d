"""Toy algorithms whose runs are known in advance."""

import os
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Algorithm, Decision, memoryless

KEY = jax.random.key(3)
# PYTHONPATH of a child process that uses these toys.
PATHS = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))))


class Count(NamedTuple):
    pulls: jax.Array
    total: jax.Array
    planned: jax.Array  # number of plans


def counter(limit, *, period=None):
    """Sums noise until `limit` pulls; with a `period`, plans whenever `pulls` is a multiple of it."""

    def stale(state):
        return (state.pulls // period > state.planned) & (state.pulls < limit)

    def plan(key, state):
        return state._replace(planned=state.planned + 1)

    return Algorithm(
        init=lambda key: Count(jnp.zeros((), int), jnp.zeros(()), jnp.zeros((), int)),
        decide=lambda key, state: Decision(jnp.ones((), int), state.pulls >= limit, state.pulls % 7),
        observe=lambda state, action, observation: state._replace(
            pulls=state.pulls + action, total=state.total + observation
        ),
        idle=jnp.zeros((), int),
        refresh=lambda state: state,
        **({"plan": plan, "stale": stale} if period is not None else {}),
    )


NOISE = memoryless(lambda key: jax.random.normal(key), lambda action, noise: action.astype(float) * noise)
LIMITS = jnp.asarray([5, 400, 17, 90])


def counting(limit, key):
    return counter(limit), NOISE


def total(task, outcome):
    return {"total": outcome.state.total}


def same_bits(a, b):
    """Asserts equal columns in the same order, bit for bit, including NaN and -0.0."""
    assert list(a) == list(b)
    for name in a:
        assert (a[name].dtype, a[name].shape) == (b[name].dtype, b[name].shape), name
        assert a[name].tobytes() == b[name].tobytes(), name


class Stride(NamedTuple):
    pulls: jax.Array
    steps: jax.Array
    sum: jax.Array
    planned: jax.Array  # number of steps at the last plan


def stride(limit, period):
    """Pulls once, then twice, and so on, until `limit` pulls: 0, 1, 3, 6, 10, 15, 21; a plan is due every period."""

    def observe(state, action, observation):
        return state._replace(
            pulls=state.pulls + action,
            steps=state.steps + jnp.sign(action),
            sum=state.sum + jnp.where(action > 0, observation, 0),
        )

    zero = jnp.zeros((), int)
    return Algorithm(
        init=lambda key: Stride(zero, zero, jnp.zeros(()), zero),
        decide=lambda key, state: Decision(state.steps + 1, state.pulls >= limit, state.steps),
        observe=observe,
        idle=zero,
        plan=lambda key, state: state._replace(planned=state.steps),
        stale=lambda state: (state.steps - state.planned >= period) & (state.pulls < limit),
    )


PERTURBED = memoryless(lambda key: jax.random.normal(key), lambda action, noise: action.astype(float) + noise)
