"""N-KernelUCB against its transcription, in both memories, and its laws."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.kernel_ucb import AGENTS, KERNEL, RIDGE, follow
from reference.kernel_ucb import instance as any_instance
from reference.kernel_ucb import n_kernel_ucb as transcription

from jaxbandits import kernel
from jaxbandits.kernel.n_kernel_ucb import n_kernel_ucb
from jaxbandits.kernel.ucb import best, beta_at, columns, index, queries
from jaxbandits.numerics.gp import squared_exponential

HORIZON = 20


instance = partial(any_instance, horizon=HORIZON)


def make(candidates, draws, *, horizon=HORIZON, agents=AGENTS, **changes):
    settings = {"kernel": KERNEL, "n_agents": agents, "horizon": horizon, "beta": 1.0, "ridge": RIDGE} | changes
    return n_kernel_ucb(candidates, draws=draws, **settings)


SCHEDULE = np.linspace(0.5, 2.0, HORIZON)


@pytest.mark.parametrize(
    ("size", "beta", "with_gram"), [(60, 1.0, False), (60, SCHEDULE, True), (12, 1.0, False), (12, SCHEDULE, True)]
)
def test_is_the_transcription_step_by_step(size, beta, with_gram):
    candidates, gram, rewards, draws = instance(1, size)
    expected = transcription(gram, rewards, draws.coins, beta=beta, ridge=RIDGE)
    algorithm = make(candidates, draws, beta=beta, gram=jnp.asarray(gram) if with_gram else None)
    assert algorithm.init(jax.random.key(0)).kept.shape == (AGENTS, HORIZON if size > HORIZON else size, size)
    steps = follow(algorithm, rewards)
    assert len(steps) == HORIZON
    for t, (step, plain) in enumerate(zip(steps, expected, strict=True)):
        assert step.action.tolist() == plain.action.tolist()
        np.testing.assert_allclose(step.state.posterior.mean, plain.mean, atol=1e-10)
        np.testing.assert_allclose(step.state.posterior.variance, plain.variance, atol=1e-10)
        np.testing.assert_allclose(step.state.posterior.log_det, plain.log_det, rtol=1e-10)
        assert step.answer.tolist() == plain.answer.tolist()
        assert (step.state.t, step.state.pulls) == (t + 1, AGENTS * (t + 1))
        assert (step.state.traffic.uplink, step.state.traffic.downlink) == (0, 0)


def test_the_first_query_is_the_coin_of_the_key():
    candidates, *_ = instance(2, 50)
    algorithm = make(candidates, None)
    state, key = algorithm.init(jax.random.key(0)), jax.random.key(5)
    expected = np.floor(np.asarray(jax.random.uniform(key, (AGENTS,))) * 50)
    assert algorithm.decide(key, state).action.tolist() == expected.tolist()


def test_agents_do_not_hear_each_other():
    candidates, _, rewards, draws = instance(3, 50)
    alone = kernel.Draws(draws.coins[1:2], draws.thinning[1:2], draws.rls[:, 1:2])
    together = follow(make(candidates, draws), rewards)
    single = follow(make(candidates, alone, agents=1), rewards[:, 1:2])
    assert [s.action[1] for s in together] == [s.action[0] for s in single]


def test_permuted_candidates_permute_the_queries():
    candidates, _, rewards, draws = instance(4, 50)
    order = np.random.default_rng(0).permutation(50)
    place = np.argsort(order)  # of an old candidate among the new
    plain = follow(make(candidates, draws), rewards)
    first = (place[plain[0].action] + 0.5) / 50
    permuted = draws._replace(coins=np.repeat(first[:, None], HORIZON, axis=1))
    moved = follow(make(candidates[order], permuted), rewards[:, :, order])
    assert [place[s.action].tolist() for s in plain] == [s.action.tolist() for s in moved]


def test_a_scaled_kernel_with_scaled_rewards_asks_the_same():
    candidates, _, rewards, draws = instance(5, 50)
    plain = follow(make(candidates, draws), rewards)
    scaled = follow(make(candidates, draws, kernel=lambda x, y: 9 * KERNEL(x, y), ridge=9 * RIDGE), 3 * rewards)
    assert [s.action.tolist() for s in plain] == [s.action.tolist() for s in scaled]


def test_variance_never_rises_and_is_bounded_by_the_information():
    candidates, _, rewards, draws = instance(6, 50)
    algorithm = make(candidates, draws)
    before = algorithm.init(jax.random.key(0))
    spent = np.zeros(AGENTS)
    for step in follow(algorithm, rewards):
        now = step.state.posterior
        assert np.all(now.variance <= before.posterior.variance)
        spent += np.asarray(before.posterior.variance)[np.arange(AGENTS), step.action]
        assert np.all(spent <= np.asarray(now.log_det) / np.log1p(1 / RIDGE) + 1e-12)
        before = step.state


@pytest.mark.parametrize("size", [40, 12])
def test_idle_keeps_every_bit_and_a_partly_idle_action_counts_those_who_ask(size):
    candidates, _, rewards, draws = instance(7, size)
    algorithm = make(candidates, draws)
    observe = jax.jit(algorithm.observe)
    steps = follow(algorithm, rewards)
    for state in (steps[4].state, steps[-1].state):
        kept = observe(state, algorithm.idle, jnp.ones(AGENTS))
        jax.tree.map(np.testing.assert_array_equal, kept, state)
    state = steps[4].state
    partly = observe(state, jnp.array([3, size, 4], jnp.int32), jnp.ones(AGENTS))
    assert (partly.pulls - state.pulls, partly.t - state.t) == (2, 1)
    np.testing.assert_array_equal(partly.posterior.mean[1], state.posterior.mean[1])
    assert np.all(partly.posterior.variance[0] <= state.posterior.variance[0])


def test_vmap_over_tracers_is_a_loop():
    candidates, _, rewards, draws = instance(8, 40)

    def last(beta, ridge, lengthscale):
        scaled = partial(squared_exponential, lengthscale=lengthscale)
        algorithm = make(candidates, draws, beta=beta, ridge=ridge, kernel=scaled)
        state = algorithm.init(jax.random.key(0))
        for t in range(4):
            action = algorithm.decide(jax.random.key(0), state).action
            state = algorithm.observe(state, action, jnp.asarray(rewards)[t, jnp.arange(AGENTS), action])
        return state

    settings = jnp.array([0.2, 2.0]), jnp.array([0.04, 0.1]), jnp.array([0.2, 0.5])
    lanes = jax.jit(jax.vmap(last))(*settings)
    one = jax.jit(last)
    for lane in range(2):
        expected = jax.tree.leaves(one(*(x[lane] for x in settings)))
        for found, wanted in zip(jax.tree.leaves(lanes), expected, strict=True):
            np.testing.assert_allclose(found[lane], wanted, rtol=1e-9, atol=1e-12)


def test_float32_stays_float32():
    candidates, _, _, draws = instance(9, 40)
    algorithm = make(candidates.astype(jnp.float32), draws)
    state = algorithm.init(jax.random.key(0))
    after = jax.jit(algorithm.observe)(state, jnp.array([1, 2, 3], jnp.int32), jnp.ones(AGENTS, jnp.float32))
    assert jax.tree.map(lambda x: x.dtype, state) == jax.tree.map(lambda x: x.dtype, after)
    assert after.posterior.mean.dtype == jnp.float32


def test_shared_pieces_by_hand():
    values = jnp.array([[0.1, 0.7, 0.7], [0.5, 0.2, 0.5]])
    assert best(values).tolist() == [1, 0]
    assert queries(values, jnp.array([0.5, 0.999999]), jnp.int32(0)).tolist() == [1, 2]
    assert queries(values, jnp.array([0.5, 0.999999]), jnp.int32(3)).tolist() == [1, 0]
    assert index(jnp.array([1.0, 1.0]), jnp.array([0.25, -1e-9]), jnp.array(2.0)).tolist() == [2.0, 1.0]
    assert beta_at(jnp.array(3.0), jnp.int32(7)) == 3
    assert [float(beta_at(jnp.array([1.0, 2.0]), jnp.int32(t))) for t in (0, 1, 2)] == [1, 2, 2]
    points = jnp.array([[0.0], [1.0]])
    unit = partial(squared_exponential, lengthscale=1.0)
    column = columns(unit, points)(jnp.array([1, 0], jnp.int32))
    np.testing.assert_allclose(column, [[0.6065306597, 1], [1, 0.6065306597]], atol=1e-10)
    table = columns(unit, points, jnp.array([[1.0, 0.5], [0.5, 2.0]]))
    assert table(jnp.int32(1)).tolist() == [0.5, 2.0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beta": -1.0}, "beta must be at least 0, got -1.0"),
        ({"beta": np.ones(3)}, r"beta must have shape \(\) or \(20,\), got \(3,\)"),
        ({"ridge": 0.0}, "ridge must be positive, got 0.0"),
        ({"agents": 0}, "n_agents must be an int >= 1, got 0"),
        ({"horizon": 2.5}, "horizon must be an int >= 1, got 2.5"),
        ({"kernel": 1.0}, "kernel must be a function of two points, got 1.0"),
        ({"gram": np.eye(3)}, r"gram must have shape \(40, 40\), got \(3, 3\)"),
    ],
)
def test_bad_input(changes, message):
    candidates, *_ = instance(0, 40)
    with pytest.raises(ValueError, match=message):
        make(candidates, None, **changes)


def test_bad_draws_and_candidates():
    candidates, _, _, draws = instance(0, 40)
    with pytest.raises(ValueError, match=r"draws.coins must have shape \(4, 20\), got \(3, 20\)"):
        make(candidates, draws, agents=4)
    with pytest.raises(ValueError, match=r"draws.coins must lie in \[0, 1\)"):
        make(candidates, draws._replace(coins=draws.coins + 1))
    with pytest.raises(ValueError, match="candidates must be floating, got .*int64"):
        make(jnp.ones((4, 2), int), None)
