"""Problems of k-center, which a learner may know, and instances.

n points have unknown distances d(u, v). Greedy k-center starts from one point and k - 1 times adds the point farthest
from the centers found so far. The task is to find its centers, in order, from noisy samples of distances.

d is a squared distance throughout, so greedy's radius is at most 4 times the optimum in d, twice in sqrt(d).
"""

from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array, static_fields
from jaxbandits.checks import is_concrete, require
from jaxbandits.kcenter._problem.exact import pairwise_sums
from jaxbandits.kcenter._problem.tables import as_array, check_distances, check_levels, check_points, sum_dtype

LARGEST_OWN_TABLE = 4096  # largest number of points whose pairwise sums an instance computes itself

Noise = Literal["gaussian", "bernoulli"]


@static_fields("n", "m", "k", "levels")
class Dimensions(NamedTuple):
    """Problem of finding k of n points in [0, 1]^m from single dimensions of their distances. Static for JAX."""

    n: int  # points, at least 2
    m: int  # dimensions, at least 1; n m (k-1), half the largest number of queries, is below 2^31
    k: int  # centers, in 2..n
    levels: int | None = None  # largest value of integer points, m levels^2 < 2^31; None for floats


@static_fields("n", "k", "noise")
class Distances(NamedTuple):
    """Problem of finding k of n points from noisy distances. Static for JAX."""

    n: int  # points, at least 2
    k: int  # centers, in 2..n
    noise: Noise = "gaussian"  # law of a reward: normal around the distance, or 1 with probability d


Problem = Dimensions | Distances


class DimensionInstance(NamedTuple):
    """Points whose dimensions are sampled. Many instances may share `points` and `exact`."""

    problem: Dimensions  # static
    points: Array  # (N, m)        integers in 0..levels or floats in [0, 1]
    exact: Array  # (N, N)         `pairwise_sums(points)`; int32, or the dtype of the points
    rows: Array | None = None  # int32 (n,)  points of this instance, in the order of its nodes; None for all


class DistanceInstance(NamedTuple):
    """Distances that are observed with noise. Many instances may share `distances`."""

    problem: Distances  # static
    distances: Array  # float (N, N)  symmetric, zero diagonal; at most 1 for Bernoulli rewards
    noise_scale: Array | float | None = None  # () >= 0  standard deviation of Gaussian rewards; None for Bernoulli ones
    rows: Array | None = None  # int32 (n,)  points of this instance, in the order of its nodes; None for all


def dimension_instance(
    points: Any, *, k: int, levels: int | None = None, exact: Any = None, rows: Any = None
) -> DimensionInstance:
    """Builds an instance whose distances are sampled by dimension: d(v, s) = sum_j (x_vj - x_sj)^2 / m.

    Args:
        points: (N, m), integers in 0..levels or floats in [0, 1]. Integers are kept, without a float copy. They stand
            for x = value / levels, and rewards are then integers in units of 1/levels^2, so that their sums are exact.
        k: number of centers, in 2..n.
        levels: largest value of integer points; None for floats.
        exact: (N, N), the table `pairwise_sums(points)`. If None, it is computed here, for up to 4096 points; if points
            are traced, in O(N^2 m) on the device. Instances that share points should share it too.
        rows: int (n,), the points of this instance, in the order of its nodes. If None, all.

    Returns:
        DimensionInstance.

    Raises:
        ValueError: points are not (N, m) with N >= 2 and m >= 1, not finite, out of range, or integers without levels;
            m levels^2 reaches 2^31; k is not an integer in 2..n; `exact` has another shape or dtype, or is missing for
            more than 4096 points; or `rows` is not a list of points.
    """
    points = as_array("points", points)
    check_points("points", points, levels)
    size, m = points.shape
    rows = _rows("rows", rows, size)
    n = size if rows is None else rows.size
    checks.whole("k", k, least=2, most=n)
    if exact is None:
        require(size <= LARGEST_OWN_TABLE, "exact", f"be pairwise_sums(points), made once, for {size} points", exact)
        exact = pairwise_sums(points) if is_concrete(points) else _traced_sums(points)
    _check_exact("exact", exact, points)
    return DimensionInstance(Dimensions(n, m, k, levels), jnp.asarray(points), jnp.asarray(exact), rows)


