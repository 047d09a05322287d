"""The laws of the environments, the exact solution, and the score of an answer.

A test of a law draws from fixed seeds and admits five standard errors.
"""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.kcenter import problem
from jaxbandits.kcenter.problem import Counts, PairPull, Pull, dimension_sampling, noisy_distances

DRAWS = 20_000
RNG = np.random.default_rng(3)
PIXELS = RNG.integers(0, 256, (6, 40)).astype(np.uint8)
FLOATS = RNG.random((6, 40))
# A metric table of six points, all distances in (0, 1).
TABLE = np.abs(np.subtract.outer(x := np.array([0.0, 0.07, 0.3, 0.55, 0.8, 0.99]), x))


def brute_sums(points):
    points = points.astype(np.int64 if points.dtype.kind in "iu" else float)
    return np.square(points[:, None] - points[None]).sum(axis=-1)


def pull(node, slot, centers, exact=False):
    return Pull(jnp.int32(node), jnp.int32(slot), jnp.array(centers, jnp.int32), jnp.array(exact))


def pair(nodes, slots, centers):
    return PairPull(*(jnp.array(x, jnp.int32) for x in (nodes, slots, centers)))


def counts(pulls, centers):
    return Counts(jnp.array(pulls, jnp.int32), jnp.array(centers, jnp.int32))


@functools.cache
def sampler(environment):
    one = jax.vmap(lambda key, action: environment.respond(action, environment.noise(key)), (0, None))
    return jax.jit(lambda key, action: one(jax.random.split(key, DRAWS), action))


def sample(environment, action, seed=0):
    """Independent observations of one action, stacked."""
    return jax.tree.map(np.asarray, sampler(environment)(jax.random.key(seed), action))


def assert_moments(values, mean, variance, fourth=3.0):
    """Mean and variance over axis 0 within five standard errors; `fourth` bounds the standardised fourth moment."""
    error = np.sqrt(variance / len(values))
    assert np.all(np.abs(values.mean(axis=0) - mean) <= 5 * error + 1e-12)
    spread = np.square(values - mean).mean(axis=0)
    assert np.all(np.abs(spread - variance) <= 5 * variance * np.sqrt((fourth - 1) / len(values)) + 1e-12)


# Dimension sampling


@pytest.mark.parametrize(("points", "levels", "dtype"), [(PIXELS, 255, jnp.int32), (FLOATS, None, jnp.float64)])
def test_a_sample_holds_the_drawn_dimensions_against_every_slot(points, levels, dtype):
    environment = dimension_sampling(points, levels=levels, burst=3)
    dims = jnp.array([5, 39, 0], jnp.int32)
    found = jax.jit(environment.respond)(pull(4, 1, [2, 0]), dims)
    wide = points.astype(np.int64 if levels else float)
    np.testing.assert_array_equal(found.rewards, np.square(wide[4, [5, 39, 0], None] - wide[[2, 0]][:, [5, 39, 0]].T))
    np.testing.assert_allclose(found.exact, brute_sums(points)[4, 0], rtol=1e-15)
    assert found.rewards.dtype == found.exact.dtype == dtype


def test_rows_pick_the_instance_from_shared_points():
    rows = np.array([5, 0, 3], np.int32)
    shared = dimension_sampling(PIXELS, levels=255, burst=2, rows=rows)
    own = dimension_sampling(PIXELS[rows], levels=255, burst=2)
    noise = own.noise(jax.random.key(1))
    np.testing.assert_array_equal(shared.noise(jax.random.key(1)), noise)
    for action in (pull(0, 1, [1, 2]), pull(2, 0, [1, 0]), pull(1, 1, [0, 2])):
        jax.tree.map(np.testing.assert_array_equal, shared.respond(action, noise), own.respond(action, noise))


def test_what_is_not_asked_is_not_read():
    """An action past the nodes or the slots, and centers that are not found yet, spoil nothing."""
    environment = dimension_sampling(FLOATS, burst=2)
    noise = environment.noise(jax.random.key(0))
    for action in (pull(6, 0, [0, -1]), pull(1, 2, [0, -1])):
        assert all(np.all(np.isfinite(x)) for x in environment.respond(action, noise))
    first = environment.respond(pull(4, 0, [2, -1]), noise)
    other = environment.respond(pull(4, 0, [2, 5]), noise)
    np.testing.assert_array_equal(first.rewards[:, 0], other.rewards[:, 0])
    assert first.exact == other.exact


