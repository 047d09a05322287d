"""Optimal proportions against closed forms, the paper's example and SciPy's SLSQP."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from jaxbandits.kcenter import omega_mirror, omega_newton

newton = jax.jit(functools.partial(omega_newton, tolerance=1e-10))
newton_roughly = jax.jit(omega_newton)
mirror = jax.jit(omega_mirror, static_argnames="steps")
EXAMPLE = np.array([[0.45, 0.5, 0.55], [0.35, 0.4, 0.6], [0.3, 0.47, 0.52]])


def everything(means):
    n, slots = means.shape
    return jnp.array(means), jnp.ones(slots, bool), jnp.ones(n, bool)


def information(means: np.ndarray, omega: np.ndarray, variance: np.ndarray) -> float:
    """Returns 1 / T of equation (19) for given proportions, over all pairs of arms and not only smallest entries."""
    best = means.min(1).argmax()
    with np.errstate(divide="ignore"):
        noise = variance / omega
    rates = []
    for v in set(range(len(means))) - {best}:
        # A slot of v above the slot of the best is no evidence against v.
        gaps = np.maximum(means[best][:, None] - means[v], 0)
        rates.append((gaps**2 / (2 * (noise[best][:, None] + noise[v]))).max(1).min())
    return min(rates)


def slsqp(means: np.ndarray, variance: float) -> float:
    """Returns T*: maximises the log rate over log proportions, first of the best row, then of the rivals."""
    lowest = means.min(1)
    best = lowest.argmax()
    gaps = means[best][:, None] - np.delete(lowest, best)
    b, a = gaps.shape
    row, column = np.divmod(np.arange(b * a), a)

    def log_rates(x):
        x = x - np.log(np.exp(x).sum())
        return 2 * np.log(gaps.ravel()) - np.logaddexp(-x[row], -x[b + column])

    result = minimize(
        lambda x: -x[-1],
        np.append(np.zeros(b + a), log_rates(np.zeros(b + a)).min()),
        bounds=[(-15, 15)] * (b + a) + [(None, None)],
        constraints={"type": "ineq", "fun": lambda x: log_rates(x[:-1]) - x[-1]},
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    return 2 * variance / np.exp(log_rates(result.x[:-1]).min())


@pytest.mark.parametrize(("rivals", "gap", "variance"), [(4, 0.2, 1.0), (4, 0.01, 0.25), (1, 0.2, 1.0)])
def test_one_slot_against_equal_rivals(rivals, gap, variance):
    means = np.full((rivals + 1, 1), 0.3)
    means[1] += gap
    weights = newton(*everything(means), noise_scale=np.sqrt(variance))
    share = 1 / (1 + np.sqrt(rivals))
    assert weights.time == pytest.approx(2 * variance * (1 + np.sqrt(rivals)) ** 2 / gap**2, rel=1e-9)
    expected = np.full((rivals + 1, 1), (1 - share) / rivals)
    expected[1] = share
    np.testing.assert_allclose(weights.omega, expected, rtol=1e-7)


def test_the_example_of_appendix_c():
    weights = newton(*everything(EXAMPLE), noise_scale=1.0)
    optimum = [[0.36660, 0.10512, 0.05260], [0.37027, 0, 0], [0.10542, 0, 0]]
    np.testing.assert_allclose(weights.omega, optimum, atol=5e-6)
    assert weights.time == pytest.approx(1085.694, abs=5e-4)


def test_mirror_ascent_on_the_example():
    weights = mirror(*everything(EXAMPLE), noise_scale=1.0)
    assert 1 < weights.time / 1085.694 < 1 + 1e-3
    assert weights.omega.sum() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(weights.omega, newton(*everything(EXAMPLE), noise_scale=1.0).omega, atol=1e-3)
    assert weights.time == pytest.approx(1 / information(EXAMPLE, np.asarray(weights.omega), np.ones((3, 3))), rel=1e-9)
    assert mirror(*everything(EXAMPLE), noise_scale=1.0, steps=10).time > 1.02 * 1085.694


@pytest.mark.parametrize("seed", range(4))
def test_against_slsqp(seed):
    means = np.random.default_rng(seed).random((6, 3))
    weights = newton(*everything(means), noise_scale=0.5**0.5)
    assert weights.time == pytest.approx(slsqp(means, 0.5), rel=1e-5)
    omega = np.asarray(weights.omega)
    assert omega.sum() == pytest.approx(1, rel=1e-12)
    assert 1 / information(means, omega, np.full(means.shape, 0.5)) == pytest.approx(float(weights.time), rel=1e-8)
    rough = mirror(*everything(means), noise_scale=0.5**0.5)
    assert 1 <= rough.time / weights.time < 1.02


def test_no_other_proportions_do_better():
    """Random proportions over all arms: an arm that is not a node's smallest entry is never worth a query."""
    rng = np.random.default_rng(7)
    means = rng.random((6, 3))
    optimum = newton(*everything(means), noise_scale=1.0)
    for _ in range(300):
        omega = np.asarray(optimum.omega) * rng.uniform(0.7, 1.3, means.shape) + 0.02 * rng.dirichlet(
            np.ones(18)
        ).reshape(6, 3)
        assert information(means, omega / omega.sum(), np.ones(means.shape)) < 1 / optimum.time


