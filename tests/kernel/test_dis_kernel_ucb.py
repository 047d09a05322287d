"""DisKernelUCB: its limits, its trigger and its messages."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers import kernel as driver
from drivers.programs import assert_same

from experiments.bench.reference.kernel_ucb import AGENTS, KERNEL, NOISE_VARIANCE, instance
from jaxbandits import kernel

HORIZON = 20


def make(candidates, coins, *, horizon=HORIZON, factory=kernel.dis_kernel_ucb, **changes):
    settings = {
        "kernel": KERNEL,
        "n_agents": AGENTS,
        "horizon": horizon,
        "beta": 1.0,
        "noise_variance": NOISE_VARIANCE,
    } | changes
    return factory(candidates, coins=coins, **settings)


def follow(candidates, coins, rewards, *, factory=kernel.dis_kernel_ucb, beta=1.0, **settings):
    settings = ({"threshold": 10.0} if factory is kernel.dis_kernel_ucb else {}) | settings
    return driver.follow(factory, candidates, rewards, coins, beta=np.broadcast_to(beta, len(rewards)), **settings)


@pytest.mark.parametrize("size", [70, 15])
def test_agents_without_synchronisation_are_independent(size):
    candidates, gram, rewards, coins = instance(2, size, horizon=HORIZON)
    table = {} if size > 15 else {"gram": gram}
    silent = follow(candidates, coins, rewards, threshold=np.inf, **table)
    alone = follow(candidates, coins, rewards, factory=kernel.n_kernel_ucb)
    assert [s.action.tolist() for s in silent] == [s.action.tolist() for s in alone]
    assert silent[-1].state.traffic == (0, 0)
    assert silent[-1].answer == 0


@pytest.mark.parametrize("threshold", [0.5, 10.0])
def test_one_agent_ignores_the_threshold(threshold):
    candidates, _, rewards, coins = instance(3, 70, horizon=HORIZON, agents=1)
    talking = follow(candidates, coins, rewards, threshold=threshold)
    alone = follow(candidates, coins, rewards, factory=kernel.n_kernel_ucb)
    assert talking[-1].state.synced > 0
    assert [s.action.tolist() for s in talking] == [s.action.tolist() for s in alone]


def test_small_threshold_gives_all_agents_one_posterior():
    candidates, _, rewards, coins = instance(4, 70, horizon=HORIZON)
    steps = follow(candidates, coins, rewards, threshold=1e-9)
    assert len(set(steps[0].action.tolist())) > 1
    assert all(len(set(step.action.tolist())) == 1 for step in steps[1:])
    assert [int(step.state.synced) for step in steps] == [*range(1, HORIZON), HORIZON - 1]
    assert steps[-1].state.traffic == (AGENTS * (HORIZON - 1) * 3, AGENTS * (HORIZON - 1) * 3)


@jax.jit
def after_two(candidates):
    """Returns the states of two agents after their first queries, 0 and 2, and their second, 1 and 2 again."""
    unit = kernel.SquaredExponential(1.0)
    algorithm = make(candidates, None, kernel=unit, n_agents=2, horizon=5)
    first = algorithm.observe(algorithm.init(jax.random.key(0)), jnp.array([0, 2], jnp.int32), jnp.zeros(2))
    second = algorithm.observe(first, jnp.array([1, 2], jnp.int32), jnp.zeros(2))
    return first, algorithm.stale(first), algorithm.stale(second), algorithm.plan(jax.random.key(0), second)


@pytest.mark.parametrize(("variance", "fires"), [(0.1, False), (0.1883, False), (0.1884, True), (0.5, True)])
def test_trigger_by_hand(variance, fires):
    # One point: log(1 + 1 / 0.04) = log 26 = 3.258 < 10. Two: 2 (log 26 + log(1 + v / 0.04)) > 10 iff v > 0.18833.
    # At the second point, the first leaves a variance of 1 - exp(-x^2) / 1.04.
    second = np.sqrt(-np.log((1 - variance) * 1.04))
    first, *due, state = after_two(jnp.array([[0.0], [second], [50.0], [60.0]]))
    np.testing.assert_allclose(first.posterior.log_det, np.log(26), rtol=1e-12)
    assert due == [False, fires]
    assert state.synced == (2 if fires else 0)  # states that are not due are unchanged
    # The agents send four points, each with one coordinate and a reward, and the server passes all of them on.
    assert state.traffic == ((8, 8) if fires else (0, 0))


def test_agents_after_a_synchronisation_have_equal_posteriors():
    candidates, _, rewards, coins = instance(1, 70, horizon=HORIZON)
    steps = follow(candidates, coins, rewards)
    fresh = [s for t, s in enumerate(steps) if s.state.synced == t + 1]
    assert fresh
    for step in fresh:
        np.testing.assert_array_equal(step.state.posterior.mean, np.tile(step.state.shared_mean, (AGENTS, 1)))
        np.testing.assert_array_equal(
            step.state.posterior.variance, np.tile(step.state.posterior.variance[0], (AGENTS, 1))
        )
        assert step.answer == np.argmax(step.state.shared_mean)
        assert step.state.fresh.tolist() == [0] * AGENTS


def test_idle_changes_no_bit():
    candidates, _, rewards, coins = instance(1, 70, horizon=HORIZON)
    algorithm = make(candidates, coins)
    steps, observe = follow(candidates, coins, rewards), jax.jit(algorithm.observe)
    for step in (steps[0], steps[6], steps[-1]):
        assert_same(observe(step.state, algorithm.idle, jnp.ones(AGENTS)), step.state)
