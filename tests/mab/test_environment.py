"""Rewards: their laws, leaps, slots, and pulls without a law."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits
from jaxbandits import Status, mab
from jaxbandits.mab._shared.frame import Ones
from jaxbandits.numerics.compensated import Sum

KEY = jax.random.key(0)


def pull(arms, times=None):
    arms = np.asarray(arms, np.int32)
    return mab.Pull(arms, np.ones_like(arms) if times is None else np.asarray(times, np.int32))


def leaping(instance, leap):
    """Returns the environment of a rule that leaps."""
    return mab.environment(instance, mab.successive_rejects(instance.problem, horizon=200, leap=leap))


def draws(environment, action, n=20_000):
    keys = jax.random.split(KEY, n)
    return jax.device_get(
        jax.jit(jax.vmap(lambda key: environment.respond((), action, environment.noise(key))[0]))(keys)
    )


def test_gaussian_sums_have_their_law():
    instance = mab.gaussian([1.0, -2.0, 0.5], noise_scale=0.5)
    sums, times = draws(leaping(instance, 9), pull([0, 1, 2], [1, 9, 0]))
    np.testing.assert_array_equal(times[0], [1, 9, 0])
    np.testing.assert_allclose(sums.mean(axis=0), [1, -18, 0], atol=0.05)
    np.testing.assert_allclose(sums.std(axis=0), [0.5, 1.5, 0], rtol=0.03)
    assert (sums[:, 2] == 0).all()


def test_bernoulli_rewards_have_their_law():
    instance = mab.bernoulli([0.3, 1.0, 0.0])
    for arm, mean in ((0, 0.3), (1, 1), (2, 0)):
        sums, times = draws(mab.environment(instance), pull([arm]))
        assert set(np.unique(sums)) <= {0.0, 1.0}
        assert (times == 1).all()
        assert abs(sums.mean() - mean) < 0.015
    assert (draws(mab.environment(instance), pull([1], [0]), 100).sums == 0).all()


def test_bernoulli_leaps_have_their_law_and_miss_at_times():
    instance = mab.bernoulli([0.3, 0.9, 0.5])
    sums, times = draws(leaping(instance, 60), pull([0, 1, 2], [60, 7, 0]))
    assert set(np.unique(times[:, 0])) == {0, 60}
    assert 0 < (times[:, 0] == 0).mean() < 0.01
    assert (times[:, 1] == 7).all()
    assert (sums[times == 0] == 0).all()
    kept = sums[times[:, 0] > 0, 0]
    np.testing.assert_allclose([kept.mean(), kept.std()], [18, np.sqrt(60 * 0.21)], rtol=0.02)
    np.testing.assert_allclose(sums[:, 1].mean(), 6.3, rtol=0.02)


def test_pulls_without_a_law_end_the_run():
    environment = mab.environment(mab.bernoulli([0.3, 0.5]))
    assert np.isnan(draws(environment, pull([0], [2]), 2).sums).all()
    leaps = leaping(mab.bernoulli([0.3, 0.5]), 5)
    assert np.isnan(draws(leaps, pull([0, 1], [6, 0]), 2).sums[:, 0]).all()
    algorithm = mab.eb_tci(mab.Bernoulli(2), delta=0.1)

    @jax.jit
    def run(means, bias):
        environment = mab.environment(mab.bernoulli(means))
        biased = environment._replace(
            respond=lambda memory, action, noise: (
                mab.Rewards(environment.respond(memory, action, noise)[0].sums + bias, action.times),
                memory,
            )
        )
        return jaxbandits.run(KEY, algorithm, biased, max_rounds=50).status

    assert run(jnp.asarray([0.3, 0.5]), 0.0) != Status.NONFINITE
    assert run(jnp.asarray([0.3, 1.5]), 0.0) == Status.NONFINITE
    assert run(jnp.asarray([0.3, 0.5]), 0.25) == Status.NONFINITE


def test_sums_are_integers_or_exact_enough():
    def sums(instance):
        algorithm = mab.uniform(instance.problem, delta=1e-30)
        end = jax.jit(lambda key: jaxbandits.run(key, algorithm, mab.environment(instance), max_rounds=500, chunk=500))(
            KEY
        )
        return end.state

    ones = sums(mab.bernoulli([0.3, 0.31], dtype="float32"))
    assert isinstance(ones.sums, Ones)
    assert ones.sums.counts.dtype == np.int32
    assert isinstance(sums(mab.gaussian([0.3, 0.31], dtype="float32")).sums, Sum)
    assert sums(mab.gaussian([0.3, 0.31])).sums.dtype == np.float64


def test_lucb_needs_two_slots():
    instance = mab.gk1()
    with pytest.raises(ValueError, match=r"action must have arrays of shape \(1,\), .*, got \(2,\)"):
        jaxbandits.run(KEY, mab.lucb(instance.problem, delta=0.1), mab.environment(instance), max_rounds=10)


def test_instances():
    assert mab.gk1().problem.arms == 4
    assert mab.audibert1().means.shape == (20,)
    assert bool(mab.is_right(mab.gauss4(), 0))
    assert not bool(mab.is_right(mab.gauss4(), 1))
    assert bool(mab.is_right(mab.gauss4(), 1, epsilon=0.2))
    stacked = jax.vmap(lambda gap: mab.gaussian(jnp.stack([gap, 0 * gap])).means)(jnp.asarray([0.1, 0.2]))
    np.testing.assert_allclose(stacked, [[0.1, 0], [0.2, 0]])


def test_a_stream_pays_the_same_alone_and_in_leaps():
    """Successive rejects runs the same with leaps and single pulls; a pull's number fixes its Bernoulli reward."""
    stream, normal = jax.random.key(9), mab.gauss4()

    def end(leap):
        algorithm = mab.successive_rejects(normal.problem, horizon=60, leap=leap)
        environment = mab.environment(normal, algorithm, stream=stream)
        return jax.jit(lambda key: jaxbandits.run(key, algorithm, environment, max_rounds=90, chunk=8))(KEY).state

    single, leaps = end(1), end(60)
    np.testing.assert_array_equal(single.counts, leaps.counts)
    np.testing.assert_allclose(single.sums, leaps.sums, rtol=1e-9)
    leaping_rule = mab.successive_rejects(mab.gk1().problem, horizon=200, leap=5)
    with pytest.raises(ValueError, match="stream must be None for leaps, unless arms are Gaussian"):
        mab.environment(mab.gk1(), leaping_rule, stream=stream)
    ones = mab.environment(mab.gk1(), stream=stream)
    respond = jax.jit(lambda n: ones.respond(ones.init(KEY).at[2].set(n), pull([2]), ())[0].sums[0])
    sums = np.array([respond(np.int32(n)) for n in [*range(40), *range(40)]])
    np.testing.assert_array_equal(sums[:40], sums[40:])
    assert 5 < sums[:40].sum() < 30
