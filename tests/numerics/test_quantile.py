import jax
import numpy as np
import pytest
from scipy import special

from jaxbandits.numerics import quantile


def uniforms(dtype):
    """Returns multiples of the spacing below 1: all near both ends, and some between them."""
    spacing, rng = np.finfo(dtype).eps, np.random.default_rng(0)
    near, number = np.arange(2000), round(1 / spacing)
    among = rng.integers(0, number, 50_000), (number * 0.5 ** rng.uniform(1, 40, 50_000)).astype(np.int64)
    return (np.concatenate([near, number - 1 - near, *among, number - 1 - among[1]]) * spacing).astype(dtype)


@pytest.mark.parametrize(("dtype", "error", "end"), [("float32", 1e-6, 5.29), ("float64", 2e-15, 8.2)])
def test_normal_of_is_the_quantile_in_the_middle_of_a_spacing(dtype, error, end):
    uniform = uniforms(dtype)
    normal = np.asarray(jax.jit(quantile.normal_of)(uniform))
    assert normal.dtype == dtype
    centred = uniform.astype(float) - 0.5 + np.finfo(dtype).eps / 2
    exact = np.sign(centred) * -special.ndtri(0.5 - np.abs(centred))
    np.testing.assert_allclose(normal, exact, rtol=error, atol=0)
    assert normal.max() > end
    assert normal.min() < -end


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_is_right_to_an_ulp(dtype):
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.random(50_000), np.exp(20 * rng.normal(size=50_000)), 1 + 1e-6 * rng.normal(size=1000)])
    x = np.append(x, [1.0, np.finfo(dtype).tiny, np.finfo(dtype).max / 2]).astype(dtype)
    exact = np.log(x.astype(float))
    ours = np.asarray(jax.jit(quantile.log)(x))
    assert ours.dtype == dtype
    assert np.all(np.abs(ours - exact) <= 1.5 * np.spacing(np.abs(exact.astype(dtype))) + 2e-16)
