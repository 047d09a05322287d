from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from jaxbandits.numerics.beta import UNIFORMS, _draw_all, _draw_few, _draw_many, beta, beta_or_nan

SHAPES = ((1.0, 1.0), (1.0, 50.0), (3.0, 5.0), (300.0, 700.0), (1e6, 1e6))
MORE_SHAPES = ((2.0, 1.0), (30.0, 2.0), (1.0, 1e4), (1e4, 1e4), (1.0, 1e6), (1e6, 3.0))
TAIL = 1e-5  # probability of each tail whose draws are counted

draw = jax.jit(beta)
draw_or_nan = jax.jit(beta_or_nan)


def chance(shape):
    """Returns the probability that a proposal of a gamma variable is accepted, an integral in closed form."""
    d = shape - 1 / 3
    return np.exp(d + special.gammaln(shape) + (0.5 - shape) * np.log(d)) / (2 * np.pi) ** 0.5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_beta_has_its_law(a, b, dtype):
    draws = np.asarray(draw(jax.random.key(1), jnp.full(100_000, a, dtype), jnp.full(100_000, b, dtype)))
    assert draws.dtype == dtype
    assert np.all((draws > 0) & (draws < 1))
    assert stats.kstest(draws, stats.beta(a, b).cdf).pvalue > 1e-5  # false alarm 1e-5 per test


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), SHAPES + MORE_SHAPES)
def test_beta_has_its_law_in_the_tails(a, b):
    """Four million draws; false alarm 1e-5 per assertion."""
    law, draws = stats.beta(a, b), np.empty((4, 1_000_000))
    for n in range(4):
        draws[n] = draw(jax.random.key(n), jnp.full(1_000_000, a), jnp.full(1_000_000, b))
    assert stats.kstest(draws[0], law.cdf).pvalue > 1e-5
    for outside in (draws < law.ppf(TAIL), draws > law.isf(TAIL)):
        assert stats.binomtest(int(outside.sum()), draws.size, TAIL).pvalue > 1e-5


def test_beta_or_nan_has_its_law_where_it_is_finite():
    uniform = jax.random.uniform(jax.random.key(3), (UNIFORMS, 100_000))
    for a, b in SHAPES:
        draws = np.asarray(draw_or_nan(uniform, np.full(100_000, a), np.full(100_000, b)))
        is_drawn = np.isfinite(draws)
        refused = (1 - chance(a) * chance(b)) ** 2
        assert stats.kstest(draws[is_drawn], stats.beta(a, b).cdf).pvalue > 1e-5  # false alarm 1e-5 each
        assert stats.binomtest(int((~is_drawn).sum()), draws.size, refused).pvalue > 1e-5


def test_draws_in_a_batch_are_those_of_each_lane():
    """A lane that has all its variables waits for lanes that have not, and keeps its own."""
    keys, a = jax.random.split(jax.random.key(0), 256), jnp.ones((256, 4))
    together = jax.jit(jax.vmap(beta))(keys, a, a)
    for n in range(0, 256, 64):
        np.testing.assert_allclose(together[n], draw(keys[n], a[n], a[n]), rtol=1e-14)  # another program rounds anew


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_ways_draw_the_same_numbers(dtype):
    """One proposal at a time or several: the first accepted one counts. Up to 9 in 1,000 variables need a third one."""
    keys = jax.random.split(jax.random.key(4), 2000)
    a, b = jnp.array([1, 1, 1, 40], dtype), jnp.array([1, 2, 500, 3], dtype)
    few, many, each = (jax.jit(jax.vmap(partial(way, a=a, b=b)))(keys) for way in (_draw_few, _draw_many, _draw_all))
    np.testing.assert_allclose(few, each, rtol=0, atol=4 * jnp.finfo(dtype).eps)
    np.testing.assert_allclose(many, each, rtol=0, atol=4 * jnp.finfo(dtype).eps)


def test_draws_are_independent():
    ones = jnp.ones((3, 5000), jnp.float32)
    draws = draw(jax.random.key(2), ones, ones)
    assert np.abs(np.corrcoef(draws) - np.eye(3)).max() < 0.06  # 4 standard deviations


def test_shapes_that_are_no_numbers_give_no_numbers():
    assert np.isnan(draw(jax.random.key(0), jnp.array([jnp.nan]), jnp.ones(1))).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_draws_at_the_ends_of_the_unit_interval_lie_inside(dtype):
    ends = np.array([0, 1 - np.finfo(dtype).eps], dtype)
    uniform = ends[np.indices((2,) * UNIFORMS).reshape(UNIFORMS, -1)]
    draws = np.asarray(draw_or_nan(uniform, jnp.ones(64, dtype), jnp.ones(64, dtype)))
    assert np.all(np.isnan(draws) | ((draws > 0) & (draws < 1)))