def test_dimensions_are_uniform_and_independent_within_a_burst():
    environment = dimension_sampling(PIXELS, levels=255, burst=2)
    dims = np.asarray(jax.vmap(environment.noise)(jax.random.split(jax.random.key(0), DRAWS)))
    assert dims.dtype == np.int32
    assert dims.shape == (DRAWS, 2)
    shares = np.bincount(dims.ravel(), minlength=40) / dims.size
    assert np.all(np.abs(shares - 1 / 40) < 5 * np.sqrt(1 / 40 / dims.size))
    joint = np.mean((dims[:, 0] < 20) & (dims[:, 1] < 20))
    assert abs(joint - 0.25) < 5 * np.sqrt(0.25 * 0.75 / DRAWS)


def test_a_reward_has_the_distance_for_its_mean():
    rewards = sample(dimension_sampling(PIXELS, levels=255), pull(4, 1, [2, 0])).rewards[:, 0, :] / 255**2
    exact = np.square((PIXELS[[4]].astype(float) - PIXELS[[2, 0]]) / 255)
    fourth = np.max(np.mean((exact.T - exact.mean(axis=1)) ** 4, axis=0) / exact.var(axis=1) ** 2)
    assert_moments(rewards, exact.mean(axis=1), exact.var(axis=1), fourth)


def test_environments_can_be_made_under_a_trace():
    table = problem.pairwise_sums(PIXELS)

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(None, None, 0))
    def reads(points, table, rows):
        environment = dimension_sampling(points, exact=table, rows=rows, levels=255)
        return environment.respond(pull(1, 0, [0], exact=True), environment.noise(jax.random.key(0))).exact

    rows = np.array([[0, 1], [4, 2]], np.int32)
    np.testing.assert_array_equal(reads(PIXELS, table, rows), brute_sums(PIXELS)[rows[:, 1], rows[:, 0]])
    with pytest.raises(ValueError, match=r"exact must be pairwise_sums\(points\) where points are traced, got None"):
        jax.eval_shape(lambda points: dimension_sampling(points, levels=255).noise(jax.random.key(0)), PIXELS)


# Noisy distances


def test_gaussian_rewards():
    one = noisy_distances(TABLE, variance=0.04, action=Pull)
    assert_moments(sample(one, pull(3, 1, [0, 5])), TABLE[3, 5], 0.04)
    two = noisy_distances(TABLE, variance=0.04)
    found = sample(two, pair([3, 1], [1, 0], [0, 5]))
    assert_moments(found, TABLE[[3, 1], [5, 0]], 0.04)
    assert abs(np.corrcoef(found.T)[0, 1]) < 5 / np.sqrt(DRAWS)


def test_sums_of_gaussian_rewards():
    pulls = np.array([[0, 1], [5, 1000], [1, 0], [0, 0], [2, 2], [10**6, 3]])
    found = sample(noisy_distances(TABLE, variance=0.04, action=Counts), counts(pulls, [0, 4]))
    assert_moments(found, pulls * TABLE[:, [0, 4]], 0.04 * pulls)
    assert np.all(found[:, pulls == 0] == 0)


def test_bernoulli_rewards():
    one = noisy_distances(TABLE, noise="bernoulli", action=Pull)
    found = sample(one, pull(3, 1, [0, 5]))
    assert found.dtype == np.int32
    assert set(found) == {0, 1}
    assert_moments(found, TABLE[3, 5], TABLE[3, 5] * (1 - TABLE[3, 5]))
    two = sample(noisy_distances(TABLE, noise="bernoulli"), pair([3, 2], [1, 0], [2, 5]))
    chance = TABLE[[3, 2], [5, 2]]
    assert chance[1] == 0
    assert_moments(two, chance, chance * (1 - chance))
    assert np.all(two[:, 1] == 0)


def test_sums_of_bernoulli_rewards():
    """Up to the counts at which JAX's sampler in 32 bit is wrong."""
    certain = np.where(TABLE > 0.98, 1.0, TABLE)
    pulls = np.array([[0, 7], [5, 1000], [1, 0], [0, 0], [2, 2], [10, 10**7]])
    chance = certain[:, [0, 4]]
    found = sample(noisy_distances(certain, noise="bernoulli", action=Counts), counts(pulls, [0, 4]))
    assert found.dtype == np.int32
    assert_moments(found, pulls * chance, pulls * chance * (1 - chance), fourth=20)
    assert np.all(found[:, 5, 0] == 10)
    with (
        jax.enable_x64(False),
        pytest.raises(ValueError, match="jax_enable_x64 must be on for binomial sums, got False"),
    ):
        noisy_distances(TABLE.astype(np.float32), noise="bernoulli", action=Counts)