def distance_instance(
    distances: Any, *, k: int, noise_scale: Array | float | None = None, noise: Noise = "gaussian", rows: Any = None
) -> DistanceInstance:
    """Builds an instance whose distances are observed with noise.

    Args:
        distances: float (N, N), symmetric, with zero diagonal; at most 1 for Bernoulli rewards.
        k: number of centers, in 2..n.
        noise_scale: () >= 0, standard deviation of Gaussian rewards; None for Bernoulli ones.
        noise: the law of the rewards, "gaussian" or "bernoulli".
        rows: int (n,), the points of this instance, in the order of its nodes. If None, all.

    Returns:
        DistanceInstance.

    Raises:
        ValueError: distances are not such a table; k is not an integer in 2..n; `noise` is unknown; the noise scale is
            negative, missing for Gaussian rewards, or given for Bernoulli ones; or `rows` is not a list of points.
    """
    distances = as_array("distances", distances)
    checks.one_of("noise", noise, Noise)
    check_distances("distances", distances, largest=1.0 if noise == "bernoulli" else np.inf)
    rows = _rows("rows", rows, distances.shape[0])
    n = distances.shape[0] if rows is None else rows.size
    checks.whole("k", k, least=2, most=n)
    check_noise_scale("noise_scale", noise_scale, noise)
    return DistanceInstance(Distances(n, k, noise), jnp.asarray(distances), noise_scale, rows)


# Checks


def check_dimensions(problem: Any) -> None:
    """Raises `ValueError` unless `problem` is a valid `Dimensions`."""
    checks.instance("problem", problem, Dimensions)
    n, m, k, levels = problem
    checks.whole("problem.n", n, least=2)
    checks.whole("problem.m", m, least=1)
    checks.whole("problem.k", k, least=2, most=n)
    require(n * m * (k - 1) < 2**31, "problem.n", "give n m (k-1) < 2^31, half the most queries", n * m * (k - 1))
    if levels is not None:
        check_levels("problem.levels", levels, m)


def check_noisy(problem: Any) -> None:
    """Raises `ValueError` unless `problem` is a valid `Distances`."""
    checks.instance("problem", problem, Distances)
    checks.whole("problem.n", problem.n, least=2)
    checks.whole("problem.k", problem.k, least=2, most=problem.n)
    checks.one_of("problem.noise", problem.noise, Noise)


def check_instance(instance: Any) -> None:
    """Raises `ValueError` unless `instance` is one whose parts fit together; its arrays may be traced."""
    checks.instance("instance", instance, (DimensionInstance, DistanceInstance))
    problem = instance.problem
    if isinstance(instance, DimensionInstance):
        checks.instance("instance.problem", problem, Dimensions)
        points = as_array("instance.points", instance.points)
        check_points("instance.points", points, problem.levels)
        _check_exact("instance.exact", instance.exact, points)
        size, m = points.shape
        require(problem.m == m, "instance.problem.m", f"be {m}, the dimension of the points", problem.m)
    else:
        checks.instance("instance.problem", problem, Distances)
        checks.one_of("instance.problem.noise", problem.noise, Noise)
        largest = 1.0 if problem.noise == "bernoulli" else np.inf
        distances = as_array("instance.distances", instance.distances)
        check_distances("instance.distances", distances, largest=largest)
        check_noise_scale("instance.noise_scale", instance.noise_scale, problem.noise)
        size = distances.shape[0]
    rows = _rows("instance.rows", instance.rows, size)
    n = size if rows is None else rows.size
    require(problem.n == n, "instance.problem.n", f"be {n}, the number of points", problem.n)
    checks.whole("instance.problem.k", problem.k, least=2, most=n)


def check_noise_scale(name: str, noise_scale: Any, noise: Noise) -> None:
    """Raises `ValueError` unless the scale is at least 0 for Gaussian rewards, and None for Bernoulli rewards."""
    if noise == "gaussian":
        require(noise_scale is not None, name, "be given for Gaussian noise", noise_scale)
        checks.not_negative(name, noise_scale)
    else:
        require(noise_scale is None, name, "be None for Bernoulli noise", noise_scale)


def _check_exact(name: str, exact: Any, points: Any) -> None:
    exact = as_array(name, exact)
    size, dtype = points.shape[0], sum_dtype(points.dtype)
    require(exact.shape == (size, size), name, f"have shape {(size, size)}", exact.shape)
    require(exact.dtype == dtype, name, f"have dtype {dtype}, as pairwise_sums(points)", exact.dtype)
    if is_concrete(exact) and exact.dtype != jnp.int32:
        require(np.isfinite(np.asarray(exact)), name, "be finite", exact)


def _traced_sums(points: Array) -> Array:
    """Computes `pairwise_sums` of traced points. Integers are exact, floats are summed in their own dtype."""
    points = points.astype(sum_dtype(points.dtype))
    return lax.map(lambda point: jnp.sum((points - point[None]) ** 2, axis=1, dtype=points.dtype), points)


def _rows(name: str, rows: Any, size: int) -> Array | None:
    if rows is None:
        return None
    return checks.array(name, rows, ("n",), kind="int", dtype=jnp.int32, least=0, most=size - 1)


def check_reward_scale(noise_scale: Any, noise: Noise) -> None:
    """Raises `ValueError` unless a learner's noise scale is positive for Gaussian rewards, and None for others."""
    check_noise_scale("noise_scale", noise_scale, noise)
    if noise_scale is not None:
        checks.positive("noise_scale", noise_scale)
