"""Search for the first passage, against tests after every pull on the same rewards, and against compiled runs."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.fullbandit import cumulate, rewards
from drivers.programs import wide_except
from scipy import stats

from experiments.bench.reference import fullbandit as reference
from experiments.bench.reference.first_passage import Path, bernoulli_path, first_passage, gaussian_path
from jaxbandits.engine.run.loop import run
from jaxbandits.fullbandit import (
    Estimate,
    Instance,
    Pace,
    cyclic_support,
    environment,
    exhaustive_rule,
    g_allocation,
    icb,
    icb_rule,
    make_design,
    random_support,
    saqm_rule,
)

N, K = 6, 3
THETA = jnp.array([0.9, 0.2, 0.7, -0.5, 0.4, 0.1])
INSTANCE = Instance(THETA, K)
ALLOCATION = g_allocation(random_support(3, N, K, size=14))
DESIGN = make_design(ALLOCATION.support, K, weights=ALLOCATION.weights)
CYCLIC = make_design(cyclic_support(5, 3), 3)
# Small radii let the noise, of standard deviation 1.7, cross the rule early and often.
RULES = {
    "saqm": (saqm_rule, reference.saqm, 1, 0.05),
    "icb": (icb_rule, reference.icb, 3, 0.5 / 3),
    "exhaustive": (exhaustive_rule, reference.exhaustive, 3, 0.1),
}


def compiled(rule, design=DESIGN, **options):
    settings = {"delta": 0.05, "epsilon": 0.3} | options
    return jax.jit(lambda inverse, theta, t: rule(design, Estimate(theta, inverse, jnp.ones(())), t, **settings))


def tape_path(tape):
    """Makes a path of recorded rewards; a position counts the rewards read of each super-arm."""
    sums = np.asarray(cumulate(tape))
    return Path(
        start=np.zeros(len(sums), int),
        extend=lambda rng, position, pulls: position + pulls,
        bridge=lambda rng, start, end, before, after: start + before,
        sums=lambda position: np.take_along_axis(sums, position[:, None], axis=1)[:, 0],
        variance=float(K),
    )


@pytest.mark.parametrize("name", wide_except(RULES, "saqm"))
def test_no_earlier_pull_is_missed_on_recorded_rewards(name):
    rule, literal, swaps, scale = RULES[name]
    options = {"delta": 0.05, "epsilon": 0.3, "noise_scale": scale}
    support, weights, late = np.asarray(DESIGN.support), np.asarray(DESIGN.weights), 0
    for seed in range(6):
        tape = rewards(THETA, DESIGN.support, 400, seed)
        tests = reference.tests_of(support, weights, np.asarray(tape), partial(literal, k=K, **options), len(weights))
        passage = first_passage(
            np.random.default_rng(0), tape_path(tape), DESIGN, compiled(rule, **options), swaps=swaps, ratio=1.3
        )
        assert passage.stopped
        assert passage.pulls == tests[-1].t
        assert tuple(np.flatnonzero(passage.answer)) == tests[-1].answer
        late += tests[-1].t > len(weights)
    assert late >= 4  # number of runs that do not stop at the first test


def test_a_gaussian_bridge_has_the_moments_of_a_middle():
    path = gaussian_path(INSTANCE._replace(noise_scale=2.0), DESIGN)
    rng, s = np.random.default_rng(0), len(DESIGN.weights)
    before, after = np.arange(s) % 4, np.arange(s) % 3
    ends = [path.extend(rng, path.start, before + after) for _ in range(20_000)]
    middles = np.array([path.bridge(rng, path.start, end, before, after) for end in ends])
    remainders = np.array(ends) - middles
    means, variance = np.asarray(DESIGN.support @ THETA), 4.0 * K
    assert path.variance == variance
    for part, pulls in ((middles, before), (remainders, after)):
        np.testing.assert_allclose(part.mean(0), pulls * means, atol=4.5 * np.sqrt(variance * 3 / 20_000))
        np.testing.assert_allclose(part.var(0), pulls * variance, rtol=0.05, atol=1e-12)
    # Independent, as the increments of the path are.
    products = ((middles - before * means) * (remainders - after * means)).mean(0)
    np.testing.assert_allclose(products, 0, atol=4.5 * variance * 3 / np.sqrt(20_000))


def test_a_bernoulli_bridge_has_the_law_of_a_middle():
    accuracies = jnp.array([0.9, 0.2, 0.7, 0.0, 0.4])
    path = bernoulli_path(Instance(accuracies, 3), CYCLIC)
    rng, before, after = np.random.default_rng(1), np.array([3, 0, 2, 1, 5]), np.array([2, 4, 0, 1, 5])
    ends = [path.extend(rng, path.start, before + after) for _ in range(20_000)]
    middles = np.array([path.bridge(rng, path.start, end, before, after) for end in ends])
    assert np.all((middles >= 0) & (middles <= before[:, None]) & (middles <= np.array(ends)))
    members = np.array([np.flatnonzero(row) for row in np.asarray(CYCLIC.support)])
    p = np.asarray(accuracies)[members]
    np.testing.assert_allclose(middles.mean(0), before[:, None] * p, atol=0.05)
    np.testing.assert_allclose(middles.var(0), before[:, None] * p * (1 - p), atol=0.06)
    assert path.sums(middles[0]).tolist() == middles[0].sum(1).tolist()
    assert path.variance == pytest.approx(max((row * (1 - row)).sum() for row in p))


@pytest.mark.thorough
@pytest.mark.slow
def test_compiled_runs_stop_as_late():
    """Means within 3.3 standard errors and equal laws by Kolmogorov-Smirnov at 1e-3: false alarm 2e-3."""
    options = {"delta": 0.05, "epsilon": 0.3, "noise_scale": 1 / 3}
    instance = Instance(jnp.array([0.9, 0.3, 0.7, 0.5, 0.1]), 3)
    rule, path = compiled(icb_rule, CYCLIC, **options), bernoulli_path(instance, CYCLIC)
    searched = [first_passage(np.random.default_rng(i), path, CYCLIC, rule, swaps=2) for i in range(50)]
    pulls = np.array([passage.pulls for passage in searched])
    assert all(passage.stopped for passage in searched)

    algorithm = icb(CYCLIC, pace=Pace(growth=0.0), **options)
    answers = environment(instance, CYCLIC, noise="bernoulli")
    keys = jax.random.split(jax.random.key(2), 150)
    ends = jax.jit(jax.vmap(lambda key: run(key, algorithm, answers, max_rounds=20_000, chunk=64)))(keys)
    compiled_pulls = np.asarray(ends.pulls)
    assert np.all(np.asarray(ends.status) == 1)
    error = np.sqrt(pulls.var() / 50 + compiled_pulls.var() / 150)
    assert abs(pulls.mean() - compiled_pulls.mean()) < 3.3 * error
    assert stats.ks_2samp(pulls, compiled_pulls).pvalue > 1e-3
    assert pulls.std() > 0
    assert np.mean([passage.evaluations for passage in searched]) < pulls.mean() / 2


def test_without_noise_the_passage_is_the_same_every_time():
    """Every pull is a sure success or failure, so T is the first pull at which the deterministic rule holds."""
    instance = Instance(jnp.array([1.0, 1.0, 0.0, 0.0, 1.0]), 3)
    rule, path = compiled(icb_rule, CYCLIC), bernoulli_path(instance, CYCLIC)
    passages = [first_passage(np.random.default_rng(i), path, CYCLIC, rule, swaps=2) for i in range(3)]
    # theta_hat is exact, so only the widths count: at every t before, one arm of the answer may still be worse.
    assert len({passage.pulls for passage in passages}) == 1
    tape = np.repeat(np.asarray(CYCLIC.support @ instance.theta)[:, None], passages[0].pulls, axis=1)
    literal = partial(reference.icb, k=3, delta=0.05, epsilon=0.3, noise_scale=1.0)
    tests = reference.tests_of(np.asarray(CYCLIC.support), np.asarray(CYCLIC.weights), tape, literal, 5)
    assert tests[-1].t == passages[0].pulls
    assert passages[0].answer.tolist() == [True, True, False, False, True]


def test_a_coarse_search_stops_a_little_later():
    rule = compiled(exhaustive_rule, noise_scale=0.1)
    for seed in range(4):
        path = tape_path(rewards(THETA, DESIGN.support, 400, seed))
        exact, coarse = (
            first_passage(np.random.default_rng(0), path, DESIGN, rule, swaps=3, resolution=h) for h in (0.0, 0.2)
        )
        assert exact.pulls <= coarse.pulls


def test_a_rule_that_never_holds_ends_at_the_last_pull():
    rule = compiled(icb_rule, noise_scale=100 / 3)
    path = gaussian_path(INSTANCE, DESIGN)
    passage = first_passage(np.random.default_rng(0), path, DESIGN, rule, swaps=3, max_pulls=777)
    assert (passage.stopped, passage.pulls) == (False, 777)
    assert passage.evaluations < 300


BAD = {
    "swaps must lie in 1..3, got 0": {"swaps": 0},
    "swaps must lie in 1..3, got 4": {"swaps": 4},
    "ratio must be above 1, got 1.0": {"ratio": 1.0},
    "resolution must be at least 0, got -0.1": {"resolution": -0.1},
    "z must be positive, got 0.0": {"z": 0.0},
    f"first_test must be at least {len(DESIGN.weights)}, one pull each, got 5": {"first_test": 5},
    "max_pulls must be at least 90, the first test, got 80": {"first_test": 90, "max_pulls": 80},
}


@pytest.mark.parametrize(("message", "options"), BAD.items(), ids=BAD.keys())
def test_bad_arguments_are_named(message, options):
    path = gaussian_path(INSTANCE, DESIGN)
    with pytest.raises(ValueError, match=message):
        first_passage(np.random.default_rng(0), path, DESIGN, compiled(icb_rule), **({"swaps": 3} | options))


def test_bad_instances_are_named():
    with pytest.raises(ValueError, match="instance.theta and design must be of one size, got: .* has 5, design has 6"):
        gaussian_path(Instance(THETA[:5], K), DESIGN)
    with pytest.raises(ValueError, match=r"theta must lie in \[0, 1\], got "):
        bernoulli_path(INSTANCE, DESIGN)
    with pytest.raises(ValueError, match="instance.k and design.k must be of one size, got: .* has 2, design.k has 3"):
        gaussian_path(Instance(THETA, 2), DESIGN)
