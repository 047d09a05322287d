"""Normal variables: their law, and the polynomial behind them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxbandits.numerics.normal import normal, normal_of


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_law(dtype):
    z = np.asarray(jax.jit(lambda key: normal(key, (400, 500), dtype))(jax.random.key(0)))
    assert z.dtype == dtype
    assert stats.kstest(z.ravel().astype(float), "norm").pvalue > 1e-3
    # Columns and neighbours are unrelated, and so are their sizes.
    for x in (z.astype(float), np.abs(z.astype(float)) - np.sqrt(2 / np.pi)):
        assert abs(np.mean(x[:, 1:] * x[:, :-1])) < 4 / np.sqrt(z.size)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-14), (np.float32, 1e-5)])
def test_against_its_definition(dtype, tolerance):
    words = np.random.default_rng(0).integers(0, 2**32, (2, 1000), np.uint32)
    words[:, :3] = [[0, 2**32 - 1, 0], [0, 2**32 - 1, 2**32 - 1]]
    u, v = ((words >> 1) + 0.5) / 2.0**31
    exact = np.sqrt(-2 * np.log(u)) * np.cos(np.pi * (2 * v - 1))
    np.testing.assert_allclose(normal_of(jnp.array(words), dtype), exact, rtol=0, atol=7 * tolerance)
    assert np.max(np.abs(exact)) < 6.7
