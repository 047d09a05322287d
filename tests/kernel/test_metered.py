"""What a metered run records."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits import kernel
from jaxbandits.base import Algorithm, Decision

KEY = jax.random.key(0)


class Walk(NamedTuple):
    pulls: jax.Array
    t: jax.Array
    traffic: kernel.Traffic
    due: jax.Array
    last: jax.Array


def walk(n_agents, size):
    """Queries t, t + 1, ..; after every third round it synchronises, for 10 numbers an agent and 7 to all."""
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


def test_metered():
    values = jnp.asarray([1.0, 2.0, 4.0, 0.0, 3.0])
    instance = kernel.tabular(jnp.zeros((5, 1)), values, noise_scale=0.1)
    inner, environment, grid = walk(2, 5), kernel.environment(instance, n_agents=2), (1, 3, 4, 12)
    outer = kernel.metered(inner, instance, grid=grid)
    assert outer.refresh is None
    plain, state = inner.init(KEY), outer.init(KEY)
    regret, rows = 0.0, {}
    with jax.numpy_dtype_promotion("standard"):
        for t in range(1, 13):
            if outer.stale(state):
                idle = outer.observe(state, outer.idle, jnp.ones(2))  # waiting changes nothing
                jax.tree.map(np.testing.assert_array_equal, idle, state)
                state = outer.plan(KEY, state)
            if inner.stale(plain):
                plain = inner.plan(KEY, plain)
            decision, same = outer.decide(KEY, state), inner.decide(KEY, plain)
            jax.tree.map(np.testing.assert_array_equal, decision, same)
            rewards = environment.respond(decision.action, environment.noise(jax.random.key(t)))
            state = outer.observe(state, decision.action, rewards)
            plain = inner.observe(plain, same.action, rewards)
            jax.tree.map(np.testing.assert_array_equal, state.inner, plain)
            regret += sum(4.0 - float(values[a]) for a in decision.action)
            # A synchronisation after round t counts in row t.
            synchronised = t // 3
            rows[t] = (regret, 10 * synchronised, 7 * synchronised)
        state = outer.plan(KEY, state)
    np.testing.assert_allclose(state.curve, [rows[t] for t in grid])
    assert state.regret == pytest.approx(regret)
    assert state.pulls == 24
    assert state.round == 12


def test_default_grid():
    assert kernel.every_tenth(50) == (5, 10, 15, 20, 25, 30, 35, 40, 45, 50)
    assert kernel.every_tenth(500)[0] == 50
    assert kernel.every_tenth(3) == (1, 2, 3)
    assert kernel.every_tenth(1) == (1,)


def test_nothing_is_put_around_what_is_not_there():
    instance = kernel.tabular(jnp.zeros((5, 1)), jnp.arange(5.0), noise_scale=0.1)
    settings = {"kernel": kernel.paper_kernel("h1"), "n_agents": 2, "horizon": 3, "beta": 1.0, "noise_variance": 0.1}
    alone = kernel.metered(kernel.n_kernel_ucb(instance.candidates, **settings), instance, grid=(3,))
    assert (alone.refresh, alone.plan, alone.stale) == (None, None, None)


@pytest.mark.parametrize("grid", [(), (0, 1), (2, 1), (1, 1), (1.0,), 3, None])
def test_bad_grid(grid):
    instance = kernel.tabular(jnp.zeros((5, 1)), jnp.arange(5.0), noise_scale=0.1)
    with pytest.raises(ValueError, match="grid must hold increasing integers >= 1"):
        kernel.metered(walk(2, 5), instance, grid=grid)
