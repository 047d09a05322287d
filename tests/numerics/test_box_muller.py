"""Pairs of normal variables: their values, their law, and its tails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxbandits.numerics.box_muller import normal_pair

pair = jax.jit(normal_pair)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pairs_are_points_at_a_distance_in_a_direction(dtype):
    rng, spacing = np.random.default_rng(0), np.finfo(dtype).eps
    distance, direction = (rng.integers(0, int(1 / spacing), 20_000) * float(spacing) for _ in range(2))
    distance[:2] = 0, 1 - spacing
    x, y = pair(distance.astype(dtype), direction.astype(dtype))
    radius = np.sqrt(-2 * np.log1p(distance + spacing / 2 - 1))
    quarter = np.floor(4 * direction)
    angle = np.pi / 2 * (4 * direction - 0.5 + 2 * float(spacing))
    scale = 8 * spacing * radius
    assert x.dtype == y.dtype == dtype
    np.testing.assert_array_less(np.abs(np.asarray(x, float) - radius * np.cos(angle)), scale + 1e-30)
    np.testing.assert_array_less(np.abs(np.asarray(y, float) - radius * np.sin(angle)), scale + 1e-30)
    assert set(quarter) == {0, 1, 2, 3}


def test_a_million_pairs_have_the_normal_law_and_are_independent():
    """False alarm 1e-5 each."""
    keys = jax.random.split(jax.random.key(0))
    x, y = (np.asarray(each) for each in pair(*(jax.random.uniform(key, (1_000_000,)) for key in keys)))
    for values in (x, y, (x + y) / 2**0.5, (x - y) / 2**0.5):
        assert stats.kstest(values, stats.norm.cdf).pvalue > 1e-5
    assert abs(stats.pearsonr(x, y).statistic) < 4.5e-3
    assert abs(stats.pearsonr(x**2, y**2).statistic) < 4.5e-3


@pytest.mark.parametrize("deviations", [4, 6, 8])
def test_tails_given_that_the_distance_is_beyond_them(deviations):
    """The law of x given r > d: draws of the distance below exp(-d^2 / 2) have it exactly."""
    rng, n = np.random.default_rng(1), 400_000
    below = np.exp(-(deviations**2) / 2)
    spacing = np.finfo(float).eps
    distance = np.floor(rng.random(n) * below / spacing) * spacing
    x, _ = pair(jnp.asarray(distance), jnp.asarray(np.floor(rng.random(n) / spacing) * spacing))
    share = (np.asarray(x) > deviations).mean()
    expected = stats.norm.sf(deviations) / below
    # The numbers below exp(-32) are 57 multiples of the spacing, of which the last counts in part.
    grid = 1e-2 if deviations == 8 else 0
    assert abs(share - expected) < 5 * np.sqrt(expected / n) + grid * expected
