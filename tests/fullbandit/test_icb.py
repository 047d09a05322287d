"""ICB against worked numbers, a plain transcription, and enumeration."""

from itertools import combinations

import jax.numpy as jnp
import numpy as np
import pytest
from drivers.fullbandit import KEY, every_state, rewards
from drivers.rules import verdict_of

from experiments.bench.reference import fullbandit as reference
from jaxbandits.fullbandit import (
    Estimate,
    all_superarms,
    icb,
    icb_rule,
    make_design,
    random_support,
    top_set,
)
from jaxbandits.fullbandit._algorithms.icb import best_rival

PAIRS = make_design(all_superarms(3, 2), 2)
THETA3 = jnp.array([1.0, 0.5, 0.0])
ROOTS = np.sqrt([5, 11, 17, 7, 13, 19, 3, 23])  # shares for which no two ratios of count to share ever tie
DESIGN = make_design(random_support(5, 5, 3, size=8), 3, weights=ROOTS / ROOTS.sum())
ESTIMATE = Estimate(jnp.arange(5.0), DESIGN.inverse, jnp.ones(()))
GROUPS = jnp.array([0, 0, 1, 1, 1, 2])  # groups of a partition matroid, whose bases have one arm of each


def one_of_each(weights):
    """Returns the heaviest set with one arm of each group."""
    # A forbidden arm, of weight -inf, is taken if its group has no other.
    weights = jnp.maximum(weights, -1e300)
    best = [jnp.argmax(jnp.where(group == GROUPS, weights, -jnp.inf)) for group in range(3)]
    return jnp.zeros(6, bool).at[jnp.stack(best)].set(True)


def rival_in(sets, theta, widths):
    """Solves P1 over a class of sets by trying them all: the best set, and the largest lead of the others."""
    best = max(sets, key=lambda M: theta[list(M)].sum())
    leads = [
        theta[list(M)].sum() - theta[list(best)].sum() + sum(widths[e] for e in set(M) ^ set(best))
        for M in sets
        if best != M
    ]
    return best, max(leads)


# Problem P1


@pytest.mark.parametrize(
    ("theta", "widths", "value"),
    [
        ([0.9, 0.5, 0.4, 0.1], 0.2, 0.3),  # (0.4 + 0.2) - (0.5 - 0.2)
        ([0.9, 0.8, 0.1, 0.0], 0.05, -0.6),  # forced swap, although it loses
        ([0.5, 0.45, 0.4, 0.38], 0.1, 0.23),  # two swaps, 0.15 + 0.08
    ],
)
def test_p1_by_hand(theta, widths, value):
    answer, rival = best_rival(jnp.array(theta), jnp.full(4, widths), k=2)
    np.testing.assert_allclose(rival, value, atol=1e-12)
    assert answer.tolist() == [True, True, False, False]


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(5))
def test_p1_against_enumeration(seed, k):
    rng = np.random.default_rng(seed)
    theta, widths = rng.normal(size=6), rng.exponential(0.3, size=6)
    answer, rival = best_rival(jnp.asarray(theta), jnp.asarray(widths), k=k)
    assert tuple(np.flatnonzero(answer)) == reference.best(theta, k)
    np.testing.assert_allclose(rival, reference.best_rival(theta, widths, k), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_p1_over_all_sets_through_an_oracle(seed):
    rng = np.random.default_rng(seed)
    theta, widths = jnp.asarray(rng.normal(size=7)), jnp.asarray(rng.exponential(0.5, size=7))
    direct = best_rival(theta, widths, k=3)
    through = best_rival(theta, widths, k=3, feasible=lambda weights: top_set(weights, 3))
    np.testing.assert_array_equal(direct[0], through[0])
    np.testing.assert_allclose(direct[1], through[1], rtol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_p1_over_the_bases_of_a_matroid(seed):
    rng = np.random.default_rng(seed)
    theta, widths = rng.normal(size=6), rng.exponential(0.5, size=6)
    sets = [M for M in combinations(range(6), 3) if sorted(GROUPS[jnp.array(M)].tolist()) == [0, 1, 2]]
    best, value = rival_in(sets, theta, widths)
    answer, rival = best_rival(jnp.asarray(theta), jnp.asarray(widths), k=3, feasible=one_of_each)
    assert tuple(np.flatnonzero(answer)) == best
    np.testing.assert_allclose(rival, value, atol=1e-12)


def test_a_class_of_a_single_set_has_no_rival():
    only = jnp.array([True, True, False])
    answer, rival = best_rival(THETA3, jnp.ones(3), k=2, feasible=lambda weights: only)
    assert answer.tolist() == only.tolist()
    assert rival == -jnp.inf


# The rule


@pytest.mark.parametrize(
    ("radius", "t", "stop"),
    [
        ("lemma1", 1290.386, False),  # t = 9 C^2
        ("lemma1", 1290.388, True),
        ("ellipsoid", 6051.695, False),
        ("ellipsoid", 6051.697, True),
    ],
)
def test_the_stop_by_hand(radius, t, stop):
    assert verdict_of(icb_rule, PAIRS.inverse / t, THETA3, t, k=2, delta=0.05, epsilon=0.5, radius=radius).stop == stop


def test_the_radius_by_hand():
    verdict = verdict_of(icb_rule, PAIRS.inverse / 100, THETA3, 100, k=2, delta=0.05, epsilon=0.5)
    np.testing.assert_allclose(verdict.radius, 10.122049, atol=5e-7)  # noise scale of a pull: k


def test_a_lead_of_exactly_epsilon_does_not_stop():
    # Widths 0, so V = 0.25 - 0.5.
    options = {"k": 2, "delta": 0.1, "noise_scale": 0.5}
    theta = jnp.array([1.0, 0.5, 0.25])
    assert not verdict_of(icb_rule, jnp.zeros((3, 3)), theta[::-1].at[0].set(0.5), 10, epsilon=0.0, **options).stop
    assert verdict_of(icb_rule, jnp.zeros((3, 3)), theta, 10, epsilon=0.0, **options).stop


# The algorithm


def test_a_class_can_stop_earlier_than_all_sets():
    design = make_design(random_support(2, 6, 3, size=12), 3)
    theta = jnp.array([0.9, 0.0, 0.6, 0.0, 0.45, 0.4])  # means of which arms 4 and 5 never compete within the class
    tape = rewards(theta, design.support, 400, 2, scale=0.01)
    settings = {"delta": 0.1, "epsilon": 0.01, "noise_scale": 0.1 / 3}
    whole, parts = (
        every_state(icb(design, feasible=feasible, **settings), tape, 4000)[-1] for feasible in (None, one_of_each)
    )
    assert parts.pulls < whole.pulls
    answer = icb(design, feasible=one_of_each, **settings).decide(KEY, parts).answer
    assert answer.tolist() == [True, False, True, False, False, True]
