"""The Gaussian walk: additive, with the right law, and with random access to every position."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxbandits.numerics import brownian

KEY = jax.random.key(0)
FALSE_ALARM = 1e-5
TIMES = np.array([1, 2, 3, 4, 7, 8, 100, 101, 4096, 10**6])


@pytest.fixture(scope="module")
def positions():
    """Computes the positions of 20,000 walks at `TIMES`."""
    keys = jax.random.split(KEY, 20_000)
    at = jax.vmap(lambda key: jax.vmap(lambda n: brownian.position(key, n, jnp.float32))(jnp.asarray(TIMES)))
    return np.asarray(jax.jit(at)(keys), np.float64)


def test_every_position_is_normal_with_variance_n(positions):
    for n, position in zip(TIMES, positions.T, strict=True):
        assert stats.kstest(position / np.sqrt(n), "norm").pvalue > FALSE_ALARM


def test_increments_are_independent(positions):
    """Each step between the times has unit variance per unit of length, and no correlation with any other."""
    steps = np.diff(np.concatenate([np.zeros((len(positions), 1)), positions], axis=1), axis=1)
    steps /= np.sqrt(np.diff(TIMES, prepend=0))
    covariance = steps.T @ steps / len(steps)
    bound = stats.norm.isf(FALSE_ALARM / 200)
    off = covariance - np.eye(len(TIMES))
    assert np.abs(off).max() < bound * np.sqrt(2 / len(steps))
    # Jointly normal, so that uncorrelated steps are independent.
    assert stats.kstest(steps[:, 1:4].sum(axis=1) / np.sqrt(3), "norm").pvalue > FALSE_ALARM


sums = jax.jit(jax.vmap(lambda start, steps: brownian.increment(KEY, start, steps, jnp.float64)))


def test_one_step_is_the_increment_of_one():
    starts = np.concatenate([np.arange(295), 2 ** np.array([20, 30]) - 1, [2**30, 2**31 - 2, 2**31 - 1]])
    one = np.asarray(jax.jit(jax.vmap(lambda start: brownian.one_step(KEY, start, jnp.float64)))(starts))
    np.testing.assert_allclose(one, sums(starts, np.ones(300, int)), atol=1e-10)
    assert np.isnan(one).tolist() == [False] * 299 + [True]


def test_increment_is_the_sum_of_single_steps():
    singles = np.asarray(sums(np.arange(300), np.ones(300, int)))
    for start, steps in ((0, 300), (7, 200), (255, 2), (299, 1), (10, 0)):
        padded = np.zeros(300, int)
        whole = sums(padded + start, padded + steps)[0]
        np.testing.assert_allclose(whole, singles[start : start + steps].sum(), atol=1e-12)
    assert sums(padded + 10, padded)[0] == 0


def test_increment_beyond_two_to_the_31_is_nan():
    ends = np.asarray(sums(np.array([0, 0, -1] + [0] * 297), np.array([2**31 - 1, 2**31, 1] + [0] * 297)))[:3]
    assert np.isfinite(ends[0])
    assert abs(ends[0]) < 6 * 2**15.5
    assert np.isnan(ends[1:]).all()
