"""Greedy k-center on exact distances, on the host: the centers that the algorithms must find.

All functions take and return NumPy arrays.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxbandits import checks
from jaxbandits.checks import require
from jaxbandits.kcenter._problem.tables import check_distances, check_levels, check_points, on_host

POINTS_AT_ONCE = 1024  # number of points converted to floats at a time


class Greedy(NamedTuple):
    """Exact solution."""

    centers: np.ndarray  # int32 (k,)      centers in order
    bottlenecks: np.ndarray  # float (k-1,)  distance of each new center to the centers before it
    gaps: np.ndarray  # float (k-1,)         lead of each new center over the runner-up; inf without a runner-up


class NaiveGreedy(NamedTuple):
    """Exact solution from all dimensions, and its number of queries."""

    greedy: Greedy  # solution
    printed: int  # n m k queries, the count of the paper's tables
    needed: int  # m queries of each candidate at each stage, m sum over p = 1..k-1 of (n - p)


def pairwise_sums(points: Any) -> np.ndarray:
    """Computes the sums sum_j (x_uj - x_vj)^2 of all pairs, on the host.

    Args:
        points: (N, m), integers or floats.

    Returns:
        (N, N), symmetric, with zero diagonal. For integers int32, and exact: 10,000 points of 12,288 dimensions take
        about 20 s on two cores. For floats, computed in float64 from the differences, one pair at a time, and rounded
        to the dtype of the points.

    Raises:
        ValueError: points are not (N, m), or a sum of integers may reach 2^31.
    """
    # This import takes a quarter of a second, which most programs need not spend.
    from scipy.spatial.distance import cdist

    points = on_host("points", points)
    require(points.ndim == 2 and points.size > 0, "points", "have shape (N, m)", points.shape)
    require(points.dtype.kind != "b" and np.isfinite(points), "points", "be finite numbers", points)
    if not np.issubdtype(points.dtype, np.integer):
        return cdist(points, points, "sqeuclidean").astype(points.dtype)
    size, m = points.shape
    low, high = int(points.min()), int(points.max())
    require(m * (high - low) ** 2 < 2**31, "points", "have m (max - min)^2 < 2^31", m * (high - low) ** 2)
    # Centring the values does not change distances. A matrix product of integers in floating point is exact while every
    # partial sum is below 2^24, or 2^53 in float64. float32 is twice as fast if the pieces are not too narrow.
    middle = (low + high) // 2
    width = 2**24 // max(high - middle, middle - low, 1) ** 2
    dtype, width = (np.float32, width) if width >= 512 else (np.float64, m)
    sums = np.empty((size, size), np.int32)
    squares = np.empty(size, np.int32)
    starts = range(0, size, POINTS_AT_ONCE)

    def centred(start: int) -> np.ndarray:
        return points[start : start + POINTS_AT_ONCE].astype(dtype) - dtype(middle)

    for first in starts:
        rows = centred(first)
        squares[first : first + POINTS_AT_ONCE] = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        for second in starts[: first // POINTS_AT_ONCE + 1]:
            columns = rows if second == first else centred(second)
            products = sums[first : first + POINTS_AT_ONCE, second : second + POINTS_AT_ONCE]
            products[...] = 0
            for start in range(0, m, width):
                piece = slice(start, start + width)
                products += (rows[:, piece] @ columns[:, piece].T).astype(np.int32)
            # In this order nothing passes 2^31: x.(x - y) is at most m (max - min)^2.
            products[...] = (squares[first : first + POINTS_AT_ONCE, None] - products) + (
                squares[second : second + POINTS_AT_ONCE] - products
            )
            sums[second : second + POINTS_AT_ONCE, first : first + POINTS_AT_ONCE] = products.T
    return sums


def normalised_distances(sums: Any, *, m: int, levels: int | None = None, dtype: Any = None) -> np.ndarray:
    """Computes distances from sums over all dimensions: sums / (m levels^2).

    Args:
        sums: `pairwise_sums(points)`, or a part of it.
        m: dimension of the points.
        levels: largest value of integer points; None for floats.
        dtype: floating dtype of the result. If None, float64.

    Returns:
        float, of the shape of sums, in [0, 1].

    Raises:
        ValueError: sums are not numbers of at least 0, `m` or `levels` is not an integer of at least 1, or m levels^2
            reaches 2^31.
    """
    sums = on_host("sums", sums)
    require(sums.size > 0 and sums.dtype.kind != "b", "sums", "be numbers", sums)
    require(np.isfinite(sums) & (sums >= 0), "sums", "be finite and at least 0", sums)
    checks.whole("m", m, least=1)
    if levels is not None:
        check_levels("levels", levels, m)
    dtype = np.float64 if dtype is None else checks.float_dtype("dtype", dtype)
    return (sums / (m * (levels or 1) ** 2)).astype(dtype)


def greedy(distances: Any, *, k: int, first_center: int = 0) -> Greedy:
    """Computes exact greedy k-center on a table of distances; ties go to the lowest index.

    Args:
        distances: (n, n), integers or floats, in any unit.
        k: number of centers, in 2..n.
        first_center: the point from which greedy starts.

    Returns:
        Greedy, its values in the unit of the distances. Cost: O(n k).

    Raises:
        ValueError: distances are not a table of distances, or an argument is out of range.

    Example:
        >>> places = np.array([0, 1, 5, 9])
        >>> print(greedy(abs(places[:, None] - places), k=3).centers)
        [0 3 2]
    """
    distances = on_host("distances", distances)
    check_distances("distances", distances, floats=False)
    return _greedy(lambda node: distances[node], len(distances), k, first_center)


def greedy_from_points(points: Any, *, k: int, first_center: int = 0, levels: int | None = None) -> Greedy:
    """Computes exact greedy k-center on points, without a table of distances.

    Args:
        points: (n, m), as for `dimension_instance`.
        k: number of centers, in 2..n.
        first_center: the point from which greedy starts.
        levels: largest value of integer points; None for floats.

    Returns:
        Greedy, its values being normalised distances in [0, 1]. Cost: O(n m k), about 4 s for 10,000 images of 12,288
        numbers and k = 10.

    Raises:
        ValueError: as `dimension_instance`, or an argument is out of range.
    """
    from scipy.spatial.distance import cdist

    points = on_host("points", points)
    check_points("points", points, levels)
    n, m = points.shape

    def sums(node: int) -> np.ndarray:
        # Integers are exact in float64, so ties are ties.
        center = points[node : node + 1].astype(np.float64)
        parts = [points[start : start + POINTS_AT_ONCE].astype(np.float64) for start in range(0, n, POINTS_AT_ONCE)]
        return np.concatenate([cdist(part, center, "sqeuclidean")[:, 0] for part in parts])

    centers, bottlenecks, gaps = _greedy(sums, n, k, first_center)
    unit = m * (levels or 1) ** 2
    return Greedy(centers, bottlenecks / unit, gaps / unit)


def naive_greedy(points: Any, *, k: int, first_center: int = 0, levels: int | None = None) -> NaiveGreedy:
    """Computes the baseline that reads every dimension of every distance it needs.

    Arguments and errors: see `greedy_from_points`.

    Returns:
        NaiveGreedy.
    """
    solution = greedy_from_points(points, k=k, first_center=first_center, levels=levels)
    n, m = np.shape(points)
    return NaiveGreedy(solution, *naive_queries(n, m, k))


def naive_queries(n: int, m: int, k: int) -> tuple[int, int]:
    """Returns the number of queries of `naive_greedy`.

    Args:
        n: number of points, at least 2.
        m: dimensions, at least 1.
        k: number of centers, in 2..n.

    Returns:
        (n m k, the count of the paper's tables; m sum over p = 1..k-1 of (n - p), the number really needed).

    Raises:
        ValueError: an argument is not an integer, or lies outside the range above.
    """
    checks.whole("n", n, least=2)
    checks.whole("m", m, least=1)
    checks.whole("k", k, least=2, most=n)
    return n * m * k, m * sum(n - p for p in range(1, k))


def _greedy(distances_to: Callable[[int], np.ndarray], n: int, k: int, first_center: int) -> Greedy:
    checks.whole("k", k, least=2, most=n)
    checks.whole("first_center", first_center, least=0, most=n - 1)
    centers, bottlenecks, gaps = [first_center], [], []
    nearest = np.full(n, np.inf)
    for _ in range(k - 1):
        nearest = np.minimum(nearest, distances_to(centers[-1]))
        nearest[centers] = -np.inf
        best = int(np.argmax(nearest))
        bottlenecks.append(nearest[best])
        gaps.append(nearest[best] - np.delete(nearest, best).max())
        centers.append(best)
    return Greedy(np.array(centers, np.int32), np.array(bottlenecks), np.array(gaps))
