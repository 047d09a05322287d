"""The interior-point method against closed forms, SciPy's SLSQP and its own certificate."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from jaxbandits.numerics.barrier import minimize_reciprocals

solve = jax.jit(functools.partial(minimize_reciprocals, tolerance=1e-10))
solve_roughly = jax.jit(minimize_reciprocals)
solve_to_the_end = jax.jit(functools.partial(minimize_reciprocals, tolerance=1e-30))
B, A = 3, 5


def slsqp(limits: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
    """Computes the same minimum by SciPy, over the logarithms of p and q."""
    b, a = limits.shape
    costs, unit = np.concatenate([u, v]), limits.min()
    row, column = np.divmod(np.arange(b * a), a)

    def slope(x):
        jacobian = np.zeros((b * a, b + a))
        jacobian[np.arange(b * a), row] = -np.exp(x[row]) * unit / limits.ravel()
        jacobian[np.arange(b * a), b + column] = -np.exp(x[b + column]) * unit / limits.ravel()
        return jacobian

    result = minimize(
        lambda x: (costs * np.exp(-x)).sum(),
        np.full(b + a, np.log(0.4)),
        jac=lambda x: -costs * np.exp(-x),
        constraints={
            "type": "ineq",
            "fun": lambda x: 1 - (np.exp(x[row]) + np.exp(x[b + column])) * unit / limits.ravel(),
            "jac": slope,
        },
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert result.success, result.message
    return result.fun / unit


def random_limits(seed: int, decades: float = 1.0) -> np.ndarray:
    return 10 ** (decades * np.random.default_rng(seed).uniform(-0.5, 0.5, (B, A)))


def feasible(optimum, limits: np.ndarray, slack: float = 1e-13) -> bool:
    p, q = np.asarray(optimum.p), np.asarray(optimum.q)
    return bool(np.all(p > 0) and np.all(q > 0) and np.all(p[:, None] + q <= limits * (1 + slack)))


@pytest.mark.parametrize("limit", [1.0, 1e-7, 3e5])
def test_one_row_against_equal_columns(limit):
    """p = C / (1 + sqrt(a)) minimises 1/p + a/(C - p), at (1 + sqrt(a))^2 / C."""
    optimum = solve(jnp.full((1, 4), limit))
    assert optimum.value == pytest.approx(9 / limit, rel=1e-10)
    assert optimum.p[0] == pytest.approx(limit / 3, rel=1e-7)
    np.testing.assert_allclose(optimum.q, 2 * limit / 3, rtol=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_against_slsqp(seed):
    rng = np.random.default_rng(seed)
    limits = random_limits(seed, decades=1 + seed / 3)
    u, v = rng.uniform(0.2, 3, B), rng.uniform(0.2, 3, A)
    optimum = solve(jnp.array(limits), row_costs=jnp.array(u), column_costs=jnp.array(v))
    assert optimum.value == pytest.approx(slsqp(limits, u, v), rel=1e-7)
    assert optimum.value == pytest.approx(float((u / optimum.p).sum() + (v / optimum.q).sum()), rel=1e-12)
    assert 0 <= optimum.gap <= 1e-10
    assert feasible(optimum, limits)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gap_bounds_the_excess_at_the_default_tolerance(dtype):
    """Limits over 1 to 10 decades."""
    for seed in range(10):
        limits = random_limits(seed, decades=seed + 1).astype(dtype)
        rough, exact = solve_roughly(jnp.array(limits)), solve(jnp.array(limits, np.float64))
        assert rough.gap <= 1e-4
        assert feasible(rough, limits, slack=1e-13 if dtype == np.float64 else 3e-7)
        excess = np.float64(rough.value) / np.float64(exact.value) - 1
        assert -1e-9 - (0 if dtype == np.float64 else 3e-7) < excess <= 1e-4


def test_unreachable_tolerance_returns_the_best_point():
    limits = jnp.array(random_limits(3, decades=6))
    optimum = solve_to_the_end(limits)
    assert float(optimum.value) == pytest.approx(float(solve(limits).value), rel=1e-10)
    assert abs(optimum.gap) < 1e-12


def test_mask_excludes_rows_and_columns():
    limits, rng = random_limits(4), np.random.default_rng(4)
    rows, columns = np.array([True, False, True]), np.array([True, True, False, True, False])
    mask = rows[:, None] & columns
    spoiled = np.where(mask, limits, rng.uniform(1e-9, 1e9, limits.shape))
    optimum = solve(jnp.array(spoiled), mask=jnp.array(mask))
    alone = solve(jnp.array(limits[rows][:, columns]))
    assert optimum.value == pytest.approx(float(alone.value), rel=1e-10)
    np.testing.assert_allclose(optimum.p[rows], alone.p, rtol=1e-6)
    np.testing.assert_allclose(optimum.q[columns], alone.q, rtol=1e-6)
    assert all(np.all(np.isfinite(leaf)) for leaf in optimum)


def test_empty_mask_has_value_zero():
    optimum = solve(jnp.ones((B, A)), mask=jnp.zeros((B, A), bool))
    assert optimum.value == 0
    assert optimum.gap == 0
    assert np.all(np.isfinite(optimum.p))


def test_a_pair_without_a_limit():
    """Only their other limits bound the entries of this pair."""
    limits = np.array([[1.0, 4.0], [4.0, 1.0]])
    mask = np.array([[True, False], [True, True]])
    optimum = solve(jnp.array(limits), mask=jnp.array(mask))
    assert optimum.value == pytest.approx(slsqp(np.where(mask, limits, 1e6), np.ones(2), np.ones(2)), rel=1e-6)


def test_symmetries():
    limits, rng = random_limits(5), np.random.default_rng(5)
    value = float(solve(jnp.array(limits)).value)
    shuffled = limits[rng.permutation(B)][:, rng.permutation(A)]
    assert solve(jnp.array(shuffled)).value == pytest.approx(value, rel=1e-10)
    assert solve(jnp.array(limits.T)).value == pytest.approx(value, rel=1e-9)
    assert solve(jnp.array(limits * 1e4)).value == pytest.approx(value / 1e4, rel=1e-10)


def test_lanes_do_not_disturb_each_other():
    batch = jnp.array([random_limits(seed, decades=1 + seed) for seed in range(4)])
    together = jax.jit(jax.vmap(minimize_reciprocals))(batch)
    for lane, limits in enumerate(batch):
        alone = solve_roughly(limits)
        np.testing.assert_allclose(together.p[lane], alone.p, rtol=1e-12)
        np.testing.assert_allclose(together.gap[lane], alone.gap, rtol=1e-6)


def test_a_limit_of_zero_is_refused():
    with pytest.raises(ValueError, match="limits must be positive"):
        minimize_reciprocals(jnp.array([[1.0, 0.0]]))
