"""Tables of the ratio rule: closed forms, symmetry, and the designs that they solve."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits import linear
from jaxbandits.numerics.design import design


@pytest.mark.parametrize("omega", [0.01, 0.1, 1.0])
def test_good_pair_of_soare(omega):
    p, rho = linear.ratio_tables(linear.soare(4, omega).arms)
    first, second = 1 - np.cos(omega), np.sin(omega)
    assert rho[0, 4] == pytest.approx((first + second) ** 2, rel=1e-12)
    np.testing.assert_allclose(p[0, 4], np.array([first, second, 0, 0, 0]) / (first + second), rtol=1e-12)
    assert p[0, 4, 1] / p[0, 4, 0] == pytest.approx(1 / np.tan(omega / 2), rel=1e-9)


def test_numbers_of_soare():
    p, rho = linear.ratio_tables(linear.soare(5).arms)
    assert rho[0, 5] == pytest.approx(1.009991e-4, rel=1e-6)
    assert p[0, 5, 1] / p[0, 5, 0] == pytest.approx(199.998, abs=1e-3)


def test_canonical_arms():
    p, rho = linear.ratio_tables(linear.canonical(0.5).arms)
    distinct = ~np.eye(5, dtype=bool)
    np.testing.assert_allclose(rho, 4.0 * distinct, atol=1e-12)
    for i, j in zip(*np.nonzero(distinct), strict=True):
        np.testing.assert_allclose(p[i, j], np.isin(np.arange(5), [i, j]) / 2, atol=1e-12)


def test_tables_are_symmetric_distributions_and_best():
    arms = linear.sphere(3, 7, 3, 0.05).arms
    p, rho = linear.ratio_tables(arms)
    np.testing.assert_array_equal(p, p.swapaxes(0, 1))
    np.testing.assert_array_equal(rho, rho.T)
    assert p.min() == 0
    np.testing.assert_allclose(p.sum(-1), 1 - np.eye(7), atol=1e-12)
    i, j = np.triu_indices(7, 1)
    directions = arms[i] - arms[j]
    optimum = jax.vmap(lambda y: design(arms, y[None]))(directions)
    np.testing.assert_allclose(optimum.value, rho[i, j], rtol=5e-4)
    assert np.all(optimum.lower <= rho[i, j] * (1 + 1e-12))
    for y, share, norm in zip(directions, p[i, j], rho[i, j], strict=True):
        inverse = np.linalg.pinv(np.asarray(arms).T * share @ np.asarray(arms))
        assert y @ inverse @ y == pytest.approx(norm, rel=1e-8)


def test_arms_that_do_not_span_and_other_coordinates():
    arms = np.random.default_rng(0).normal(size=(6, 2)) @ np.random.default_rng(1).normal(size=(2, 4))
    p, rho = linear.ratio_tables(arms)
    reduced = linear.ratio_tables(linear.reduce_rank(jnp.array(arms)))
    np.testing.assert_allclose(reduced.rho, rho, rtol=1e-9)
    np.testing.assert_allclose(reduced.p, p, atol=1e-9)
