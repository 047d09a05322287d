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
