import functools
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import kcenter_ds as reference
from reference.kcenter_ds_tape import KEY, follow, one_by_one, tape

from jaxbandits.base import Status
from jaxbandits.engine.running import run
from jaxbandits.kcenter.ds_ucb import ds_ucb
from jaxbandits.kcenter.problem import dimension_sampling, greedy, pairwise_sums

PIXELS = np.random.default_rng(0).integers(0, 17, (8, 30)).astype(np.uint8)
LEVELS = 16
CONSTANT = np.repeat([[0.0], [0.5], [0.9]], 4, axis=1)


@functools.cache
def runner(n, m, k, *, chunk=256, burst=4, lanes=False, max_rounds=20_000, **options):
    """A compiled run of float points, by (points, key, delta, radius_scale, first_center)."""

    @jax.jit
    def one(points, exact, key, delta, radius_scale, first_center):
        settings = {"delta": delta, "radius_scale": radius_scale, "first_center": first_center}
        algorithm = ds_ucb(n, m, k, burst=burst, **settings, **options)
        environment = dimension_sampling(points, exact=exact, burst=burst)
        return run(key, algorithm, environment, max_rounds=max_rounds, chunk=chunk)

    batch = jax.jit(jax.vmap(one, (None, None, 0, None, None, None))) if lanes else one

    def call(points, key=KEY, *, delta=0.1, radius_scale=0.1, first_center=0):
        return batch(points, pairwise_sums(points), key, delta, radius_scale, first_center)

    return call


@pytest.mark.parametrize(
    ("options", "queries", "counts"),
    [
        ({}, 10, [0, 2, 5]),  # node 2 has been read, which counts as one more than the cap of 4
        ({"scale": "root"}, 11, [0, 3, 5]),
        ({"union": "pairs"}, 10, [0, 2, 5]),
        ({"interval": "kl"}, 16, [0, 5, 5]),
    ],
    ids=str,
)
def test_three_constant_rows_by_hand(options, queries, counts):
    state, _ = follow(lambda: ds_ucb(3, 4, 2, **options), CONSTANT, rounds=20)(tape(0, 4))
    assert state.stage.centers.tolist() == [0, 2]
    assert state.stage.queries.tolist() == [queries]
    assert state.pulls == queries
    assert state.counts[:, 0].tolist() == counts


@functools.cache
def transcription(**options):
    settings = {
        "lil": partial(reference.lil, delta=0.1 / 8),
        "kl": partial(reference.kl_bounds, delta=0.1 / 64),
        "lemma1": partial(reference.lemma1, delta=0.1 / 64),
    }
    name = options.pop("interval", "lil")
    return reference.sample(PIXELS, 4, tape(1, 30), interval=settings[name], levels=LEVELS, **options)


@pytest.mark.parametrize(
    ("burst", "options"),
    [
        (1, {}),
        (16, {}),
        (4, {"scale": "root", "interval": "kl", "first_center": 5}),
        (3, {"interval": "lemma1", "cap": 7}),
    ],
    ids=str,
)
def test_every_query_is_that_of_the_transcription(burst, options):
    expected = transcription(**options)
    drive = follow(
        lambda: ds_ucb(8, 30, 4, levels=LEVELS, burst=burst, **options),
        PIXELS,
        rounds=len(expected.asked) + 60,
        levels=LEVELS,
        burst=burst,
    )
    state, asked = drive(tape(1, 30))
    assert one_by_one(asked, 30) == expected.asked
    assert state.stage.centers.tolist() == expected.centers
    assert state.stage.queries.tolist() == expected.queries
    np.testing.assert_array_equal(state.counts, expected.counts)
    assert any(cost == 30 for _, _, cost in expected.asked)


def exact_distance(node, center):
    points = jnp.asarray(PIXELS)
    difference = points.at[node].get(mode="clip").astype(jnp.int32) - points.at[center].get(mode="clip").astype(
        jnp.int32
    )
    return jnp.sum(difference**2, dtype=jnp.int32)


