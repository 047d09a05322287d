"""Posteriors in blocks of observations against the exact one, and the covariance that rows explain."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.numerics import gp, gp_blocks

M, N, NOISE_VARIANCE = 60, 40, 0.04
SE = gp.SquaredExponential(0.3)
RNG = np.random.default_rng(0)
GRID = jnp.asarray(RNG.random((M, 2)))
GRAM = gp.cross(SE, GRID, GRID)
POINTS = RNG.permutation(M)[:N].astype(np.int32)
COUNTS, VALUES = RNG.integers(1, 9, N), RNG.standard_normal(N)


@functools.partial(jax.jit, static_argnames="is_noisy")
def known(live, noise, where, rows, is_noisy=True):
    prior = gp.prior_variance(SE, GRID)

    def columns(index):
        return GRAM.at[index].get(mode="clip")

    return gp_blocks.known(
        columns,
        prior,
        points=POINTS,
        values=jnp.asarray(VALUES),
        noise=noise,
        rows=rows,
        live=live,
        where=where,
        is_noisy=is_noisy,
    )


@pytest.mark.parametrize("live", [1, 16, 21, N])
def test_known_equals_the_exact_posterior(live):
    rows = jnp.zeros((64, M))
    ours = known(jnp.int32(live), NOISE_VARIANCE / COUNTS, True, rows)
    at, counts = POINTS[:live], COUNTS[:live]
    exact = gp.posterior(SE, GRID[at], VALUES[:live] * counts, GRID, noise_variance=NOISE_VARIANCE, counts=counts)
    np.testing.assert_allclose(ours.mean, exact.mean, atol=1e-10)
    np.testing.assert_allclose(ours.variance, exact.variance, atol=1e-10)
    assert not np.any(ours.rows[live:])
    covariance = gp_blocks.unexplained(GRAM[:7], ours.rows, jnp.arange(7, dtype=jnp.int32), jnp.int32(live))
    np.testing.assert_allclose(covariance, GRAM[:7] - ours.rows[:, :7].T @ ours.rows, atol=1e-12)
    np.testing.assert_allclose(covariance[3, 3], exact.variance[3], atol=1e-10)


def test_features_keep_the_covariance_of_their_points():
    # Nearly singular: 40 points of a smooth kernel.
    jitter = 1e-10
    z = known(jnp.int32(N), jnp.full(N, jitter), True, jnp.zeros((64, M)), is_noisy=False).rows[:, POINTS]
    np.testing.assert_allclose(z.T @ z, GRAM[POINTS][:, POINTS], atol=2 * jitter)


def test_known_in_a_lane_that_is_not_selected_keeps_its_rows():
    before = jnp.asarray(RNG.random((64, M)))
    lanes = jax.vmap(known, in_axes=(0, None, 0, 0))(
        jnp.array([N, 20], jnp.int32), NOISE_VARIANCE / COUNTS, jnp.array([True, False]), jnp.stack([before, before])
    )
    np.testing.assert_array_equal(lanes.rows[1], before)
    np.testing.assert_allclose(
        lanes.rows[0, :48], known(jnp.int32(N), NOISE_VARIANCE / COUNTS, True, before).rows[:48], atol=1e-12
    )


def test_unexplained_column_uses_the_live_rows_alone():
    rows, column = jnp.asarray(RNG.random((12, M))), jnp.asarray(RNG.random(M))
    for live in (0, 3, 4, 9, 12):
        ours = gp_blocks.unexplained_column(column, rows, jnp.int32(5), jnp.int32(live))
        np.testing.assert_allclose(ours, column - rows[:live, 5] @ rows[:live], atol=1e-12)
