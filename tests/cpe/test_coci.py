"""COCI without noise, and problems on which the two-call test fails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.cpe import best, best_of_concave, follow, hold_variance

import jaxbandits
from jaxbandits import cpe


def test_coci_without_noise_by_hand():
    # n = 64: the radii sum to 1.0052, more than the gap; n = 65: 0.9989.
    assert follow(cpe.coci(cpe.best_arm(2), delta=0.1), [1.0, 0.0])[0].statistics.counts.tolist() == [33, 32]
    state, rounds, answer = follow(cpe.coci(cpe.best_arm(3), delta=0.1), [1.0, 0.5, 0.0])
    assert (rounds, state.statistics.counts.tolist(), answer) == (380, [173, 172, 35], [1, 0, 0])


TARGETS = {
    "best5": [874, 873, 590, 191, 77],
    "top2of6": [323, 812, 811, 489, 174, 118],
    "water3": [1378, 1378, 98],
    "sites5": [320, 248, 247, 319, 319],
    "osa4": [395, 3002, 3001, 273],
    "paths5": [119, 119, 276, 275, 327, 327, 326],
    "trees5": [157, 870, 870, 194, 422],
    "matching3": [267, 246, 267, 267, 632, 632, 246, 632, 632],
}


@pytest.mark.parametrize("name", TARGETS)
def test_coci_without_noise_makes_the_known_pulls(name):
    instance = getattr(cpe, name)()
    estimator = "variance" if instance.tau == 2 else "mean"
    algorithm = cpe.coci(instance.problem, delta=0.1, estimator=estimator)
    hold = hold_variance(instance.theta) if instance.tau == 2 else lambda state: state
    state, rounds, answer = follow(algorithm, instance.theta, hold=hold)
    assert state.statistics.counts.tolist() == TARGETS[name]
    assert state.pulls == rounds == sum(TARGETS[name])
    assert answer == best(instance.problem, instance.theta).tolist()


def test_a_bridge_is_pulled_once():
    problem = cpe.st_paths([(0, 1), (1, 2), (1, 2)], 0, 2)
    state, _, answer = follow(cpe.coci(problem, delta=0.1), [0.5, 0.7, 0.3])
    counts = state.statistics.counts.tolist()
    assert (counts[0], answer) == (1, [1, 1, 0])
    assert counts[1] > 100


# Problems that are not bi-monotone, although the oracle promises it: two calls per arm are not enough


def test_two_call_on_disjoint_paths_never_stops():
    problem = cpe.st_paths([(0, 1), (1, 3), (0, 2), (2, 3)], 0, 3)
    theta = [0.7, 0.7, 0.5, 0.5]
    state, rounds, answer = follow(cpe.coci(problem, delta=0.1), theta)
    assert (rounds, state.statistics.counts.tolist(), answer) == (5953, [1489, 1488, 1488, 1488], [1, 1, 0, 0])
    false_promise = cpe.oracle(lambda theta: cpe.solve(problem, theta), 4, bi_monotone=True)
    state, rounds, _ = follow(cpe.coci(false_promise, delta=0.1), theta)
    assert (rounds, state.statistics.counts.tolist()) == (20_000, [9687, 9687, 313, 313])


def test_two_call_on_concave_costs_never_stops():
    false_promise = cpe.oracle(best_of_concave, 3, bi_monotone=True)
    state, rounds, _ = follow(cpe.coci(false_promise, delta=0.1), [0.7, 0.7, 0.4])
    assert (rounds, state.statistics.counts.tolist()) == (20_000, [181, 181, 19638])


def test_bi_monotone_oracle_makes_the_pulls_of_its_table():
    instance = cpe.top2of6()
    oracle = cpe.oracle(lambda theta: cpe.solve(instance.problem, theta), 6, bi_monotone=True)
    state, _, _ = follow(cpe.coci(oracle, delta=0.1), instance.theta)
    assert state.statistics.counts.tolist() == TARGETS["top2of6"]


# Runs


def outcomes(instance, seeds, **settings):
    """Returns the outcomes of runs with fresh samples."""

    def run(key):
        estimator = "variance" if instance.tau == 2 else "mean"
        algorithm = cpe.coci(instance.problem, delta=0.1, estimator=estimator, **settings)
        environment = cpe.environment(instance, algorithm)
        return jaxbandits.run(key, algorithm, environment, max_rounds=5000, chunk=64)

    keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(11), jnp.arange(seeds))
    outcome = jax.jit(jax.vmap(run))(keys)
    assert (outcome.status == jaxbandits.Status.STOPPED).all()
    return outcome


def test_small_radii_make_errors_at_the_known_rate():
    outcome = outcomes(cpe.best5(), 500, radius_scale=0.18, observations="binary")
    # Measured with another program, 1000 runs: .13 wrong, 36 pulls. Bounds of four standard errors of both together.
    wrong = float(jnp.mean(outcome.answer[:, 0] == 0))
    assert abs(wrong - 0.13) < 0.05
    assert abs(float(outcome.pulls.mean()) - 36) < 4 * 68 * np.sqrt(1 / 1000 + 1 / 500)


@pytest.mark.slow
def test_mean_pulls_of_opinion_sampling():
    # Measured with another program, 400 runs: 6672 with a standard error of 1. A run has a standard deviation of 20.
    outcome = outcomes(cpe.osa4(), 32, leap=32)
    assert abs(float(outcome.pulls.mean()) - 6672) < 6 * np.sqrt(20**2 / 32 + 1)
    assert (np.asarray(outcome.answer) == [0, 1, 2, 0]).all()


def test_float32_stops_at_the_same_time():
    problem = cpe.best_arm(3, dtype=jnp.float32)
    state, rounds, _ = follow(cpe.coci(problem, delta=0.1), jnp.float32([1.0, 0.5, 0.0]))
    assert (rounds, state.statistics.counts.tolist()) == (380, [173, 172, 35])
    assert state.statistics.sums.first.total.dtype == jnp.float32


@pytest.mark.parametrize(
    ("problem", "changes", "message"),
    [
        (cpe.OpinionSampling(jnp.ones(3), 50), {}, "estimator must be 'variance' for opinion sampling"),
        (
            cpe.oracle(lambda theta: (theta > 0).astype(int), 2, bi_monotone=False),
            {},
            r"problem must be bi-monotone for the two-call test \(for a small class use enumerated",
        ),
    ],
)
@pytest.mark.parametrize("factory", [cpe.coci, cpe.uniform])
def test_bad_input(factory, problem, changes, message):
    with pytest.raises(ValueError, match=message):
        factory(problem, **({"delta": 0.1} | changes))
