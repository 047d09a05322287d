"""Exact distances, and the exact solution."""

import jax
import numpy as np
import pytest

from jaxbandits import kcenter
from jaxbandits.kcenter._problem import exact

RNG = np.random.default_rng(3)
PIXELS = RNG.integers(0, 256, (6, 40)).astype(np.uint8)
FLOATS = RNG.random((6, 40))
# A metric table of six points, all distances in (0, 1).
TABLE = np.abs(np.subtract.outer(x := np.array([0.0, 0.07, 0.3, 0.55, 0.8, 0.99]), x))


def brute_sums(points):
    points = points.astype(np.int64 if points.dtype.kind in "iu" else float)
    return np.square(points[:, None] - points[None]).sum(axis=-1)


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
    sums = kcenter.pairwise_sums(points)
    assert sums.dtype == np.int32
    np.testing.assert_array_equal(sums, brute_sums(points))


def test_pairwise_sums_at_the_largest_values():
    np.testing.assert_array_equal(kcenter.pairwise_sums(np.array([[0], [46340]]))[0], [0, 46340**2])
    with pytest.raises(ValueError, match=r"points must have m \(max - min\)\^2 < 2\^31, got 2147488281"):
        kcenter.pairwise_sums(np.array([[0], [46341]]))


def test_pairwise_sums_of_floats_come_from_differences():
    points = np.concatenate([FLOATS, FLOATS[:2]]) + 1e6
    sums = kcenter.pairwise_sums(points)
    np.testing.assert_allclose(sums, brute_sums(points), rtol=1e-14)
    assert sums[0, 6] == sums[1, 7] == 0
    np.testing.assert_array_equal(sums, sums.T)
    np.testing.assert_array_equal(sums[6], sums[0])  # equal points tie in every bit
    assert kcenter.pairwise_sums(FLOATS.astype(np.float32)).dtype == np.float32


def test_normalised_distances():
    distances = kcenter.normalised_distances(kcenter.pairwise_sums(PIXELS), m=40, levels=255)
    expected = np.square((PIXELS[:, None] - PIXELS[None].astype(float)) / 255).mean(axis=-1)
    np.testing.assert_allclose(distances, expected, rtol=1e-14)
    floats = kcenter.normalised_distances(kcenter.pairwise_sums(FLOATS), m=40, dtype=np.float32)
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
    solution = kcenter.greedy_from_points(rows, k=3)
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
        table = kcenter.greedy(sums, k=6, first_center=first)
        direct = kcenter.greedy_from_points(points, k=6, first_center=first, levels=2)
        np.testing.assert_array_equal(table.centers, expected)
        np.testing.assert_array_equal(direct.centers, expected)
        np.testing.assert_allclose(direct.bottlenecks, table.bottlenecks / 16)
        np.testing.assert_allclose(direct.gaps, table.gaps / 16)
        for p in range(1, 6):
            nearest = sums[:, expected[:p]].min(axis=1)
            assert table.bottlenecks[p - 1] == nearest.max()
            free = np.delete(nearest, expected[:p])
            assert table.gaps[p - 1] == np.sort(free)[-1] - np.sort(free)[-2]


def test_greedy_in_blocks_of_points_is_the_same(monkeypatch):
    whole = kcenter.greedy_from_points(PIXELS, k=4, levels=255)
    sums = kcenter.pairwise_sums(PIXELS)
    monkeypatch.setattr(exact, "POINTS_AT_ONCE", 4)
    jax.tree.map(np.testing.assert_array_equal, kcenter.greedy_from_points(PIXELS, k=4, levels=255), whole)
    np.testing.assert_array_equal(kcenter.pairwise_sums(PIXELS), sums)


def test_naive_greedy_counts_its_queries():
    naive = kcenter.naive_greedy(PIXELS, k=3, first_center=1, levels=255)
    expected = kcenter.greedy_from_points(PIXELS, k=3, first_center=1, levels=255)
    jax.tree.map(np.testing.assert_array_equal, naive.greedy, expected)
    assert (naive.printed, naive.needed) == (6 * 40 * 3, 40 * (5 + 4))
    assert kcenter.naive_queries(1000, 12288, 10) == (122_880_000, 12288 * (9 * 1000 - 45))


def test_greedy_refuses_a_first_center_past_the_points():
    for solve, points in (
        (kcenter.greedy, TABLE),
        (kcenter.greedy_from_points, FLOATS),
        (kcenter.naive_greedy, FLOATS),
    ):
        with pytest.raises(ValueError, match=r"first_center must be an integer in \[0, 5\], got 6"):
            solve(points, k=3, first_center=6)
