"""Splitting: exact laws of geometric stopping times, plain runs, and what is refused."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits import Algorithm, Decision, mab, rare

KEY = jax.random.key(0)
COINS = mab.bernoulli((0.25, 0.25))


class State(NamedTuple):
    pulls: jax.Array  # int ()
    ones: jax.Array  # float ()


def geometric(instance, key):
    """Stops at the first 1, so T is geometric."""
    pull = mab.Pull(jnp.zeros(1, jnp.int32), jnp.ones(1, jnp.int32))
    idle = pull._replace(times=jnp.zeros(1, jnp.int32))

    def decide(key, state):
        return Decision(pull, state.ones > 0, jnp.int32(0))

    def observe(state, action, rewards):
        return State(state.pulls + rewards.times.sum(dtype=jnp.int32), state.ones + rewards.sums.sum())

    algorithm = Algorithm(lambda key: State(jnp.int32(0), jnp.zeros(())), decide, observe, idle)
    return algorithm, mab.environment(instance, idle)


def test_geometric_tail_is_unbiased_over_400_replications():
    late = rare.splitting(geometric, COINS, key=KEY, times=(5, 10, 15, 20), lanes=20, replications=400)
    exact = 0.75 ** np.array([5, 10, 15, 20])
    assert (abs(late.probability - exact) < 4 * late.se).all()
    assert late.replications.shape == (400, 4)
    assert late.estimate == late.probability[-1]


def test_all_lanes_stopped_give_zero_and_all_alive_give_one():
    sure = rare.splitting(geometric, mab.bernoulli((1.0, 0.5)), key=KEY, times=(1, 2), lanes=20, replications=2)
    assert sure.probability.tolist() == [0, 0]
    never = rare.splitting(geometric, mab.bernoulli((0.0, 0.5)), key=KEY, times=(1, 2), lanes=20, replications=2)
    assert never.probability.tolist() == [1, 1]


def test_the_same_key_gives_the_same_bits():
    settings = {"times": (5, 10, 15, 20), "lanes": 20, "replications": 400}
    first, second = (rare.splitting(geometric, COINS, key=KEY, **settings) for _ in range(2))
    np.testing.assert_array_equal(first.replications, second.replications)


def walk(instance, key):
    """Stops when the sum of the rewards leaves (-2, 6), and answers 1 at the lower end, where arm 0 is right."""
    pull = mab.Pull(jnp.zeros(1, jnp.int32), jnp.ones(1, jnp.int32))
    idle = pull._replace(times=jnp.zeros(1, jnp.int32))

    def decide(key, state):
        height = 2 * state.ones - state.pulls.astype(float)
        return Decision(pull, (height <= -2) | (height >= 6), (height >= 6).astype(jnp.int32))

    def observe(state, action, rewards):
        return State(state.pulls + rewards.times.sum(dtype=jnp.int32), state.ones + rewards.sums.sum())

    algorithm = Algorithm(lambda key: State(jnp.int32(0), jnp.zeros(())), decide, observe, idle)
    return algorithm, mab.environment(instance, idle)


def test_levels_of_a_walk_give_its_exact_probability_of_ruin():
    coins = mab.bernoulli((0.3, 0.1))
    level = lambda state: 2 * state.ones - state.pulls.astype(float)  # noqa: E731
    settings = {"level": level, "levels": (1.0, 2.0, 3.0, 4.0, 5.0), "max_rounds": 10_000}
    wrong = rare.splitting(walk, coins, key=KEY, lanes=100, replications=100, **settings)
    r = 0.7 / 0.3
    exact = (1 - r**2) / (1 - r**8)
    assert abs(wrong.estimate - exact) < 4 * wrong.se[-1]
    assert np.isinf(wrong.at[-1])


def refused(match, **more):
    with pytest.raises(ValueError, match=match):
        rare.splitting(geometric, COINS, **{"key": KEY} | more)


def test_bad_settings_are_refused_by_name():
    refused("times must be given")
    refused("times must be increasing", times=(5, 5))
    refused("times must", times=(0, 5))
    refused("lanes must", times=(5,), lanes=1)
    refused("replications must", times=(5,), replications=1)
    refused("max_rounds must be None", times=(5,), max_rounds=5)
    refused("level must", levels=(0.5,), max_rounds=5)
    refused("max_rounds must", levels=(0.5,), level=lambda state: state.ones)

    def shared(instance, key):
        algorithm, _ = geometric(instance, key)
        return algorithm, mab.environment(instance, stream=KEY)

    with pytest.raises(ValueError, match="without stream"):
        rare.splitting(shared, COINS, key=KEY, times=(5,))
