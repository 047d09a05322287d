"""Property-based tests of laws that hold for every algorithm of the family and any instance."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.programs import wide_except
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jaxbandits import Status, kcenter, run

N, M, K = 6, 100, 3
# At a delta of 1e-300 no interval ever fails, and all arms that matter are read exactly.
USUAL, SURE = 0.1, 1e-300
SAMPLERS = {
    "ucb": (kcenter.ds_ucb, {}),
    "triangle": (functools.partial(kcenter.ds_ucb, triangle="squared"), {}),
    "ts": (kcenter.ds_ts, {"mix": 0.99}),
    "ts at mix 0": (kcenter.ds_ts, {"mix": 0.0}),
    "random": (kcenter.ds_random, {}),
}
NOISY_RULES = {
    "ts": (kcenter.ns_ts, {"mix": 0.9}),
    "ts at mix 0": (kcenter.ns_ts, {"mix": 0.0}),
    "tands": (functools.partial(kcenter.ns_tands, weights_every=10), {"forced_offset": 1.0}),
    "batches": (functools.partial(kcenter.track_and_stop, weights_every=10, test_every=16), {}),
    "random": (kcenter.ns_random, {}),
}
seeds, firsts = st.integers(0, 2**32 - 1), st.integers(0, N - 1)
every_sampler = pytest.mark.parametrize("rule", wide_except(SAMPLERS, "ucb", "triangle", "ts"))
every_noisy_rule = pytest.mark.parametrize("rule", wide_except(NOISY_RULES, "ts", "tands"))
quickly = settings(max_examples=6, deadline=None, derandomize=True)
often = settings(max_examples=50, deadline=None, derandomize=True)


def permutation(seed):
    """Draws an order of the nodes; returns it (old node of a new one) and its inverse (new node of an old one)."""
    order = np.random.default_rng(seed).permutation(N)
    return order, np.argsort(order)


def check_counts(counts, centers):
    """Checks that a center is queried against earlier slots only, and every other node against all slots."""
    stages = np.full(N, K)
    stages[centers] = np.arange(K)
    np.testing.assert_array_equal(np.asarray(counts) > 0, np.arange(K - 1) < stages[:, None])


# Sampled dimensions


@functools.cache
def sampler(factory, k):
    @jax.jit
    def end(key, points, exact, settings):
        instance = kcenter.dimension_instance(points, k=k, exact=exact)
        algorithm = factory(instance.problem, **settings)
        return run(key, algorithm, kcenter.environment(instance, algorithm), max_rounds=20_000)

    return end


def sampled(rule, points, seed, first, *, delta=USUAL, k=K):
    """Returns the end of a run."""
    factory, settings = SAMPLERS[rule]
    numbers = {"first_center": int(first), "delta": delta} | settings
    return sampler(factory, k)(jax.random.key(seed), points, kcenter.pairwise_sums(points), numbers)


def cloud(seed, *, constant=False):
    """Draws points of different contrasts, or constant ones. No two distances are equal."""
    rng = np.random.default_rng(seed)
    contrast = rng.uniform(0.05, 1, (N, 1))
    return np.repeat(contrast, M, axis=1) if constant else 0.5 + contrast * (rng.random((N, M)) - 0.5)


def truth(points, first):
    return kcenter.greedy(kcenter.pairwise_sums(points), k=K, first_center=first).centers


@every_sampler
@quickly
@given(seed=seeds, first=firsts, exponent=st.floats(-60, -0.1))
def test_sampling_never_costs_more_than_all_arms_queried_and_read(rule, seed, first, exponent):
    end = sampled(rule, cloud(seed), seed, first, delta=10**exponent)
    assert end.status == Status.STOPPED
    assert end.pulls <= 2 * M * sum(N - p for p in range(1, K))
    assert end.pulls == end.answer.queries.sum(dtype=int)
    counts = np.asarray(end.state.counts)
    assert end.pulls == np.where(counts > M, 2 * M, counts).sum()
    # The triangle inequality skips nodes that are out of reach.
    if rule != "triangle":
        check_counts(counts, end.answer.indices)


@every_sampler
@pytest.mark.parametrize(("constant", "delta"), [(True, USUAL), (False, SURE)], ids=["constant", "sure"])
@quickly
@given(seed=seeds, first=firsts)
def test_centers_are_greedys_in_any_order_of_the_nodes_if_no_interval_fails(rule, constant, delta, seed, first):
    points, (order, inverse) = cloud(seed, constant=constant), permutation(seed)
    end = sampled(rule, points, seed, first, delta=delta)
    other = sampled(rule, points[order], seed, inverse[first], delta=delta)
    np.testing.assert_array_equal(end.answer.indices, truth(points, first))
    np.testing.assert_array_equal(order[other.answer.indices], end.answer.indices)


@pytest.mark.parametrize("rule", wide_except(["ucb", "triangle", "ts at mix 0"], "ucb", "triangle"))
@quickly
@given(seed=seeds, first=firsts)
def test_runs_on_constant_rows_depend_on_no_key_and_counts_on_no_order(rule, seed, first):
    points, (order, inverse) = cloud(seed, constant=True), permutation(seed)
    end, again = (sampled(rule, points, key, first) for key in (seed, seed + 1))
    assert again.rounds == end.rounds
    np.testing.assert_array_equal(again.answer.indices, end.answer.indices)
    np.testing.assert_array_equal(again.state.counts, end.state.counts)
    # The first pass is in the order of the nodes, and with the triangle inequality earlier queries may spare one.
    if rule != "triangle":
        other = sampled(rule, points[order], seed, inverse[first])
        np.testing.assert_array_equal(other.state.counts, end.state.counts[order])


@every_sampler
@quickly
@given(seed=seeds, first=firsts)
def test_sampling_depends_on_differences_of_points_alone(rule, seed, first):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 2**20, (N, M)) / 2**20
    mirrored = np.where(rng.random(M) < 0.5, 1 - points, points)
    end, other = (sampled(rule, x, seed, first) for x in (points, mirrored))
    jax.tree.map(np.testing.assert_array_equal, other, end)


# The draws of "ts" depend on k.
@pytest.mark.parametrize("rule", wide_except(["ucb", "random"], "ucb"))
@quickly
@given(seed=seeds, first=firsts)
def test_sampling_for_more_centers_begins_as_for_fewer(rule, seed, first):
    points = cloud(seed)
    fewer, more = (sampled(rule, points, seed, first, k=k).answer for k in (K, K + 1))
    np.testing.assert_array_equal(more.indices[:-1], fewer.indices)
    np.testing.assert_array_equal(more.queries[:-1], fewer.queries)


# Noisy distances


@functools.cache
def noisy_runner(factory, k):
    @jax.jit
    def end(key, table, noise_scale, settings):
        instance = kcenter.distance_instance(table, k=k, noise_scale=noise_scale)
        algorithm = factory(instance.problem, delta=USUAL, **settings)
        return run(key, algorithm, kcenter.environment(instance, algorithm), max_rounds=20_000)

    return end


def noisy_run(rule, table, assumed, seed, first, *, noise_scale=None, k=K, **options):
    """Returns the end of a run. `assumed` is the algorithm's noise scale; if None, `noise_scale` is the same."""
    factory, settings = NOISY_RULES[rule]
    numbers = {"first_center": int(first), "noise_scale": assumed} | settings | options
    return noisy_runner(factory, k)(
        jax.random.key(seed), table, assumed if noise_scale is None else noise_scale, numbers
    )


