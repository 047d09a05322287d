import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxbandits.numerics.gamma import UNIFORMS, gamma_of, gamma_or_not

DRAWS = 100_000

draw = jax.jit(gamma_or_not)


@pytest.mark.parametrize("shape", [1.0, 1.5, 30.0, 4000.0])
def test_gamma_has_its_law(shape):
    draws, accepted = draw(jax.random.uniform(jax.random.key(0), (UNIFORMS, DRAWS)), jnp.full(DRAWS, shape))
    # False alarm 1e-4 per test; four rejections in a row have a probability below 7e-6.
    assert stats.kstest(np.asarray(draws), stats.gamma(shape).cdf).pvalue > 1e-4
    assert np.sum(~accepted) <= 6


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_gamma_at_the_ends_of_the_unit_interval_is_finite(dtype):
    for end in (0.0, 1 - jnp.finfo(dtype).eps):
        assert 0 < gamma_of(jnp.full(UNIFORMS, end, dtype), jnp.asarray(1.0, dtype)) < 100
