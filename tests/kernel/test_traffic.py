"""Measurements of a run by an observer."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits import kernel, record, run
from jaxbandits.base import Algorithm, Decision

KEY = jax.random.key(0)


class Walk(NamedTuple):
    pulls: jax.Array
    t: jax.Array
    traffic: kernel.Traffic
    due: jax.Array
    last: jax.Array


def walk(n_agents, size):
    """Queries t, t + 1, ..; synchronises after every third round, for 10 numbers per agent and 7 to all."""
    count = jnp.zeros((), int)

    def init(key):
        return Walk(count, count, kernel.Traffic(count, count), jnp.zeros((), bool), jnp.zeros(()))

    def decide(key, state):
        action = (state.t + jnp.arange(n_agents)) % size
        return Decision(action.astype(jnp.int32), state.t >= 12, state.t)

    def observe(state, action, rewards):
        queried = jnp.any(action < size)
        t = state.t + queried
        return state._replace(
            pulls=state.pulls + n_agents * queried,
            t=t,
            due=jnp.where(queried, t % 3 == 0, state.due),
            last=jnp.where(queried, rewards[0], state.last),
        )

    def plan(key, state):
        uplink, downlink = state.traffic
        traffic = kernel.Traffic(uplink + 10 * n_agents * state.due, downlink + 7 * state.due)
        return state._replace(traffic=traffic, due=jnp.zeros((), bool))

    return Algorithm(
        init, decide, observe, jnp.full(n_agents, size, jnp.int32), plan=plan, stale=lambda state: state.due
    )


def test_curves_of_regret_and_messages():
    values = np.asarray([1.0, 2.0, 4.0, 0.0, 3.0])
    instance = kernel.tabular(jnp.zeros((5, 1)), jnp.asarray(values), noise_scale=0.1)
    marks, algorithm = (1, 3, 4, 12, 20), walk(2, 5)
    environment = kernel.environment(instance, algorithm)
    curves = record(at=marks, by="rounds", value=kernel.messages, total=kernel.round_regret(instance))
    with jax.numpy_dtype_promotion("standard"):
        outcome = run(KEY, algorithm, environment, max_rounds=30, record=curves)
    assert (outcome.pulls, outcome.rounds) == (24, 12)
    rounds = np.minimum(marks, 12)
    regret = np.cumsum([sum(4 - values[(t + n) % 5] for n in range(2)) for t in range(12)])
    np.testing.assert_allclose(outcome.curves["regret"], regret[rounds - 1])
    synchronised = rounds // 3  # after round t it counts at mark t
    np.testing.assert_array_equal(outcome.curves["uplink"], 20 * synchronised)
    np.testing.assert_array_equal(outcome.curves["downlink"], 7 * synchronised)


def test_default_grid():
    assert kernel.every_tenth(50) == (5, 10, 15, 20, 25, 30, 35, 40, 45, 50)
    assert kernel.every_tenth(500)[0] == 50
    assert kernel.every_tenth(3) == (1, 2, 3)
    assert kernel.every_tenth(1) == (1,)


def test_messages_refuses_a_state_of_another_family():
    with pytest.raises(ValueError, match="state must be a state of an algorithm of this family, got 3"):
        kernel.messages(3, None)