def plane(seed, first):
    """Draws distances of random points of the plane, and a noise scale as large as the smallest gap."""
    points = np.random.default_rng(seed).random((N, 2))
    table = np.sqrt(((points[:, None] - points) ** 2).sum(-1))
    return table, float(kcenter.greedy(table, k=K, first_center=first).gaps.min())


@every_noisy_rule
@quickly
@given(seed=seeds, first=firsts)
def test_counts_and_queries_agree(rule, seed, first):
    table, noise_scale = plane(seed, first)
    end = noisy_run(rule, table, noise_scale, seed, first)
    assert end.status == Status.STOPPED
    counts = np.asarray(end.state.samples.counts)
    assert end.pulls == counts.sum() == end.answer.queries.sum(dtype=int)
    check_counts(counts, end.answer.indices)


@every_noisy_rule
@quickly
@given(seed=seeds, first=firsts)
def test_centers_are_greedys_in_any_order_of_the_nodes_without_noise(rule, seed, first):
    (table, assumed), (order, inverse) = plane(seed, first), permutation(seed)
    end = noisy_run(rule, table, assumed, seed, first, noise_scale=0.0)
    other = noisy_run(rule, table[np.ix_(order, order)], assumed, seed, inverse[first], noise_scale=0.0)
    np.testing.assert_array_equal(end.answer.indices, kcenter.greedy(table, k=K, first_center=first).centers)
    np.testing.assert_array_equal(order[other.answer.indices], end.answer.indices)
    # The other rules draw, or break ties, in the order of the nodes.
    if rule == "ts at mix 0":
        np.testing.assert_array_equal(other.state.samples.counts, end.state.samples.counts[order])


