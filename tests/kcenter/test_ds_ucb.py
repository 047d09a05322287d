import functools
import re
from functools import partial

import jax
import numpy as np
import pytest
from drivers.kcenter_ds import KEY, follow, tape

from experiments.bench.reference import kcenter_ds as reference
from jaxbandits.engine.run.loop import run
from jaxbandits.kcenter import (
    KL,
    Dimensions,
    Lil,
    dimension_instance,
    ds_ucb,
    environment,
    greedy,
    pairwise_sums,
)

PIXELS = np.random.default_rng(0).integers(0, 17, (8, 30)).astype(np.uint8)
LEVELS = 16
CONSTANT = np.repeat([[0.0], [0.5], [0.9]], 4, axis=1)


@functools.cache
def runner(n, m, k, *, chunk=256, leap=4, lanes=False, max_rounds=20_000, **options):
    """Returns a compiled run of float points, a function of points, key, delta, radius_scale and first_center."""

    @jax.jit
    def one(points, exact, key, radius_scale, settings):
        algorithm = ds_ucb(Dimensions(n, m, k), interval=Lil(radius_scale), leap=leap, **settings, **options)
        instance = dimension_instance(points, k=k, exact=exact)
        return run(key, algorithm, environment(instance, algorithm), max_rounds=max_rounds, chunk=chunk)

    batch = jax.jit(jax.vmap(one, (None, None, 0, None, None))) if lanes else one

    def call(points, key=KEY, *, delta=0.1, radius_scale=0.1, first_center=0):
        settings = {"delta": delta, "first_center": first_center}
        return batch(points, pairwise_sums(points), key, radius_scale, settings)

    return call


@pytest.mark.parametrize(
    ("options", "queries", "counts"),
    [
        ({}, 10, [0, 2, 5]),  # node 2 has been read: its count is one more than the cap of 4
        ({"scale": "root"}, 11, [0, 3, 5]),
        ({"interval": Lil(union="pairs")}, 10, [0, 2, 5]),
        ({"interval": KL()}, 16, [0, 5, 5]),
    ],
    ids=str,
)
def test_three_constant_rows_by_hand(options, queries, counts):
    state, _ = follow(partial(ds_ucb, delta=0.1, **options), CONSTANT, k=2, rounds=20)(tape(0, 4))
    assert state.stage.centers.tolist() == [0, 2]
    assert state.stage.queries.tolist() == [queries]
    assert state.pulls == queries
    assert state.counts[:, 0].tolist() == counts


def test_cached_bounds_are_the_bounds_of_counts_and_sums():
    state, _ = follow(partial(ds_ucb, delta=0.1), PIXELS, k=4, rounds=150, levels=LEVELS)(tape(1, 30))
    t, total = np.asarray(state.counts), np.asarray(state.arms.tree.sums) / LEVELS**2
    lower, upper = np.zeros((8, 3)), np.full((8, 3), np.finfo(float).max)
    for arm in zip(*np.nonzero(t), strict=True):
        exact = (total[arm] / 30,) * 2
        lower[arm], upper[arm] = exact if t[arm] > 30 else reference.lil(total[arm] / t[arm], int(t[arm]), 0.1 / 8)
    assert (t > 30).any()
    np.testing.assert_allclose(state.arms.tree.lower, lower, rtol=1e-14)
    np.testing.assert_allclose(state.arms.tree.upper, upper, rtol=1e-14)
    smallest = np.min(np.asarray(state.arms.tree.upper)[:, : int(state.stage.found)], axis=1)
    smallest[np.isin(np.arange(8), state.stage.centers)] = np.finfo(float).min
    np.testing.assert_array_equal(state.least_upper.values.ravel()[:8], smallest)
    np.testing.assert_array_equal(state.least_upper.top, state.least_upper.values.max(axis=1))
    np.testing.assert_array_equal(state.least_upper.second, np.sort(state.least_upper.values, axis=1)[:, -2])
    # An arm that is read costs 2 m = 60 queries.
    assert state.pulls == np.where(t > 30, 60, t).sum()
    assert state.pulls == int(state.stage.queries.sum())