def test_exact_reads_by_refresh_are_those_from_the_table():
    """The lane is kept waiting for every read, and the samples' own exact sums are wrong."""
    expected = transcription()
    algorithm = ds_ucb(8, 30, 4, levels=LEVELS, burst=4, exact_distance=exact_distance)
    environment = dimension_sampling(PIXELS, levels=LEVELS, burst=4)
    draws = tape(1, 30)

    @jax.jit
    def one_round(state, dims):
        decision = algorithm.decide(KEY, state)
        sample = environment.respond(decision.action, dims)
        return algorithm.observe(state, decision.action, sample._replace(exact=jnp.asarray(7, jnp.int32))), decision

    refresh = jax.jit(algorithm.refresh)
    state, asked = algorithm.init(KEY), []
    for _ in range(len(expected.asked)):
        after, decision = one_round(state, draws[int(state.pulls) : int(state.pulls) + 4])
        if state.plan.exact:
            assert algorithm.stale(state)
            assert not decision.stop
            assert_same(after, state)
            after = refresh(state)
            assert after.pulls == state.pulls + 30
            if not after.plan.exact:
                assert_same(refresh(after), after)
            asked.append((int(state.plan.node), int(state.plan.slot), 30))
        else:
            asked += [(int(decision.action.node), int(decision.action.slot), 1)] * int(after.pulls - state.pulls)
        state = after
    assert asked == expected.asked
    assert state.stage.queries.tolist() == expected.queries
    np.testing.assert_array_equal(state.counts, expected.counts)