def test_noisy_rows_dtype_and_no_noise():
    rows = np.array([5, 0, 3], np.int32)
    silent = noisy_distances(TABLE.astype(np.float32), variance=0.0, rows=rows)
    found = silent.respond(pair([0, 2], [1, 0], [1, 2]), silent.noise(jax.random.key(0)))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, TABLE.astype(np.float32)[[5, 3], [3, 0]])
    block = noisy_distances(TABLE, variance=0.0, rows=rows, action=Counts)
    sums = block.respond(counts([[1, 2], [0, 1], [3, 0]], [1, 2]), block.noise(jax.random.key(0)))
    np.testing.assert_array_equal(sums, np.array([[1, 2], [0, 1], [3, 0]]) * TABLE[np.ix_(rows, [0, 3])])
    idle = silent.respond(pair([3, 3], [2, 2], [1, -1]), silent.noise(jax.random.key(0)))
    assert np.all(np.isfinite(idle))


# Exact distances


@pytest.mark.parametrize(
    ("size", "m", "top", "dtype"),
    [
        (7, 2500, 255, np.uint8),  # three pieces in float32
        (1030, 3, 16, np.uint8),  # two blocks of points
        (9, 300, 2600, np.int16),  # in float64
        (5, 40, 1, np.uint8),
    ],
)
def test_pairwise_sums_of_integers_are_exact(size, m, top, dtype):
    points = np.random.default_rng(size).integers(0, top + 1, (size, m)).astype(dtype)
    points[0], points[1] = 0, top
    sums = problem.pairwise_sums(points)
    assert sums.dtype == np.int32
    np.testing.assert_array_equal(sums, brute_sums(points))


def test_pairwise_sums_at_the_largest_values():
    np.testing.assert_array_equal(problem.pairwise_sums(np.array([[0], [46340]]))[0], [0, 46340**2])
    with pytest.raises(ValueError, match=r"points must have m \(max - min\)\^2 < 2\^31, got 2147488281"):
        problem.pairwise_sums(np.array([[0], [46341]]))


def test_pairwise_sums_of_floats_come_from_differences():
    points = np.concatenate([FLOATS, FLOATS[:2]]) + 1e6
    sums = problem.pairwise_sums(points)
    np.testing.assert_allclose(sums, brute_sums(points), rtol=1e-14)
    assert sums[0, 6] == sums[1, 7] == 0
    np.testing.assert_array_equal(sums, sums.T)
    np.testing.assert_array_equal(sums[6], sums[0])  # equal points are tied, to the last bit
    assert problem.pairwise_sums(FLOATS.astype(np.float32)).dtype == np.float32


def test_normalised_distances():
    found = problem.normalised_distances(problem.pairwise_sums(PIXELS), m=40, levels=255)
    expected = np.square((PIXELS[:, None] - PIXELS[None].astype(float)) / 255).mean(axis=-1)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    floats = problem.normalised_distances(problem.pairwise_sums(FLOATS), m=40, dtype=np.float32)
    np.testing.assert_allclose(floats, brute_sums(FLOATS) / 40, rtol=1e-6)
    assert floats.dtype == np.float32


# The exact solution


def brute_greedy(distances, first, k):
    centers = [first]
    while len(centers) < k:
        others = [v for v in range(len(distances)) if v not in centers]
        centers.append(max(others, key=lambda v: (min(distances[v, s] for s in centers), -v)))
    return centers


def test_greedy_by_hand():
    rows = np.repeat([[0.0], [0.5], [0.9]], 4, axis=1)
    solution = problem.greedy_from_points(rows, k=3)
    np.testing.assert_array_equal(solution.centers, [0, 2, 1])
    np.testing.assert_allclose(solution.bottlenecks, [0.81, 0.16])
    np.testing.assert_allclose(solution.gaps, [0.56, np.inf])
    assert solution.centers.dtype == np.int32


