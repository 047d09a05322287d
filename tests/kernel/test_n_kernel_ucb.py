"""N-KernelUCB in both memories, and its laws."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers import kernel as driver
from drivers.programs import assert_same

from experiments.bench.reference.kernel_ucb import AGENTS, KERNEL, NOISE_VARIANCE
from experiments.bench.reference.kernel_ucb import instance as any_instance
from jaxbandits import kernel
from jaxbandits.kernel._problem.settings import Settings
from jaxbandits.kernel._shared.ucb import beta_at, columns, index, queries
from jaxbandits.numerics.indexing import first_largest_in_rows

HORIZON = 20


instance = partial(any_instance, horizon=HORIZON)


def make(candidates, coins, *, horizon=HORIZON, agents=AGENTS, **changes):
    settings = {
        "kernel": KERNEL,
        "n_agents": agents,
        "horizon": horizon,
        "beta": 1.0,
        "noise_variance": NOISE_VARIANCE,
    } | changes
    return kernel.n_kernel_ucb(candidates, coins=coins, **settings)


def follow(candidates, rewards, coins, *, beta=1.0, **settings):
    """Returns the steps of a run; its width is a schedule, so all runs of one shape share a program."""
    beta = np.broadcast_to(beta, len(rewards))
    return driver.follow(kernel.n_kernel_ucb, candidates, rewards, coins, beta=beta, **settings)


def test_first_query_follows_the_keys_coin():
    candidates, *_ = instance(2, 50)
    algorithm = make(candidates, None)
    state, key = algorithm.init(jax.random.key(0)), jax.random.key(5)
    expected = np.floor(np.asarray(jax.random.uniform(key, (AGENTS,))) * 50)
    assert algorithm.decide(key, state).action.tolist() == expected.tolist()


def test_agents_do_not_receive_each_others_rewards():
    candidates, _, rewards, coins = instance(3, 60)
    alone = kernel.Coins(coins.queries[1:2], coins.thinning[1:2], coins.inducing[:, 1:2])
    together = follow(candidates, rewards, coins)
    single = follow(candidates, rewards[:, 1:2], alone)
    assert [s.action[1] for s in together] == [s.action[0] for s in single]


def test_permuted_candidates_permute_the_queries():
    candidates, _, rewards, coins = instance(4, 60)
    order = np.random.default_rng(0).permutation(60)
    moved_to = np.argsort(order)  # new index of an old candidate
    plain = follow(candidates, rewards, coins)
    first = (moved_to[plain[0].action] + 0.5) / 60
    permuted = coins._replace(queries=np.repeat(first[:, None], HORIZON, axis=1))
    moved = follow(candidates[order], rewards[:, :, order], permuted)
    assert [moved_to[s.action].tolist() for s in plain] == [s.action.tolist() for s in moved]


def test_variance_never_rises_and_is_bounded_by_the_information():
    candidates, _, rewards, coins = instance(6, 60)
    algorithm = make(candidates, coins)
    before = algorithm.init(jax.random.key(0))
    spent = np.zeros(AGENTS)
    for step in follow(candidates, rewards, coins):
        now = step.state.posterior
        assert np.all(now.variance <= before.posterior.variance)
        spent += np.asarray(before.posterior.variance)[np.arange(AGENTS), step.action]
        assert np.all(spent <= np.asarray(now.log_det) / np.log1p(1 / NOISE_VARIANCE) + 1e-12)
        before = step.state


@pytest.mark.parametrize("size", [60, 12])
def test_partly_idle_action_counts_the_agents_that_query(size):
    candidates, _, rewards, coins = instance(7, size)
    algorithm = make(candidates, coins)
    state, observe = follow(candidates, rewards, coins)[4].state, jax.jit(algorithm.observe)
    assert_same(observe(state, algorithm.idle, jnp.ones(AGENTS)), state)
    partly = observe(state, jnp.array([3, size, 4], jnp.int32), jnp.ones(AGENTS))
    assert (partly.pulls - state.pulls, partly.t - state.t) == (2, 1)
    np.testing.assert_array_equal(partly.posterior.mean[1], state.posterior.mean[1])
    assert np.all(partly.posterior.variance[0] <= state.posterior.variance[0])


def test_shared_pieces_by_hand():
    values = jnp.array([[0.1, 0.7, 0.7], [0.5, 0.2, 0.5]])
    assert first_largest_in_rows(values).tolist() == [1, 0]
    assert queries(values, jnp.array([0.5, 0.999999]), jnp.int32(0)).tolist() == [1, 2]
    assert queries(values, jnp.array([0.5, 0.999999]), jnp.int32(3)).tolist() == [1, 0]
    assert index(jnp.array([1.0, 1.0]), jnp.array([0.25, -1e-9]), jnp.array(2.0)).tolist() == [2.0, 1.0]
    assert beta_at(jnp.array(3.0), jnp.int32(7)) == 3
    assert [float(beta_at(jnp.array([1.0, 2.0]), jnp.int32(t))) for t in (0, 1, 2)] == [1, 2, 2]
    points = jnp.array([[0.0], [1.0]])
    unit = kernel.SquaredExponential(1.0)
    settings = Settings(points, unit, n_agents=2, horizon=1, beta=1.0, noise_variance=0.04)
    column = columns(settings)(jnp.array([1, 0], jnp.int32))
    np.testing.assert_allclose(column, [[0.6065306597, 1], [1, 0.6065306597]], atol=1e-10)
    table = columns(settings._replace(gram=jnp.array([[1.0, 0.5], [0.5, 2.0]])))
    assert table(jnp.int32(1)).tolist() == [0.5, 2.0]


def test_coins_of_other_agents_or_not_below_1_are_refused():
    candidates, _, _, coins = instance(0, 40)
    with pytest.raises(ValueError, match=r"coins.queries must be an array of real numbers of shape \(4, 20\), got"):
        make(candidates, coins, agents=4)
    with pytest.raises(ValueError, match=r"coins.queries must lie in \[0, 1\)"):
        make(candidates, coins._replace(queries=coins.queries + 1))
