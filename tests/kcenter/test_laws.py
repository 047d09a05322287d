"""Laws that hold for every algorithm of the family and any instance: found by property-based tests."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.programs import those_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jaxbandits import Status, kcenter, run

N, M, K = 6, 100, 3
USUAL, SURE = 0.1, 1e-300  # with so small a delta no interval ever fails, and all arms that matter are read exactly
SAMPLERS = {
    "ucb": (kcenter.ds_ucb, {}),
    "triangle": (functools.partial(kcenter.ds_ucb, triangle="squared"), {}),
    "ts": (kcenter.ds_ts, {"mix": 0.99}),
    "ts at mix 0": (kcenter.ds_ts, {"mix": 0.0}),
    "random": (kcenter.ds_random, {}),
}
NOISY_RULES = {
    "ts": (kcenter.ns_ts, {"mix": 0.9}, kcenter.PairPull),
    "ts at mix 0": (kcenter.ns_ts, {"mix": 0.0}, kcenter.PairPull),
    "tands": (functools.partial(kcenter.ns_tands, weights_every=10), {"forced_offset": 1.0}, kcenter.Pull),
    "batches": (functools.partial(kcenter.track_and_stop, weights_every=10, test_every=16), {}, kcenter.Counts),
    "random": (kcenter.ns_random, {}, kcenter.Pull),
}
seeds, firsts = st.integers(0, 2**32 - 1), st.integers(0, N - 1)
every_sampler = pytest.mark.parametrize("rule", those_of(SAMPLERS, "triangle", "ts"))
every_noisy_rule = pytest.mark.parametrize("rule", those_of(NOISY_RULES, "ts", "tands"))
quickly = settings(max_examples=6, deadline=None, derandomize=True)
often = settings(max_examples=50, deadline=None, derandomize=True)


def an_order(seed):
    """The new names' old names, and the old names' new names."""
    order = np.random.default_rng(seed).permutation(N)
    return order, np.argsort(order)


def check_counts(counts, centers):
    """No center is queried against a slot that is filled after it, and all candidates are."""
    place = np.full(N, K)
    place[centers] = np.arange(K)
    np.testing.assert_array_equal(np.asarray(counts) > 0, np.arange(K - 1) < place[:, None])


# Sampled dimensions


@functools.cache
def sampler(factory, k):
    @jax.jit
    def end(key, points, exact, settings):
        instance = kcenter.dimension_instance(points, k=k, exact=exact)
        return run(key, factory(instance.problem, **settings), kcenter.environment(instance), max_rounds=20_000)

    return end


def sampled(rule, points, seed, first, *, delta=USUAL, k=K):
    """The end of a run."""
    factory, settings = SAMPLERS[rule]
    numbers = {"first_center": int(first), "delta": delta} | settings
    return sampler(factory, k)(jax.random.key(seed), points, kcenter.pairwise_sums(points), numbers)


def cloud(seed, *, constant=False):
    """Random points of different contrasts, or constant ones; no two distances are equal."""
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
    if rule != "triangle":  # it passes by what is out of reach
        check_counts(counts, end.answer.indices)


@every_sampler
@pytest.mark.parametrize(("constant", "delta"), [(True, USUAL), (False, SURE)], ids=["constant", "sure"])
@quickly
@given(seed=seeds, first=firsts)
def test_where_no_interval_fails_the_centers_are_greedys_in_any_order_of_the_nodes(rule, constant, delta, seed, first):
    points, (order, place) = cloud(seed, constant=constant), an_order(seed)
    end = sampled(rule, points, seed, first, delta=delta)
    other = sampled(rule, points[order], seed, place[first], delta=delta)
    np.testing.assert_array_equal(end.answer.indices, truth(points, first))
    np.testing.assert_array_equal(order[other.answer.indices], end.answer.indices)


@pytest.mark.parametrize("rule", those_of(["ucb", "triangle", "ts at mix 0"], "triangle"))
@quickly
@given(seed=seeds, first=firsts)
def test_constant_rows_leave_nothing_to_chance_and_little_to_order(rule, seed, first):
    points, (order, place) = cloud(seed, constant=True), an_order(seed)
    end, again = (sampled(rule, points, key, first) for key in (seed, seed + 1))
    assert again.rounds == end.rounds
    np.testing.assert_array_equal(again.answer.indices, end.answer.indices)
    np.testing.assert_array_equal(again.state.counts, end.state.counts)
    if rule != "triangle":  # the first pass goes by the order of the nodes, and what is known may spare a query
        other = sampled(rule, points[order], seed, place[first])
        np.testing.assert_array_equal(other.state.counts, end.state.counts[order])


@every_sampler
@quickly
@given(seed=seeds, first=firsts)
def test_only_differences_of_points_count(rule, seed, first):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 2**20, (N, M)) / 2**20
    mirrored = np.where(rng.random(M) < 0.5, 1 - points, points)
    end, other = (sampled(rule, x, seed, first) for x in (points, mirrored))
    jax.tree.map(np.testing.assert_array_equal, other, end)


@pytest.mark.parametrize("rule", those_of(["ucb", "random"], "ucb"))  # the draws of "ts" depend on k
@quickly
@given(seed=seeds, first=firsts)
def test_sampling_for_more_centers_begins_as_for_fewer(rule, seed, first):
    points = cloud(seed)
    fewer, more = (sampled(rule, points, seed, first, k=k).answer for k in (K, K + 1))
    np.testing.assert_array_equal(more.indices[:-1], fewer.indices)
    np.testing.assert_array_equal(more.queries[:-1], fewer.queries)


# Noisy distances


@functools.cache
def noisy_runner(factory, action, k):
    @jax.jit
    def end(key, table, noise_scale, settings):
        instance = kcenter.distance_instance(table, k=k, noise_scale=noise_scale)
        environment = kcenter.environment(instance, action=action)
        return run(key, factory(instance.problem, delta=USUAL, **settings), environment, max_rounds=20_000)

    return end


def noisy_run(rule, table, told, seed, first, *, noise_scale=None, k=K, **options):
    """The end of a run; the noise scale is the one that the algorithm is told, or another."""
    factory, settings, action = NOISY_RULES[rule]
    numbers = {"first_center": int(first), "noise_scale": told} | settings | options
    return noisy_runner(factory, action, k)(
        jax.random.key(seed), table, told if noise_scale is None else noise_scale, numbers
    )


def plane(seed, first):
    """Distances of random points of the plane, and a noise scale at which their gaps soon show."""
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
def test_without_noise_the_centers_are_greedys_in_any_order_of_the_nodes(rule, seed, first):
    (table, told), (order, place) = plane(seed, first), an_order(seed)
    end = noisy_run(rule, table, told, seed, first, noise_scale=0.0)
    other = noisy_run(rule, table[np.ix_(order, order)], told, seed, place[first], noise_scale=0.0)
    np.testing.assert_array_equal(end.answer.indices, kcenter.greedy(table, k=K, first_center=first).centers)
    np.testing.assert_array_equal(order[other.answer.indices], end.answer.indices)
    if rule == "ts at mix 0":  # the others draw, or break ties, by the order of the nodes
        np.testing.assert_array_equal(other.state.samples.counts, end.state.samples.counts[order])


@pytest.mark.parametrize("rule", those_of(["ts at mix 0", "tands", "batches"], "tands"))
@quickly
@given(seed=seeds, first=firsts)
def test_without_noise_nothing_is_left_to_chance(rule, seed, first):
    table, told = plane(seed, first)
    end, again = (noisy_run(rule, table, told, key, first, noise_scale=0.0) for key in (seed, seed + 1))
    jax.tree.map(np.testing.assert_array_equal, again, end)


@pytest.mark.parametrize("rule", those_of(["ts at mix 0", "tands", "batches", "random"], "tands"))  # "ts" has a prior
@quickly
@given(seed=seeds, first=firsts, unit=st.floats(0.01, 100))
def test_only_distances_over_deviations_count(rule, seed, first, unit):
    table, noise_scale = plane(seed, first)
    end = noisy_run(rule, table, noise_scale, seed, first)
    other = noisy_run(rule, unit * table, unit * noise_scale, seed, first)
    np.testing.assert_array_equal(other.state.samples.counts, end.state.samples.counts)
    np.testing.assert_array_equal(other.answer.indices, end.answer.indices)


@pytest.mark.parametrize(
    "rule", those_of(["ts at mix 0", "tands", "random"], "tands")
)  # the draws of others depend on k
@quickly
@given(seed=seeds, first=firsts)
def test_querying_for_more_centers_begins_as_for_fewer(rule, seed, first):
    table, noise_scale = plane(seed, first)
    # Forced queries depend on k, unless that is made up for.
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
    assume(np.diff(np.sort(means, axis=0), axis=0).min() > 1e-4)  # no gap meets the floor, which has a unit
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
def test_a_rival_less_takes_no_more_time_and_no_proportions_take_less(seed):
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
def test_names_and_units_make_no_instance_harder(seed, first, unit, smaller):
    table = plane(seed, first)[0] / 2
    order, place = an_order(seed)
    centers = kcenter.greedy(table, k=K, first_center=first).centers
    once = hardness()(table, centers, 0.1, USUAL)
    other = hardness()(table[np.ix_(order, order)], place[centers].astype(centers.dtype), 0.1, USUAL)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-6), other, once)
    scaled = hardness()(unit * table, centers, 0.1 * unit, USUAL)
    np.testing.assert_allclose(scaled[2], once[2], rtol=1e-6)
    np.testing.assert_allclose(scaled[3], once[3], rtol=1e-6)
    # To be surer takes more queries, though never more than there are.
    surer = hardness()(table, centers, 0.1, smaller * USUAL)
    for few, many in zip(once, surer, strict=True):
        assert np.all(np.asarray(few) <= np.asarray(many) * (1 + 1e-12))
    assert surer[1] <= kcenter.most_queries(N, M, K)


@often
@given(seed=seeds, first=firsts, unit=st.floats(0.01, 100))
def test_greedys_solution_follows_names_units_and_the_number_of_centers(seed, first, unit):
    table = plane(seed, first)[0]
    order, place = an_order(seed)
    centers, bottlenecks, gaps = kcenter.greedy(table, k=K, first_center=first)
    assert np.all(np.diff(bottlenecks) <= 0)
    assert np.all(gaps >= 0)
    for other, names, factor in [
        (kcenter.greedy(table[np.ix_(order, order)], k=K, first_center=place[first]), order, 1),
        (kcenter.greedy(unit * table, k=K, first_center=first), np.arange(N), unit),
    ]:
        np.testing.assert_array_equal(names[other.centers], centers)
        np.testing.assert_allclose(other.bottlenecks, factor * bottlenecks)
        np.testing.assert_allclose(other.gaps, factor * gaps, rtol=1e-6)
    fewer = kcenter.greedy(table, k=K - 1, first_center=first)
    np.testing.assert_array_equal(fewer.centers, centers[:-1])
    np.testing.assert_array_equal(fewer.bottlenecks, bottlenecks[:-1])
    # The next bottleneck is what the centers so far leave as a radius.
    assert kcenter.radius(fewer.centers, table) == bottlenecks[-1]
