"""Greedy k-center from noisy distances: actions, answers, environments, and the exact solution.

n points have unknown distances d(u, v). Greedy k-center starts from one point and k - 1 times adds the point that is
farthest from the centers found so far; wanted are its centers, in order, from noisy samples of distances. A stage finds
one center. Its arms are the pairs (node, slot): a node, and a slot of the list of centers. The last center never gets
arms, so there are k - 1 slots.

d is a squared distance throughout, so greedy's radius is at most 4 times the optimum in d, twice in sqrt(d).

Source: Jali, Karamchandani and Moharir, "Greedy k-Center from Noisy Distance Samples".
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Array, Environment, Key
from jaxbandits.checks import is_concrete, require, require_not_negative

LARGEST_OWN_TABLE = 4096  # points up to which an environment makes its own table of pairwise sums
BLOCK = 1024  # points that are converted to floats at a time
SYMMETRY = 1e-9  # distances that differ by less count as equal


class Pull(NamedTuple):
    """Queries one node against one slot. What comes back for a node or a slot that does not exist means nothing.

    The observation is a `Sample` from `dimension_sampling`, and a single reward () from `noisy_distances`.
    """

    node: Array  # int32 ()     n: nothing is queried
    slot: Array  # int32 ()
    centers: Array  # int32 (k-1,)  the centers found so far; entries past them are not read
    exact: Array  # bool ()     reads the whole arm, at the cost of m queries


class PairPull(NamedTuple):
    """Queries two nodes, each against its slot. The observation is two rewards (2,)."""

    node: Array  # int32 (2,)   n: nothing is queried
    slot: Array  # int32 (2,)
    centers: Array  # int32 (k-1,)


class Counts(NamedTuple):
    """Queries node v against slot i `pulls[v, i]` times. The observation is the sums of the rewards (n, k-1)."""

    pulls: Array  # int32 (n, k-1)
    centers: Array  # int32 (k-1,)


class Sample(NamedTuple):
    """What dimension sampling gives back, in units of levels^2 for integer points."""

    rewards: Array  # (burst, k-1)  one dimension a row, against every slot; int32, or the dtype of the points
    exact: Array  # ()              the sum over all dimensions for the slot that was asked


class Centers(NamedTuple):
    """The answer of an algorithm."""

    indices: Array  # int32 (k,)    the centers found, in order, then the best guess at the next one, then -1
    found: Array  # int32 ()
    queries: Array  # uint32 (k-1,) queries by stage, exact reads included


class Greedy(NamedTuple):
    """The exact solution, on the host."""

    centers: np.ndarray  # int32 (k,)      in order
    bottlenecks: np.ndarray  # float (k-1,)  distance of each new center to the centers before it
    gaps: np.ndarray  # float (k-1,)         how much farther it was than the runner-up; inf if there was none


class NaiveGreedy(NamedTuple):
    """The exact solution from all dimensions, and what it costs."""

    greedy: Greedy  # the centers
    printed: int  # n m k queries, as the paper's tables count
    needed: int  # m queries of each candidate at each stage, m sum over p = 1..k-1 of (n - p)


class Match(NamedTuple):
    """Whether an answer is greedy's."""

    ordered: Array  # bool ()  the same centers in the same order
    members: Array  # bool ()  the same set


# Environments


