"""XY-static against worked numbers, brute force inside its cells, and its published means."""

import functools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.fullbandit import follow
from scipy.stats import ks_2samp

from jaxbandits.base import Status
from jaxbandits.engine.run.loop import run
from jaxbandits.linear import (
    canonical,
    environment,
    sphere,
    xy_allocation,
    xy_static,
    xy_static_exact,
)
from jaxbandits.linear._algorithms.xy_static import State
from jaxbandits.linear._algorithms.xy_static_exact import _fails_inside
from jaxbandits.linear._shared.least_squares import inverse_gram
from jaxbandits.linear._shared.static_rule import compare_leader, static_rule
from jaxbandits.numerics.tracking import tracked_counts

KEY = jax.random.key(0)
UNIFORM = jnp.full(5, 0.2)


def rewards(instance, pulls, seed=0):
    """Draws the m-th reward of each arm, float (K, pulls)."""
    means = np.asarray(instance.arms @ instance.theta)
    return means[:, None] + np.random.default_rng(seed).normal(size=(len(means), pulls))


def many(instance, algorithm, runs, *, max_rounds=20_000, seed=1):
    rewards = environment(instance, algorithm)
    keys = jax.random.split(jax.random.key(seed), runs)
    return jax.jit(jax.vmap(lambda key: run(key, algorithm, rewards, max_rounds=max_rounds)))(keys)


# The rule


def test_the_stop_by_hand():
    # Two orthogonal arms, 50 pulls each: radius(100) = 2 sqrt(2 log(6 10^4 4/(0.05 pi^2))) = 10.23510 and
    # ||x_0 - x_1|| = sqrt(2/50) = 0.2, so the means must differ by 2.047021.
    algorithm = xy_static(np.eye(2), jnp.array([0.5, 0.5]), delta=0.05)
    for lead, stop in ((2.04702, False), (2.04703, True)):
        state = State(jnp.array(100), jnp.array([50, 50]), jnp.array([0.0, 50 * lead]))
        decision = algorithm.decide(KEY, state)
        assert (bool(decision.stop), int(decision.answer)) == (stop, 1)


def test_a_ridge_enters_estimate_and_bound_by_hand():
    # Ridge 50 halves the estimates of the test above, and makes the norm sqrt(2/100).
    algorithm = xy_static(np.eye(2), jnp.array([0.5, 0.5]), delta=0.05, ridge=50.0)
    for lead, stop in ((2.89492, False), (2.89493, True)):
        state = State(jnp.array(100), jnp.array([50, 50]), jnp.array([50 * lead, 0.0]))
        assert bool(algorithm.decide(KEY, state).stop) == stop


# The exact version


@functools.cache
def both_versions():
    """Builds a program for the ends of both versions on recorded rewards, compiled once for each shape of the arms."""

    def one(arms, allocation, ridge, growth, tape):
        options = {"delta": 0.05, "noise_scale": 0.4, "ridge": ridge, "max_pulls": tape.shape[1]}
        plain = xy_static(arms, allocation, growth=0, **options)
        exact = xy_static_exact(arms, allocation, growth=growth, bridge_noise_scale=1.0, **options)
        return follow(plain, tape, tape.shape[1])[0], follow(exact, tape, 3 * tape.shape[1])[0]

    return jax.jit(jax.vmap(one, in_axes=(None, None, None, None, 0)))


@pytest.mark.parametrize("growth", [0.02, 0.2, 0.9])
@pytest.mark.parametrize(
    ("instance", "ridge"),
    [
        pytest.param(canonical(1.0), 0.0, marks=pytest.mark.wide),
        pytest.param(sphere(3, 6, 3, 0.4), 0.0, marks=pytest.mark.wide),
        (sphere(3, 6, 3, 0.4), 3.0),
    ],
)
def test_exact_stops_where_the_test_at_every_n_does(instance, ridge, growth):
    # An over-confident noise_scale makes many runs stop early, by a fluctuation.
    allocation = xy_allocation(instance.arms).allocation
    tapes = np.stack([rewards(instance, 3000, seed) for seed in range(24)])
    one, other = both_versions()(instance.arms, allocation, ridge, growth, tapes)
    assert len(np.unique(one.pulls)) > 12
    np.testing.assert_array_equal(other.pulls, one.pulls)
    np.testing.assert_array_equal(other.counts, one.counts)
    np.testing.assert_allclose(other.sums, one.sums, rtol=1e-9, atol=1e-9)


@pytest.mark.thorough
@pytest.mark.slow
def test_exact_has_the_law_of_the_test_at_every_n():
    # The bridges are drawn here, not read from a tape. False alarms: 1 in 1000.
    instance = canonical(1.0, 4)
    options = {"delta": 0.1, "noise_scale": 0.7}
    plain = many(instance, xy_static(instance.arms, jnp.full(4, 0.25), growth=0, **options), 1000)
    exact = xy_static_exact(instance.arms, jnp.full(4, 0.25), bridge_noise_scale=1.0, **options)
    exact = many(instance, exact, 1000, seed=2)
    assert np.all(plain.status == Status.STOPPED)
    assert np.all(exact.status == Status.STOPPED)
    assert exact.rounds.mean() < plain.rounds.mean()
    assert ks_2samp(plain.pulls, exact.pulls).pvalue > 1e-3


