"""Gaussian-process posteriors: by hand, against scikit-learn, and their forms against each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.numerics import gp

NOISE_VARIANCE = 0.04
SE = gp.SquaredExponential(1.0)
TWO = np.array([[0.0], [1.0]])
posterior = jax.jit(gp.posterior, static_argnums=0)
sparse_posterior = jax.jit(gp.sparse_posterior, static_argnums=0)
inducing = jax.jit(gp.inducing, static_argnums=0)
cross = jax.jit(gp.cross, static_argnums=0)


def close(actual, expected, tolerance=1e-9):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


def data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, d)), rng.standard_normal(n), rng.random((60, d))


def test_kernels_by_hand():
    x, y = jnp.zeros(1), jnp.full(1, 0.37)
    for nu, value in ((0.5, 0.2913198911), (1.5, 0.3703949550), (2.5, 0.3991656070)):
        close(gp.Matern(0.3, nu=nu)(x, y), value, 1e-10)
    close(gp.SquaredExponential(0.3)(x, y), 0.4674066845, 1e-10)


def test_one_and_two_observations_by_hand():
    one = posterior(SE, TWO[:1], np.ones(1), TWO[:1], noise_variance=NOISE_VARIANCE)
    close(one.mean, 0.9615384615)
    close(one.variance, 0.0384615385)
    two = posterior(SE, TWO[:1], np.array([1.5]), TWO[:1], noise_variance=NOISE_VARIANCE, counts=np.array([2]))
    close(two.mean, 0.7352941176)
    close(two.variance, 0.0196078431)
    twice = posterior(SE, TWO[[0, 0]], np.array([1.0, 0.5]), TWO[:1], noise_variance=NOISE_VARIANCE)
    close(twice.mean, two.mean)
    close(twice.variance, two.variance)
    close(twice.log_det, two.log_det)
    ten = posterior(SE, TWO[:1], np.zeros(1), TWO[:1], noise_variance=NOISE_VARIANCE, counts=np.array([10]))
    close(ten.log_det / 2, 2.7627264696, 1e-10)


def test_two_points_by_hand():
    y = np.array([1.0, -1.0])
    exact = posterior(SE, TWO, y, TWO, noise_variance=NOISE_VARIANCE)
    close(exact.mean, [0.9077212705, -0.9077212705])
    close(exact.variance, [0.0376685553, 0.0376685553])
    close(exact.log_det / 2, 3.0502439411)
    gain = jax.jit(lambda at: gp.information_gain(gp.cross(SE, at, at), NOISE_VARIANCE))
    close(gain(TWO), 3.0502439411)
    sparse = sparse_posterior(SE, inducing(SE, TWO[:1], jitter=0.0), TWO, y, TWO, noise_variance=NOISE_VARIANCE)
    close(sparse.mean, [0.2794765864, 0.1695111183])
    close(sparse.variance, [0.0284115236, 0.6425725743])


@pytest.mark.parametrize(
    ("kernel", "theirs"),
    [
        (gp.SquaredExponential(0.3), ("RBF", (0.3,), {})),
        (gp.Matern(0.3, nu=0.5), ("Matern", (0.3,), {"nu": 0.5})),
        (gp.Matern(0.3, nu=1.5), ("Matern", (0.3,), {"nu": 1.5})),
        (gp.Matern(0.3, nu=2.5), ("Matern", (0.3,), {"nu": 2.5})),
    ],
    ids=["se", "matern1", "matern3", "matern5"],
)
def test_exact_posterior_equals_scikit_learn(kernel, theirs):
    points, y, at = data(80, 2)
    from sklearn import gaussian_process

    name, numbers, options = theirs
    covariance = getattr(gaussian_process.kernels, name)(*numbers, **options)
    outside = gaussian_process.GaussianProcessRegressor(covariance, alpha=NOISE_VARIANCE, optimizer=None).fit(points, y)
    mean, sd = outside.predict(at, return_std=True)
    ours = posterior(kernel, points, y, at, noise_variance=NOISE_VARIANCE)
    close(ours.mean, mean, 1e-10)
    close(ours.variance, sd**2, 1e-10)


def test_all_exact_forms_agree():
    rng = np.random.default_rng(1)
    kernel = gp.SquaredExponential(0.2)
    grid = rng.random((50, 2))
    index = rng.integers(50, size=80, dtype=np.int32)  # some points repeat
    y = rng.standard_normal(80)
    direct = posterior(kernel, grid[index], y, grid, noise_variance=NOISE_VARIANCE)
    counts, sums = np.bincount(index, minlength=50), np.bincount(index, y, minlength=50)
    forms = [posterior(kernel, grid, sums, grid, noise_variance=NOISE_VARIANCE, counts=counts)]

    order = np.argsort(-counts)  # observed points to the front; no other one is read
    live = np.sum(counts > 0)
    spoilt = np.where(np.arange(50) < live, sums[order], np.nan)
    forms.append(
        posterior(kernel, grid[order], spoilt, grid, noise_variance=NOISE_VARIANCE, counts=counts[order], live=live)
    )

    def buffer(carry, step):
        state, rows = carry
        t, a, reward = step
        column = jax.vmap(lambda x: kernel(x, jnp.asarray(grid)[a]))(grid) - gp.explained(rows, rows[:, a])
        state, row = gp.condition(state, column, a, reward, NOISE_VARIANCE)
        return (state, rows.at[t].set(row)), None

    def covariance(carry, step):
        state, matrix = carry
        _, a, reward = step
        state, row = gp.condition(state, matrix[:, a], a, reward, NOISE_VARIANCE)
        return (state, matrix - row[:, None] * row), None

    steps = (jnp.arange(80), index, y)

    @jax.jit
    def recursive():
        prior = gp.prior(kernel, grid)
        by_rows, _ = jax.lax.scan(buffer, (prior, jnp.zeros((80, 50))), steps)
        by_matrix, _ = jax.lax.scan(covariance, (prior, gp.cross(kernel, grid, grid)), steps)
        return by_rows[0], by_matrix[0]

    forms += recursive()
    for form in forms:
        for ours, theirs in zip(form, direct, strict=True):
            close(ours, theirs, 1e-8)


def test_condition_beyond_the_grid_changes_nothing():
    grid = np.array([[0.0], [0.5], [2.0]])

    @jax.jit
    def observed(beyond):
        before = gp.prior(SE, grid)
        column = jax.vmap(lambda x: SE(x, grid[1]))(grid)
        return before, *gp.condition(before, column, beyond, jnp.asarray(7.0), NOISE_VARIANCE)

    before, after, row = observed(np.int32(3))
    np.testing.assert_array_equal(row, 0)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)


def test_order_of_the_data_does_not_matter_and_data_never_raise_the_variance():
    points, y, at = data(64, 3, 2)
    kernel = gp.Matern(0.5, nu=2.5)
    one, other = (
        posterior(kernel, points[o], y[o], at, noise_variance=NOISE_VARIANCE)
        for o in (np.arange(64), np.arange(64)[::-1])
    )
    for a, b in zip(one, other, strict=True):
        close(a, b, 1e-10)
    fewer = posterior(kernel, points, y, at, noise_variance=NOISE_VARIANCE, live=40)
    assert np.all(fewer.variance >= one.variance - 1e-12)
    assert np.any(fewer.variance > one.variance + 1e-4)


def test_a_scaled_kernel_scales_the_posterior():
    points, y, at = data(40, 2, 3)
    kernel = gp.SquaredExponential(0.4)
    one = posterior(kernel, points, y, at, noise_variance=NOISE_VARIANCE)
    scaled = posterior(lambda a, b: 9 * kernel(a, b), points, 3 * y, at, noise_variance=9 * NOISE_VARIANCE)
    close(scaled.mean, 3 * one.mean, 1e-10)
    close(scaled.variance, 9 * one.variance, 1e-10)
    close(scaled.log_det, one.log_det, 1e-9)


def test_sparse_with_all_data_is_exact():
    points, y, at = data(30, 2, 4)
    kernel = gp.Matern(0.5, nu=1.5)
    sparse = sparse_posterior(
        kernel, inducing(kernel, points, jitter=0.0), points, y, at, noise_variance=NOISE_VARIANCE
    )
    exact = posterior(kernel, points, y, at, noise_variance=NOISE_VARIANCE)
    close(sparse.mean, exact.mean, 1e-9)
    close(sparse.variance, exact.variance, 1e-9)


def test_sparse_is_the_subset_of_regressors_without_a_root():
    points, y, at = data(90, 2, 5)
    kernel = gp.Matern(0.5, nu=1.5)
    counts = np.random.default_rng(5).integers(0, 4, 90)
    sums = np.where(counts > 0, y, 0)
    # Inducing points beyond the live ones are ignored, whatever their values.
    padded = np.where(np.arange(25)[:, None] < 12, points[:25], 7.0)
    induced = inducing(kernel, padded, live=12, jitter=0.0)
    sparse = sparse_posterior(kernel, induced, points, sums, at, noise_variance=NOISE_VARIANCE, counts=counts)
    s = points[:12]
    every = np.asarray(cross(kernel, s, np.concatenate([s, points, at])))
    kss, ksx, ksa = np.split(every, [12, 102], axis=1)
    inner = NOISE_VARIANCE * kss + (ksx * counts) @ ksx.T
    close(sparse.mean, ksa.T @ np.linalg.solve(inner, ksx @ sums), 1e-9)
    variance = (
        1 - np.sum(ksa * np.linalg.solve(kss, ksa), 0) + NOISE_VARIANCE * np.sum(ksa * np.linalg.solve(inner, ksa), 0)
    )
    close(sparse.variance, variance, 1e-9)


def test_the_messages_depend_on_the_root_and_the_posterior_does_not():
    """Cholesky and symmetric root of K_SS give the same mean, but other v and vbar."""
    points, y, at = data(50, 3, 6)
    kernel = gp.Matern(0.7, nu=2.5)
    s = points[:10]
    kss, ksx, ksa = np.split(np.asarray(cross(kernel, s, np.concatenate([s, points, at]))), [10, 60], axis=1)
    values, vectors = np.linalg.eigh(kss)
    root = vectors / np.sqrt(values) @ vectors.T
    z, z_at = root @ ksx, root @ ksa
    bar = np.linalg.solve(NOISE_VARIANCE * np.eye(10) + z @ z.T, z @ y)
    induced = inducing(kernel, s, jitter=0.0)

    @jax.jit
    def protocol(induced):
        ours = gp.features(kernel, induced, points)
        factor = gp.feature_gram(ours, jnp.ones(50), noise_variance=NOISE_VARIANCE, live=jnp.int32(10))
        return gp.solve_spd(factor, ours @ y), gp.features(kernel, induced, at)

    our_bar, ours_at = protocol(induced)
    our_bar, ours_at = np.asarray(our_bar), np.asarray(ours_at)
    close(our_bar @ ours_at, bar @ z_at, 1e-8)
    assert np.max(np.abs(our_bar - bar)) > 0.01


@pytest.mark.slow
def test_float32_with_many_observations_is_accurate():
    """2000 observations, noise variance 0.04: variance within 3e-6, mean within 2e-3, none negative."""
    points, y, at = data(2000, 4, 7)
    kernel = gp.SquaredExponential(1.0)
    exact = posterior(kernel, points, y, at, noise_variance=NOISE_VARIANCE)
    single = posterior(kernel, *(x.astype(np.float32) for x in (points, y, at)), noise_variance=NOISE_VARIANCE)
    assert single.mean.dtype == jnp.float32
    close(single.variance, exact.variance, 3e-6)
    close(single.mean, exact.mean, 2e-3)
    assert np.all(single.variance >= 0)


@pytest.mark.slow
def test_float32_with_small_noise_is_inaccurate():
    """Noise variance 1e-4, 2000 observations: the error that the docstring warns of exists."""
    points, y, at = data(2000, 2, 8)
    kernel = gp.SquaredExponential(0.2)
    exact = posterior(kernel, points, y, at, noise_variance=1e-4)
    single = posterior(kernel, *(x.astype(np.float32) for x in (points, y, at)), noise_variance=1e-4)
    error = np.max(np.abs(np.asarray(single.mean) - np.asarray(exact.mean)))
    assert error > 0.01, error


def test_a_failed_factor_is_nan():
    same = np.zeros((40, 2))
    failed = inducing(SE, same, jitter=-1e-3)
    assert np.any(np.isnan(failed.factor.lower))
