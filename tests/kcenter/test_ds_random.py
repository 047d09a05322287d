import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.kcenter_ds import KEY
from drivers.programs import assert_same

from jaxbandits.base import Status
from jaxbandits.engine.run.loop import run
from jaxbandits.kcenter import (
    dimension_instance,
    ds_random,
    ds_ucb,
    environment,
    greedy,
    pairwise_sums,
)

POINTS = 0.5 + np.random.default_rng(1).uniform(0.05, 1, (5, 1)) * (np.random.default_rng(2).random((5, 12)) - 0.5)
N, M, K = 5, 12, 3
INSTANCE = dimension_instance(POINTS, k=K)


@pytest.mark.parametrize("count", [3, 64])
def test_rounds_of_several_draws_find_the_centers_and_read_no_arm_twice(count):
    @jax.jit
    def one(key):
        algorithm = ds_random(INSTANCE.problem, delta=0.1, test_every=count)
        return run(key, algorithm, environment(INSTANCE, algorithm), max_rounds=5000)

    end = one(KEY)
    assert end.status == Status.STOPPED
    assert end.answer.indices.tolist() == greedy(pairwise_sums(POINTS), k=K).centers.tolist()
    counts, sums = np.asarray(end.state.counts), np.asarray(end.state.sums)
    assert counts.max() == M + 1
    assert end.pulls == np.where(counts > M, 2 * M, counts).sum() <= 2 * M * (4 + 3)
    exact = pairwise_sums(POINTS)[:, np.asarray(end.answer.indices)[:-1]]
    np.testing.assert_allclose(sums[counts > M], exact[counts > M])


def test_idle_changes_no_bit():
    algorithm = ds_random(INSTANCE.problem, delta=0.1, test_every=4)
    answers = environment(INSTANCE, algorithm)

    @jax.jit
    def step(state, key):
        keys = jax.random.split(key)
        action = algorithm.decide(keys[0], state).action
        sample, _ = answers.respond((), action, answers.noise(keys[1]))
        after = algorithm.observe(state, action, sample)
        return after, algorithm.observe(after, algorithm.idle, sample)

    state = algorithm.init(KEY)
    for number in range(4):
        state, same = step(state, jax.random.fold_in(KEY, number))
        assert_same(same, state)
    assert state.pulls > 4


def test_ds_random_takes_more_queries_than_ds_ucb():
    spread = np.linspace(0.05, 0.3, 12)[:, None]
    spread[11] = 1
    points = 0.5 + spread * (np.random.default_rng(2).random((12, 100)) - 0.5)

    def pulls(rule):
        instance = dimension_instance(points, k=2)
        algorithm = rule(instance.problem, delta=0.1)
        one = jax.jit(lambda key: run(key, algorithm, environment(instance, algorithm), max_rounds=5000).pulls)
        return np.mean([one(jax.random.key(seed)) for seed in range(5)])

    assert pulls(ds_random) > 1.5 * pulls(ds_ucb)


def test_integer_points():
    pixels = np.array([[0, 0, 0], [16, 16, 16], [8, 8, 9], [16, 2, 0]], np.uint8)

    @jax.jit
    def one(key):
        instance = dimension_instance(pixels, k=2, levels=16)
        algorithm = ds_random(instance.problem, delta=0.1)
        return run(key, algorithm, environment(instance, algorithm), max_rounds=500)

    end = one(KEY)
    assert end.answer.indices.tolist() == [0, 1]
    assert end.state.sums.dtype == jnp.int32
