"""Sums, estimates and radii against plain NumPy, and invalid input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from experiments.bench.reference import cpe as reference
from jaxbandits import cpe
from jaxbandits.cpe import Pulls
from jaxbandits.cpe._shared.estimate import add, box, empty, estimate, squared_radius

ADD = jax.jit(add)
ESTIMATE = jax.jit(estimate, static_argnums=1)


def rounds(tape, order, size):
    """Yields rounds of `size` slots, the last one with empty slots."""
    taken = np.zeros(len(tape), int)
    for start in range(0, len(order), size):
        arms, samples = np.full(size, len(tape)), np.full(size, np.nan)
        for slot, arm in enumerate(order[start : start + size]):
            arms[slot], samples[slot] = arm, tape[arm, taken[arm]]
            taken[arm] += 1
        yield Pulls(jnp.asarray(arms, jnp.int32)), jnp.asarray(samples)


@pytest.mark.parametrize("tau", [1, 2])
@pytest.mark.parametrize("observations", ["binary", "unit"])
def test_estimates_for_any_grouping_of_samples_equal_numpy(tau, observations):
    rng = np.random.default_rng(0)
    order = rng.integers(0, 3, 50)
    tape = rng.uniform(size=(3, 50))
    tape = np.rint(tape) if observations == "binary" else tape
    estimator = {1: "mean", 2: "variance"}[tau]
    counts = np.bincount(order)
    for size in (1, 8):
        statistics = empty(3, jnp.float64, estimator=estimator, observations=observations)
        for pulls, samples in rounds(tape, order, size):
            statistics = ADD(statistics, pulls, samples)
        np.testing.assert_array_equal(statistics.counts, counts)
        np.testing.assert_allclose(
            ESTIMATE(statistics, estimator), reference.estimates(tape, counts, tau), rtol=1e-14, atol=1e-15
        )
        assert statistics.poison == 0


@pytest.mark.parametrize("estimator", ["mean", "variance"])
@pytest.mark.parametrize("observations", ["binary", "unit"])
def test_estimates_without_samples_are_finite_and_an_empty_round_changes_no_bit(estimator, observations):
    nothing = empty(2, jnp.float32, estimator=estimator, observations=observations)
    assert jnp.isfinite(ESTIMATE(nothing, estimator)).all()
    assert ((ESTIMATE(nothing, estimator) >= 0) & (ESTIMATE(nothing, estimator) <= 1)).all()
    one = ADD(nothing, Pulls(jnp.int32([0, 2])), jnp.float32([1, 0]))
    same = ADD(one, Pulls(jnp.int32([2, 2])), jnp.float32([0, jnp.nan]))
    jax.tree.map(np.testing.assert_array_equal, one, same)
    assert jax.tree.map(lambda x: x.dtype, one) == jax.tree.map(lambda x: x.dtype, nothing)


@pytest.mark.parametrize(
    ("observations", "sample", "is_lawful"),
    [
        ("binary", 1.0, True),
        ("binary", 0.5, False),
        ("binary", np.nan, False),
        ("unit", 0.5, True),
        ("unit", 1.5, False),
        ("unit", -0.1, False),
        ("unit", np.nan, False),
    ],
)
def test_an_invalid_sample_poisons_the_state(observations, sample, is_lawful):
    statistics = empty(2, jnp.float64, estimator="mean", observations=observations)
    statistics = ADD(statistics, Pulls(jnp.int32([1])), jnp.asarray([sample]))
    statistics = ADD(statistics, Pulls(jnp.int32([0])), jnp.asarray([1.0]))
    assert jnp.isfinite(statistics.poison) == is_lawful


@pytest.mark.parametrize(("low", "high"), [(0.9, 0.95), (0.3, 0.7), (0.0, 1.0)])
def test_estimates_of_a_million_samples_in_32_bit_are_accurate(low, high):
    rounds, size = 2000, 500
    u = jax.random.uniform(jax.random.key(1), (rounds, size), jnp.float32, low, high)
    u = jnp.where(low == 0, jnp.round(u + 0.49), u)  # the last law: 1 with probability .99
    pulls = Pulls(jnp.zeros(size, jnp.int32))
    start = empty(1, jnp.float32, estimator="variance", observations="unit")
    statistics = jax.jit(lambda u: lax.scan(lambda s, x: (add(s, pulls, x), None), start, u)[0])(u)
    exact = np.asarray(u, np.float64).ravel()
    assert abs(float(ESTIMATE(statistics, "variance")[0]) - exact.var(ddof=1)) < 1e-7
    mean = empty(1, jnp.float32, estimator="mean", observations="unit")._replace(
        counts=statistics.counts, sums=statistics.sums._replace(second=None)
    )
    assert abs(float(ESTIMATE(mean, "mean")[0]) - exact.mean()) < 1e-7


@pytest.mark.parametrize(("tau", "expected"), [(1, (0.858939, 0.607361)), (2, (0.838522, 0.592924))])
def test_radii_by_hand(tau, expected):
    radii = jnp.sqrt(squared_radius(jnp.asarray(40.0), tau=tau, delta=0.1) / jnp.asarray([10.0, 20.0]))
    np.testing.assert_allclose(radii, expected, atol=5e-7)
    half = jnp.sqrt(squared_radius(jnp.asarray(40.0), tau=tau, delta=0.1, radius_scale=0.5) / 10)
    np.testing.assert_allclose(half, expected[0] / 2, atol=5e-7)


def test_radii_neither_overflow_nor_lose_a_tiny_delta():
    radius = jnp.sqrt(squared_radius(jnp.float32(2e9), tau=2, delta=1e-37))
    np.testing.assert_allclose(radius, np.sqrt((np.log(2) + 37 * np.log(10) + 3 * np.log(2e9)) / 2), rtol=1e-6)


def test_boxes_are_clipped_to_the_unit_cube():
    lo, hi = box(jnp.asarray([-0.1, 0.2]), jnp.asarray([0.8, 1.1]), clip=True)
    assert (lo.tolist(), hi.tolist()) == ([0, 0.2], [0.8, 1])
    lo, hi = box(jnp.asarray([-0.1, 0.2]), jnp.asarray([0.8, 1.1]), clip=False)
    assert (lo.tolist(), hi.tolist()) == ([-0.1, 0.2], [0.8, 1.1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clip": False, "estimator": "variance"}, "clip must be True unless .*, got False"),
        ({"clip": False, "problem": cpe.trees5().problem}, "clip must be True unless .*, got False"),
    ],
)
def test_bad_input(changes, message):
    settings = {"problem": cpe.best_arm(3), "delta": 0.1} | changes
    with pytest.raises(ValueError, match=message):
        cpe.coci(**settings)
