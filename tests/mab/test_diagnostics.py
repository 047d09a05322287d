"""Estimates of the arms from a state, in every form of its sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits
from jaxbandits import mab

KEY = jax.random.key(0)


@pytest.mark.parametrize(
    "problem",
    [mab.Gaussian(3), mab.Gaussian(3, 1.0, jnp.float32), mab.Bernoulli(3), mab.Bernoulli(3, jnp.float32)],
    ids=["float64", "compensated", "ones", "ones, float32"],
)
def test_estimates_of_a_state_equal_statistics_of_its_rewards(problem):
    algorithm, rewards = mab.ucb1(problem), (1.0, 0.0)
    state, sums, counts = algorithm.init(KEY), np.zeros(3), np.zeros(3, int)
    for r, reward in enumerate(rewards):
        state, decision = jaxbandits.ask(algorithm, jax.random.fold_in(KEY, r), state)
        state = jaxbandits.tell(algorithm, state, decision.action, mab.Rewards([reward], [1]))
        arm = int(decision.action.arms[0])
        sums[arm], counts[arm] = sums[arm] + reward, counts[arm] + 1
    estimates = mab.estimates(problem, state)
    np.testing.assert_array_equal(estimates.counts, counts)
    np.testing.assert_array_equal(estimates.sums, sums)
    np.testing.assert_array_equal(estimates.means, [1.0, 0.0, np.nan])
    assert estimates.means.dtype == estimates.sums.dtype == (problem.dtype or jnp.float64)


def test_estimates_of_another_problem_are_refused():
    with pytest.raises(ValueError, match="state must be a state of this family for 4 arms"):
        mab.estimates(mab.Bernoulli(4), mab.ucb1(mab.Bernoulli(3)).init(KEY))
