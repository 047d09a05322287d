"""Runs with leaps against runs one pull at a time, on the same samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.cpe import record

from experiments.bench.reference import cpe as reference
from jaxbandits import cpe
from jaxbandits.cpe._shared.estimate import squared_radius
from jaxbandits.cpe._shared.leaps import bounds, shares, slots

LEAP = 16


@jax.jit
@jax.vmap
def planned(counts, mask, number):
    share = shares(counts, mask, number)
    return share, slots(share, LEAP)


def test_shares_equal_single_pulls_of_the_least_pulled_arm():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 12, (400, 5)).astype(np.int32)
    mask = rng.uniform(size=counts.shape) < 0.6
    mask[np.arange(400), rng.integers(0, 5, 400)] = True
    number = rng.integers(0, LEAP + 1, 400).astype(np.int32)
    share, pulls = planned(*map(jnp.asarray, (counts, mask, number)))
    for lane in range(400):
        now, pulled = counts[lane].copy(), []
        for _ in range(number[lane]):
            pulled.append(reference.least_pulled(now, mask[lane]))
            now[pulled[-1]] += 1
        np.testing.assert_array_equal(share[lane], now - counts[lane])
        assert pulls.arms[lane].tolist() == sorted(pulled) + [5] * (LEAP - number[lane])


def test_shares_of_large_counts_do_not_overflow():
    counts = jnp.int32([0, 1_000_000_000, 1_000_000_003, 5])
    two, all_four = jnp.asarray([False, True, True, False]), jnp.ones(4, bool)
    assert jax.jit(shares)(counts, two, jnp.int32(8)).tolist() == [0, 6, 2, 0]  # 3 to catch up, then in turn
    assert jax.jit(shares)(counts, all_four, jnp.int32(16)).tolist() == [11, 0, 0, 5]


@pytest.mark.parametrize("tau", [1, 2])
def test_every_box_of_a_leap_lies_between_the_bounds(tau):
    rng = np.random.default_rng(1)
    lanes, m, number = 100, 3, 12
    counts = rng.integers(tau, 30, (lanes, m))
    share = rng.multinomial(number, np.ones(m) / m, lanes)
    p = rng.uniform(size=(lanes, m, 1))
    tape = np.where(rng.uniform(size=(lanes, m, 60)) < p, rng.integers(0, 2, (lanes, m, 60)), p)

    def squared(n):
        return squared_radius(jnp.asarray(n, float), tau=tau, delta=0.1)

    @jax.jit
    @jax.vmap
    def leap_bounds(estimates, counts, share):
        n = counts.sum()
        return bounds(estimates, counts, share, tau=tau, first=squared(n), last=squared(n + number - 1), clip=True)

    first = np.array([reference.estimates(tape[lane], counts[lane], tau) for lane in range(lanes)])
    inner, outer = jax.tree.map(np.asarray, leap_bounds(*map(jnp.asarray, (first, counts, share))))
    moved = 0
    for lane in range(lanes):
        order = rng.permutation(np.repeat(np.arange(m), share[lane]))
        now = counts[lane].copy()
        for arm in order:
            center = reference.estimates(tape[lane], now, tau)
            radii = reference.radius(now, tau, 0.1)
            lo, hi = np.maximum(center - radii, 0), np.minimum(center + radii, 1)
            assert (outer.lo[lane] <= lo).all()
            assert (lo <= inner.lo[lane]).all()
            assert (inner.hi[lane] <= hi).all()
            assert (hi <= outer.hi[lane]).all()
            moved = max(moved, np.abs(center - first[lane]).max())
            now[arm] += 1
    assert moved > 0.1


def samples(instance, number, seed):
    rng = np.random.default_rng(seed)
    theta = np.asarray(instance.theta)
    if instance.tau == 2:
        return rng.uniform(size=(len(theta), number)) < 0.5 + np.sqrt(0.25 - np.minimum(theta, 0.25))[:, None]
    return rng.uniform(size=(len(theta), number)) < theta[:, None]


@pytest.mark.parametrize(
    ("name", "factory", "leap", "pulls_a_round"),
    [
        ("top2of6", cpe.coci, 8, 4),
        ("top2of6", cpe.uniform, 32, 20),
        ("water3", cpe.coci, 32, 6),
        ("osa4", cpe.coci, 8, 4),
        ("paths5", cpe.coci, 32, 6),
        ("trees5", cpe.uniform, 8, 7),
    ],
)
def test_a_leap_changes_only_the_number_of_rounds(name, factory, leap, pulls_a_round):
    instance = getattr(cpe, name)()
    tape = samples(instance, 3500, 3).astype(float)
    estimator = "variance" if instance.tau == 2 else "mean"
    settings = {"delta": 0.1, "observations": "binary", "estimator": estimator}
    single = record(factory(instance.problem, **settings), tape, 8000)
    several = record(factory(instance.problem, leap=leap, **settings), tape, 2000)
    assert single.stops[-1]
    assert several.stops[-1]
    (single_pulls, single_counts), (pulls, counts) = single.watched, several.watched
    assert single_pulls[-1] == pulls[-1]
    np.testing.assert_array_equal(single.answers[-1], several.answers[-1])
    np.testing.assert_array_equal(single_counts[pulls], counts)
    assert pulls[-1] > pulls_a_round * several.stops.argmax()
    assert (several.actions.arms < len(tape)).sum(axis=1).max() == leap


def test_a_leap_grows_with_success_and_shrinks_with_failure():
    instance = cpe.best5()
    algorithm = cpe.coci(instance.problem, delta=0.1, observations="binary", leap=32)
    trace = record(algorithm, samples(instance, 2000, 4).astype(float), 800)
    number = (trace.actions.arms < 5).sum(axis=1)[: trace.stops.argmax()]
    assert number[0] == 5  # the first pull of each arm
    reach = 1
    for pulls in number[1:]:
        assert pulls in (1, reach)
        reach = min(2 * reach, 32) if pulls == reach else max(1, reach // 2)
    assert set(number[1:].tolist()) == {1, 2, 4, 8, 16, 32}