def points_with_gaps(n, m, seed):
    rng = np.random.default_rng(seed)
    return 0.5 + rng.uniform(0.05, 1, (n, 1)) * (rng.random((n, m)) - 0.5)


def test_wider_intervals_cost_queries_and_save_errors():
    points = points_with_gaps(8, 40, 1)
    truth = greedy(pairwise_sums(points), k=3, first_center=0).centers
    keys = jax.random.split(KEY, 20)
    call = runner(8, 40, 3, lanes=True, chunk=7)
    usual, narrow = call(points, keys), call(points, keys, radius_scale=0.001)
    pairs = call(points, keys, delta=0.1 / 8)  # the delta of union="pairs"
    wrong = np.any(np.asarray(narrow.answer.indices) != truth, axis=1)
    assert 0.2 < wrong.mean() < 1
    assert not np.any(np.asarray(usual.answer.indices) != truth)
    assert narrow.pulls.mean() < usual.pulls.mean() < pairs.pulls.mean()
    alone = runner(8, 40, 3)(points, keys[7])  # other chunks, and one run only
    np.testing.assert_array_equal(usual.state.counts[7], alone.state.counts)


@pytest.mark.parametrize("ties", ["none", "lowest"])
def test_equal_distances_are_never_decided_without_ties_lowest(ties):
    rule = partial(ds_ucb, delta=0.1, ties=ties)
    state, queried = follow(rule, CONSTANT[[0, 2, 1, 2]], k=2, rounds=40)(tape(0, 4))
    # Four queries and one reading of either of the equal nodes, and two queries of the node between them.
    assert state.counts[:, 0].tolist() == [0, 5, 2, 5]
    assert state.pulls == 18
    decision = rule(Dimensions(4, 4, 2)).decide(KEY, state)
    assert decision.answer.indices.tolist() == [0, 1]
    assert decision.stop == (ties == "lowest")
    assert np.all(queried[-20:, 0] == 4)


def test_bounds_that_tie_by_rounding_do_not_count_as_equal_distances():
    """At some delta the upper bound of node 2, not read, equals in every bit the bound of node 1, known exactly."""

    def after(rounds, delta):
        return drives[rounds](tape(0, 4), delta)[0]

    drives = {
        rounds: follow(
            lambda problem, delta, leap: ds_ucb(problem, delta=delta, leap=leap),
            CONSTANT[[0, 2, 1]],
            k=2,
            rounds=rounds,
        )
        for rounds in (8, 12)
    }
    low, high = 0.005, 0.02
    for _ in range(60):
        delta = (low + high) / 2
        state = after(8, delta)
        assert state.counts[:, 0].tolist() == [0, 5, 2]
        if state.query.tied >= 0:
            break
        low, high = (delta, high) if state.stage.found == 1 else (low, delta)
    assert state.query.tied >= 0
    state = after(12, delta)
    assert state.stage.centers.tolist() == [0, 1]
    assert state.counts[:, 0].tolist() == [0, 5, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 10**5, "m": 2 * 10**4}, "problem.n must give n m (k-1) < 2^31"),
        ({"levels": 2**15}, "problem.levels must give m levels^2 < 2^31"),
        ({"first_center": 5}, "first_center must be an integer in [0, 4], got 5"),
        ({"interval": KL(1.0)}, "interval.alpha must be more than 1, got 1.0"),
        ({"interval": KL(k1=10.9)}, "interval.k1 must exceed 1 + 1 / (alpha - 1), got 10.9"),
        ({"triangle": "squared", "scale": "root"}, "triangle must be 'metric' with scale='root', got 'squared'"),
    ],
    ids=str,
)
def test_bad_arguments(arguments, message):
    sizes = {"n": 5, "m": 4, "k": 3, "levels": None}
    problem = Dimensions(**{name: arguments.pop(name, size) for name, size in sizes.items()})
    with pytest.raises(ValueError, match=re.escape(message)):
        ds_ucb(problem, **{"delta": 0.1} | arguments)
