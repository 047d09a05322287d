"""Spectral rule against worked numbers, a plain transcription, and the rule that it bounds."""

import jax.numpy as jnp
import numpy as np
import pytest
from drivers.fullbandit import every_state, rewards
from drivers.rules import verdict_of

from jaxbandits.fullbandit import (
    Pace,
    State,
    all_superarms,
    estimator,
    exhaustive,
    exhaustive_rule,
    make_design,
    random_support,
    spectral,
    spectral_rule,
)

PAIRS = make_design(all_superarms(3, 2), 2)
THETA3 = jnp.array([1.0, 0.5, 0.0])
ROOTS = np.sqrt([5, 11, 17, 7, 13, 19, 3, 23])  # shares for which no two ratios of count to share ever tie
DESIGN = make_design(random_support(5, 5, 3, size=8), 3, weights=ROOTS / ROOTS.sum())


# The rule


@pytest.mark.parametrize(("t", "stop"), [(3861.987, False), (3861.989, True)])
def test_the_stop_by_hand(t, stop):
    # Lambda^-1 is 3 orthogonally to the constants, so one swap has |y|^2 = 6 / t: the exhaustive rule.
    verdict = verdict_of(spectral_rule, PAIRS.spectral / t, THETA3, t, k=2, delta=0.05, epsilon=0.5)
    assert verdict.stop == stop
    assert verdict.answer.tolist() == [True, True, False]


def test_the_value_by_hand():
    # Losses 0.1 and 0.1 + 0.5 after one and two swaps, widths C sqrt(2 L) and C sqrt(4 L).
    theta = jnp.array([0.8, 0.5, 0.4, 0.3])
    for eigenvalue in (1e-4, 1e-1):
        verdict = verdict_of(spectral_rule, eigenvalue, theta, 50, k=2, delta=0.1, epsilon=0.0, noise_scale=0.5)
        width = float(verdict.radius) * np.sqrt(2 * eigenvalue)
        np.testing.assert_allclose(verdict.margin, -max(width - 0.1, np.sqrt(2) * width - 0.6), rtol=1e-12)


def test_a_lead_of_exactly_epsilon_does_not_stop():
    theta = jnp.array([1.0, 0.5, 0.5])
    assert not verdict_of(spectral_rule, 0.0, theta, 10, k=2, delta=0.1, epsilon=0.0).stop
    assert verdict_of(spectral_rule, 0.0, theta, 10, k=2, delta=0.1, epsilon=0.01).stop


@pytest.mark.parametrize("seed", range(3))
def test_spectral_equals_exhaustive_on_the_uniform_design_of_all_superarms(seed):
    design = make_design(all_superarms(6, 3), 3)
    theta = jnp.asarray(np.random.default_rng(seed).normal(size=6))
    settings = {"k": 3, "delta": 0.1, "epsilon": 0.1, "noise_scale": 1 / 3}
    bound = verdict_of(spectral_rule, design.spectral / 70, theta, 70, **settings)
    # Enumeration gives the exact value, and every width depends only on its number of swaps.
    np.testing.assert_allclose(
        bound.margin, verdict_of(exhaustive_rule, design.inverse / 70, theta, 70, **settings).margin, rtol=1e-9
    )


# The algorithm


@pytest.mark.parametrize("design_matrix", ["counts", "limit"])
def test_level_bounds_the_eigenvalue_of_the_counts(design_matrix):
    centring = np.eye(5) - 1 / 5
    for counts in ([8, 2, 3, 4, 5, 6, 7, 8], [100, 90, 10, 20, 30, 40, 50, 60]):
        counts = np.array(counts)
        estimate = estimator(DESIGN, design_matrix=design_matrix)(jnp.asarray(counts), jnp.zeros(counts.size))
        A = np.asarray(DESIGN.support).T @ np.diag(counts) @ np.asarray(DESIGN.support)
        eigenvalue = np.linalg.eigvalsh(centring @ np.linalg.inv(A) @ centring)[-1]
        assert eigenvalue <= float(DESIGN.spectral / estimate.level) + 1e-12


def test_spectral_needs_more_pulls_than_exhaustive_on_the_same_rewards():
    tape = rewards(jnp.array([0.8, 0.1, 0.6, 0.2, 0.5]), DESIGN.support, 400, 4, scale=0.3)
    settings = {"delta": 0.1, "epsilon": 0.4, "noise_scale": 0.25 / 3, "pace": Pace(growth=0.0)}
    bound, exact = (every_state(rule(DESIGN, **settings), tape, 2000)[-1] for rule in (spectral, exhaustive))
    assert exact.pulls <= bound.pulls <= 3 * exact.pulls
    assert isinstance(bound, State)
