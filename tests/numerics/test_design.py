"""Designs against closed forms, certificates, random competitors and linear programs."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.linear import canonical, g_allocation, oracle_allocation, pair_directions, soare, xy_allocation
from jaxbandits.numerics.design import design
from jaxbandits.numerics.l1 import decompose


def random_arms(K, d, seed=0):
    arms = np.random.default_rng(seed).normal(size=(K, d))
    return jnp.array(arms / np.linalg.norm(arms, axis=1, keepdims=True))


def criterion(arms, directions, weights, p):
    """Computes the objective in NumPy. The pseudo-inverse allows allocations that leave out arms."""
    arms, directions, p = map(np.asarray, (arms, directions, p))
    norms = np.einsum("mi,ij,mj->m", directions, np.linalg.pinv(arms.T * p @ arms), directions)
    return np.max(np.asarray(weights) * norms)


@pytest.mark.parametrize("K", [2, 9])
def test_canonical_arms(K):
    xy, g = xy_allocation(np.eye(K)), g_allocation(np.eye(K))
    np.testing.assert_allclose(xy.allocation, 1 / K, rtol=1e-3)
    np.testing.assert_allclose(g.allocation, 1 / K, rtol=1e-3)
    assert xy.value == pytest.approx(2 * K, rel=1e-3)
    assert g.value == pytest.approx(K, rel=1e-3)


@pytest.mark.parametrize(("K", "gap"), [(2, 0.5), (5, 0.1), (17, 0.3)])
def test_oracle_design_of_canonical_arms(K, gap):
    bandit = canonical(gap, K)
    result = oracle_allocation(bandit.arms, theta=bandit.theta)
    r = np.sqrt(K - 1)
    assert result.value == pytest.approx((1 + r) ** 2 / gap**2, rel=1e-4)
    assert result.lower == pytest.approx((1 + r) ** 2 / gap**2, rel=1e-3)
    np.testing.assert_allclose(result.allocation[0], 1 / (1 + r), rtol=1e-3)
    np.testing.assert_allclose(result.allocation[1:], 1 / (r * (1 + r)), rtol=1e-2)


def test_designs_of_soare():
    bandit = soare(5)
    xy, g = xy_allocation(bandit.arms), g_allocation(bandit.arms)
    assert xy.lower <= 10 <= xy.value <= 10.005
    assert g.lower <= 5 <= g.value <= 5.002
    oracle = oracle_allocation(bandit.arms, theta=bandit.theta, steps=5000)
    assert oracle.value == pytest.approx(10100.83625, abs=1e-4)
    # Arms 2 to 4 are useful though they need next to nothing; arm 5 is not.
    np.testing.assert_allclose(oracle.allocation, [4.975e-3, 0.99495, *[2.487e-5] * 3, 0], rtol=1e-3)


@pytest.mark.parametrize(("K", "d"), [(6, 3), (30, 8)])
def test_certificate_and_value(K, d):
    arms = random_arms(K, d)
    directions = pair_directions(arms)
    result = design(arms, directions)
    assert result.lower <= result.value < 1.002 * result.lower
    assert result.allocation.sum() == pytest.approx(1, abs=1e-12)
    attained = criterion(arms, directions, 1, result.allocation)
    assert attained == pytest.approx(float(result.value), rel=1e-5)


@pytest.mark.parametrize("near", [False, True])
def test_no_random_allocation_beats_the_lower_bound(near):
    arms = random_arms(7, 3, seed=4)
    directions, rng = pair_directions(arms), np.random.default_rng(5)
    weights = rng.random(len(directions))
    result = design(arms, directions, weights=jnp.array(weights))
    rivals = rng.dirichlet(np.ones(7), 2000)
    if near:
        rivals = 0.99 * np.asarray(result.allocation) + 0.01 * rivals
    assert min(criterion(arms, directions, weights, p) for p in rivals) >= result.lower


def test_more_steps_tighten_the_certificate():
    arms = random_arms(12, 5)
    first, second = (xy_allocation(arms, steps=steps) for steps in (500, 5000))
    assert second.value / second.lower < 1 + 4e-5 < first.value / first.lower


@pytest.mark.parametrize("seed", range(3))
def test_single_direction_is_a_linear_program(seed):
    """Elfving: the c-optimal value is the square of the smallest l1 norm."""
    arms = random_arms(6, 3, seed)
    target = arms[0] - arms[1]
    rho = np.abs(decompose(arms, target).weights).sum() ** 2
    result = design(arms, target[None])
    # The lower bound holds however badly A is conditioned; the value has the error of its inverse.
    assert result.lower <= rho * (1 + 1e-12)
    assert result.value >= rho * (1 - 1e-7)
    assert result.value == pytest.approx(rho, rel=2e-4)


def test_zero_weight_excludes_a_direction():
    arms = random_arms(8, 4)
    directions = pair_directions(arms)
    weights = jnp.array(np.random.default_rng(2).random(28)).at[::3].set(0)
    kept = weights > 0
    masked = design(arms, directions, weights=weights)
    alone = design(arms, directions[kept], weights=weights[kept])
    np.testing.assert_allclose(masked.value, alone.value, rtol=1e-10)
    np.testing.assert_allclose(masked.lower, alone.lower, rtol=1e-10)
    np.testing.assert_allclose(masked.allocation, alone.allocation, atol=1e-8)


def test_weights_of_zero_have_value_zero():
    result = design(np.eye(3), np.eye(3), weights=jnp.zeros(3))
    assert result.value == result.lower == 0
    assert result.allocation.sum() == pytest.approx(1)


def test_arms_that_do_not_span_give_nan():
    result = design(jnp.array([[1.0, 0], [2, 0]]), np.eye(2))
    assert np.isnan(result.value)
    assert np.isnan(result.lower)


def test_directions_that_do_not_span_have_an_exact_design():
    """One difference of two out of five arms: the floor keeps A regular."""
    result = design(np.eye(5), jnp.array([[1.0, -1, 0, 0, 0]]))
    assert result.value == pytest.approx(4, rel=1e-6)
    np.testing.assert_allclose(result.allocation, [0.5, 0.5, 0, 0, 0], atol=1e-6)


def test_design_scales_with_weights_and_arms():
    arms = random_arms(8, 4)
    directions, weights = pair_directions(arms), jnp.array(np.random.default_rng(2).random(28))
    base, scaled = design(arms, directions, weights=weights), design(3 * arms, directions, weights=7 * weights)
    np.testing.assert_allclose(scaled.value, base.value * 7 / 9, rtol=1e-9)


def test_float32_equals_float64_up_to_rounding():
    arms = random_arms(12, 5)
    single, double = xy_allocation(arms.astype(jnp.float32)), xy_allocation(arms)
    assert single.value.dtype == single.allocation.dtype == single.lower.dtype == jnp.float32
    assert single.value == pytest.approx(float(double.value), rel=1e-5)
    assert single.lower == pytest.approx(float(double.lower), rel=1e-5)
    # Shares of 2.5e-5 survive.
    bandit = soare(5, dtype=jnp.float32)
    oracle = oracle_allocation(bandit.arms, theta=bandit.theta)
    np.testing.assert_allclose(oracle.allocation[2:5], 2.487e-5, rtol=1e-2)


def test_pair_directions_in_order():
    arms = jnp.array([[1.0, 0], [0, 1], [5, 7]])
    assert pair_directions(arms).tolist() == [[1, -1], [-4, -7], [-5, -6]]


def test_oracle_refuses_a_tie():
    with pytest.raises(ValueError, match="theta must have a unique best arm"):
        oracle_allocation(np.eye(3), theta=jnp.array([1.0, 1, 0]))
