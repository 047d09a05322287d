import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxbandits.numerics.box_muller import normal_pair
from jaxbandits.numerics.normal import normal, normal_noise
from jaxbandits.numerics.random_bits import uniform_noise, word_noise

KEYS = {impl: jax.random.key(7, impl=impl) for impl in ("threefry2x32", "rbg")}


@pytest.mark.parametrize("impl", KEYS)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5)])
def test_noise_is_that_of_jax(shape, impl):
    for dtype, error in ((jnp.float32, 0), (jnp.float64, 1e-13)):
        drawn = jax.jit(lambda key, dtype=dtype: normal_noise(key, shape, dtype))(KEYS[impl])
        assert drawn.dtype == dtype
        if impl == "threefry2x32":
            expected = jax.random.normal(KEYS[impl], shape, dtype)
            np.testing.assert_allclose(drawn, expected, rtol=error, atol=error)
            np.testing.assert_array_equal(
                uniform_noise(KEYS[impl], shape, dtype), jax.random.uniform(KEYS[impl], shape, dtype)
            )
    np.testing.assert_array_equal(word_noise(KEYS[impl], shape), jax.random.bits(KEYS[impl], shape, jnp.uint32))


@pytest.mark.parametrize("shape", [(), (4,), (5,), (2, 3), (80,)])
def test_samples_of_a_rule_are_noise_in_single_precision_and_pairs_in_double(shape):
    key, n = KEYS["threefry2x32"], math.prod(shape)
    drawn = jax.jit(lambda key: normal(key, shape, jnp.float32))(key)
    np.testing.assert_allclose(drawn, normal_noise(key, shape, jnp.float32), rtol=1e-6)
    drawn = jax.jit(lambda key: normal(key, shape, jnp.float64))(key)
    expected = jnp.concatenate(normal_pair(*jax.random.uniform(key, (2, (n + 1) // 2), jnp.float64)))[:n]
    expected = normal_noise(key, shape, jnp.float64) if n == 1 else expected.reshape(shape)
    np.testing.assert_allclose(drawn, expected, rtol=1e-12)


def test_law_of_a_million_draws():
    drawn = np.asarray(jax.jit(lambda key: normal_noise(key, (1_000_000,), jnp.float64))(KEYS["threefry2x32"]))
    assert stats.kstest(drawn, "norm").pvalue > 1e-4
    for level in (2, 3, 4):
        for tail in (drawn > level, drawn < -level):
            expected = 1e6 * stats.norm.sf(level)
            assert abs(tail.sum() - expected) < 4.5 * expected**0.5