@pytest.mark.parametrize("rule", wide_except(["ts at mix 0", "tands", "batches"], "tands"))
@quickly
@given(seed=seeds, first=firsts)
def test_runs_without_noise_depend_on_no_key(rule, seed, first):
    table, assumed = plane(seed, first)
    end, again = (noisy_run(rule, table, assumed, key, first, noise_scale=0.0) for key in (seed, seed + 1))
    jax.tree.map(np.testing.assert_array_equal, again, end)


# The draws of the other rules depend on k.
@pytest.mark.parametrize("rule", wide_except(["ts at mix 0", "tands", "random"], "tands"))
@quickly
@given(seed=seeds, first=firsts)
def test_querying_for_more_centers_begins_as_for_fewer(rule, seed, first):
    table, noise_scale = plane(seed, first)
    # Forced queries depend on k unless the offset is proportional to 1 / k.
    options = {k: {"forced_offset": K / k} if rule == "tands" else {} for k in (K, K + 1)}
    fewer, more = (noisy_run(rule, table, noise_scale, seed, first, k=k, **options[k]).answer for k in options)
    np.testing.assert_array_equal(more.indices[:-1], fewer.indices)
    np.testing.assert_array_equal(more.queries[:-1], fewer.queries)


# Proportions, bounds, and the exact solution


@functools.cache
def solver(name):
    solve = {"newton": kcenter.omega_newton, "mirror": functools.partial(kcenter.omega_mirror, steps=100)}[name]
    return jax.jit(
        lambda means, candidates, noise_scale: solve(means, jnp.ones(K - 1, bool), candidates, noise_scale=noise_scale)
    )


@pytest.mark.parametrize("name", ["newton", "mirror"])
@often
@given(seed=seeds, unit=st.floats(0.1, 10), constant=st.floats(-5, 5))
def test_proportions_depend_on_gaps_over_deviations_alone(name, seed, unit, constant):
    rng = np.random.default_rng(seed)
    means, candidates, solve = rng.random((N, K - 1)), jnp.asarray(np.arange(N) != seed % N), solver(name)
    assume(np.diff(np.sort(means, axis=0), axis=0).min() > 1e-4)  # no gap at the floor, which has a unit
    omega, time = solve(means, candidates, 1.0)
    assert omega.sum() == pytest.approx(1)
    assert np.all(np.asarray(omega) >= 0)
    assert not np.any(omega[seed % N])
    nodes, slots = rng.permutation(N), rng.permutation(K - 1)
    for given_means, given_candidates, noise_scale, expected, factor in [
        (unit * means, candidates, unit, omega, 1),
        (means, candidates, unit, omega, unit**2),
        (means + constant, candidates, 1.0, omega, 1),
        (means[nodes][:, slots], candidates[nodes], 1.0, omega[nodes][:, slots], 1),
    ]:
        other = solve(given_means, given_candidates, noise_scale)
        np.testing.assert_allclose(other.omega, expected, atol=1e-6)
        np.testing.assert_allclose(other.time, factor * time, rtol=1e-6)


