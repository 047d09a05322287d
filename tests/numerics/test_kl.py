"""Bernoulli relative entropy and its inverses against values worked out with 60 digits."""

from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.numerics.kl import (
    bernoulli_kl,
    exponential_kl,
    kl_bound,
    kl_bounds,
    kl_lower,
    kl_upper,
    poisson_kl,
)

KNOWN = {
    (0.3, 0.05): (0.454596833836, 0.171261745761),
    (0.02, 0.01): (0.046515921068, 0.006076739087),
    (0.5, 0.5): (0.897530048810, 0.102469951190),
    (0.0, 0.1): (0.095162581964, 0.0),
    (1.0, 0.1): (1.0, 0.904837418036),
    (0.999, 0.001): (0.999841338904, 0.996857181378),
}
bounds = jax.jit(kl_bounds)


def exact_kl(p: Decimal, q: Decimal) -> Decimal:
    return p * (p / q).ln() + (1 - p) * ((1 - p) / (1 - q)).ln()


def exact_bounds(p: float, c: float) -> tuple[float, float]:
    """Computes (upper, lower) by bisection of the logarithms of upper - p and of lower."""
    with localcontext(prec=60):
        mean, level, tiny = Decimal(p), Decimal(c), Decimal("1e-40")
        low, high = tiny, (1 - mean) * (1 - tiny)
        for _ in range(90):
            middle = (low * high).sqrt()
            low, high = (middle, high) if exact_kl(mean, mean + middle) < level else (low, middle)
        upper = mean + low
        low, high = Decimal("1e-400"), mean * (1 - tiny)
        for _ in range(90):
            middle = (low * high).sqrt()
            low, high = (low, middle) if exact_kl(mean, middle) < level else (middle, high)
    return float(upper), float(high)


def test_known_values():
    p, c = np.array(list(KNOWN)).T
    upper, lower = bounds(jnp.array(p), jnp.array(c))
    np.testing.assert_allclose(np.stack([upper, lower], 1), list(KNOWN.values()), rtol=0, atol=6e-13)
    np.testing.assert_allclose(upper, kl_upper(jnp.array(p), jnp.array(c)), rtol=1e-15)
    np.testing.assert_allclose(lower, kl_lower(jnp.array(p), jnp.array(c)), rtol=1e-15)
    for side, of_side in ((True, upper), (False, lower)):
        np.testing.assert_allclose(kl_bound(jnp.array(p), jnp.array(c), jnp.array(side)), of_side, rtol=1e-15)


@pytest.mark.parametrize(
    ("divergence", "variance"),
    [(bernoulli_kl, lambda q: q * (1 - q)), (poisson_kl, lambda q: q), (exponential_kl, lambda q: q**2)],
)
def test_derivatives_are_those_of_exponential_families(divergence, variance):
    p, q = (x.reshape(-1) for x in np.meshgrid([0.02, 0.3, 0.5, 0.9], [0.01, 0.29, 0.3, 0.55, 0.99]))
    slope, curvature = jax.jit(lambda: derivatives(divergence, p, q))()
    np.testing.assert_allclose(slope, (q - p) / variance(q), rtol=1e-12, atol=1e-15)
    change = derivatives(lambda p, q: (q - p) / variance(q), p, q)[0]
    np.testing.assert_allclose(curvature, change, rtol=1e-11, atol=1e-15)


def derivatives(function, p, q):
    """Computes the first and the second derivative in q."""
    first = jax.grad(function, argnums=1)
    return jax.vmap(first)(p, q), jax.vmap(jax.grad(first, argnums=1))(p, q)


@pytest.mark.parametrize("p", [1e-12, 1e-5, 0.3, 1 - 1e-6])
def test_against_60_digits(p):
    levels = np.array([1e-9, 1e-4, 0.3, 25.0])
    upper, lower = bounds(jnp.full(4, p), jnp.array(levels))
    exact_upper, exact_lower = np.array([exact_bounds(p, c) for c in levels]).T
    np.testing.assert_allclose(upper, exact_upper, rtol=1e-14)
    # lower = p exp(-x) has the absolute error of x as its relative error, which is large where x is.
    fall = np.log(p / np.maximum(exact_lower, 1e-300))
    assert np.all(np.abs(lower - exact_lower) <= 1e-14 * (1 + fall) * exact_lower + 1e-300)


