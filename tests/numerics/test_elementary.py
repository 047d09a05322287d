"""Logarithms, exponentials and roots of few operations against values worked out with 60 digits."""

from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.numerics import elementary

EXACT = {
    "log": lambda x: x.ln(),
    "log1p": lambda x: (1 + x).ln(),
    "expm1": lambda x: x.exp() - 1,
    "log1p_deficit": lambda x: x - (1 + x).ln(),
}
ERROR = {"log1p": 4e-16, "expm1": 6e-16, "log1p_deficit": 2e-15}  # relative, in float64


def compute(name, x):
    extra = (1 + x,) if name == "log1p_deficit" else ()
    return np.asarray(jax.jit(getattr(elementary, name))(x, *extra))


def points():
    rng = np.random.default_rng(0)
    tiny = 10.0 ** rng.uniform(-20, 0, 300) * rng.choice([-1, 1], 300)
    return np.concatenate([tiny * (1 - 1e-9), rng.uniform(-0.6, 0.6, 500), rng.uniform(-1, 3, 300)])


@pytest.mark.parametrize(("name", "most"), [("log1p", 1e300), ("expm1", 690), ("log1p_deficit", 1e5)])
def test_relative_error(name, most):
    x = np.concatenate([points(), np.geomspace(1e-3, most, 300)])
    if name == "expm1":
        x = np.concatenate([x, -np.geomspace(1e-3, 1e4, 300)])
    with localcontext(prec=60):
        exact = np.array([float(EXACT[name](Decimal(value))) for value in x])
    np.testing.assert_allclose(compute(name, x), exact, rtol=ERROR[name], atol=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_is_right_to_an_ulp(dtype):
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.random(50_000), np.exp(20 * rng.normal(size=50_000)), 1 + 1e-6 * rng.normal(size=1000)])
    edge = np.sqrt(0.5).astype(dtype)  # the exponent changes here
    x = np.append(x, [1.0, np.finfo(dtype).tiny, np.finfo(dtype).max / 2, edge, np.nextafter(edge, 0), 2 * edge])
    x = x.astype(dtype)
    exact = np.log(x.astype(float))
    ours = compute("log", x)
    assert ours.dtype == dtype
    assert np.all(np.abs(ours - exact) <= 1.5 * np.spacing(np.abs(exact.astype(dtype))) + 2e-16)


@pytest.mark.parametrize("name", ["log1p", "expm1", "log1p_deficit"])
def test_in_float32(name):
    x = points().astype(np.float32)
    with localcontext(prec=60):
        exact = np.array([float(EXACT[name](Decimal(float(value)))) for value in x])
    ours = compute(name, x)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, exact, rtol=4e-6, atol=1e-37)  # subnormal numbers are 0


SLOPES = {  # first and second derivatives
    "log": (lambda x: 1 / x, lambda x: -1 / x**2),
    "log1p": (lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2),
    "expm1": (np.exp, np.exp),
    "sqrt": (lambda x: 0.5 / np.sqrt(x), lambda x: -0.25 * x**-1.5),
    "rsqrt": (lambda x: -0.5 * x**-1.5, lambda x: 0.75 * x**-2.5),
    "log1p_deficit": (lambda x: x / (1 + x), lambda x: 1 / (1 + x) ** 2),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SLOPES)
def test_derivatives(name, dtype):
    """Values are put together from bits, whose derivatives are 0."""
    x = np.geomspace(1e-3, 50, 60)
    x = (x if name in ("log", "sqrt", "rsqrt") else np.concatenate([x, -np.linspace(0.01, 0.9, 30)])).astype(dtype)

    def value(x):
        return getattr(elementary, name)(x, *((1 + x,) if name == "log1p_deficit" else ()))

    for derivative, exact in ((jax.grad(value), SLOPES[name][0]), (jax.grad(jax.grad(value)), SLOPES[name][1])):
        ours = jax.jit(jax.vmap(derivative))(x)
        np.testing.assert_allclose(ours, exact(x.astype(float)), rtol=1e-13 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize(("name", "power"), [("sqrt", "0.5"), ("rsqrt", "-0.5")])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_relative_error_of_roots(name, power, dtype):
    # Both octaves of an even and an odd exponent, in small steps, and all exponents.
    info, rng = np.finfo(dtype), np.random.default_rng(2)
    x = np.concatenate([np.geomspace(1, 4, 2000), 2 ** rng.uniform(np.log2(info.tiny), np.log2(info.max), 2000)])
    x = np.append(x, [info.tiny, info.max, 1, 4, 9]).astype(dtype)
    with localcontext(prec=60):
        exact = np.array([float(Decimal(float(value)) ** Decimal(power)) for value in x])
    ours = compute(name, x)
    assert ours.dtype == dtype
    assert np.max(np.abs(ours - exact) / exact) <= 1.5 * info.eps


def test_roots_at_the_ends():
    x = np.array([0.0, np.inf, np.nan, -1.0, -1e-20, -np.inf])
    np.testing.assert_array_equal(compute("sqrt", x), [0, np.inf, np.nan, np.nan, np.nan, np.nan])


@pytest.mark.parametrize("name", ["log", "log1p", "log1p_deficit"])
def test_logarithm_of_no_positive_number_is_nan(name):
    x = np.array([np.nan, -4.0, np.inf, -np.inf])
    if name == "log":
        x = np.append(x, [0.0, -0.0, 5e-324, 2.0**-1022 - 5e-324, -1e-320])
    assert np.all(np.isnan(compute(name, x)))


def test_exponential_at_the_ends():
    x = jnp.array([np.nan, -np.inf, np.inf, 0.0, 701.0, -1e4])
    np.testing.assert_array_equal(compute("expm1", x), [np.nan, -1, np.inf, 0, np.inf, -1])
