"""Confidence radii of the fixed designs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.linear import confidence_radius


@pytest.mark.parametrize(("power", "radius"), [(1, 10.32194), (2, 10.92785)])
def test_azuma_radius_by_hand(power, radius):
    assert confidence_radius(100, delta=0.05, K=5, union_power=power) == pytest.approx(radius, abs=1e-5)


def test_subgaussian_formula():
    radius = confidence_radius(1000, delta=0.1, K=7, noise_scale=0.5, union_power=1, radius="subgaussian")
    assert radius == pytest.approx(0.5 * np.sqrt(2 * np.log(np.pi**2 * 1e6 * 7 / 0.3)))


@pytest.mark.parametrize("n", [10**6, 15 * 10**6])
def test_subgaussian_is_smaller_by_a_factor_of_nearly_four(n):
    azuma, tight = (confidence_radius(n, delta=0.05, K=6, radius=radius) for radius in ("azuma", "subgaussian"))
    assert (azuma / tight) ** 2 == pytest.approx(3.8, abs=0.05)


def test_subgaussian_failures_sum_to_delta():
    """P(|sum of n normals| > radius(n) sqrt(n) for some n) sums to at most delta/2 for each sign and pair."""
    n = np.arange(1, 200_000)
    radius = confidence_radius(n, delta=0.05, K=2, union_power=2, radius="subgaussian")
    # A Gaussian tail exp(-s^2/2) for each of the two signs of K^2 pairs.
    failure = 2 * 4 * np.exp(-(np.asarray(radius) ** 2) / 2).sum()
    assert failure == pytest.approx(0.05, rel=1e-4)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_radius_keeps_the_dtype_and_vectorises(dtype):
    n = jnp.array([10.0, 1e6], dtype)
    radius = jax.jit(lambda n, delta: confidence_radius(n, delta=delta, K=6))(n, jnp.asarray(0.05, dtype))
    assert radius.dtype == dtype
    np.testing.assert_allclose(radius, [float(confidence_radius(m, delta=0.05, K=6)) for m in (10, 10**6)], rtol=1e-6)


def test_radius_is_right_if_the_square_of_the_count_overflows():
    radius = confidence_radius(jnp.asarray(10**10), delta=0.05, K=6)
    assert radius == pytest.approx(2 * np.sqrt(2 * np.log(6e20 * 36 / (0.05 * np.pi**2))))
    with jax.enable_x64(False):
        radius = confidence_radius(jnp.asarray(10**9), delta=0.05, K=6)
        assert radius.dtype == jnp.float32
        assert radius == pytest.approx(2 * np.sqrt(2 * np.log(6e18 * 36 / (0.05 * np.pi**2))), rel=1e-6)


def test_radius_is_proportional_to_the_noise_scale():
    one, two = (confidence_radius(50, delta=0.05, K=6, noise_scale=sigma) for sigma in (1.0, 2.0))
    assert two == pytest.approx(2 * float(one))
