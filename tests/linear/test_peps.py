"""PEPS: its sampler against rejection, and runs without a stop."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erfcx, log_ndtr, ndtri_exp

import jaxbandits
from jaxbandits import linear
from jaxbandits.base import Status
from jaxbandits.linear._algorithms.peps import alternatives, drawn, mills, numbers_of, truncated_normals
from jaxbandits.linear._shared.fixed_confidence import checked_settings
from jaxbandits.linear._shared.likelihood_ratio import algorithm_from_rule, compare_items
from jaxbandits.numerics import thresholds

KEY = jax.random.key(0)
GK16 = thresholds.gk16(arms=3)
DRAWS = 50_000


def test_truncated_normals_match_the_inverse_tail():
    uniform = np.concatenate([np.random.default_rng(0).uniform(size=500), [1e-300, 1e-16, 0.5, 1.0]])
    least = np.array([0.0, 0.01, 0.5, 2.0, 10.0, 38.0, 100.0])[:, None]
    drawn_above = np.asarray(jax.jit(truncated_normals)(least, uniform))
    np.testing.assert_allclose(drawn_above, -ndtri_exp(log_ndtr(-least) + np.log(uniform)), rtol=1e-11, atol=1e-11)
    assert np.all(drawn_above >= least)


def test_mills_against_scipy():
    x = np.concatenate([np.linspace(0, 12, 500), [1e2, 1e5, 1e300]])
    expected = np.sqrt(np.pi / 2) * erfcx(x / np.sqrt(2))
    np.testing.assert_allclose(np.asarray(jax.jit(mills)(x)), expected, rtol=2e-14)


def test_drawn_returns_indices_by_their_weights():
    weights = np.array([0.0, 0.2, 0.0, 0.6, 0.0])  # the sum need not be 1
    indices = np.asarray(jax.jit(drawn)(weights, np.array([0.0, 0.2, 0.26, 0.9, 1 - 2**-53])))
    np.testing.assert_array_equal(indices, [1, 1, 3, 3, 3])


@functools.cache
def sampler_program():
    @jax.jit
    def program(arms, items, noise_scale):
        stop = linear.likelihood_ratio(GK16, delta=0.1, items=items)
        settings = checked_settings(arms, stop, ridge=0.5, noise_scale=noise_scale, start="arms")
        algorithm = algorithm_from_rule(
            settings, lambda key, state, comparison: (jnp.argmin(state.counts), ()), draws=True
        )
        state = algorithm.init(KEY)
        for reward in noise_scale * np.array([0.9, 0.6, 0.1]):
            state = algorithm.observe(state, algorithm.decide(KEY, state).action, reward)
        numbers = numbers_of(KEY, 2, DRAWS, float)
        draws = alternatives(settings, state, compare_items(settings, state.cache), numbers)
        return state.cache.theta / noise_scale, (draws.errors.T, draws.shares)

    return program


@pytest.mark.parametrize("items", [None, np.array([[1.0, 0.1], [0.9, 0.7], [-0.2, 0.8], [0.7, 0.9]])])
@pytest.mark.parametrize("noise_scale", [1.0, 3.0])
def test_alternatives_against_rejection(items, noise_scale):
    arms = np.array([[1.0, 0.0], [0.8, 0.5], [0.0, 1.0]])
    compared = arms if items is None else items
    theta, (errors, shares) = jax.device_get(sampler_program()(arms, compared, noise_scale))
    A = 0.5 * np.eye(2) + arms.T @ arms
    rng = np.random.default_rng(1)
    tried = rng.multivariate_normal(np.zeros(2), np.linalg.inv(A), size=4 * DRAWS)
    leader = np.argmax(compared @ theta)
    kept = tried[np.argmax((theta + tried) @ compared.T, axis=1) != leader]
    assert 0.1 < len(kept) / len(tried) < 0.9
    assert np.all(np.max((theta + errors) @ (compared - compared[leader]).T, axis=1) > -1e-12)
    assert len(np.unique(shares)) >= 2  # some draws lie in several half-spaces
    assert shares.sum() == pytest.approx(1)
    for power in (1, 2):
        by_rejection, ours = (kept @ arms.T) ** power, (errors @ arms.T) ** power
        mean, variance = shares @ ours, shares**2 @ (ours - shares @ ours) ** 2
        spread = np.sqrt(variance + by_rejection.var(0) / len(kept))
        assert np.all(np.abs(mean - by_rejection.mean(0)) <= 5 * spread)
        assert np.all(spread <= 0.05 * np.sqrt(by_rejection.var(0)))


def test_alternatives_in_far_half_spaces_do_not_underflow():
    stop = linear.likelihood_ratio(GK16, delta=0.1)
    settings = checked_settings(np.eye(2), stop, ridge=1.0, noise_scale=1.0, start="arms")
    algorithm = algorithm_from_rule(settings, lambda key, state, comparison: (jnp.argmin(state.counts), ()), draws=True)
    state = algorithm.init(KEY)
    for reward in (1000.0, 0.0):
        state = algorithm.observe(state, algorithm.decide(KEY, state).action, jnp.asarray(reward))
    errors, shares = alternatives(settings, state, compare_items(settings, state.cache), numbers_of(KEY, 2, 4, float))
    # The draws undo the lead of 500, and hardly more.
    np.testing.assert_allclose(errors[1] - errors[0], 500, atol=0.1)
    np.testing.assert_allclose(shares, 0.25)


def on_soare(seeds, horizon, threshold=None, d=6, draws=20):
    """Runs PEPS on `soare(d, 0.1)`, recording over time whether the answer is right."""
    instance = linear.soare(d, 0.1)

    def build(task, key):
        del task, key
        right = jaxbandits.record(
            at=[n for n in (30, 100, 300, 1000, 3000) if n <= horizon],
            value=lambda state, decision: {"right": linear.is_right(instance, decision.answer)},
        )
        stop = linear.no_stop() if threshold is None else linear.likelihood_ratio(threshold, delta=0.1)
        rule = linear.peps(instance.arms, stop=stop, draws=draws)
        return rule, linear.environment(instance, rule), right

    return jaxbandits.sweep(build, seeds=seeds, key=KEY, horizon=horizon, progress=False).columns


def test_peps_without_a_threshold_never_stops():
    columns = on_soare(2, 40, d=2, draws=1)
    assert np.all(columns["status"] == Status.HORIZON)
    assert np.all(columns["pulls"] == 40)
    assert columns["curve.right"].shape == (2, 1)


@pytest.mark.thorough
@pytest.mark.slow
def test_figures_on_soare():
    """Shares of right answers at 30, 100, .., and 1762 +- 108 pulls under gk16, of 400 runs of a float64 code."""
    right = on_soare(1000, 3000)["curve.right"].mean(0)
    theirs = np.array([0.585, 0.678, 0.785, 0.925, 0.985])
    spread = np.sqrt(theirs * (1 - theirs) * (1 / 400 + 1 / 1000))
    assert np.all(np.abs(right - theirs) <= 4 * spread)
    pulls = on_soare(400, 100_000, thresholds.gk16(arms=7))["pulls"]
    assert abs(pulls.mean() - 1762) <= 4 * np.hypot(108, pulls.std() / 20)


def test_shares_mixed_in_require_arms_that_span():
    with pytest.raises(ValueError, match="arms must have rank 2"):
        linear.peps(np.array([[1.0, 0], [2.0, 0]]), stop=linear.likelihood_ratio(GK16, delta=0.1), mix=0.5)
