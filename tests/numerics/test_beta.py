import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxbandits.numerics.beta import beta, beta_or_nan, gamma_of

DRAWS = 20_000


@pytest.mark.parametrize("shape", [1.0, 1.5, 30.0, 4000.0])
def test_gamma_has_its_law(shape):
    draws = jax.jit(gamma_of)(jax.random.uniform(jax.random.key(0), (8, DRAWS)), jnp.full(DRAWS, shape))
    # False alarm 1e-4 per test.
    assert stats.kstest(np.asarray(draws), stats.gamma(shape).cdf).pvalue > 1e-4


def test_beta_has_its_law():
    for a, b in ((1.0, 1.0), (1.0, 50.0), (300.0, 700.0)):
        draws = np.asarray(jax.jit(beta)(jax.random.key(1), jnp.full(DRAWS, a), jnp.full(DRAWS, b)))
        assert np.all((draws > 0) & (draws < 1))
        assert stats.kstest(draws, stats.beta(a, b).cdf).pvalue > 1e-4


def test_beta_or_nan_has_its_law_where_it_is_finite():
    for a, b, refused in ((1.0, 1.0, 4.7e-3), (1.0, 50.0, 2.35e-3), (300.0, 700.0, 0.0)):
        uniform = jax.random.uniform(jax.random.key(3), (8, 5 * DRAWS))
        draws = np.asarray(jax.jit(beta_or_nan)(uniform, np.full(5 * DRAWS, a), np.full(5 * DRAWS, b)))
        is_drawn = np.isfinite(draws)
        assert stats.kstest(draws[is_drawn], stats.beta(a, b).cdf).pvalue > 1e-4
        assert abs(np.mean(~is_drawn) - refused) < 5 * (refused / len(draws)) ** 0.5 + 2e-5


def test_draws_are_independent_and_keep_their_dtype():
    ones = jnp.ones((3, 5000), jnp.float32)
    draws = jax.jit(beta)(jax.random.key(2), ones, ones)
    assert draws.dtype == jnp.float32
    assert np.abs(np.corrcoef(draws) - np.eye(3)).max() < 0.06  # 4 standard deviations


def test_gamma_at_the_ends_of_the_unit_interval_is_finite():
    for dtype in (jnp.float32, jnp.float64):
        for end in (0.0, 1 - jnp.finfo(dtype).eps):
            draw = gamma_of(jnp.full(8, end, dtype), jnp.asarray(1.0, dtype))
            assert 0 < draw < 100