def test_variances_by_arm():
    """Doubling the variance of every arm alike doubles T*; a noisier arm gets a larger share."""
    means, slots, candidates = everything(EXAMPLE)
    even = newton(means, slots, candidates, noise_scale=jnp.full((3, 3), 2.0**0.5))
    assert even.time == pytest.approx(2 * 1085.694, rel=1e-6)
    noise = np.ones((3, 3))
    noise[0, 1] = 4
    skewed = newton(means, slots, candidates, noise_scale=jnp.array(np.sqrt(noise)))
    assert skewed.omega[0, 1] > 1.5 * even.omega[0, 1]
    assert 1 / information(EXAMPLE, np.asarray(skewed.omega), noise) == pytest.approx(float(skewed.time), rel=1e-8)
    assert (
        skewed.time
        <= mirror(means, slots, candidates, noise_scale=jnp.array(np.sqrt(noise))).time
        < 1.001 * skewed.time
    )


@pytest.mark.parametrize("solve", [newton, mirror])
def test_centers_and_empty_slots_get_no_proportion(solve):
    rng = np.random.default_rng(9)
    means = rng.random((6, 3))
    slots, candidates = np.array([True, False, True]), np.array([True, True, False, True, False, True])
    spoiled = means.copy()
    spoiled[~candidates] = 50
    spoiled[:, ~slots] = -50
    weights = solve(jnp.array(spoiled), jnp.array(slots), jnp.array(candidates), noise_scale=1.0)
    alone = solve(*everything(means[candidates][:, slots]), noise_scale=1.0)
    assert weights.time == pytest.approx(float(alone.time), rel=1e-9)
    expected = np.zeros((6, 3))
    expected[np.ix_(candidates, slots)] = alone.omega
    np.testing.assert_allclose(weights.omega, expected, atol=1e-8)


@pytest.mark.parametrize("solve", [newton, mirror])
def test_a_single_candidate_takes_no_time(solve):
    weights = solve(jnp.array(EXAMPLE), jnp.ones(3, bool), jnp.array([False, True, False]), noise_scale=1.0)
    assert weights.time == 0
    np.testing.assert_array_equal(weights.omega, 0)


def test_tied_means_have_the_gap_floor():
    """Two best nodes with equal means: all queries go to the two arms that separate them."""
    means = np.array([[0.8], [0.8], [0.1]])
    weights = newton(*everything(means), noise_scale=1.0, gap_floor=1e-3)
    assert weights.time == pytest.approx(2 * 4 / 1e-6, rel=5e-3)
    np.testing.assert_allclose(weights.omega[:2, 0], 0.5, rtol=5e-3)
    for solve in (newton, mirror):
        assert np.all(np.isfinite(solve(*everything(means), noise_scale=1.0).omega))


def test_lanes_in_float32():
    means = np.random.default_rng(10).random((4, 8, 3))
    solve = functools.partial(omega_newton, noise_scale=0.1)
    slots, candidates = jnp.ones(3, bool), jnp.ones(8, bool)
    batch = jax.jit(jax.vmap(lambda m: solve(m, slots, candidates)))(jnp.array(means, np.float32))
    assert batch.omega.dtype == batch.time.dtype == jnp.float32
    for lane in range(4):
        exact = newton(jnp.array(means[lane]), slots, candidates, noise_scale=0.1)
        assert batch.time[lane] == pytest.approx(float(exact.time), rel=2e-4)
        np.testing.assert_allclose(batch.omega[lane], exact.omega, atol=2e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"slots": jnp.ones(2, bool)}, "slots must be an array of booleans of shape (3,), got [ True  True]"),
        ({"candidates": jnp.ones(2, bool)}, "candidates must be an array of booleans of shape (4,), got [ True  True]"),
        ({"noise_scale": jnp.ones(3)}, "noise_scale must have shape () or (4, 3), got (3,)"),
    ],
)
def test_bad_input(arguments, message):
    right = {"means": jnp.ones((4, 3)), "slots": jnp.ones(3, bool), "candidates": jnp.ones(4, bool), "noise_scale": 1.0}
    with pytest.raises(ValueError, match=re.escape(message)):
        omega_newton(**(right | arguments))