def dimension_sampling(
    points: Any, *, exact: Any = None, rows: Any = None, levels: int | None = None, burst: int = 1
) -> Environment:
    """Distances of points in [0, 1]^m, sampled one random dimension at a time.

    The distance is d(v, s) = sum_j (x_vj - x_sj)^2 / m. A query draws j uniformly, with replacement, and pays
    (x_vj - x_sj)^2. Integer points stand for x = value / levels, and rewards are then integers in units of 1/levels^2,
    so that their sums are exact.

    Many instances may share one array and one table: `rows` picks the points that make up this one.

    Args:
        points: (N, m), integers in 0..levels or floats in [0, 1]. Integers are kept as they are: no float copy is made.
        exact: (N, N), the table of `pairwise_sums(points)`. None: it is made here, for up to 4096 points with known
            values; who builds an environment more than once makes it once and passes it.
        rows: int (n,), the points of this instance, in the order of its nodes; None: all.
        levels: the largest value of integer points; None for floats.
        burst: dimensions drawn each round, at least 1.

    Returns:
        Environment for `Pull`, observed as `Sample`. Its noise is the dimensions, int32 (burst,). Cost per round:
        O(burst k) gathers.

    Raises:
        ValueError: points are not (N, m) with N >= 2 and m >= 1, not finite, out of range, or integers without levels;
            m levels^2 reaches 2^31; `exact` has another shape or dtype, or is missing where it cannot be made here;
            `rows` is not a list of points; or burst is below 1.

    Source: Jali, Karamchandani and Moharir, section IV (whose equation (4) squares the reward twice).
    """
    points = _array(points)
    check_points(points, levels)
    require(burst >= 1, "burst", "be at least 1", burst)
    size, m = points.shape
    if exact is None:
        require(is_concrete(points), "exact", "be pairwise_sums(points) where points are traced", exact)
        require(size <= LARGEST_OWN_TABLE, "exact", f"be pairwise_sums(points), made once, for {size} points", exact)
        exact = pairwise_sums(points)
    points, exact = jnp.asarray(points), jnp.asarray(exact)
    dtype = _sum_dtype(points.dtype)
    require(exact.shape == (size, size), "exact", f"have shape {(size, size)}", exact.shape)
    require(exact.dtype == dtype, "exact", f"have dtype {dtype}, that of pairwise_sums(points)", exact.dtype)
    place = _places(rows, size)

    def respond(pull: Pull, dims: Array) -> Sample:
        node, centers = place(pull.node), place(pull.centers)
        here = points.at[node, dims].get(mode="clip").astype(dtype)
        there = points.at[centers, dims[:, None]].get(mode="clip").astype(dtype)
        asked = exact.at[node, centers.at[pull.slot].get(mode="clip")].get(mode="clip")
        return Sample(jnp.square(here[:, None] - there), asked)

    return Environment(lambda key: jax.random.randint(key, (burst,), 0, m, jnp.int32), respond)


def noisy_distances(
    distances: Any,
    *,
    variance: Any = None,
    noise: Literal["gaussian", "bernoulli"] = "gaussian",
    action: type[Pull] | type[PairPull] | type[Counts] = PairPull,
    rows: Any = None,
) -> Environment:
    """Distances seen through noise: a query of (v, s) pays a normal variable of mean d(v, s), or 1 with chance d(v, s).

    m pulls of an arm are answered by one variable with the law of their sum, N(m d, m variance) or Binomial(m, d).

    Args:
        distances: float (N, N), symmetric, with zero diagonal; at most 1 for Bernoulli rewards.
        variance: () >= 0, of Gaussian rewards; not read for Bernoulli ones.
        noise: the law of the rewards.
        action: the class of the actions that will be asked; it selects the code.
        rows: int (n,), the points of this instance, in the order of its nodes; None: all. It lets many instances share
            one table.

    Returns:
        Environment. Its noise is standard normal or uniform, of the shape of the observation; for `Counts` it is the
        round's key. It observes Gaussian rewards in the dtype of the distances, Bernoulli ones as int32. Zero pulls
        give exactly 0. Cost per round: O(1), or O(n k) for `Counts`.

    Raises:
        ValueError: distances are not such a table; `noise` or `action` is unknown; the variance is missing or negative;
            `rows` is not a list of points; or binomial sums are asked for while `jax_enable_x64` is off: JAX draws them
            wrongly in 32 bit for large counts.
    """
    require(noise in ("gaussian", "bernoulli"), "noise", "be 'gaussian' or 'bernoulli'", noise)
    require(action in (Pull, PairPull, Counts), "action", "be Pull, PairPull or Counts", action)
    distances = _array(distances)
    require(jnp.issubdtype(distances.dtype, jnp.floating), "distances", "be floats", distances.dtype)
    check_distances(distances, largest=1.0 if noise == "bernoulli" else np.inf)
    distances = jnp.asarray(distances)
    dtype = distances.dtype
    place = _places(rows, distances.shape[0])
    n = distances.shape[0] if rows is None else _array(rows).shape[0]

    def means(nodes: Array, centers: Array) -> Array:
        return distances.at[place(nodes), place(centers)].get(mode="clip")

    def asked(action: Pull | PairPull) -> Array:
        return means(action.node, action.centers.at[action.slot].get(mode="clip"))

    def every(action: Counts) -> Array:
        return means(jnp.arange(n, dtype=jnp.int32)[:, None], action.centers)

    if noise == "bernoulli":
        if action is Counts:
            has_64_bit = jnp.result_type(float) == jnp.float64
            require(has_64_bit, "jax_enable_x64", "be on for binomial sums", has_64_bit)

            def respond_binomial(counts: Counts, key: Key) -> Array:
                chance = every(counts).astype(jnp.float64)
                return jax.random.binomial(key, counts.pulls.astype(jnp.float64), chance).astype(jnp.int32)

            return Environment(lambda key: key, respond_binomial)

        return Environment(
            _draw(jax.random.uniform, action, dtype),
            lambda action, uniform: (uniform < asked(action)).astype(jnp.int32),
        )

    require(variance is not None, "variance", "be given for Gaussian noise", variance)
    require_not_negative("variance", variance)
    deviation = jnp.sqrt(jnp.asarray(variance).astype(dtype))

    if action is Counts:

        def respond_sums(counts: Counts, key: Key) -> Array:
            # Drawn here, as only the action knows its number of slots; the key is drawn apart from it all the same.
            pulls = counts.pulls.astype(dtype)
            return pulls * every(counts) + jnp.sqrt(pulls) * deviation * jax.random.normal(key, pulls.shape, dtype)

        return Environment(lambda key: key, respond_sums)

    return Environment(
        _draw(jax.random.normal, action, dtype), lambda action, normal: asked(action) + deviation * normal
    )


