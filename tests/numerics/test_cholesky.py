"""Blocked Cholesky factors against numpy.linalg, for matrices of which only the leading rows count."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.numerics.cholesky import cholesky, log_det, solve_lower, solve_upper

N, K = 150, 3  # two panels and a part of one, which is not a multiple of a block
LIVE = (0, 1, 15, 16, 17, 33, 64, 65, 80, 128, 140, 150)
RNG = np.random.default_rng(0)
ROOT = RNG.standard_normal((N, N)) / N**0.5
MATRIX = ROOT @ ROOT.T + 0.1 * np.eye(N)
RIGHT = RNG.standard_normal((N, K))


@jax.jit
def everything(matrix, right, live):
    factor = cholesky(matrix, live)
    return factor, solve_lower(factor, right), solve_upper(factor, right), log_det(factor)


def expected(matrix, right, live):
    """Computes the same by numpy.linalg, with zeros beyond the live rows."""
    lower = np.linalg.cholesky(matrix[:live, :live])
    down, up = np.zeros_like(right), np.zeros_like(right)
    down[:live] = np.linalg.solve(lower, right[:live])
    up[:live] = np.linalg.solve(lower.T, right[:live])
    return lower, down, up, 2 * np.sum(np.log(np.diag(lower)))


def agree(ours, theirs, live):
    factor, *solutions = ours
    np.testing.assert_allclose(factor.lower[:live, :live], theirs[0], rtol=0, atol=1e-12)
    assert not np.any(np.triu(factor.lower, 1))
    for one, other in zip(solutions, theirs[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("live", LIVE)
def test_factor_and_solutions(live):
    agree(everything(MATRIX, RIGHT, live), expected(MATRIX, RIGHT, live), live)


@pytest.mark.parametrize("live", [1, 17, 33, 70])
def test_rows_beyond_the_live_ones_are_not_read(live):
    matrix, right = MATRIX.copy(), RIGHT.copy()
    matrix[live:], matrix[:, live:], right[live:] = np.nan, np.nan, np.nan
    ours = everything(matrix, right, live)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(ours))
    agree(ours, expected(MATRIX, RIGHT, live), live)


def test_lanes_with_different_numbers_of_rows():
    matrices = np.stack([MATRIX * (1 + i) for i in range(len(LIVE))])
    ours = jax.jit(jax.vmap(everything, in_axes=(0, None, 0)))(matrices, RIGHT, np.array(LIVE))
    for i, live in enumerate(LIVE):
        agree(jax.tree.map(lambda x, i=i: x[i], ours), expected(matrices[i], RIGHT, live), live)


def test_all_rows_and_a_vector():
    vector = jnp.asarray(RIGHT[:, 0])
    factor, ours_down, ours_up = jax.jit(_without_live)(MATRIX, vector)
    lower, down, up, _ = expected(MATRIX, RIGHT, N)
    np.testing.assert_allclose(factor.lower[:N, :N], lower, atol=1e-12)
    np.testing.assert_allclose(ours_down, down[:, 0], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(ours_up, up[:, 0], rtol=1e-9, atol=1e-10)


def _without_live(matrix, vector):
    factor = cholesky(matrix)
    return factor, solve_lower(factor, vector), solve_upper(factor, vector)


def test_a_matrix_that_is_not_positive_definite_is_nan():
    matrix = MATRIX.copy()
    matrix[100, 100] = -1.0
    failed, solved, _, determinant = everything(matrix, RIGHT, N)
    assert np.any(np.isnan(failed.lower))
    assert np.any(np.isnan(solved))
    assert np.isnan(determinant)
    agree(everything(matrix, RIGHT, 20), expected(MATRIX, RIGHT, 20), 20)  # the rows before it are correct
    assert np.any(np.isnan(everything(np.zeros((N, N)), RIGHT, N)[0].lower))


def test_a_failed_lane_does_not_change_its_neighbour():
    matrices = np.stack([-MATRIX, MATRIX])
    ours = jax.jit(jax.vmap(everything, in_axes=(0, None, 0)))(matrices, RIGHT, np.array([N, 33]))
    agree(jax.tree.map(lambda x: x[1], ours), expected(MATRIX, RIGHT, 33), 33)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-14), ("float32", 1e-6)])
def test_factor_of_a_nearly_singular_matrix(dtype, tolerance):
    # The squared exponential of 150 points on a line: the condition number is above 1e12, so only L L' is compared.
    x = np.linspace(0, 1, N)
    matrix = np.exp(-((x[:, None] - x) ** 2) / 0.08) + {"float64": 1e-12, "float32": 1e-5}[dtype] * np.eye(N)
    lower = np.asarray(everything(matrix.astype(dtype), RIGHT.astype(dtype), N)[0].lower, float)[:N, :N]
    np.testing.assert_allclose(lower @ lower.T, matrix, rtol=0, atol=tolerance)
