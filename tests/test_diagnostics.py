"""Diagnostics of a state, compared with the numbers that the algorithm itself decides by."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checks.test_mutations import compiled

from jaxbandits import cpe, kcenter, kernel, linear, run
from jaxbandits.cpe._shared.estimate import squared_radius

KEY = jax.random.key(0)
RUNS = jax.random.split(KEY, 4)


def states(algorithm, environment, rounds):
    """Returns the states of four runs after `rounds` rounds, as NumPy arrays."""
    ends = jax.jit(jax.vmap(lambda key: run(key, algorithm, environment, max_rounds=rounds).state))(RUNS)
    return jax.tree.map(np.asarray, ends)


# cpe


@pytest.mark.parametrize("estimator", ["mean", "variance"])
def test_confidence_of_coci_is_its_box(estimator):
    instance = cpe.instance(cpe.top_k(3, 1), cpe.uniform_arms([0, 0, 0.2], [1, 0.6, 0.9]), estimator=estimator)
    algorithm = cpe.coci(instance.problem, delta=0.1, estimator=estimator)
    state = states(algorithm, cpe.environment(instance), 40)
    interval = jax.vmap(lambda state: cpe.confidence(state, delta=0.1, estimator=estimator))(state)
    counts, first = state.statistics.counts, np.asarray(state.statistics.sums.first.total)
    np.testing.assert_array_equal(counts.sum(axis=1), 40)
    theta = first / counts + 0.5
    if estimator == "variance":
        theta = (np.asarray(state.statistics.sums.second.total) - first**2 / counts) / (counts - 1)
    squared = squared_radius(jnp.asarray(40.0), tau=1 + (estimator == "variance"), delta=0.1)
    radius = np.sqrt(np.asarray(squared) / counts)
    np.testing.assert_allclose(interval.theta, theta, rtol=1e-9)
    np.testing.assert_allclose(interval.radius, radius, rtol=1e-12)
    np.testing.assert_allclose(interval.lo, np.maximum(theta - radius, 0), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(interval.hi, np.minimum(theta + radius, 1), rtol=1e-9)


PROBLEMS = {
    "sites": (cpe.sites([0.3, 0.1, 0.2], 2), lambda theta, y: (theta - [0.3, 0.1, 0.2]) @ y),
    "water": (
        cpe.water([[0, 1, 2.5, 4], [0, 1.25, 2.5, 4], [0, 1, 2, 4]], 3),
        lambda theta, y: theta @ y - sum([[0, 1, 2.5, 4], [0, 1.25, 2.5, 4], [0, 1, 2, 4]][i][y[i]] for i in range(3)),
    ),
    "few interviews": (
        cpe.opinion_sampling([1, 3, 2], 7),
        lambda theta, y: np.sum(np.square([1, 3, 2]) * theta * (1 - 1 / (1 + y))),
    ),
    "many interviews": (
        cpe.opinion_sampling([1, 3, 2], 70),
        lambda theta, y: np.sum(np.square([1, 3, 2]) * theta * (1 - 1 / (1 + y))),
    ),
    "listed": (
        cpe.enumerated(np.eye(3), [0.1, 0.2, 0.3]),
        lambda theta, y: theta @ y - np.array([0.1, 0.2, 0.3]) @ y,
    ),
    "graphic": (cpe.graphic(3, [(0, 1), (1, 2), (0, 2)]), lambda theta, y: theta @ y),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_reward_equals_the_formula_of_the_paper(name):
    problem, pay = PROBLEMS[name]
    theta = np.array([0.8, 0.4, 0.7])
    levels = np.asarray(cpe.solve(problem, theta))
    np.testing.assert_allclose(cpe.reward(problem, theta, levels), pay(theta, levels), rtol=1e-12)


def test_reward_of_an_invalid_decision_is_not_finite():
    theta = np.array([0.8, 0.4, 0.7])
    assert cpe.reward(PROBLEMS["sites"][0], theta, np.array([2, 0, 0])) == -np.inf
    assert np.isnan(cpe.reward(PROBLEMS["listed"][0], theta, np.array([1, 1, 0])))
    with pytest.raises(ValueError, match="problem must be a Table"):
        cpe.reward(cpe.oracle(lambda theta: jnp.ones(3, int), 3, bi_monotone=True), theta, np.zeros(3, int))


def test_second_call_compiles_nothing():
    problem = cpe.top_k(4, 2)
    calls = [
        functools.partial(cpe.consistent_radius, problem),
        lambda theta: cpe.implicit_time(100 + theta[0], 4, 1, 0.1, 0.5),
    ]
    for call in calls:
        call(np.array([0.9, 0.7, 0.4, 0.2]))
        before = len(compiled)
        call(np.array([0.8, 0.6, 0.5, 0.1]))
        assert len(compiled) == before


# linear


def test_estimate_equals_the_state_of_lingape():
    instance = linear.soare(3, 0.3)
    state = states(linear.lingape(instance.arms, delta=0.1), linear.environment(instance), 30)
    estimate = functools.partial(linear.estimate, instance.arms, ridge=1.0)
    estimated = jax.vmap(estimate)(state.counts, state.sums)
    np.testing.assert_allclose(estimated.theta, state.theta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(estimated.logdet, state.logdet, rtol=1e-9)
    np.testing.assert_allclose(instance.arms @ estimated.inverse, state.images, rtol=1e-8, atol=1e-12)
    radius = np.sqrt(state.logdet + 2 * np.log(16 / 0.1)) + 2
    np.testing.assert_allclose(linear.lingape_radius(state.logdet, K=4, delta=0.1), radius, rtol=1e-12)


def test_estimate_without_a_ridge():
    arms, counts = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([4, 0])
    estimated = linear.estimate(arms, counts, np.array([2.0, 0.0]))
    np.testing.assert_allclose(estimated.theta, [0.5, 0])
    np.testing.assert_allclose(estimated.inverse, [[0.25, 0], [0, 0.25]])
    np.testing.assert_allclose(estimated.logdet, np.log(16))


def test_xy_adaptive_counts_the_pulls_of_each_arm():
    instance = linear.canonical(0.5, 3)
    algorithm = linear.xy_adaptive(instance.arms, delta=0.1, design_steps=20)
    state = states(algorithm, linear.environment(instance, algorithm), 20)
    np.testing.assert_array_equal(state.counts.sum(axis=1), state.pulls)
    assert (state.counts > 0).all()


# kcenter


def test_confidence_of_sampled_dimensions():
    instance = kcenter.dimension_instance(kcenter.contrast_rows(5, 30, seed=0), k=3)
    state = states(kcenter.ds_ucb(instance.problem, delta=0.1, cap=8), kcenter.environment(instance), 60)
    interval = jax.vmap(lambda state: kcenter.confidence(state, instance.problem, delta=0.1, cap=8))(state)
    pulled = state.counts > 0
    np.testing.assert_allclose(np.asarray(interval.lower)[pulled], state.lower[pulled], rtol=1e-12)
    np.testing.assert_allclose(np.asarray(interval.upper)[pulled], state.upper[pulled], rtol=1e-12)
    assert np.all(np.asarray(interval.upper)[~pulled] == np.inf)
    is_read = state.counts > 8
    assert is_read.any()
    np.testing.assert_allclose(np.asarray(interval.mean)[is_read], np.asarray(interval.lower)[is_read])


def test_confidence_of_noisy_distances():
    instance = kcenter.distance_instance(np.abs(np.subtract.outer([0, 0.3, 1], [0, 0.3, 1])), k=2, noise_scale=0.1)
    algorithm = kcenter.ns_ts(instance.problem, delta=0.1, noise_scale=0.1)
    state = states(algorithm, kcenter.environment(instance, algorithm), 20)
    interval = jax.vmap(lambda state: kcenter.confidence(state, instance.problem, delta=0.1, noise_scale=0.1))(state)
    counts = np.maximum(state.samples.counts, 1)
    means = (state.samples.sums.total + state.samples.sums.lost) / counts
    k1 = 1.01 * (1 + 1 / (kcenter.KL().alpha - 1))
    level = np.log(k1 * counts ** kcenter.KL().alpha / (0.1 / 9)) / counts
    pulled = state.samples.counts > 0
    np.testing.assert_allclose(interval.mean, means, rtol=1e-12)
    np.testing.assert_allclose(
        np.asarray(interval.upper - interval.mean)[pulled], 0.1 * np.sqrt(2 * level)[pulled], rtol=1e-9
    )


# kernel


def test_belief_of_every_kind_of_agent():
    instance = kernel.branin(KEY, size=6)
    shared = {"kernel": kernel.paper_kernel("branin"), "horizon": 3, "beta": 1.0, "noise_variance": 0.04}
    for factory, size in ((kernel.gp_ucb, (1, 6)), (kernel.bpe, (6,))):
        state = jax.eval_shape(factory(instance.candidates, **shared).init, KEY)
        assert kernel.belief(state).variance.shape == size
    for factory in (kernel.n_kernel_ucb, kernel.dis_kernel_ucb, kernel.approx_dis_kernel_ucb):
        algorithm = factory(instance.candidates, n_agents=2, **shared)
        assert kernel.belief(jax.eval_shape(algorithm.init, KEY)).mean.shape == (2, 6)
    with pytest.raises(ValueError, match="state must be a state of this family that holds a posterior"):
        kernel.belief(linear.lingape(np.eye(2), delta=0.1).init(KEY))
