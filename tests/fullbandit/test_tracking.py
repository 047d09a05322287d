"""What the rules share: the estimate, when they are tested, their symmetries, and bad arguments."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.tape import KEY, every_state, follow, rewards

from jaxbandits.engine.running import run
from jaxbandits.fullbandit.design import Design, make_design, random_support, tracking_counts
from jaxbandits.fullbandit.exhaustive import exhaustive
from jaxbandits.fullbandit.icb import icb
from jaxbandits.fullbandit.problem import Instance, gaussian
from jaxbandits.fullbandit.saqm import saqm
from jaxbandits.fullbandit.spectral import spectral
from jaxbandits.fullbandit.state import State, estimator, next_counts, top_set

N, K = 5, 3
THETA = jnp.array([0.9, 0.2, 0.7, -0.5, 0.4])
UNIFORM = make_design(random_support(4, N, K, size=8), K)
SHARES = np.array([4, 7, 9, 5, 6, 8, 3, 10]) / 52
UNEQUAL = make_design(random_support(5, N, K, size=8), K, weights=SHARES)
SETTINGS = {"delta": 0.1, "epsilon": 0.3, "sigma": 0.4}
RULES = {"saqm": saqm, "icb": icb, "exhaustive": exhaustive, "spectral": spectral}
every_rule_and_gram = pytest.mark.parametrize(
    ("factory", "gram"),
    [(factory, "counts") for factory in RULES.values()] + [(saqm, "limit"), (spectral, "limit")],
    ids=[*RULES, "saqm-limit", "spectral-limit"],
)
every_rule = pytest.mark.parametrize("factory", RULES.values(), ids=RULES.keys())


@functools.cache
def follower(factory, design_of, **options):
    """(tape) -> (state, answer) of a run, compiled; `design_of` names a design of this file."""

    @jax.jit
    def end(tape):
        algorithm = factory(design_of(), K, **(SETTINGS | options))
        state, _ = follow(algorithm, tape, 5000)
        return state, algorithm.decide(KEY, state).answer

    return end


def uniform():
    return UNIFORM


def unequal():
    return UNEQUAL


# The estimate


def test_ties_go_to_the_lowest_index():
    assert top_set(jnp.array([0.0, 1.0, 1.0, 1.0]), 2).tolist() == [False, True, True, False]


@pytest.mark.parametrize("design", [UNIFORM, UNEQUAL], ids=["uniform", "unequal"])
def test_the_estimate_from_counts_is_least_squares(design):
    rng = np.random.default_rng(0)
    s = design.weights.size
    counts, sums = rng.integers(1, 50, s), rng.normal(size=s)
    X = np.asarray(design.support)
    A = X.T @ (counts[:, None] * X)
    seen = estimator(design)(jnp.asarray(counts), jnp.asarray(sums))
    np.testing.assert_allclose(seen.inverse, np.linalg.inv(A), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(seen.theta, np.linalg.solve(A, X.T @ sums), rtol=1e-9)
    np.testing.assert_allclose(seen.level, np.min(counts / np.asarray(design.weights)))


@pytest.mark.parametrize("design", [UNIFORM, UNEQUAL], ids=["uniform", "unequal"])
def test_the_limit_is_unbiased_and_safe_whatever_the_counts(design):
    rng = np.random.default_rng(1)
    X, p = np.asarray(design.support), np.asarray(design.weights)
    for _ in range(5):
        counts = rng.integers(1, 50, p.size)
        seen = estimator(design, gram="limit")(jnp.asarray(counts), jnp.asarray(counts * (X @ np.asarray(THETA))))
        np.testing.assert_allclose(seen.theta, THETA, rtol=1e-9)
        # The covariance of the estimate, for noise of variance 1, is at most the inverse that stands for it.
        weights = np.asarray(design.inverse) @ X.T * p
        excess = np.asarray(seen.inverse) - weights / counts @ weights.T
        assert np.linalg.eigvalsh(excess).min() > -1e-12


def test_the_limit_is_least_squares_after_whole_cycles():
    counts = jnp.full(8, 7)
    sums = jnp.asarray(np.random.default_rng(2).normal(size=8))
    for limit, exact in zip(
        *(estimator(UNIFORM, gram=gram)(counts, sums) for gram in ("limit", "counts")), strict=True
    ):
        np.testing.assert_allclose(limit, exact, rtol=1e-9, atol=1e-12)


def test_nothing_seen_gives_a_regular_estimate():
    for gram in ("counts", "limit"):
        seen = estimator(UNEQUAL, gram=gram)(jnp.zeros(UNEQUAL.weights.size, int), jnp.zeros(UNEQUAL.weights.size))
        assert np.all(np.isfinite(seen.inverse))
        assert seen.theta.tolist() == [0] * N


# When the rules are tested


@pytest.mark.parametrize("factory", [saqm, icb])
def test_the_first_test_is_after_one_pull_each_or_later(factory):
    for first, pulls in ((None, 8), (8, 8), (50, 50)):
        algorithm = factory(UNIFORM, K, **SETTINGS, first_test=first)
        state = algorithm.init(KEY)
        decision = algorithm.decide(KEY, state)
        assert not decision.stop
        np.testing.assert_array_equal(decision.action.counts, tracking_counts(UNIFORM, pulls))
    # Whatever is seen before, it is not a stop.
    sums = 2 * UNIFORM.support @ jnp.array([1e3, 1e3, 1e3, 0.0, 0.0])
    state = State(jnp.full(8, 2), sums, jnp.asarray(16))
    for first, stop in ((16, True), (17, False)):
        algorithm = factory(UNIFORM, K, **SETTINGS, first_test=first)
        assert algorithm.decide(KEY, state).stop == stop
    assert factory(UNIFORM, K, **SETTINGS, first_test=17).decide(KEY, state).action.counts.sum() == 1


@every_rule
def test_the_limit_is_tested_after_whole_cycles_and_stops_at_the_first_that_holds(factory):
    tape = rewards(THETA, UNIFORM.support, 500, 0, scale=0.3)
    # Of the rule from counts, tested after every pull, only the tests after whole cycles count.
    algorithm = factory(UNIFORM, K, **SETTINGS, resolution=None)
    decide = jax.jit(algorithm.decide)
    sums = jnp.cumsum(tape, axis=1)
    for cycles in range(1, 500):
        state = State(jnp.full(8, cycles), sums[:, cycles - 1], jnp.asarray(8 * cycles))
        if decide(KEY, state).stop:
            break
    end, answer = follower(factory, uniform, gram="limit", resolution=0.0)(tape)
    assert end.pulls == 8 * cycles > 80
    np.testing.assert_array_equal(answer, decide(KEY, state).answer)


def test_one_pull_at_a_time_is_the_tracking_rule_in_both_grams():
    tape = rewards(THETA, UNEQUAL.support, 100, 1, scale=0.3)
    for gram in ("counts", "limit"):
        algorithm = icb(UNEQUAL, K, **SETTINGS, resolution=None, gram=gram)
        for state in every_state(algorithm, tape, 40)[1:]:
            np.testing.assert_array_equal(state.counts, tracking_counts(UNEQUAL, state.pulls))


def test_pulls_beyond_the_integers_are_not_begun():
    largest = jnp.iinfo(int).max
    for pulls, stride, block in ((largest - 100, 80, 80), (largest - 100, 99, 0), (largest, 1, 0)):
        state = State(tracking_counts(UNIFORM, pulls), jnp.zeros(8), jnp.asarray(pulls))
        assert next_counts(UNIFORM, state, jnp.asarray(stride), whole_cycles=False).sum() == block


def test_blocks_end_on_whole_cycles_of_uniform_designs_only():
    for design, sizes in ((UNIFORM, {1: 3, 3: 3, 4: 11}), (UNEQUAL, {1: 1, 3: 3, 4: 4})):
        state = State(tracking_counts(design, 21), jnp.zeros(design.weights.size), jnp.asarray(21))
        for stride, size in sizes.items():
            assert next_counts(design, state, jnp.asarray(stride), whole_cycles=True).sum() == size


# Laws


@every_rule_and_gram
def test_permuting_the_arms_permutes_the_answer(factory, gram):
    order = jnp.array([3, 0, 4, 1, 2])
    permuted = Design(
        UNIFORM.support[:, order],
        UNIFORM.weights,
        UNIFORM.cycle,
        UNIFORM.gram[order][:, order],
        UNIFORM.inverse[order][:, order],
        UNIFORM.spectral,
        UNIFORM.condition,
    )
    tape = rewards(THETA, UNIFORM.support, 500, 2, scale=0.3)
    state, answer = follower(factory, uniform, gram=gram)(tape)
    algorithm = factory(permuted, K, **SETTINGS, gram=gram)
    other, _ = jax.jit(lambda tape: follow(algorithm, tape, 5000))(tape)
    assert other.pulls == state.pulls > 50
    np.testing.assert_array_equal(algorithm.decide(KEY, other).answer, answer[order])


@every_rule
def test_a_constant_added_to_all_means_changes_nothing(factory):
    tape = rewards(THETA, UNEQUAL.support, 500, 3, scale=0.3)
    end = follower(factory, unequal)
    (state, answer), (other, other_answer) = end(tape), end(tape + 2.0 * K)
    assert other.pulls == state.pulls > 50
    np.testing.assert_array_equal(answer, other_answer)


@every_rule
def test_the_unit_of_reward_does_not_matter(factory):
    tape = rewards(THETA, UNEQUAL.support, 500, 4, scale=0.3)
    state, _ = follower(factory, unequal, stride_variance=1.0)(tape)
    scaled = follower(factory, unequal, epsilon=1.2, sigma=1.6, stride_variance=16.0)(4 * tape)[0]
    assert scaled.pulls == state.pulls > 50


# Tracers


@every_rule_and_gram
def test_designs_and_hyperparameters_may_be_stacked(factory, gram):
    designs = [UNIFORM, make_design(random_support(6, N, K, size=8), K), UNEQUAL]
    tapes = [rewards(THETA, design.support, 500, i, scale=0.3) for i, design in enumerate(designs)]
    numbers = jnp.array([[0.1, 0.3, 0.4], [0.05, 0.4, 0.3], [0.2, 0.5, 0.2]])

    def pulls(design, numbers, tape):
        delta, epsilon, sigma = numbers
        algorithm = factory(design, K, delta=delta, epsilon=epsilon, sigma=sigma, gram=gram)
        return follow(algorithm, tape, 5000)[0].pulls

    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *designs)
    batched = jax.jit(jax.vmap(pulls))(stacked, numbers, jnp.stack(tapes))
    single = jax.jit(pulls)
    assert batched.tolist() == [int(single(*case)) for case in zip(designs, numbers, tapes, strict=True)]
    assert batched[0] == follower(factory, uniform, gram=gram)(tapes[0])[0].pulls


@pytest.mark.parametrize("options", [{}, {"gram": "limit"}, {"alpha": "exact"}, {"alpha": "theorem1"}])
def test_no_lapack_call(options):
    def end(design, key):
        environment = gaussian(Instance(THETA, K), UNEQUAL)
        return run(key, saqm(design, K, **SETTINGS, **options), environment, max_rounds=10)

    assert "lapack" not in jax.jit(end).lower(UNEQUAL, KEY).as_text()


# float32


@every_rule
def test_float32_stays_float32_and_stops_near_float64(factory):
    tape = rewards(THETA, UNEQUAL.support, 500, 5, scale=0.01)
    exact, _ = follower(factory, unequal)(tape)
    design = make_design(random_support(5, N, K, size=8), K, weights=SHARES, dtype=jnp.float32)
    algorithm = factory(design, K, **SETTINGS)
    state, _ = jax.jit(lambda tape: follow(algorithm, tape, 5000))(tape.astype(jnp.float32))
    assert state.sums.dtype == jnp.float32
    np.testing.assert_allclose(state.pulls, exact.pulls, rtol=0.02)


# Bad arguments


@every_rule
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.0}, "delta must lie in (0, 1), got 0.0"),
        ({"delta": 1.0}, "delta must lie in (0, 1), got 1.0"),
        ({"epsilon": -0.1}, "epsilon must be at least 0, got -0.1"),
        ({"sigma": 0.0}, "sigma must be positive, got 0.0"),
        ({"first_test": 7}, "first_test must be at least 8, one pull each, got 7"),
        ({"resolution": -1e-3}, "resolution must be at least 0, or None, got -0.001"),
        ({"stride_z": 0.0}, "stride_z must be positive, got 0.0"),
        ({"stride_variance": 0.0}, "stride_variance must be positive, got 0.0"),
        ({"gram": "exact"}, "gram must be one of ('counts', 'limit'), got 'exact'"),
    ],
)
def test_bad_arguments(factory, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        factory(UNIFORM, K, **(SETTINGS | options))


@every_rule
@pytest.mark.parametrize("k", [1, 2, 5])
def test_another_k_than_the_design_has(factory, k):
    with pytest.raises(ValueError, match=r"^k must .*, got " + str(k)):
        factory(UNIFORM, k, **SETTINGS)


@every_rule
def test_float32_with_an_ill_conditioned_design(factory):
    with pytest.raises(ValueError, match="design must be float64 where its condition exceeds 1000"):
        factory(
            jax.tree.map(
                lambda x: x.astype(jnp.float32) if x.dtype == jnp.float64 else x,
                UNIFORM._replace(condition=jnp.asarray(2e3)),
            ),
            K,
            **SETTINGS,
        )
