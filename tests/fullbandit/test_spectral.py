"""The spectral rule against worked numbers, a plain transcription, and the rule that it bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import fullbandit as reference
from reference.tape import KEY, every_state, rewards

from jaxbandits.fullbandit.design import all_superarms, make_design, random_support
from jaxbandits.fullbandit.exhaustive import exhaustive, exhaustive_rule
from jaxbandits.fullbandit.spectral import spectral, spectral_rule
from jaxbandits.fullbandit.state import State, estimator

PAIRS = make_design(all_superarms(3, 2), 2)
THETA3 = jnp.array([1.0, 0.5, 0.0])
ROOTS = np.sqrt([5, 11, 17, 7, 13, 19, 3, 23])  # no two counts over shares ever tie
DESIGN = make_design(random_support(5, 5, 3, size=8), 3, weights=ROOTS / ROOTS.sum())


# The rule


@pytest.mark.parametrize(("t", "stop"), [(3861.987, False), (3861.989, True)])
def test_the_stop_by_hand(t, stop):
    # Lambda^-1 is 3 off the constants, so one swap has |y|^2 = 6 / t: the exhaustive rule.
    look = spectral_rule(PAIRS.spectral / t, THETA3, t, k=2, delta=0.05, epsilon=0.5, sigma=2.0)
    assert look.stop == stop
    assert look.answer.tolist() == [True, True, False]


def test_the_value_by_hand():
    # Losses 0.1 and 0.1 + 0.5 after one and two swaps, widths C sqrt(2 L) and C sqrt(4 L).
    theta = jnp.array([0.8, 0.5, 0.4, 0.3])
    for eigenvalue in (1e-4, 1e-1):
        look = spectral_rule(eigenvalue, theta, 50, k=2, delta=0.1, epsilon=0.0, sigma=1.0)
        width = float(look.radius) * np.sqrt(2 * eigenvalue)
        np.testing.assert_allclose(look.margin, -max(width - 0.1, np.sqrt(2) * width - 0.6), rtol=1e-12)


def test_a_value_of_epsilon_does_not_stop():
    theta = jnp.array([1.0, 0.5, 0.5])
    assert not spectral_rule(0.0, theta, 10, k=2, delta=0.1, epsilon=0.0).stop
    assert spectral_rule(0.0, theta, 10, k=2, delta=0.1, epsilon=0.01).stop


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("seed", range(6))
def test_it_bounds_the_exhaustive_rule(seed, k):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(7, 7))
    inverse, theta = root @ root.T / 200, jnp.asarray(rng.normal(size=7))
    centring = np.eye(7) - 1 / 7
    eigenvalue = np.linalg.eigvalsh(centring @ inverse @ centring)[-1]
    settings = {"k": k, "delta": 0.1, "epsilon": 0.1, "sigma": 0.3}
    bound = spectral_rule(eigenvalue, theta, 50, **settings)
    assert bound.margin <= exhaustive_rule(jnp.asarray(inverse), theta, 50, **settings).margin + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_exhaustive_rule_where_all_super_arms_are_pulled_alike(seed):
    design = make_design(all_superarms(6, 3), 3)
    theta = jnp.asarray(np.random.default_rng(seed).normal(size=6))
    settings = {"k": 3, "delta": 0.1, "epsilon": 0.1, "sigma": 1.0}
    bound = spectral_rule(design.spectral / 70, theta, 70, **settings)
    # Enumeration finds the exact value, and every width is that of its number of swaps.
    np.testing.assert_allclose(
        bound.margin, exhaustive_rule(design.inverse / 70, theta, 70, **settings).margin, rtol=1e-9
    )


# The algorithm


@pytest.mark.parametrize("gram", ["counts", "limit"])
def test_its_eigenvalue_bounds_that_of_the_counts(gram):
    centring = np.eye(5) - 1 / 5
    for counts in ([8, 2, 3, 4, 5, 6, 7, 8], [100, 90, 10, 20, 30, 40, 50, 60]):
        counts = np.array(counts)
        seen = estimator(DESIGN, gram=gram)(jnp.asarray(counts), jnp.zeros(counts.size))
        A = np.asarray(DESIGN.support).T @ np.diag(counts) @ np.asarray(DESIGN.support)
        eigenvalue = np.linalg.eigvalsh(centring @ np.linalg.inv(A) @ centring)[-1]
        assert eigenvalue <= float(DESIGN.spectral / seen.level) + 1e-12


def test_pull_by_pull_it_is_the_transcription():
    theta = jnp.array([0.8, 0.1, 0.6, 0.2, 0.5])
    tape = rewards(theta, DESIGN.support, 400, 3, scale=0.3)
    settings = {"delta": 0.1, "epsilon": 0.4, "sigma": 0.25}
    states = every_state(spectral(DESIGN, 3, resolution=None, **settings), tape, 2000)[1:]
    support, weights = np.asarray(DESIGN.support), np.asarray(DESIGN.weights)
    levels = {int(state.pulls): np.min(np.asarray(state.counts) / weights) for state in states}

    def rule(*seen):
        return reference.spectral(*seen, k=3, eigenvalue=lambda t: float(DESIGN.spectral) / levels[t], **settings)

    looks = reference.looks(support, weights, np.asarray(tape), rule, len(support))
    assert [tuple(state.counts.tolist()) for state in states] == [look.counts for look in looks]
    assert len(looks) > 20
    decide = jax.jit(spectral(DESIGN, 3, **settings).decide)
    for state, look in list(zip(states, looks, strict=True))[-20:]:
        decision = decide(KEY, state)
        assert bool(decision.stop) == look.stop
        assert tuple(np.flatnonzero(decision.answer).tolist()) == look.answer


def test_it_needs_more_pulls_than_the_exhaustive_rule_on_the_same_rewards():
    tape = rewards(jnp.array([0.8, 0.1, 0.6, 0.2, 0.5]), DESIGN.support, 400, 4, scale=0.3)
    settings = {"delta": 0.1, "epsilon": 0.4, "sigma": 0.25, "resolution": 0.0}
    bound, exact = (every_state(rule(DESIGN, 3, **settings), tape, 2000)[-1] for rule in (spectral, exhaustive))
    assert exact.pulls <= bound.pulls <= 3 * exact.pulls
    assert isinstance(bound, State)
