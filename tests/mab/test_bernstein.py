"""Intervals by empirical variances, of rewards in [0, 1]."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits
from jaxbandits import Status, mab
from jaxbandits.mab._shared.confidence import bernstein_intervals, stop_settings
from jaxbandits.mab._shared.frame import estimates
from jaxbandits.numerics import thresholds

KEY = jax.random.key(0)


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_intervals_equal_numpy_and_are_all_of_0_to_1_before_two_pulls(dtype):
    problem = mab.Bounded(3, dtype)
    algorithm = mab.lucb(problem, delta=0.1, intervals="bernstein")
    settings = stop_settings(problem, 0.1, thresholds.kl_lucb(arms=3), compared=0)
    tape, pulls = np.random.default_rng(0).beta(2, 60, 400).astype(dtype), np.array([1, 2, 397])

    @jax.jit
    def bounds(rewards):
        def one(state, round_):
            arm, reward = round_
            pull = mab.Pull(arm[None].repeat(2), jnp.array([1, 0], jnp.int32))
            paid = mab.Rewards(jnp.stack([reward, jnp.zeros_like(reward)]), pull.times)
            return algorithm.observe(state, pull, paid), None

        arms = np.repeat(np.arange(3, dtype=np.int32), pulls)
        state, _ = jax.lax.scan(one, algorithm.init(KEY), (arms, rewards))
        return bernstein_intervals(settings, state, estimates(problem, state))

    upper, lower = bounds(tape)
    x = np.log(405.5 * 3 * 400**1.1 / 0.1)
    e = x + np.log(x)
    paid = tape[3:].astype(float)
    radius = np.sqrt(2 * paid.var(ddof=1) * e / 397) + 7 * e / (3 * 396)
    tolerance = 1e-12 if dtype == jnp.float64 else 1e-5
    np.testing.assert_allclose([upper[2], lower[2]], [paid.mean() + radius, max(paid.mean() - radius, 0)], tolerance)
    assert (upper[:2].tolist(), lower[:2].tolist()) == ([1, 1], [0, 0])


@pytest.mark.parametrize("factory", [mab.lucb, mab.ugape])
def test_small_variances_save_pulls_and_answers_are_right(factory):
    instance, pulls = mab.bounded((0.12, 0.05, 0.04)), {}
    for intervals in (None, "bernstein"):
        algorithm = factory(instance.problem, delta=0.1, threshold=thresholds.kl_lucb(arms=3), intervals=intervals)
        environment = mab.environment(instance, algorithm)
        results = jaxbandits.sweep(
            lambda task, key, made=(algorithm, environment): made,
            seeds=20,
            key=KEY,
            max_rounds=50_000,
            progress=False,
        )
        assert (results["status"] == Status.STOPPED).all()
        assert (results["answer"] == 0).all()
        pulls[intervals] = results["pulls"]
    # A reward of these arms has a standard deviation of .03 to .07 and not of .2 (Bernoulli) or .5 (Hoeffding).
    assert pulls["bernstein"].max() < 0.85 * pulls[None].min()


def test_every_arm_is_pulled_twice_before_a_stop():
    instance = mab.bounded((0.999, 0.001))
    algorithm = mab.ugape(instance.problem, delta=0.1, epsilon=0.99, intervals="bernstein")
    environment = mab.environment(instance, algorithm)
    outcome = jaxbandits.run(KEY, algorithm, environment, max_rounds=1000)
    assert outcome.status == Status.STOPPED
    assert outcome.state.counts.min() >= 2


@pytest.mark.parametrize("problem", [mab.Gaussian(3), mab.Bernoulli(3), mab.Gaussian(3, 0.5)])
def test_other_rewards_have_no_such_intervals(problem):
    with pytest.raises(ValueError, match='problem must be Bounded for intervals="bernstein", got'):
        mab.ugape(problem, delta=0.1, intervals="bernstein")
    with pytest.raises(ValueError, match=r"intervals must be .*bernstein.*, got 'hoeffding'"):
        mab.lucb(problem, delta=0.1, intervals="hoeffding")
