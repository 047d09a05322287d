"""The strides between two tests: against their equation, and against tests after every pull on the same rewards."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import fullbandit as reference
from reference.tape import follow, rewards

from jaxbandits.base import Status
from jaxbandits.engine.running import run
from jaxbandits.fullbandit.design import g_allocation, make_design, random_support
from jaxbandits.fullbandit.exhaustive import exhaustive
from jaxbandits.fullbandit.icb import icb
from jaxbandits.fullbandit.problem import Instance, bernoulli
from jaxbandits.fullbandit.saqm import saqm
from jaxbandits.fullbandit.spectral import spectral
from jaxbandits.fullbandit.stride import largest_change, safe_stride

N, K = 6, 3
THETA = jnp.array([0.9, 0.2, 0.7, -0.5, 0.4, 0.1])
ALLOCATION = g_allocation(random_support(3, N, K, size=14))
DESIGN = make_design(ALLOCATION.support, K, weights=ALLOCATION.weights)
# The noise of a pull has the standard deviation 1.7; small radii let it cross the rule early and often.
RULES = {
    "saqm": (saqm, {"sigma": 0.25}),
    "icb": (icb, {"sigma": 0.8}),
    "exhaustive": (exhaustive, {"sigma": 0.5}),
    "spectral": (spectral, {"sigma": 0.5}),
}
every_rule = pytest.mark.parametrize(("factory", "options"), RULES.values(), ids=RULES.keys())


@functools.cache
def tapes():
    return jnp.stack([rewards(THETA, DESIGN.support, 800, seed) for seed in range(60)])


@functools.cache
def batch(factory, one_by_one, **options):
    def pulls_and_rounds(tape, strides):
        strides = {"resolution": None} if one_by_one else strides
        algorithm = factory(DESIGN, K, delta=0.05, epsilon=0.3, **strides, **options)
        state, rounds = follow(algorithm, tape, 10_000)
        return state.pulls, rounds, state.counts.max()

    return jax.jit(jax.vmap(pulls_and_rounds, in_axes=(0, None)))


def stops(factory, resolution=0.0, stride_z=8.0, stride_variance=float(K), **options):
    """Pulls and rounds of 60 runs, always on the same rewards."""
    strides = {"resolution": resolution, "stride_z": stride_z, "stride_variance": stride_variance}
    pulls, rounds, most = batch(factory, resolution is None, **options)(
        tapes(), {} if resolution is None else {name: jnp.asarray(value) for name, value in strides.items()}
    )
    assert jnp.all(rounds < 10_000)
    assert int(most.max()) < 800
    return np.asarray(pulls), np.asarray(rounds)


def stride(t=1e6, margin=-1.0, width=2.0, **options):
    options = {"reach": 3.0, "stride_z": 8.0, "stride_variance": 5.0, "resolution": 0.0} | options
    return safe_stride(jnp.asarray(t), jnp.asarray(margin), jnp.asarray(width), **options)


# The formula


@pytest.mark.parametrize(("margin", "width"), [(-1.0, 2.0), (-0.01, 2.0), (-3.0, 0.5), (-1e-4, 0.1)])
@pytest.mark.parametrize("t", [300.0, 1e6, 1e8])
def test_the_stride_is_the_longest_that_cannot_close_the_margin(t, margin, width):
    q = 8 * np.sqrt(5) * 3 / np.sqrt(t)

    def left(pulls):
        x = pulls / t
        return margin + width / 2 * x + q * (np.sqrt(x) + x)

    d = int(stride(t, margin, width))
    assert d == 1 or left(d) <= 1e-12
    assert left(d + 1) > -1e-12


def test_the_stride_by_hand():
    # q = 1 sqrt(4) 3 / sqrt(400) = 0.3; x = 1/4 solves m + (w/2)/4 + q (1/2 + 1/4) = 0 for w = 0.2, m = -0.25.
    options = {"stride_z": 1.0, "stride_variance": 4.0, "reach": 3.0, "width": 0.2}
    assert stride(400.0, -0.2501, **options) == 100
    assert stride(400.0, -0.2499, **options) == 99


@pytest.mark.parametrize("margin", [0.0, 0.5, jnp.nan])
def test_nothing_lacking_gives_the_shortest_stride(margin):
    assert stride(1e5, margin) == 1
    assert stride(1e5, margin, resolution=1e-3) == 100


def test_resolution_is_a_least_stride_and_none_is_one_pull():
    assert stride(1e5, -0.001) < 100
    assert stride(1e5, -0.001, resolution=1e-3) == 100
    assert stride(1e5, -3.0, resolution=1e-3) == stride(1e5, -3.0) > 1000
    assert stride(1e5, -3.0, resolution=None) == 1


def test_the_stride_is_an_integer_of_any_size():
    assert stride(1e18, -1e9, 1e-9) == jnp.iinfo(int).max // 4 + 1  # the nearest float
    assert stride().dtype == jnp.asarray(0).dtype


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
def test_resolution_0_stops_at_the_first_pull_at_which_the_rule_holds(factory, options):
    literal, literal_rounds = stops(factory, resolution=None, **options)
    strided, rounds = stops(factory, resolution=0.0, **options)
    np.testing.assert_array_equal(strided, literal)
    assert literal.std() > 100
    assert rounds.mean() < 0.7 * literal_rounds.mean()


@every_rule
def test_strides_that_trust_the_noise_too_little_stop_late_never_early(factory, options):
    literal, _ = stops(factory, resolution=0.0, **options)
    careless, rounds = stops(factory, resolution=0.0, stride_z=0.02, **options)
    assert np.all(careless >= literal)
    assert np.mean(careless > literal) > 0.1
    quiet, quiet_rounds = stops(factory, resolution=0.0, stride_variance=K * (0.02 / 8) ** 2, **options)
    np.testing.assert_array_equal(quiet, careless)
    np.testing.assert_array_equal(quiet_rounds, rounds)


@every_rule
def test_a_resolution_delays_a_little_and_saves_rounds(factory, options):
    literal, fine_rounds = stops(factory, resolution=0.0, **options)
    coarse, rounds = stops(factory, resolution=0.01, **options)
    assert np.all(coarse >= literal)
    assert 1 < np.median(coarse / literal) < 1.02
    assert rounds.mean() < fine_rounds.mean() / 2


@every_rule
def test_without_noise_the_stopping_time_is_a_number(factory, options):
    theta = jnp.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    algorithm = factory(DESIGN, K, delta=0.05, epsilon=0.3, resolution=0.0, **options)
    environment = bernoulli(Instance(theta, K), DESIGN, sampler="normal")
    end = jax.jit(lambda key: run(key, algorithm, environment, max_rounds=2000, chunk=32))(jax.random.key(1))
    assert end.status == Status.STOPPED
    settings = {"k": K, "delta": 0.05, "epsilon": 0.3, "sigma": options["sigma"]}
    if factory is spectral:
        settings["eigenvalue"] = lambda t: float(DESIGN.spectral / np.min(counts_at(t) / np.asarray(DESIGN.weights)))
    rule = getattr(reference, factory.__name__)
    support = np.asarray(DESIGN.support)
    tape = np.repeat((support @ np.asarray(theta))[:, None], 1000, axis=1)
    looks = reference.looks(
        support, np.asarray(DESIGN.weights), tape, lambda *seen: rule(*seen, **settings), len(support)
    )
    assert end.pulls == looks[-1].t
    assert end.answer.tolist() == theta.astype(bool).tolist()


def counts_at(t):
    counts = np.zeros(DESIGN.weights.shape[0], int)
    for _ in range(t):
        counts[reference.next_superarm(np.asarray(DESIGN.weights), counts)] += 1
    return counts
