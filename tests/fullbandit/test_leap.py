"""Leaps between two tests, against their equation, and against tests after every pull on the same rewards."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.fullbandit import follow, rewards

from experiments.bench.reference import fullbandit as reference
from jaxbandits.fullbandit import (
    Pace,
    exhaustive,
    g_allocation,
    icb,
    make_design,
    random_support,
    saqm,
    spectral,
)
from jaxbandits.fullbandit._shared.leap import Growth, largest_change, safe_leap

N, K = 6, 3
THETA = jnp.array([0.9, 0.2, 0.7, -0.5, 0.4, 0.1])
ALLOCATION = g_allocation(random_support(3, N, K, size=14))
DESIGN = make_design(ALLOCATION.support, K, weights=ALLOCATION.weights)
# The noise of a pull has the standard deviation 1.7; small radii let it cross the rule early and often.
RULES = {
    "saqm": (saqm, {"noise_scale": 0.25 / 3}),
    "icb": (icb, {"noise_scale": 0.8 / 3}),
    "exhaustive": (exhaustive, {"noise_scale": 0.5 / 3}),
    "spectral": (spectral, {"noise_scale": 0.5 / 3}),
}
# The leap is one function of margin, width and pulls: two rules suffice, and the wide tests run all.
every_rule = pytest.mark.parametrize(
    ("factory", "options"),
    [
        pytest.param(*rule, id=name, marks=[] if name in ("saqm", "exhaustive") else [pytest.mark.wide])
        for name, rule in RULES.items()
    ],
)


@functools.cache
def tapes():
    return np.stack([rewards(THETA, DESIGN.support, 800, seed) for seed in range(30)])


@functools.cache
def batch(factory, one_by_one, **options):
    def pulls_and_rounds(tape, pace):
        pace = Pace(growth=None) if one_by_one else pace
        algorithm = factory(DESIGN, delta=0.05, epsilon=0.3, pace=pace, **options)
        state, rounds = follow(algorithm, tape, 10_000)
        return state.pulls, rounds, state.counts.max()

    return jax.jit(jax.vmap(pulls_and_rounds, in_axes=(0, None)))


def stops(factory, growth=0.0, z=8.0, pull_variance=float(K), **options):
    """Returns pulls and rounds of 30 runs, always on the same rewards."""
    pace = jax.tree.map(jnp.asarray, Pace(growth=None if growth is None else Growth(growth, z, pull_variance)))
    pulls, rounds, largest = batch(factory, growth is None, **options)(tapes(), pace)
    assert jnp.all(rounds < 10_000)
    assert int(largest.max()) < 800
    return np.asarray(pulls), np.asarray(rounds)


def leap(t=1e6, margin=-1.0, width=2.0, **options):
    numbers = {"share": 0.0, "z": 8.0, "pull_variance": 5.0} | options
    growth = None if numbers["share"] is None else Growth(**numbers)
    return safe_leap(jnp.asarray(t), jnp.asarray(margin), jnp.asarray(width), reach=3.0, growth=growth)


# The formula


@pytest.mark.parametrize(("margin", "width"), [(-1.0, 2.0), (-0.01, 2.0), (-3.0, 0.5), (-1e-4, 0.1)])
@pytest.mark.parametrize("t", [300.0, 1e6, 1e8])
def test_the_leap_is_the_longest_that_cannot_close_the_margin(t, margin, width):
    q = 8 * np.sqrt(5) * 3 / np.sqrt(t)

    def margin_after(pulls):
        x = pulls / t
        return margin + width / 2 * x + q * (np.sqrt(x) + x)

    d = int(leap(t, margin, width))
    assert d == 1 or margin_after(d) <= 1e-12
    assert margin_after(d + 1) > -1e-12


def test_the_leap_by_hand():
    # q = 1 sqrt(4) 3 / sqrt(400) = 0.3; x = 1/4 solves m + (w/2)/4 + q (1/2 + 1/4) = 0 for w = 0.2, m = -0.25.
    options = {"z": 1.0, "pull_variance": 4.0, "width": 0.2}
    assert leap(400.0, -0.2501, **options) == 100
    assert leap(400.0, -0.2499, **options) == 99


@pytest.mark.parametrize("margin", [0.0, 0.5, jnp.nan])
def test_a_margin_that_is_not_negative_gives_the_shortest_leap(margin):
    assert leap(1e5, margin) == 1
    assert leap(1e5, margin, share=1e-3) == 100


def test_growth_is_the_smallest_leap_and_none_is_one_pull():
    assert leap(1e5, -0.001) < 100
    assert leap(1e5, -0.001, share=1e-3) == 100
    assert leap(1e5, -3.0, share=1e-3) == leap(1e5, -3.0) > 1000
    assert leap(1e5, -3.0, share=None) == 1


def test_the_leap_is_an_integer_of_any_size():
    assert leap(1e18, -1e9, 1e-9) == jnp.iinfo(int).max // 4 + 1  # nearest float of the limit
    assert leap().dtype == jnp.asarray(0).dtype


def test_the_largest_change_bounds_every_difference_of_super_arms():
    for swaps in (1, 2, 3):
        pairs = [
            reference.chi(M, N) - reference.chi(L, N)
            for M in reference.combinations(range(N), K)
            for L in reference.combinations(range(N), K)
            if len(set(M) - set(L)) <= swaps
        ]
        largest = max(reference.norm(y, np.asarray(DESIGN.inverse)) for y in pairs)
        assert largest <= float(largest_change(DESIGN.spectral, swaps)) <= 3 * largest


# On the same rewards


@every_rule
def test_a_growth_of_0_stops_at_the_first_pull_at_which_the_rule_holds(factory, options):
    literal, literal_rounds = stops(factory, growth=None, **options)
    leaping, rounds = stops(factory, growth=0.0, **options)
    np.testing.assert_array_equal(leaping, literal)
    assert literal.std() > 100
    assert rounds.mean() < 0.7 * literal_rounds.mean()


@every_rule
def test_leaps_with_too_small_a_z_stop_late_never_early(factory, options):
    literal, _ = stops(factory, growth=0.0, **options)
    careless, rounds = stops(factory, growth=0.0, z=0.02, **options)
    assert np.all(careless >= literal)
    assert np.mean(careless > literal) > 0.1
    quiet, quiet_rounds = stops(factory, growth=0.0, pull_variance=K * (0.02 / 8) ** 2, **options)
    np.testing.assert_array_equal(quiet, careless)
    np.testing.assert_array_equal(quiet_rounds, rounds)


@every_rule
def test_growth_delays_a_little_and_saves_rounds(factory, options):
    literal, fine_rounds = stops(factory, growth=0.0, **options)
    coarse, rounds = stops(factory, growth=0.01, **options)
    assert np.all(coarse >= literal)
    assert 1 < np.median(coarse / literal) < 1.02
    assert rounds.mean() < fine_rounds.mean() / 2
