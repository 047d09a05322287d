"""Small linear algebra against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.numerics.linalg import dot, gram, spd_inverse_logdet, squared_norms


@pytest.fixture(name="rng")
def _rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("d", [1, 5, 16, 17, 40])
def test_dot_broadcasts(rng, d):
    a, b = rng.normal(size=(7, d)), rng.normal(size=d)
    np.testing.assert_allclose(dot(jnp.array(a), jnp.array(b)), a @ b, rtol=1e-12, atol=1e-12)


def test_gram_is_the_weighted_sum(rng):
    arms, weights = rng.normal(size=(6, 3)), rng.random(6)
    expected = sum(w * np.outer(x, x) for w, x in zip(weights, arms, strict=True))
    np.testing.assert_allclose(gram(jnp.array(arms), jnp.array(weights)), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float64, 1e-9), (jnp.float32, 1e-4)])
def test_inverse_with_very_different_counts_is_accurate(rng, dtype, tolerance):
    """Counts from 1 to 1e8: without scaling, float32 would have an eigenvalue ratio of 1e8."""
    axes = np.eye(5) + 0.1 * rng.normal(size=(5, 5))
    scales = np.sqrt([1.0, 1e2, 1e4, 1e6, 1e8])
    matrix = scales[:, None] * (axes @ axes.T) * scales
    inverse, logdet = spd_inverse_logdet(jnp.array(matrix, dtype))
    assert inverse.dtype == logdet.dtype == dtype
    identity = np.asarray(inverse, np.float64) @ matrix / scales * scales[:, None]
    np.testing.assert_allclose(identity, np.eye(5), atol=tolerance)
    assert logdet == pytest.approx(np.linalg.slogdet(matrix)[1], rel=tolerance)


def test_inverse_of_an_indefinite_matrix_is_nan():
    inverse, _ = spd_inverse_logdet(jnp.array([[1.0, 2.0], [2.0, 1.0]]))
    assert np.all(np.isnan(inverse))


def test_squared_norms(rng):
    directions, root = rng.normal(size=(8, 4)), rng.normal(size=(4, 4))
    matrix = root @ root.T
    expected = [y @ matrix @ y for y in directions]
    computed = jax.jit(squared_norms)(jnp.array(directions), jnp.array(matrix))
    np.testing.assert_allclose(computed, expected, rtol=1e-12)
    assert squared_norms(jnp.ones((1, 2)), -np.eye(2))[0] == 0