@pytest.mark.parametrize("seed", range(5))
def test_greedy_by_brute_force(seed):
    # Few levels, so that ties are common.
    points = np.random.default_rng(seed).integers(0, 3, (12, 4)).astype(np.uint8)
    sums = brute_sums(points)
    for first in (0, 11):
        expected = brute_greedy(sums, first, 6)
        table = problem.greedy(sums, k=6, first_center=first)
        direct = problem.greedy_from_points(points, k=6, first_center=first, levels=2)
        np.testing.assert_array_equal(table.centers, expected)
        np.testing.assert_array_equal(direct.centers, expected)
        np.testing.assert_allclose(direct.bottlenecks, table.bottlenecks / 16)
        np.testing.assert_allclose(direct.gaps, table.gaps / 16)
        for p in range(1, 6):
            nearest = sums[:, expected[:p]].min(axis=1)
            assert table.bottlenecks[p - 1] == nearest.max()
            free = np.delete(nearest, expected[:p])
            assert table.gaps[p - 1] == np.sort(free)[-1] - np.sort(free)[-2]


def test_blocks_of_points_do_not_matter(monkeypatch):
    whole = problem.greedy_from_points(PIXELS, k=4, levels=255)
    sums = problem.pairwise_sums(PIXELS)
    monkeypatch.setattr(problem, "BLOCK", 4)
    jax.tree.map(np.testing.assert_array_equal, problem.greedy_from_points(PIXELS, k=4, levels=255), whole)
    np.testing.assert_array_equal(problem.pairwise_sums(PIXELS), sums)


def test_naive_greedy_counts_its_queries():
    naive = problem.naive_greedy(PIXELS, k=3, first_center=1, levels=255)
    expected = problem.greedy_from_points(PIXELS, k=3, first_center=1, levels=255)
    jax.tree.map(np.testing.assert_array_equal, naive.greedy, expected)
    assert (naive.printed, naive.needed) == (6 * 40 * 3, 40 * (5 + 4))
    assert problem.naive_queries(1000, 12288, 10) == (122_880_000, 12288 * (9 * 1000 - 45))


# The value of an answer


def test_matches_and_radius_by_hand():
    truth = jnp.array([0, 5, 3], jnp.int32)
    answers = jnp.array([[0, 5, 3], [0, 3, 5], [0, 5, 2], [0, 5, -1], [0, -1, -1]], jnp.int32)
    match = jax.jit(jax.vmap(lambda a: problem.centers_match(a, truth)))(answers)
    np.testing.assert_array_equal(match.ordered, [True, False, False, False, False])
    np.testing.assert_array_equal(match.members, [True, True, False, False, False])
    # Points 0, .07, .3, .55, .8, .99: what lies farthest from its center.
    radii = jax.jit(jax.vmap(lambda a: problem.radius(a, TABLE)))(answers)
    np.testing.assert_allclose(radii, [0.25, 0.25, 0.25, 0.44, 0.99])
    ratios = jax.vmap(lambda a: problem.radius_ratio(a, truth, TABLE))(answers)
    np.testing.assert_allclose(ratios, [1, 1, 1, 1.76, 3.96])


def test_radius_on_rows_of_a_shared_table_of_integers():
    rows = np.array([5, 0, 3], np.int32)
    table = jnp.asarray(np.round(TABLE * 100).astype(np.int32))
    assert problem.radius(jnp.array([0, 1]), table, rows) == 44  # point 3 is .44 from point 5
    ratio = problem.radius_ratio(jnp.array([1, -1]), jnp.array([0, 1]), table, rows)
    assert ratio == 99 / 44
    with jax.enable_x64(False):
        assert problem.radius_ratio(jnp.array([1, -1]), jnp.array([0, 1]), table, rows).dtype == jnp.float32


# Bad input


