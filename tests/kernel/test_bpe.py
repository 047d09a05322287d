"""BPE: its batches, and its limits."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers import kernel as driver

from experiments.bench.reference.kernel_ucb import KERNEL, NOISE_VARIANCE, instance
from jaxbandits import kernel

HORIZON = 30


def make(candidates, **changes):
    return kernel.bpe(
        candidates, **({"kernel": KERNEL, "horizon": HORIZON, "beta": 1.0, "noise_variance": NOISE_VARIANCE} | changes)
    )


@pytest.mark.parametrize(
    ("horizon", "lengths"),
    [
        (1, (1,)),
        (50, (8, 20, 22)),
        (500, (23, 108, 233, 136)),
        (10000, (100, 1000, 3163, 5625, 112)),
    ],
)
def test_batches_by_hand(horizon, lengths):
    assert kernel.batch_lengths(horizon) == lengths
    assert sum(lengths) == horizon


def height(x):
    return 1 + x[0] / 4 + x[1] / 9


follow = partial(driver.follow, kernel.bpe)


def test_queries_of_a_batch_do_not_depend_on_rewards():
    candidates, _, rewards, _ = instance(2, 40, horizon=HORIZON, agents=1)
    first = kernel.batch_lengths(HORIZON)[0]
    actions = [[int(s.action[0]) for s in follow(candidates, tape)] for tape in (rewards, -rewards)]
    assert actions[0][:first] == actions[1][:first]
    assert actions[0][first:] != actions[1][first:]


def test_active_set_under_extreme_widths():
    candidates, _, rewards, _ = instance(3, 40, horizon=HORIZON, agents=1)
    assert np.all(follow(candidates, rewards, beta=1e6)[-1].state.active)
    last = follow(candidates, rewards, beta=0.0)[-1]
    assert np.flatnonzero(last.state.active).tolist() == [last.answer]


def test_active_sets_nest():
    candidates, _, rewards, _ = instance(4, 40, horizon=HORIZON, agents=1)
    before = np.ones(40, bool)
    for step in follow(candidates, rewards, beta=0.5):
        assert not np.any(np.asarray(step.state.active) & ~before)
        before = np.asarray(step.state.active)


@pytest.mark.parametrize("size", [40, 9])
def test_idle_keeps_every_bit(size):
    candidates, _, rewards, _ = instance(5, size, horizon=HORIZON, agents=1)
    algorithm = make(candidates)
    steps, observe = follow(candidates, rewards), jax.jit(algorithm.observe)
    ends = np.cumsum(kernel.batch_lengths(HORIZON))
    for t in (0, ends[0] - 2, ends[0] - 1, ends[0], HORIZON - 1):  # about the end of a batch, and the last
        state = steps[t].state
        jax.tree.map(np.testing.assert_array_equal, observe(state, algorithm.idle, jnp.ones(1)), state)


def test_vmap_over_widths_is_a_loop():
    candidates, _, rewards, _ = instance(6, 40, horizon=HORIZON, agents=1)

    def last(beta, noise_variance):
        algorithm = make(candidates, beta=beta, noise_variance=noise_variance)

        def one_round(state, rewards):
            action = algorithm.decide(jax.random.key(0), state).action
            return algorithm.observe(state, action, rewards[:, action[0]]), None

        return jax.lax.scan(one_round, algorithm.init(jax.random.key(0)), jnp.asarray(rewards))[0]

    betas, noise_variances = jnp.array([0.3, 3.0]), jnp.array([0.04, 0.2])
    lanes, alone = jax.jit(jax.vmap(last))(betas, noise_variances), jax.jit(last)
    assert lanes.active.sum(axis=1).tolist()[0] < lanes.active.sum(axis=1).tolist()[1]
    for lane in range(2):
        expected = jax.tree.leaves(alone(betas[lane], noise_variances[lane]))
        for ours, alone_leaf in zip(jax.tree.leaves(lanes), expected, strict=True):
            np.testing.assert_allclose(ours[lane], alone_leaf, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beta": np.ones(HORIZON)}, r"beta must be at least 0, got"),
        ({"beta": np.nan}, "beta must be at least 0, got nan"),
        ({"horizon": 0}, "horizon must be an integer of at least 1, got 0"),
        ({"noise_variance": 0.0}, "noise_variance must be positive, got 0.0"),
    ],
)
def test_bad_input(changes, message):
    candidates, *_ = instance(0, 40, horizon=HORIZON)
    with pytest.raises(ValueError, match=message):
        make(candidates, **changes)
    with pytest.raises(ValueError, match="horizon must be an integer of at least 1, got 2.0"):
        kernel.batch_lengths(2.0)