def test_a_skipped_cell_contains_no_stop():
    """Brute force on random cells: random paths in the envelope, and paths that push a pair of arms apart."""
    instance, ridge, margin = sphere(3, 5, 3, 0.3), 0.5, 1.0
    arms, means = instance.arms, np.asarray(instance.arms @ instance.theta)
    allocation = xy_allocation(arms).allocation
    rule = static_rule(
        arms,
        allocation,
        delta=0.05,
        noise_scale=1.0,
        ridge=ridge,
        union_power=2,
        radius="azuma",
        growth=0.0,
        max_pulls=10**9,
    )

    @jax.jit
    def try_cell(n, key):  # n holds the ends and 400 numbers between them
        counts = jax.vmap(partial(tracked_counts, allocation))(n)
        start, pulls, inside = counts[0], counts[1] - counts[0], counts[2:] - counts[0]
        draws = jax.random.normal(key, (2, 5))
        sums_start = start * means + jnp.sqrt(start) * draws[0]
        sums = pulls * means + 4 * jnp.sqrt(pulls) * draws[1]
        stray = margin * jnp.sqrt(pulls)
        inverse = inverse_gram(arms, counts[1], ridge)
        leader = compare_leader(rule, start, sums_start)
        passed = _fails_inside(arms, leader, inverse=inverse, pulls=pulls, sums=sums, stray=stray)

        apart = jnp.sign((arms[:, None] - arms).reshape(25, 3) @ inverse @ arms.T)
        pushed = jax.random.choice(key, apart, (200,))
        noise = jnp.concatenate([jax.random.uniform(key, (200, 5), minval=-1, maxval=1), pushed]) * stray
        line = sums_start + inside / jnp.maximum(pulls, 1) * sums
        tests = jax.vmap(partial(compare_leader, rule))(start + inside, line + noise)
        norms = jnp.sqrt(jnp.einsum("nki,nij,nkj->nk", tests.directions, tests.inverse, tests.directions))
        leads = jnp.where(norms > 0, tests.gaps / (tests.radius[:, None] * norms), jnp.inf)
        return passed, tests.stop.any(), leads.min(1).max()

    rng = np.random.default_rng(0)
    cells = []
    for seed in range(400):
        low = int(rng.integers(20, 3000))
        high = low + int(rng.integers(2, 2 + low // 2))
        n = jnp.array([low, high, *rng.integers(low + 1, high, size=400)])
        with jax.numpy_dtype_promotion("standard"):
            cells.append(try_cell(n, jax.random.key(seed)))
    passed, stops, leads = map(np.array, zip(*cells, strict=True))
    assert not np.any(passed & stops)
    # The bound is useful: it skips most cells in which no such path stops, and some in which one comes close.
    assert np.mean(passed[~stops]) > 0.4
    assert np.sum(passed & (leads > 0.9)) > 2


# Whole runs


@pytest.mark.slow
@pytest.mark.parametrize("factory", [xy_static, xy_static_exact])
def test_mean_stopping_time_on_the_canonical_instance(factory):
    # The published setting of the second experiment, gap 0.5, gave 8488 +- 77.
    outcome = many(canonical(0.5), factory(np.eye(5), UNIFORM, delta=0.05), 150)
    assert np.all(outcome.status == Status.STOPPED)
    assert np.all(outcome.answer == 0)
    standard_error = np.std(outcome.pulls) / np.sqrt(150)
    assert abs(np.mean(outcome.pulls) - 8488) < 4 * np.hypot(standard_error, 77)


@pytest.mark.slow
def test_overconfident_runs_err():
    # A tenth of the noise scale makes the runs stop early. An error rate of twice delta shows that errors are counted.
    algorithm = xy_static_exact(np.eye(5), UNIFORM, delta=0.05, noise_scale=0.1, bridge_noise_scale=1.0)
    outcome = many(canonical(0.3), algorithm, 300)
    assert np.all(outcome.status == Status.STOPPED)
    assert 0.1 < np.mean(outcome.answer != 0) < 0.7


@pytest.mark.parametrize("factory", [xy_static, xy_static_exact])
def test_a_run_beyond_its_budget_is_censored(factory):
    algorithm = factory(np.eye(5), UNIFORM, delta=0.05, growth=0.1, max_pulls=1000)
    outcome = many(canonical(0.5), algorithm, 3, max_rounds=2000)
    assert np.all(outcome.status == Status.MAX_ROUNDS)
    assert np.all(outcome.rounds == 2000)
    assert np.all((outcome.pulls > 900) & (outcome.pulls <= 1000))


@pytest.mark.parametrize("factory", [xy_static, xy_static_exact])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arms": np.eye(5)[:3], "allocation": jnp.full(3, 1 / 3)}, "arms must .*reduce_rank"),
        ({"allocation": jnp.full(5, 0.25)}, "allocation must sum to 1, got "),
        ({"allocation": jnp.array([0.25, 0.25, 0.25, 0.25, 0])}, "allocation must have a support that spans"),
        ({"max_pulls": 4}, r"max_pulls must be an integer in \[5, \d+\], got 4"),
    ],
)
def test_bad_input(factory, changes, message):
    arguments = {"arms": np.eye(5), "allocation": UNIFORM, "delta": 0.05} | changes
    with pytest.raises(ValueError, match=message):
        factory(**arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arms": np.eye(5, dtype=jnp.float32)}, "arms must be float64, got .*float32"),
        ({"margin": 3.0}, "margin must be at least 3.5, got 3.0"),
    ],
)
def test_bad_input_of_the_exact_version(changes, message):
    arguments = {"arms": np.eye(5), "allocation": UNIFORM, "delta": 0.05} | changes
    with pytest.raises(ValueError, match=message):
        xy_static_exact(**arguments)


def test_a_ridge_admits_arms_that_do_not_span():
    xy_static(np.eye(5)[:3], jnp.full(3, 1 / 3), delta=0.05, ridge=0.01)