def _draw(law: Callable[..., Array], action: Any, dtype: Any) -> Callable[[Key], Array]:
    shape = (2,) if action is PairPull else ()
    return lambda key: law(key, shape, dtype)


def _places(rows: Any, size: int) -> Callable[[Array], Array]:
    """From the nodes of an instance to the points of the shared arrays."""
    if rows is None:
        return lambda nodes: nodes
    rows = _array(rows)
    integers = jnp.issubdtype(rows.dtype, jnp.integer)
    require(rows.ndim == 1 and integers, "rows", "be integers of shape (n,)", rows)
    if is_concrete(rows):
        values = np.asarray(rows)
        require((values >= 0) & (values < size), "rows", f"lie in 0..{size - 1}", rows)
    table = jnp.asarray(rows, jnp.int32)
    return lambda nodes: table.at[nodes].get(mode="clip")


# Exact distances


def pairwise_sums(points: Any) -> np.ndarray:
    """The sums sum_j (x_uj - x_vj)^2 of all pairs, computed on the host.

    Args:
        points: (N, m), integers or floats.

    Returns:
        (N, N), symmetric, with zero diagonal. For integers int32, and exact: 10,000 points of 12,288 dimensions take
        about 20 s on two cores. For floats, computed in float64 from the differences, one pair at a time, and rounded
        to the dtype of the points.

    Raises:
        ValueError: points are not (N, m), or a sum of integers may reach 2^31.
    """
    from scipy.spatial.distance import cdist  # a quarter of a second, which most programs need not wait for

    points = np.asarray(points)
    require(points.ndim == 2, "points", "have shape (N, m)", points.shape)
    if not np.issubdtype(points.dtype, np.integer):
        return cdist(points, points, "sqeuclidean").astype(points.dtype)
    size, m = points.shape
    low, high = int(points.min()), int(points.max())
    require(m * (high - low) ** 2 < 2**31, "points", "have m (max - min)^2 < 2^31", m * (high - low) ** 2)
    # Distances do not change when the values are centred. A matrix product of integers in floating point is exact while
    # every partial sum is below 2^24, or 2^53 in float64; float32 is twice as fast if the pieces are not too narrow.
    middle = (low + high) // 2
    width = 2**24 // max(high - middle, middle - low, 1) ** 2
    dtype, width = (np.float32, width) if width >= 512 else (np.float64, m)
    sums = np.empty((size, size), np.int32)
    squares = np.empty(size, np.int32)
    starts = range(0, size, BLOCK)

    def block(start: int) -> np.ndarray:
        return points[start : start + BLOCK].astype(dtype) - dtype(middle)

    for first in starts:
        left = block(first)
        squares[first : first + BLOCK] = np.einsum("ij,ij->i", left, left, dtype=np.float64)
        for second in starts[: first // BLOCK + 1]:
            right = left if second == first else block(second)
            products = sums[first : first + BLOCK, second : second + BLOCK]
            products[...] = 0
            for column in range(0, m, width):
                piece = slice(column, column + width)
                products += (left[:, piece] @ right[:, piece].T).astype(np.int32)
            # In this order nothing passes 2^31: x.(x - y) is at most m (max - min)^2.
            products[...] = (squares[first : first + BLOCK, None] - products) + (
                squares[second : second + BLOCK] - products
            )
            sums[second : second + BLOCK, first : first + BLOCK] = products.T
    return sums


def normalised_distances(sums: Any, *, m: int, levels: int | None = None, dtype: Any = None) -> np.ndarray:
    """Distances from sums over all dimensions: sums / (m levels^2).

    Args:
        sums: `pairwise_sums(points)`, or a part of it.
        m: the dimension of the points.
        levels: the largest value of integer points; None for floats.
        dtype: of the result; by default float64.

    Returns:
        float, of the shape of sums, in [0, 1].

    Raises:
        ValueError: `m` or `levels` is below 1.
    """
    require(m >= 1, "m", "be at least 1", m)
    require(levels is None or levels >= 1, "levels", "be at least 1", levels)
    return (np.asarray(sums) / (m * (levels or 1) ** 2)).astype(np.float64 if dtype is None else dtype)


def greedy(distances: Any, *, k: int, first_center: int = 0) -> Greedy:
    """Exact greedy k-center on a table of distances; ties go to the lowest index.

    Args:
        distances: (n, n), integers or floats, in any unit.
        k: number of centers, in 2..n.
        first_center: the point it starts from.

    Returns:
        Greedy, its values in the unit of the distances. Cost: O(n k).

    Raises:
        ValueError: distances are not a table of distances, or an argument is out of range.

    Example:
        >>> places = np.array([0, 1, 5, 9])
        >>> print(greedy(abs(places[:, None] - places), k=3).centers)
        [0 3 2]
    """
    distances = np.asarray(distances)
    check_distances(distances)
    return _greedy(lambda node: distances[node], len(distances), k, first_center)


def greedy_from_points(points: Any, *, k: int, first_center: int = 0, levels: int | None = None) -> Greedy:
    """Exact greedy k-center on points, without a table of distances.

    Args:
        points: (n, m), as for `dimension_sampling`.
        k: number of centers, in 2..n.
        first_center: the point it starts from.
        levels: the largest value of integer points; None for floats.

    Returns:
        Greedy, its values being normalised distances in [0, 1]. Cost: O(n m k), about 4 s for 10,000 images of 12,288
        numbers and k = 10.

    Raises:
        ValueError: as `dimension_sampling`, or an argument is out of range.
    """
    from scipy.spatial.distance import cdist

    points = np.asarray(points)
    check_points(points, levels)
    n, m = points.shape

    def sums(node: int) -> np.ndarray:
        # Integers are exact in float64, so ties are ties.
        center = points[node : node + 1].astype(np.float64)
        blocks = [points[start : start + BLOCK].astype(np.float64) for start in range(0, n, BLOCK)]
        return np.concatenate([cdist(block, center, "sqeuclidean")[:, 0] for block in blocks])

    centers, bottlenecks, gaps = _greedy(sums, n, k, first_center)
    unit = m * (levels or 1) ** 2
    return Greedy(centers, bottlenecks / unit, gaps / unit)


def naive_greedy(points: Any, *, k: int, first_center: int = 0, levels: int | None = None) -> NaiveGreedy:
    """The baseline that reads every dimension of every distance it needs.

    Args:
        points: (n, m), as for `dimension_sampling`.
        k: number of centers, in 2..n.
        first_center: the point it starts from.
        levels: the largest value of integer points; None for floats.

    Returns:
        NaiveGreedy.

    Raises:
        ValueError: as `greedy_from_points`.
    """
    solution = greedy_from_points(points, k=k, first_center=first_center, levels=levels)
    n, m = np.shape(points)
    return NaiveGreedy(solution, *naive_queries(n, m, k))


def naive_queries(n: int, m: int, k: int) -> tuple[int, int]:
    """The queries of `naive_greedy`.

    Args:
        n: points.
        m: dimensions.
        k: centers.

    Returns:
        (n m k, as the paper's tables count; m sum over p = 1..k-1 of (n - p), which are really needed).
    """
    return n * m * k, m * sum(n - p for p in range(1, k))


def _greedy(distances_to: Callable[[int], np.ndarray], n: int, k: int, first_center: int) -> Greedy:
    require(2 <= k <= n, "k", f"lie in 2..{n}", k)
    require(0 <= first_center < n, "first_center", f"lie in 0..{n - 1}", first_center)
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


# The value of an answer


def centers_match(indices: Array, truth: Array) -> Match:
    """Whether an answer is exactly greedy's.

    Args:
        indices: int (k,), as in `Centers`; an answer that holds -1 matches nothing.
        truth: int (k,), the centers of `greedy`.

    Returns:
        Match.

    Raises:
        ValueError: the shapes differ.
    """
    indices, truth = jnp.asarray(indices), jnp.asarray(truth)
    require(indices.ndim == 1 and indices.shape == truth.shape, "indices", f"have shape {truth.shape}", indices.shape)
    return Match(jnp.all(indices == truth), jnp.all(jnp.sort(indices) == jnp.sort(truth)))


def radius(indices: Array, distances: Array, rows: Array | None = None) -> Array:
    """The distance of the point farthest from its nearest center.

    Args:
        indices: int (k,), centers as nodes of the instance; the first is one, entries -1 are left out.
        distances: (N, N), in any unit.
        rows: int (n,), the points of the instance, in the order of its nodes; None: all.

    Returns:
        (), in the unit and the dtype of the distances. Cost: O(n k).
    """
    indices, distances = jnp.asarray(indices), jnp.asarray(distances)
    points = jnp.arange(distances.shape[0]) if rows is None else jnp.asarray(rows)
    centers = points[jnp.where(indices >= 0, indices, indices[0])]
    return jnp.max(jnp.min(distances[points[:, None], centers], axis=1))


def radius_ratio(indices: Array, truth: Array, distances: Array, rows: Array | None = None) -> Array:
    """The radius of an answer over that of greedy's centers: how much a wrong center costs.

    Args:
        indices: int (k,), as in `Centers`.
        truth: int (k,), the centers of `greedy`.
        distances: (N, N), in any unit; squared distances give the square of the ratio of the distances themselves.
        rows: int (n,), the points of the instance, in the order of its nodes; None: all.

    Returns:
        float (), in JAX's default dtype; below 1 where the answer is better than greedy's.
    """
    found, greedys = (radius(centers, distances, rows).astype(float) for centers in (indices, truth))
    return found / greedys


# Checks


def check_points(points: Array | np.ndarray, levels: int | None) -> None:
    """Raises `ValueError` unless points are (n, m), with n >= 2 and m >= 1, in 0..levels or, if floats, in [0, 1]."""
    shape, dtype = points.shape, points.dtype
    require(len(shape) == 2, "points", "have shape (n, m)", shape)
    require(shape[0] >= 2 and shape[1] >= 1, "points", "have n >= 2 rows and m >= 1 columns", shape)
    integers = jnp.issubdtype(dtype, jnp.integer)
    require(integers or jnp.issubdtype(dtype, jnp.floating), "points", "be integers or floats", dtype)
    top = 1 if levels is None else levels
    if integers:
        require(levels is not None, "levels", "be given for integer points", levels)
        require(top >= 1, "levels", "be at least 1", levels)
        largest = shape[1] * top**2
        require(largest < 2**31, "levels", "give m levels^2 < 2^31, as sums are int32", largest)
    else:
        require(levels is None, "levels", "be None for float points, which lie in [0, 1]", levels)
    if is_concrete(points):
        values = np.asarray(points)
        require(integers or np.isfinite(values), "points", "be finite", points)
        low, high = values.min(), values.max()
        require(low >= 0 and high <= top, "points", f"lie in [0, {top}]", (low.item(), high.item()))


def check_distances(distances: Array | np.ndarray, *, largest: float = np.inf) -> None:
    """Raises `ValueError` unless distances are (n, n), symmetric, with zero diagonal, and in [0, largest]."""
    shape = distances.shape
    require(len(shape) == 2 and shape[0] == shape[1], "distances", "have shape (n, n)", shape)
    require(shape[0] >= 2, "distances", "have at least two points", shape)
    if is_concrete(distances):
        values = np.asarray(distances)
        require(np.isfinite(values), "distances", "be finite", distances)
        require(values >= 0, "distances", "be at least 0", values.min().item())
        require(values <= largest, "distances", f"be at most {largest:g}", values.max().item())
        require(np.diag(values) == 0, "distances", "have a zero diagonal", np.diag(values))
        uneven = np.abs(values - values.T).max().item()
        require(uneven <= SYMMETRY, "distances", f"be symmetric up to {SYMMETRY:g}", uneven)


def _array(values: Any) -> Any:
    """An array that is not moved: a JAX array as it is, all else as a NumPy array."""
    return values if isinstance(values, jax.Array) else np.asarray(values)


def _sum_dtype(dtype: Any) -> Any:
    return jnp.dtype(jnp.int32) if jnp.issubdtype(dtype, jnp.integer) else dtype