def test_inverse_on_a_grid():
    tiny = np.logspace(-12, -0.31, 40)
    p, c = np.meshgrid(np.concatenate([tiny, 1 - tiny]), np.logspace(-12, 1.77, 60))
    upper, lower = bounds(jnp.array(p), jnp.array(c))
    assert np.all((lower >= 0) & (lower <= p) & (p <= upper) & (upper <= 1))
    for q in (np.asarray(upper), np.asarray(lower)):
        reached = np.asarray(bernoulli_kl(jnp.array(p), jnp.array(q)))
        inside = (q > 1e-290) & (q < 1 - 1e-9)
        assert inside.mean() > 0.5
        # A few roundings of q, and for a lower bound also of log(p/q), change kl by its slope times as much.
        roundings = 8 * np.spacing(q) * (1 + np.abs(np.log(p / np.maximum(q, 1e-290))))
        slope = np.abs(q - p) / np.where(inside, q * (1 - q), 1)
        allowed = slope * roundings + 1e-12 * c + np.where(inside, roundings**2 / np.where(inside, q * (1 - q), 1), 0)
        assert np.all(np.abs(reached - c)[inside] <= allowed[inside])


def test_ends_and_level_zero():
    p = jnp.array([0.0, 1e-300, 0.4, 1.0])
    for bound in bounds(p, jnp.zeros(4)):
        np.testing.assert_array_equal(bound, p)
    upper, lower = bounds(jnp.array([0.0, 1.0]), jnp.array([800.0, 800.0]))
    np.testing.assert_array_equal(upper, 1)
    np.testing.assert_allclose(lower, 0, atol=1e-300)


def test_float32_keeps_the_width():
    p, t = np.meshgrid(np.array([0.001, 0.02, 0.1, 0.5, 0.9], np.float32), [1e4, 1e6, 1e7])
    c = (22 / t).astype(np.float32)
    single = bounds(jnp.array(p), jnp.array(c))
    double = bounds(jnp.array(p, np.float64), jnp.array(c, np.float64))
    tolerance = np.where(t > 1e6, 1e-4, 3e-5)
    for bound, exact in zip(single, double, strict=True):
        assert bound.dtype == jnp.float32
        widths = np.asarray(bound, np.float64) - p, np.asarray(exact) - p
        assert np.all(np.abs(widths[0] / widths[1] - 1) < tolerance)


def test_kl_by_hand():
    p = jnp.array([0.0, 0.0, 1.0, 1.0, 0.25, 0.25, 0.0, 0.5])
    q = jnp.array([0.0, 0.5, 1.0, 0.5, 0.0, 1.0, 1.0, 1e-300])
    log2 = np.log(2)
    np.testing.assert_allclose(
        bernoulli_kl(p, q), [0, log2, 0, log2, np.inf, np.inf, np.inf, 150 * np.log(10) - log2], rtol=1e-15
    )
    assert bernoulli_kl(jnp.float64(0.3), jnp.float64(0.7)) == pytest.approx(0.4 * np.log(7 / 3), rel=1e-15)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-14), (np.float32, 2e-6)])
def test_kl_keeps_its_digits_where_its_terms_cancel(dtype, tolerance):
    p = np.array([0.3, 0.3, 0.3, 0.3, 0.3, 1e-4, 1e-4, 0.97, 0.97], dtype)
    q = np.array([0.3 + 1e-6, 0.299, 0.4, 0.299999, 0.9, 1.1e-4, 3e-4, 0.9701, 0.2], dtype)
    with localcontext(prec=60):
        exact = [float(exact_kl(Decimal(float(a)), Decimal(float(b)))) for a, b in zip(p, q, strict=True)]
    ours = bernoulli_kl(jnp.array(p), jnp.array(q))
    assert ours.dtype == dtype
    np.testing.assert_allclose(ours, exact, rtol=tolerance)
