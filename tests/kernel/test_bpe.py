"""BPE: its batches, and its limits."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers import kernel as driver
from drivers.programs import assert_same

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


def test_beta_for_each_round_is_refused():
    candidates, *_ = instance(0, 40, horizon=HORIZON)
    with pytest.raises(ValueError, match="beta must be at least 0, got"):
        make(candidates, beta=np.ones(HORIZON))


@pytest.mark.parametrize("size", [40, 9])
def test_idle_changes_no_bit(size):
    candidates, _, rewards, _ = instance(5, size, horizon=HORIZON, agents=1)
    algorithm = make(candidates)
    steps, observe = follow(candidates, rewards), jax.jit(algorithm.observe)
    end = kernel.batch_lengths(HORIZON)[0]
    for t in (0, end - 2, end - 1, end, HORIZON - 1):  # about the end of a batch, and the last
        assert_same(observe(steps[t].state, algorithm.idle, jnp.ones(1)), steps[t].state)
