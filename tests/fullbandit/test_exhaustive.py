"""Exhaustive rule against worked numbers, a plain transcription, and enumeration."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
from drivers.fullbandit import KEY, every_state, rewards
from drivers.rules import verdict_of

from experiments.bench.reference import fullbandit as reference
from jaxbandits.fullbandit import (
    all_superarms,
    ellipsoid_radius,
    exhaustive,
    exhaustive_rule,
    make_design,
    random_support,
)
from jaxbandits.fullbandit._shared.enumeration import superarm_table

PAIRS = make_design(all_superarms(3, 2), 2)
THETA3 = jnp.array([1.0, 0.5, 0.0])
ROOTS = np.sqrt([5, 11, 17, 7, 13, 19, 3, 23])  # shares for which no two ratios of count to share ever tie
DESIGN = make_design(random_support(5, 5, 3, size=8), 3, weights=ROOTS / ROOTS.sum())


def random_case(seed, n=6):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    return jnp.asarray(root @ root.T / 200), jnp.asarray(rng.normal(size=n))


# The rule


def test_equation_5_by_hand():
    # C = 1 and |chi_M - chi_M^|^2 = 6 / 12: -0.5 + sqrt(0.5).
    scale = 1 / float(ellipsoid_radius(12.0, 3, 2, 0.05, 1.0))
    verdict = verdict_of(
        exhaustive_rule, PAIRS.inverse / 12, THETA3, 12, k=2, delta=0.05, epsilon=0.0, noise_scale=scale
    )
    np.testing.assert_allclose([verdict.radius, -verdict.margin], [1.0, 0.2071068], atol=5e-8)


@pytest.mark.parametrize(("t", "stop"), [(3861.987, False), (3861.989, True)])
def test_the_stop_by_hand(t, stop):
    # t = 6 C^2.
    verdict = verdict_of(exhaustive_rule, PAIRS.inverse / t, THETA3, t, k=2, delta=0.05, epsilon=0.5)
    assert verdict.stop == stop
    assert verdict.answer.tolist() == [True, True, False]


def test_a_lead_of_exactly_epsilon_does_not_stop():
    theta = jnp.array([1.0, 0.5, 0.5])
    assert not verdict_of(exhaustive_rule, jnp.zeros((3, 3)), theta, 10, k=2, delta=0.1, epsilon=0.0).stop
    assert verdict_of(exhaustive_rule, jnp.zeros((3, 3)), theta, 10, k=2, delta=0.1, epsilon=0.01).stop


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_the_rule_against_enumeration(seed, k):
    inverse, theta = random_case(seed)
    verdict = verdict_of(exhaustive_rule, inverse, theta, 50, k=k, delta=0.1, epsilon=0.3, noise_scale=0.1)
    value = reference.largest_lead(np.asarray(inverse), np.asarray(theta), float(verdict.radius), k)
    np.testing.assert_allclose(verdict.margin, 0.3 - value, rtol=1e-12)
    assert tuple(np.flatnonzero(verdict.answer)) == reference.best(np.asarray(theta), k)


def leads(rows, best, inverse, theta, radius):
    """Computes the leads that equation (5) maximises, of every row except the best."""
    changes = rows[np.any(rows != best, axis=1)].astype(float) - best
    return changes @ theta + radius * np.sqrt(np.einsum("mi,ij,mj->m", changes, inverse, changes))


@pytest.mark.parametrize("seed", range(3))
def test_more_super_arms_than_one_chunk_holds(seed):
    inverse, theta = random_case(seed, n=16)
    rows = all_superarms(16, 5)
    assert superarm_table(16, 5).shape == (2, 4096, 16)
    verdict = verdict_of(exhaustive_rule, inverse, theta, 50, k=5, delta=0.1, epsilon=0.3, noise_scale=0.1)
    every = leads(rows, np.asarray(verdict.answer), np.asarray(inverse), np.asarray(theta), float(verdict.radius))
    np.testing.assert_allclose(verdict.margin, 0.3 - every.max(), rtol=1e-12)


def test_a_class_of_super_arms():
    inverse, theta = random_case(11)
    settings = {"k": 3, "delta": 0.1, "epsilon": 0.3, "noise_scale": 0.1}
    rows = all_superarms(6, 3)
    np.testing.assert_array_equal(
        verdict_of(exhaustive_rule, inverse, theta, 50, superarms=rows, **settings).margin,
        verdict_of(exhaustive_rule, inverse, theta, 50, **settings).margin,
    )
    chosen = rows[[1, 4, 5, 9, 13, 16, 18]].astype(int)
    verdict = verdict_of(exhaustive_rule, inverse, theta, 50, superarms=chosen, **settings)
    best = max(chosen, key=lambda row: row @ np.asarray(theta))
    np.testing.assert_array_equal(verdict.answer, best.astype(bool))
    some = leads(chosen, best, np.asarray(inverse), np.asarray(theta), float(verdict.radius))
    np.testing.assert_allclose(verdict.margin, 0.3 - some.max(), rtol=1e-12)
    assert verdict.margin != verdict_of(exhaustive_rule, inverse, theta, 50, **settings).margin


def test_the_best_set_of_a_class_may_lie_in_its_last_chunk():
    rows = all_superarms(16, 5)
    theta = jnp.arange(16.0)
    verdict = verdict_of(exhaustive_rule, np.eye(16) / 1e6, theta, 50, k=5, delta=0.1, epsilon=0.3, superarms=rows)
    np.testing.assert_array_equal(verdict.answer, theta >= 11)


def test_the_table_holds_every_row_and_fills_up_with_the_last():
    table = superarm_table(16, 5).reshape(-1, 16)
    np.testing.assert_array_equal(table[:4368], all_superarms(16, 5))
    assert np.all(table[4368:] == table[4367])


# The algorithm


def test_the_answer_lies_in_the_class():
    rows = all_superarms(5, 3)[[0, 3, 8]]
    algorithm = exhaustive(DESIGN, delta=0.1, epsilon=0.4, noise_scale=0.1 / 3, superarms=rows)
    theta = jnp.array([0.0, 0.3, 0.6, 0.7, 0.5])  # means whose best three arms are no set of the class
    last = every_state(algorithm, rewards(theta, DESIGN.support, 200, 3, scale=0.1), 1000)[-1]
    decision = algorithm.decide(KEY, last)
    assert decision.stop
    np.testing.assert_array_equal(decision.answer, rows[2])


@pytest.mark.parametrize(
    ("superarms", "message"),
    [
        (np.eye(5), "superarms must have k = 3 arms each"),
        (np.ones((4, 4)), "superarms must be an array of real numbers of shape (K, 5), got"),
        (2 * all_superarms(5, 3), "superarms must have entries 0 and 1"),
        (all_superarms(5, 3)[:1], "superarms must number 2..5000000, got 1"),
        (all_superarms(5, 3)[[0, 1, 0]], "superarms must have no two equal rows"),
    ],
)
def test_bad_classes_are_refused(superarms, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        exhaustive(DESIGN, delta=0.1, epsilon=0.1, superarms=superarms)


def test_too_many_superarms_are_refused():
    with pytest.raises(ValueError, match="at most 5000000 super-arms, got 254186856"):
        exhaustive(make_design(random_support(0, 36, 10), 10), delta=0.1, epsilon=0.1)
