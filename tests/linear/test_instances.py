"""Instances by hand, their best arms, and the span of their arms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxbandits import linear
from jaxbandits.linear import Instance
from jaxbandits.linear._problem.arms import checked_arms

FALSE_ALARM = 1e-5


def test_soare_by_hand():
    instance = linear.soare(3, 0.01)
    np.testing.assert_array_equal(instance.arms[:3], np.eye(3))
    np.testing.assert_allclose(instance.arms[3], [0.9999500004166653, 0.009999833334166664, 0], rtol=1e-15)
    means = np.asarray(instance.arms @ instance.theta)
    np.testing.assert_allclose(means[0] - means, [0, 2, 2, 9.999916667e-5], rtol=1e-8)


def test_canonical_by_hand():
    instance = linear.canonical(0.3, 4, noise_scale=2.0)
    np.testing.assert_array_equal(instance.arms, np.eye(4))
    np.testing.assert_array_equal(instance.theta, [0.3, 0, 0, 0])
    assert instance.noise_scale == 2


def test_theorem3_counterexample_by_hand():
    instance = linear.theorem3_counterexample(2, s=0.5, gap=0.1)
    arms = [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0.5, 0], [1, 0, 0, 0.5], [0, 0, 1, 0], [0, 0, 0, 1]]
    np.testing.assert_array_equal(instance.arms, arms)
    np.testing.assert_allclose(instance.arms @ instance.theta, [0, -0.1, -0.1, -0.1, -0.2, -0.2], rtol=1e-15)


def test_sphere_is_uniform_on_unit_vectors():
    instances = [linear.sphere(seed, 2, 3, 0.0) for seed in range(1000)]
    vectors = np.concatenate([np.vstack([instance.arms, instance.theta]) for instance in instances])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-14)
    # Each coordinate is uniform; the sum of the three fourth powers has mean 3/5 and variance 16/525.
    assert stats.kstest(vectors[:, 0], stats.uniform(-1, 2).cdf).pvalue > FALSE_ALARM
    assert abs(np.mean(np.sum(vectors**4, axis=1)) - 3 / 5) < 4.5 * np.sqrt(16 / 525 / 3000)


def test_sphere_redraws_until_the_best_arm_leads():
    instances = [linear.sphere(seed, 6, 3, 0.1) for seed in range(200)]
    means = np.sort(np.stack([instance.arms @ instance.theta for instance in instances]))
    leads = means[:, -1] - means[:, -2]
    assert 0.1 <= leads.min() < 0.12
    np.testing.assert_array_equal(linear.sphere(7, 6, 3, 0.1).arms, instances[7].arms)


@pytest.mark.parametrize("K", [10, 40])
def test_yahoo_like_features_and_means_are_in_range(K):
    instance = linear.yahoo_like(0, K)
    arms, means = np.asarray(instance.arms), np.sort(instance.arms @ instance.theta)
    assert arms.shape == (K, 36)
    assert len(np.unique(arms, axis=0)) == K
    assert means[-1] - means[-2] >= 0.05
    assert np.abs(means).max() < 1
    # Each arm is the product of two vectors whose memberships sum to one and whose last entry is 1.
    for z in arms.reshape(K, 6, 6):
        np.testing.assert_allclose(z, np.outer(z[:, 5], z[5]), atol=1e-15)
        np.testing.assert_allclose([z[:5, 5].sum(), z[5, :5].sum(), z[5, 5]], [1, 1, 1], rtol=1e-12)
    assert linear.reduce_rank(instance.arms).shape == (K, min(K, 25))


def test_yahoo_like_truth_is_the_click_rate():
    """Click probabilities lie in [0.01, 0.26], so the means of the labels lie in [-0.98, -0.5], up to the fit."""
    instances = [linear.yahoo_like(seed, 10, log=10_000) for seed in range(3)]
    means = np.concatenate([instance.arms @ instance.theta for instance in instances])
    assert -0.98 < means.mean() < -0.5
    assert means.max() > -0.75


def test_separated_arms_redraws_arms_that_are_too_close_or_equal():
    features = np.array([[0.9], [0.88], [0.5], [0.5], [0.1], [1.5], [-1.0]])
    draws = {
        tuple(sorted(linear.separated_arms(np.random.default_rng(seed), features, np.ones(1), 3, 0.05).ravel()))
        for seed in range(50)
    }
    assert draws == {(0.1, 0.5, 0.9), (0.1, 0.5, 0.88)}


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_instances_take_a_dtype(dtype):
    for instance in [linear.soare(2, dtype=dtype), linear.sphere(0, 4, 2, 0.0, dtype=dtype)]:
        assert {leaf.dtype for leaf in jax.tree.leaves(instance)} == {jnp.dtype(dtype)}


# The best arm


def test_the_right_answers_by_hand():
    instance = Instance(
        jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.0]]), jnp.array([2.0, 0.0]), jnp.array(1.0)
    )
    assert [bool(linear.is_right(instance, answer)) for answer in range(4)] == [True, False, True, False]


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_is_right_may_be_traced_and_resolves_near_ties(dtype):
    instance = linear.soare(4, 0.01, dtype=dtype)
    right = jax.jit(jax.vmap(linear.is_right, in_axes=(None, 0)))(instance, jnp.arange(5))
    np.testing.assert_array_equal(right, [True, False, False, False, False])


def test_an_instance_goes_through_jit_vmap_and_stacking():
    instances = [linear.canonical(gap, 3, noise_scale=gap) for gap in (0.1, 0.2)]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *instances)
    means = jax.jit(jax.vmap(lambda instance: instance.arms @ instance.theta))(stacked)
    np.testing.assert_allclose(means, [[0.1, 0, 0], [0.2, 0, 0]])
    again = jax.jit(lambda instance: instance)(instances[0])
    assert isinstance(again, Instance)
    assert jax.vmap(linear.is_right)(stacked, jnp.array([0, 1])).tolist() == [True, False]


# Rank


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_reduce_rank_keeps_the_geometry(dtype):
    rng = np.random.default_rng(0)
    basis = rng.standard_normal((3, 7))
    arms = jnp.asarray(rng.standard_normal((9, 3)) @ basis, dtype)
    reduced = linear.reduce_rank(arms)
    assert reduced.shape == (9, 3)
    assert reduced.dtype == dtype
    np.testing.assert_allclose(reduced @ reduced.T, arms @ arms.T, rtol=0, atol=500 * jnp.finfo(dtype).eps)


def test_reduce_rank_leaves_arms_that_span_their_space():
    arms = linear.soare(3).arms
    np.testing.assert_array_equal(linear.reduce_rank(arms), arms)


def test_reduce_instance_keeps_the_means():
    arms = jnp.array([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0], [2.0, 3.0, -1.0]])
    instance = Instance(arms, jnp.array([0.3, -0.2, 0.7]), jnp.array(1.0))
    reduced = linear.reduce_instance(instance)
    assert reduced.arms.shape == (3, 2)
    np.testing.assert_allclose(reduced.arms @ reduced.theta, arms @ instance.theta, atol=1e-14)
    assert linear.reduce_instance(linear.canonical(0.1)).arms.shape == (5, 5)


# Bad input


def test_rank_is_checked_where_it_matters():
    arms = jnp.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    checked_arms(arms)
    with pytest.raises(ValueError, match=r"arms must have rank 3 \(see linear.reduce_rank\), got 2"):
        checked_arms(arms, full_rank=True)
    checked_arms(linear.reduce_rank(arms), full_rank=True)


def test_values_are_not_checked_under_a_trace_but_shapes_are():
    jax.jit(checked_arms)(jnp.zeros((2, 2)))
    with pytest.raises(ValueError, match="arms must be an array"):
        jax.jit(checked_arms)(jnp.zeros(2))


def test_a_gap_out_of_reach_is_refused(monkeypatch):
    monkeypatch.setattr("jaxbandits.linear._problem.generators.MAX_DRAWS", 100)
    with pytest.raises(ValueError, match=r"min_gap must be within reach of 100 draws, got 2.1"):
        linear.sphere(0, 3, 2, 2.1)
    with pytest.raises(ValueError, match=r"min_gap must be within reach of 100 draws of 3 arms, got 0.9"):
        linear.yahoo_like(0, 3, min_gap=0.9)
    with pytest.raises(ValueError, match=r"features must have a row x with abs\(x.theta\) < 1"):
        linear.separated_arms(np.random.default_rng(0), np.ones((4, 1)), np.ones(1), 2, 0.1)


def test_instances_of_the_literature():
    published = linear.random_tirinzoni_published()
    assert published.arms.shape == (50, 20)
    means = np.sort(np.asarray(published.arms) @ np.asarray(published.theta))[::-1]
    np.testing.assert_allclose(means[:11], [1, *[0.9] * 4, *[0.8] * 5, means[10]])
    assert means[10] <= 0.5
    # Julia's generator gives .768, .941, ..; the last entries of theta are these first values less 1.
    assert float(published.theta[10]) == pytest.approx(0.7684476751965699 - 1)
    drawn = linear.random_tirinzoni(0, K=12, d=7)
    np.testing.assert_allclose(drawn.theta[:4], [1, 0.9, 0.8, 0.8])
    np.testing.assert_allclose(np.linalg.norm(drawn.arms, axis=1), 1)
    assert (np.asarray(drawn.arms) @ np.asarray(drawn.theta))[4:].max() <= 0.5
    near = linear.sphere_pair(0, 10, 4)
    first, second = np.sort(np.asarray(near.arms) @ np.asarray(near.theta))[:-3:-1]
    assert 0 < first - second < 0.5
    np.testing.assert_allclose(linear.many_arms(0, 5).arms[3:], [[1, 0], [-0.707, 0.707]])


def test_an_answer_indexes_the_items_of_an_instance():
    apart = linear.transductive(3)
    assert bool(linear.is_right(apart, 0))
    assert not bool(linear.is_right(apart, 3))
    assert bool(linear.is_right(apart, 3, epsilon=0.01))
    arms = np.column_stack([np.eye(2), np.zeros(2)])
    flat = linear.Instance(arms, np.array([1.0, 0.5, 9.0]), np.array(1.0), np.array([[1.0, 1, 0], [2, 0, 0]]))
    reduced = linear.reduce_instance(flat)
    np.testing.assert_allclose(np.asarray(reduced.items) @ np.asarray(reduced.theta), [1.5, 2])
    with pytest.raises(ValueError, match=r"instance.items must lie in the span"):
        linear.reduce_instance(flat._replace(items=np.eye(3)))