@often
@given(seed=seeds)
def test_time_is_smallest_by_newton_and_no_larger_with_a_rival_fewer(seed):
    means = np.random.default_rng(seed).random((N, K - 1))
    best = int(np.argmax(means.min(axis=1)))
    every = np.ones(N, bool)
    time = solver("newton")(means, every, 1.0).time
    assert time <= (1 + 1e-4) * solver("mirror")(means, every, 1.0).time
    for rival in np.flatnonzero(np.arange(N) != best):
        assert solver("newton")(means, every & (np.arange(N) != rival), 1.0).time <= (1 + 2e-4) * time


@functools.cache
def hardness():
    @jax.jit
    def measures(table, centers, noise_scale, delta):
        return (
            sum(kcenter.lower_bound(table, centers, delta)),
            kcenter.upper_bound(table, centers, M, delta),
            kcenter.stage_times(table, centers, noise_scale=noise_scale),
            kcenter.noisy_lower_bound(table, centers, noise_scale=noise_scale, delta=delta),
        )

    return measures


@often
@given(seed=seeds, first=firsts, unit=st.floats(0.1, 1), smaller=st.floats(0.01, 1))
def test_hardness_depends_on_no_order_and_no_unit_and_grows_as_delta_falls(seed, first, unit, smaller):
    table = plane(seed, first)[0] / 2
    order, inverse = permutation(seed)
    centers = kcenter.greedy(table, k=K, first_center=first).centers
    once = hardness()(table, centers, 0.1, USUAL)
    other = hardness()(table[np.ix_(order, order)], inverse[centers].astype(centers.dtype), 0.1, USUAL)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-6), other, once)
    scaled = hardness()(unit * table, centers, 0.1 * unit, USUAL)
    np.testing.assert_allclose(scaled[2], once[2], rtol=1e-6)
    np.testing.assert_allclose(scaled[3], once[3], rtol=1e-6)
    # A smaller delta takes more queries, up to all that there are.
    at_smaller_delta = hardness()(table, centers, 0.1, smaller * USUAL)
    for few, many in zip(once, at_smaller_delta, strict=True):
        assert np.all(np.asarray(few) <= np.asarray(many) * (1 + 1e-12))
    assert at_smaller_delta[1] <= kcenter.most_queries(N, M, K)


@often
@given(seed=seeds, first=firsts, unit=st.floats(0.01, 100))
def test_greedy_is_equivariant_under_order_and_unit_and_nested_in_k(seed, first, unit):
    table = plane(seed, first)[0]
    order, inverse = permutation(seed)
    centers, bottlenecks, gaps = kcenter.greedy(table, k=K, first_center=first)
    assert np.all(np.diff(bottlenecks) <= 0)
    assert np.all(gaps >= 0)
    for other, names, factor in [
        (kcenter.greedy(table[np.ix_(order, order)], k=K, first_center=inverse[first]), order, 1),
        (kcenter.greedy(unit * table, k=K, first_center=first), np.arange(N), unit),
    ]:
        np.testing.assert_array_equal(names[other.centers], centers)
        np.testing.assert_allclose(other.bottlenecks, factor * bottlenecks)
        np.testing.assert_allclose(other.gaps, factor * gaps, rtol=1e-6)
    fewer = kcenter.greedy(table, k=K - 1, first_center=first)
    np.testing.assert_array_equal(fewer.centers, centers[:-1])
    np.testing.assert_array_equal(fewer.bottlenecks, bottlenecks[:-1])
    # The next bottleneck is the radius of the centers so far.
    assert kcenter.radius(fewer.centers, table) == bottlenecks[-1]