def spoiled(table, *entries):
    table = table.copy()
    for place, value in entries:
        table[place] = value
    return table


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        (np.zeros(3), {}, "points must have shape (n, m), got (3,)"),
        (np.zeros((1, 3)), {}, "points must have n >= 2 rows and m >= 1 columns, got (1, 3)"),
        (np.zeros((3, 0)), {}, "points must have n >= 2 rows and m >= 1 columns, got (3, 0)"),
        (np.zeros((3, 2), bool), {}, "points must be integers or floats, got dtype('bool')"),
        (spoiled(FLOATS, ((0, 0), np.nan)), {}, "points must be finite, got"),
        (spoiled(FLOATS, ((0, 0), np.inf)), {}, "points must be finite, got"),
        (spoiled(FLOATS, ((0, 0), 1.5)), {}, "points must lie in [0, 1], got ("),
        (spoiled(FLOATS, ((0, 0), -0.5)), {}, "points must lie in [0, 1], got (-0.5, "),
        (FLOATS, {"levels": 255}, "levels must be None for float points, which lie in [0, 1], got 255"),
        (PIXELS, {}, "levels must be given for integer points, got None"),
        (PIXELS, {"levels": 0}, "levels must be at least 1, got 0"),
        (PIXELS, {"levels": 16}, "points must lie in [0, 16], got ("),
        (PIXELS, {"levels": 10_000}, "levels must give m levels^2 < 2^31, as sums are int32, got 4000000000"),
        (PIXELS, {"levels": 255, "burst": 0}, "burst must be at least 1, got 0"),
        (PIXELS, {"levels": 255, "rows": [0, 6]}, "rows must lie in 0..5, got [0 6]"),
        (PIXELS, {"levels": 255, "rows": np.zeros((2, 2), int)}, "rows must be integers of shape (n,), got"),
        (PIXELS, {"levels": 255, "exact": np.zeros((2, 2), np.int32)}, "exact must have shape (6, 6), got (2, 2)"),
        (
            PIXELS,
            {"levels": 255, "exact": np.zeros((6, 6))},
            "exact must have dtype int32, that of pairwise_sums(points)",
        ),
        (
            np.zeros((4097, 1)),
            {},
            "exact must be pairwise_sums(points), made once, for 4097 points, got None",
        ),
    ],
)
def test_bad_points(points, options, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        dimension_sampling(points, **options)


@pytest.mark.parametrize(
    ("distances", "options", "message"),
    [
        (TABLE[:3], {}, "distances must have shape (n, n), got (3, 6)"),
        (np.zeros((1, 1)), {}, "distances must have at least two points, got (1, 1)"),
        (np.zeros((2, 2), int), {}, "distances must be floats, got dtype('int64')"),
        (spoiled(TABLE, ((0, 1), np.nan)), {}, "distances must be finite, got"),
        (spoiled(TABLE, ((0, 1), 0.5)), {}, "distances must be symmetric up to 1e-09, got 0.43"),
        (spoiled(TABLE, ((2, 2), 0.5)), {}, "distances must have a zero diagonal, got [0.  0.  0.5 0.  0.  0. ]"),
        (spoiled(TABLE, ((0, 1), -0.5), ((1, 0), -0.5)), {}, "distances must be at least 0, got -0.5"),
        (2 * TABLE, {"noise": "bernoulli"}, "distances must be at most 1, got 1.98"),
        (TABLE, {"noise": "poisson"}, "noise must be 'gaussian' or 'bernoulli', got 'poisson'"),
        (TABLE, {"action": "pair"}, "action must be Pull, PairPull or Counts, got 'pair'"),
        (TABLE, {}, "variance must be given for Gaussian noise, got None"),
        (TABLE, {"variance": -1.0}, "variance must be at least 0, got -1.0"),
        (TABLE, {"variance": 1.0, "rows": [-1]}, "rows must lie in 0..5, got [-1]"),
    ],
)
def test_bad_distances(distances, options, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        noisy_distances(distances, **options)


def test_distances_above_one_are_lawful_for_gaussian_noise():
    noisy_distances(2 * TABLE, variance=1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 1}, "k must lie in 2..6, got 1"),
        ({"k": 7}, "k must lie in 2..6, got 7"),
        ({"k": 3, "first_center": 6}, "first_center must lie in 0..5, got 6"),
        ({"k": 3, "first_center": -1}, "first_center must lie in 0..5, got -1"),
    ],
)
def test_bad_greedy(options, message):
    for solve in (
        functools.partial(problem.greedy, TABLE),
        functools.partial(problem.greedy_from_points, FLOATS),
        functools.partial(problem.naive_greedy, FLOATS),
    ):
        with pytest.raises(ValueError, match="^" + re.escape(message)):
            solve(**options)


def test_bad_calls_of_the_rest():
    with pytest.raises(ValueError, match=r"indices must have shape \(3,\), got \(2,\)"):
        problem.centers_match(jnp.zeros(2, int), jnp.zeros(3, int))
    with pytest.raises(ValueError, match="m must be at least 1, got 0"):
        problem.normalised_distances(TABLE, m=0)
    with pytest.raises(ValueError, match="levels must be at least 1, got 0"):
        problem.normalised_distances(TABLE, m=1, levels=0)
    with pytest.raises(ValueError, match=r"points must have shape \(N, m\), got \(3,\)"):
        problem.pairwise_sums(np.zeros(3))
