"""Frame of the rules: the estimate, the times of the tests, symmetries, and bad arguments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.fullbandit import KEY, every_state, follow, rewards
from drivers.programs import compiled

from jaxbandits.engine.run.loop import run
from jaxbandits.fullbandit import (
    Instance,
    Pace,
    State,
    environment,
    estimator,
    exhaustive,
    icb,
    make_design,
    random_support,
    sa_foa,
    saqm,
    spectral,
    top_set,
    tracking_counts,
)
from jaxbandits.fullbandit._shared.tracking import next_counts

N, K = 5, 3
THETA = jnp.array([0.9, 0.2, 0.7, -0.5, 0.4])
UNIFORM = make_design(random_support(4, N, K, size=8), K)
SHARES = np.array([4, 7, 9, 5, 6, 8, 3, 10]) / 52
UNEQUAL = make_design(random_support(5, N, K, size=8), K, weights=SHARES)
SETTINGS = {"delta": 0.1, "epsilon": 0.3, "noise_scale": 0.4 / 3}
DEFAULT, LIMIT = Pace(), Pace(design_matrix="limit")
RULES = {"saqm": saqm, "icb": icb, "exhaustive": exhaustive, "spectral": spectral}
every_rule_and_matrix = pytest.mark.parametrize(
    ("factory", "matrix"),
    [
        pytest.param(
            factory, matrix, id=f"{name}-{matrix}", marks=[] if name in ("saqm", "sa_foa") else [pytest.mark.wide]
        )
        for name, factory in (RULES | {"sa_foa": sa_foa}).items()
        for matrix in ("counts", "limit")
        if name in ("saqm", "spectral") or matrix == "counts"
    ],
)
every_rule = pytest.mark.parametrize(
    "factory",
    [
        pytest.param(factory, id=name, marks=[] if name in ("saqm", "icb") else [pytest.mark.wide])
        for name, factory in RULES.items()
    ],
)


@compiled
def ended(factory):
    """Returns (design, tape, pace, settings) -> (state, answer) of a run; all designs of this file have one shape."""

    def end(design, tape, pace, settings):
        algorithm = factory(design, pace=pace, **settings)
        state, _ = follow(algorithm, tape, 5000)
        return state, algorithm.decide(KEY, state).answer

    return end


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
    estimate = estimator(design)(jnp.asarray(counts), jnp.asarray(sums))
    np.testing.assert_allclose(estimate.inverse, np.linalg.inv(A), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(estimate.theta, np.linalg.solve(A, X.T @ sums), rtol=1e-9)
    np.testing.assert_allclose(estimate.level, np.min(counts / np.asarray(design.weights)))


@pytest.mark.parametrize("design", [UNIFORM, UNEQUAL], ids=["uniform", "unequal"])
def test_the_limit_is_unbiased_and_safe_whatever_the_counts(design):
    rng = np.random.default_rng(1)
    X, p = np.asarray(design.support), np.asarray(design.weights)
    for _ in range(5):
        counts = rng.integers(1, 50, p.size)
        sums = jnp.asarray(counts * (X @ np.asarray(THETA)))
        estimate = estimator(design, design_matrix="limit")(jnp.asarray(counts), sums)
        np.testing.assert_allclose(estimate.theta, THETA, rtol=1e-9)
        # The covariance of the estimate, for noise of variance 1, is at most its `inverse`.
        weights = np.asarray(design.inverse) @ X.T * p
        excess = np.asarray(estimate.inverse) - weights / counts @ weights.T
        assert np.linalg.eigvalsh(excess).min() > -1e-12


def test_the_limit_is_least_squares_after_whole_cycles():
    counts = jnp.full(8, 7)
    sums = jnp.asarray(np.random.default_rng(2).normal(size=8))
    for limit, exact in zip(
        *(estimator(UNIFORM, design_matrix=matrix)(counts, sums) for matrix in ("limit", "counts")), strict=True
    ):
        np.testing.assert_allclose(limit, exact, rtol=1e-9, atol=1e-12)


def test_estimate_before_the_first_pull_is_regular():
    for matrix in ("counts", "limit"):
        estimate = estimator(UNEQUAL, design_matrix=matrix)(
            jnp.zeros(UNEQUAL.weights.size, int), jnp.zeros(UNEQUAL.weights.size)
        )
        assert np.all(np.isfinite(estimate.inverse))
        assert estimate.theta.tolist() == [0] * N


# Times of the tests


@pytest.mark.parametrize("factory", [saqm, icb])
def test_the_first_test_is_after_one_pull_each_or_later(factory):
    for first, pulls in ((None, 8), (8, 8), (50, 50)):
        algorithm = factory(UNIFORM, **SETTINGS, pace=Pace(first_test=first))
        state = algorithm.init(KEY)
        decision = algorithm.decide(KEY, state)
        assert not decision.stop
        np.testing.assert_array_equal(decision.action.counts, tracking_counts(UNIFORM, pulls))
    # Before the first test no observation stops the run.
    sums = 2 * UNIFORM.support @ jnp.array([1e3, 1e3, 1e3, 0.0, 0.0])
    state = State(jnp.asarray(16), jnp.full(8, 2), sums)
    for first, stop in ((16, True), (17, False)):
        algorithm = factory(UNIFORM, **SETTINGS, pace=Pace(first_test=first))
        assert algorithm.decide(KEY, state).stop == stop
    assert factory(UNIFORM, **SETTINGS, pace=Pace(first_test=17)).decide(KEY, state).action.counts.sum() == 1


@every_rule
def test_the_limit_is_tested_after_whole_cycles_and_stops_at_the_first_that_holds(factory):
    tape = rewards(THETA, UNIFORM.support, 500, 0, scale=0.3)
    # The rule from counts, tested only after whole cycles.
    algorithm = factory(UNIFORM, **SETTINGS, pace=Pace(growth=None))
    decide = jax.jit(algorithm.decide)
    sums = jnp.cumsum(tape, axis=1)
    for cycles in range(1, 500):
        state = State(jnp.asarray(8 * cycles), jnp.full(8, cycles), sums[:, cycles - 1])
        if decide(KEY, state).stop:
            break
    end, answer = ended(factory)(UNIFORM, tape, LIMIT._replace(growth=0.0), SETTINGS)
    assert end.pulls == 8 * cycles > 80
    np.testing.assert_array_equal(answer, decide(KEY, state).answer)


def test_one_pull_at_a_time_is_the_tracking_rule_with_both_matrices():
    tape = rewards(THETA, UNEQUAL.support, 100, 1, scale=0.3)
    for matrix in ("counts", "limit"):
        algorithm = icb(UNEQUAL, **SETTINGS, pace=Pace(growth=None, design_matrix=matrix))
        for state in every_state(algorithm, tape, 40)[1:]:
            np.testing.assert_array_equal(state.counts, tracking_counts(UNEQUAL, state.pulls))


def test_pulls_beyond_the_integers_are_not_made():
    largest = jnp.iinfo(int).max
    for pulls, leap, made in ((largest - 100, 80, 80), (largest - 100, 99, 0), (largest, 1, 0)):
        state = State(jnp.asarray(pulls), tracking_counts(UNIFORM, pulls), jnp.zeros(8))
        assert next_counts(UNIFORM, state, jnp.asarray(leap), whole_cycles=False).sum() == made


def test_leaps_end_on_whole_cycles_of_uniform_designs_only():
    for design, sizes in ((UNIFORM, {1: 3, 3: 3, 4: 11}), (UNEQUAL, {1: 1, 3: 3, 4: 4})):
        state = State(jnp.asarray(21), tracking_counts(design, 21), jnp.zeros(design.weights.size))
        for leap, size in sizes.items():
            assert next_counts(design, state, jnp.asarray(leap), whole_cycles=True).sum() == size


# Tracers


@every_rule_and_matrix
def test_designs_and_hyperparameters_may_be_stacked(factory, matrix):
    designs = [UNIFORM, make_design(random_support(6, N, K, size=8), K), UNEQUAL]
    tapes = [rewards(THETA, design.support, 500, i, scale=0.3) for i, design in enumerate(designs)]
    numbers = {"delta": [0.1, 0.05, 0.2], "epsilon": [0.3, 0.4, 0.5], "noise_scale": [0.4 / 3, 0.1, 0.2 / 3]}
    pace = Pace(design_matrix=matrix)
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *designs)
    rows = {name: np.array(values) for name, values in numbers.items()}
    batched, _ = jax.vmap(ended(factory), (0, 0, None, 0))(stacked, np.stack(tapes), pace, rows)
    for row, (design, tape) in enumerate(zip(designs, tapes, strict=True)):
        single, _ = ended(factory)(design, tape, pace, {name: values[row] for name, values in numbers.items()})
        assert batched.pulls[row] == single.pulls


@pytest.mark.parametrize(
    "options", [{}, {"pace": Pace(design_matrix="limit")}, {"alpha": "exact"}, {"alpha": "theorem1"}]
)
def test_no_lapack_call(options):
    def end(design, key):
        answers = environment(Instance(THETA, K), UNEQUAL)
        return run(key, saqm(design, **SETTINGS, **options), answers, max_rounds=10)

    assert "lapack" not in jax.jit(end).lower(UNEQUAL, KEY).as_text()


# float32


@every_rule
def test_float32_stays_float32_and_stops_near_float64(factory):
    tape = rewards(THETA, UNEQUAL.support, 500, 5, scale=0.01)
    exact, _ = ended(factory)(UNEQUAL, tape, DEFAULT, SETTINGS)
    design = make_design(random_support(5, N, K, size=8), K, weights=SHARES, dtype=jnp.float32)
    state, _ = ended(factory)(design, tape.astype(jnp.float32), DEFAULT, SETTINGS)
    assert state.sums.dtype == jnp.float32
    np.testing.assert_allclose(state.pulls, exact.pulls, rtol=0.02)


# Bad arguments


@every_rule
def test_first_test_before_every_superarm_is_pulled_is_refused(factory):
    with pytest.raises(ValueError, match="pace.first_test must be an integer of at least 8, got 7"):
        factory(UNIFORM, **(SETTINGS | {"pace": Pace(first_test=7)}))
