"""Rules for means that change: after a change of the best arm they pull the new one, unlike rules for fixed means."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits
from jaxbandits import Environment, mab
from jaxbandits.mab import Rewards

HALF = 1000  # pulls before and after the change
RULES = {
    "discounted_ucb": lambda problem: mab.discounted_ucb(problem, discount=0.99, exploration=0.1),
    "sliding_window_ucb": lambda problem: mab.sliding_window_ucb(problem, window=200, exploration=0.3),
    "m_ucb": lambda problem: mab.m_ucb(problem, window=50, threshold=16.0, gamma=0.1),
}


def rising():
    """Answers two Bernoulli arms of means .5 and .2, and of .5 and .9 after HALF pulls; its memory counts pulls."""

    def respond(pulls, action, noise):
        means = jnp.where(pulls < HALF, jnp.array([0.5, 0.2]), jnp.array([0.5, 0.9]))
        ones = (noise < means[action.arms]) & (action.times > 0)
        return Rewards(ones.astype(noise.dtype), action.times), pulls + action.times[0]

    return Environment(lambda key: jnp.zeros((), jnp.int32), lambda key: jax.random.uniform(key, (1,)), respond)


def shares(algorithm):
    """Returns the mean share of the arm that is best in pulls of the first and of the second half, over 20 runs."""
    record = jaxbandits.record(at=(HALF, 2 * HALF), value=lambda state, _: {"counts": state.counts})
    results = jaxbandits.sweep(
        lambda task, key: (algorithm, rising(), record),
        seeds=20,
        key=jax.random.key(0),
        max_rounds=2 * HALF,
        horizon=2 * HALF,
        progress=False,
    )
    counts = results.columns["curve.counts"].astype(float)
    first, second = counts[:, 0], counts[:, 1] - counts[:, 0]
    return first[:, 0].mean() / HALF, second[:, 1].mean() / HALF


def test_imed_stays_with_the_former_best_arm():
    first, second = shares(mab.imed(mab.Bernoulli(2)))
    print("imed", first, second)
    assert first > 0.95
    assert second < 0.7


@pytest.mark.parametrize("name", RULES)
def test_rule_for_changing_means_follows_the_best_arm(name):
    first, second = shares(RULES[name](mab.Bernoulli(2)))
    print(name, first, second)
    assert first > 0.5
    assert second > 0.8


def test_window_drops_what_left_it_and_sums_the_rest():
    """The cached counts and sums equal sums over the entries in the ring, which hold the last pulls in order."""
    problem, window = mab.Gaussian(3), 7
    algorithm = mab.sliding_window_ucb(problem, window=window)
    environment = mab.environment(mab.gaussian((0.5, 0.3, 0.1)), algorithm)
    tape = jaxbandits.trace(jax.random.key(1), algorithm, environment, rounds=40, watch=lambda state: state.memory)
    arms, rewards = np.asarray(tape.actions.arms)[:, 0], np.asarray(tape.observations.sums)[:, 0]
    assert tape.watched is not None
    for t in range(window, 40):
        memory = jax.tree.map(lambda x, t=t: np.asarray(x[t]), tape.watched)
        last = slice(t - window, t)
        order = (np.arange(window) + t) % window
        np.testing.assert_array_equal(memory.arms[order], arms[last])
        np.testing.assert_allclose(memory.rewards[order], rewards[last], rtol=1e-12)
        np.testing.assert_array_equal(memory.counts, np.bincount(arms[last], minlength=3))
        np.testing.assert_allclose(memory.sums, np.bincount(arms[last], rewards[last], 3), atol=1e-12)


def test_constants_of_exponential_weights_by_hand():
    problem = mab.Bernoulli(4)
    assert mab.exp3_gamma(problem, horizon=2) == 1
    # sqrt(4 log(4) / ((e - 1) 1000)) = sqrt(5.545177 / 1718.2818)
    np.testing.assert_allclose(mab.exp3_gamma(problem, horizon=1000), 0.05680813, rtol=1e-6)
    eta, gamma = mab.exp3_ix_constants(problem, horizon=1000)
    # sqrt(2 log(4) / 4000) = sqrt(6.9314718e-4)
    np.testing.assert_allclose((eta, gamma), (0.02632769, 0.013163844), rtol=1e-6)
    assert mab.exp3_gamma(mab.Bernoulli(4, jnp.float32), horizon=1000).dtype == jnp.float32


def test_constants_of_m_ucb_by_hand():
    window, threshold, gamma = mab.m_ucb_constants(mab.Bernoulli(2), horizon=10**5, changes=1, smallest_change=0.3)
    # log(2 K T^2) = log(4) + 10 log(10), log(2 T) = log(2) + 5 log(10)
    arms, time = 24.4121452, 12.2060726
    assert window == 2 * np.ceil(2 / 0.09 * (arms**0.5 + time**0.5) ** 2)
    np.testing.assert_allclose(threshold, (window * arms / 2) ** 0.5, rtol=1e-8)
    np.testing.assert_allclose(gamma, ((2 * threshold + 3 * window**0.5) / 10**5) ** 0.5, rtol=1e-8)
    scaled = mab.m_ucb_constants(mab.Gaussian(2, 2.0), horizon=10**5, changes=1, smallest_change=1.2)
    np.testing.assert_allclose(scaled, (window, 4 * threshold, gamma))