def assert_same(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


def test_the_cache_is_what_a_rebuild_would_give():
    algorithm = ds_ucb(8, 30, 4, levels=LEVELS)
    state, _ = follow(lambda: algorithm, PIXELS, rounds=150, levels=LEVELS)(tape(1, 30))
    t, total = np.asarray(state.counts), np.asarray(state.sums) / LEVELS**2
    lower, upper = np.zeros((8, 3)), np.full((8, 3), np.finfo(float).max)
    for arm in zip(*np.nonzero(t), strict=True):
        exact = (total[arm] / 30,) * 2
        lower[arm], upper[arm] = exact if t[arm] > 30 else reference.lil(total[arm] / t[arm], int(t[arm]), 0.1 / 8)
    assert (t > 30).any()
    np.testing.assert_allclose(state.lower, lower, rtol=1e-14)
    np.testing.assert_allclose(state.upper, upper, rtol=1e-14)
    least = np.min(np.asarray(state.upper)[:, : int(state.stage.found)], axis=1)
    least[np.isin(np.arange(8), state.stage.centers)] = np.finfo(float).min
    np.testing.assert_array_equal(state.order.values.ravel()[:8], least)
    np.testing.assert_array_equal(state.order.top, state.order.values.max(axis=1))
    np.testing.assert_array_equal(state.order.second, np.sort(state.order.values, axis=1)[:, -2])
    # One query of every candidate about every center but the last found one is the least.
    assert state.pulls == np.where(t > 30, 60, t).sum()
    assert state.pulls == int(state.stage.queries.sum())


def points_with_gaps(n, m, seed):
    rng = np.random.default_rng(seed)
    return 0.5 + rng.uniform(0.05, 1, (n, 1)) * (rng.random((n, m)) - 0.5)


def test_greedys_centers_within_the_bound_of_queries_and_permuted_with_the_nodes():
    call = runner(8, 40, 3)
    for seed in range(5):
        points = points_with_gaps(8, 40, seed)
        truth = greedy(pairwise_sums(points), k=3, first_center=2).centers
        end = call(points, jax.random.key(seed), first_center=2)
        assert end.status == Status.STOPPED
        assert end.answer.indices.tolist() == truth.tolist()
        assert end.pulls <= 2 * 40 * (7 + 6)
        assert int(end.answer.queries.sum()) == end.pulls

        order = np.random.default_rng(seed).permutation(8)
        permuted = call(points[order], jax.random.key(seed), first_center=int(np.argmax(order == 2)))
        np.testing.assert_array_equal(order[permuted.answer.indices], truth)


def test_constant_rows_leave_nothing_to_chance():
    points = np.repeat(np.random.default_rng(4).random((8, 1)), 40, axis=1)
    call = runner(8, 40, 3)
    ends = [call(points, jax.random.key(seed)) for seed in range(3)]
    order = np.concatenate([[0], 1 + np.random.default_rng(5).permutation(7)])
    permuted = call(points[order])
    for end in ends:
        np.testing.assert_array_equal(end.state.counts, ends[0].state.counts)
        np.testing.assert_array_equal(order[permuted.answer.indices], end.answer.indices)
        # Which of the nodes that tie is asked first hardly ever matters.
        np.testing.assert_array_equal(permuted.answer.queries, end.answer.queries)


def test_a_run_for_more_centers_begins_with_the_run_for_fewer():
    points = points_with_gaps(8, 40, 0)
    two, three = runner(8, 40, 2)(points), runner(8, 40, 3)(points)
    assert two.answer.indices.tolist() == three.answer.indices[:2].tolist()
    assert two.answer.queries[0] == three.answer.queries[0]


def test_what_makes_intervals_wide_costs_queries_and_saves_errors():
    points = points_with_gaps(8, 40, 1)
    truth = greedy(pairwise_sums(points), k=3, first_center=0).centers
    keys = jax.random.split(KEY, 20)
    call = runner(8, 40, 3, lanes=True, chunk=7)
    usual, narrow = call(points, keys), call(points, keys, radius_scale=0.001)
    pairs = call(points, keys, delta=0.1 / 8)  # as union="pairs" has it
    wrong = np.any(np.asarray(narrow.answer.indices) != truth, axis=1)
    assert 0.2 < wrong.mean() < 1
    assert not np.any(np.asarray(usual.answer.indices) != truth)
    assert narrow.pulls.mean() < usual.pulls.mean() < pairs.pulls.mean()
    alone = runner(8, 40, 3)(points, keys[7])  # other chunks, and a lane of its own
    np.testing.assert_array_equal(usual.state.counts[7], alone.state.counts)


@pytest.mark.parametrize("ties", ["none", "lowest"])
def test_equal_distances_are_never_told_apart(ties):
    algorithm = ds_ucb(4, 4, 2, ties=ties)
    state, asked = follow(lambda: algorithm, CONSTANT[[0, 2, 1, 2]], rounds=40)(tape(0, 4))
    # Four queries and the reading of each of the equal nodes, and two of the one between.
    assert state.counts[:, 0].tolist() == [0, 5, 2, 5]
    assert state.pulls == 18
    decision = algorithm.decide(KEY, state)
    assert decision.answer.indices.tolist() == [0, 1]
    assert decision.stop == (ties == "lowest")
    assert np.all(asked[-20:, 0] == 4)


def test_bounds_that_tie_by_rounding_are_no_equal_distances():
    """There is a delta at which the upper bound of node 2, not read, is that of node 1, known exactly, in every bit."""

    def after(rounds, delta):
        return drives[rounds](tape(0, 4), delta)[0]

    drives = {
        rounds: follow(lambda delta: ds_ucb(3, 4, 2, delta=delta), CONSTANT[[0, 2, 1]], rounds=rounds)
        for rounds in (8, 12)
    }
    low, high = 0.005, 0.02
    for _ in range(60):
        delta = (low + high) / 2
        state = after(8, delta)
        assert state.counts[:, 0].tolist() == [0, 5, 2]
        if state.plan.is_tied:
            break
        low, high = (delta, high) if state.stage.found == 1 else (low, delta)
    assert state.plan.is_tied
    state = after(12, delta)
    assert state.stage.centers.tolist() == [0, 1]
    assert state.counts[:, 0].tolist() == [0, 5, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 1}, "n must be at least 2, got 1"),
        ({"m": 0}, "m must be at least 1, got 0"),
        ({"k": 1}, "k must lie in 2..5, got 1"),
        ({"k": 6}, "k must lie in 2..5, got 6"),
        ({"n": 10**5, "m": 2 * 10**4}, "n must give n m (k-1) < 2^31"),
        ({"first_center": 5}, "first_center must lie in 0..4, got 5"),
        ({"delta": 0.0}, "delta must lie in (0, 1), got 0.0"),
        ({"radius_scale": 0.0}, "radius_scale must be positive, got 0.0"),
        ({"alpha": 1.0}, "alpha must exceed 1, got 1.0"),
        ({"k1": 10.9}, "k1 must exceed 1 + 1 / (alpha - 1), got 10.9"),
        ({"cap": 0}, "cap must be at least 1, got 0"),
        ({"burst": 0}, "burst must be at least 1, got 0"),
        ({"levels": 0}, "levels must be at least 1, got 0"),
        ({"levels": 2**15}, "levels must give m levels^2 < 2^31"),
        ({"interval": "ucb"}, "interval must be one of ('lil', 'lemma1', 'kl'), got 'ucb'"),
        ({"scale": "log"}, "scale must be one of ('mean', 'root'), got 'log'"),
        ({"union": "all"}, "union must be one of ('points', 'pairs'), got 'all'"),
        ({"ties": "first"}, "ties must be one of ('none', 'lowest'), got 'first'"),
        ({"triangle": "cosine"}, "triangle must be None or one of ('metric', 'squared'), got 'cosine'"),
        ({"triangle": "squared", "scale": "root"}, "triangle must be 'metric' with scale='root', got 'squared'"),
        ({"dtype": "int32"}, "dtype must be a float type, got 'int32'"),
    ],
    ids=str,
)
def test_bad_arguments(arguments, message):
    arguments = {"n": 5, "m": 4, "k": 3} | arguments
    with pytest.raises(ValueError, match=re.escape(message)):
        ds_ucb(arguments.pop("n"), arguments.pop("m"), arguments.pop("k"), **arguments)
