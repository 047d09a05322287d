"""Which super-arms are pulled, in which shares, and how many pulls each has had after t in all.

Everything but `tracking_counts` is done once, on the host, in float64.
"""

import itertools
import math
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, known, require
from jaxbandits.numerics import design as optimal
from jaxbandits.numerics.tracking import round_allocation

Method = Literal["multiplicative", "frank_wolfe"]

MAX_SUPERARMS = 5_000_000  # of an enumeration
MAX_DIRECTIONS = 200_000  # of all differences of super-arms; beyond, single swaps stand for them
MAX_DRAWS = 1000  # of a random support before giving up
MAX_CONDITION_FLOAT32 = 1e3  # beyond, float32 estimates are off by as much as the gaps
INDEPENDENT = 1e-8  # length of what a row adds to the span of the rows before it
SHARE = 1e-4  # a smaller share of an optimal allocation is dropped


class Design(NamedTuple):
    """What a learner may pull, and all that follows from it alone. Designs of one shape may be stacked."""

    support: Array  # float (s, n)   the super-arms as 0/1 rows, the first n of them independent
    weights: Array  # float (s,)     shares of the pulls, positive, with sum 1
    cycle: Array  # int ()           s if all shares are equal, else 0
    gram: Array  # float (n, n)      Lambda = sum of p_M chi_M chi_M'
    inverse: Array  # float (n, n)   Lambda^-1
    spectral: Array  # float ()      largest eigenvalue of P Lambda^-1 P, with P = I - 11'/n
    condition: Array  # float ()     largest eigenvalue of Lambda over its least


class Allocation(NamedTuple):
    """A near-optimal choice of shares, for `make_design(support, k, weights=weights)`."""

    support: np.ndarray  # bool (s, n)    the rows that are left
    weights: np.ndarray  # float (s,)     their shares, positive, with sum 1
    value: float  # what the shares attain, an upper bound of the optimum
    lower: float  # a lower bound of the optimum


def make_design(support: ArrayLike, k: int, *, weights: ArrayLike | None = None, dtype: Any = None) -> Design:
    """A design from its super-arms and their shares.

    Args:
        support: 0/1 (s, n), distinct rows with k ones each, of rank n. The first n independent rows are moved to the
            front, with their shares; the others keep their order.
        k: size of a super-arm, a Python int in 2..n-1.
        weights: float (s,), positive shares with sum 1; equal ones by default.
        dtype: dtype of the arrays; by default JAX's own.

    Returns:
        Design, computed in float64 whatever the dtype.

    Raises:
        ValueError: an argument is not as above, or the dtype is float32 where cond(Lambda) exceeds 1e3.

    Cost: O(s n^2 + n^3), once.
    """
    rows = np.asarray(support)
    _check_support(rows, k)
    shares = np.full(len(rows), 1 / len(rows)) if weights is None else np.asarray(weights, np.float64)
    require(shares.shape == rows.shape[:1], "weights", f"have shape {rows.shape[:1]}", shares.shape)
    require(shares > 0, "weights", "be positive", shares)
    require(abs(shares.sum() - 1) <= 1e-9, "weights", "sum to 1", float(shares.sum()))
    order = _basis_first(rows)
    rows, shares = rows[order].astype(np.float64), shares[order]

    gram = rows.T @ (shares[:, None] * rows)
    inverse = np.linalg.inv(gram)
    centring = np.eye(len(gram)) - 1 / len(gram)
    eigenvalues = np.linalg.eigvalsh(gram)
    spectral = np.linalg.eigvalsh(centring @ inverse @ centring)[-1]
    cycle = len(rows) if np.all(shares == shares[0]) else 0
    floats = rows, shares, gram, inverse, spectral, eigenvalues[-1] / eigenvalues[0]
    rows, shares, *rest = (jnp.asarray(np.asarray(x, np.float64), dtype) for x in floats)
    made = Design(rows, shares, jnp.asarray(cycle, int), *rest)
    check_design(made, k)
    return made


def check_design(design: Design, k: int) -> None:
    """Raises `ValueError` unless the design is one of super-arms of size k that its dtype can bear.

    Args:
        design: what `make_design` returns, or a tracer of it: then only shapes and dtypes are looked at.
        k: size of a super-arm, a Python int.
    """
    shape = jnp.shape(design.support)
    require(len(shape) == 2, "design.support", "have shape (s, n)", shape)
    require(2 <= k <= shape[1] - 1, "k", f"lie in 2..{shape[1] - 1}", k)
    if is_concrete(design.support):
        sizes = np.asarray(design.support).sum(1)
        require(sizes == k, "k", f"be the size {sizes[0]:.0f} of the design's super-arms", k)
    dtype = design.support.dtype
    require(jnp.issubdtype(dtype, jnp.floating), "design", "have a floating-point dtype", dtype)
    bears = dtype == jnp.float64 or known(design.condition) <= MAX_CONDITION_FLOAT32
    require(bears, "design", f"be float64 where its condition exceeds {MAX_CONDITION_FLOAT32:g}", design.condition)


# Supports


def all_superarms(n: int, k: int) -> np.ndarray:
    """All sets of k out of n arms, in lexicographic order of their members.

    Args:
        n: number of arms.
        k: size of a super-arm, in 2..n-1.

    Returns:
        bool (C(n, k), n).

    Raises:
        ValueError: `k` is out of range, or there are more than 5 million sets.
    """
    _check_size(n, k)
    count = math.comb(n, k)
    require(count <= MAX_SUPERARMS, "superarms", f"number at most {MAX_SUPERARMS}", count)
    members = np.fromiter(itertools.chain.from_iterable(itertools.combinations(range(n), k)), np.int64, count * k)
    return _masks(members.reshape(count, k), n)


def cyclic_support(n: int, k: int) -> np.ndarray:
    """The n intervals {i, ..., i+k-1 mod n}, whose rank is n if and only if n and k have no common factor.

    Args:
        n: number of arms.
        k: size of a super-arm, in 2..n-1.

    Returns:
        bool (n, n).

    Raises:
        ValueError: `k` is out of range.
    """
    _check_size(n, k)
    return _masks((np.arange(n)[:, None] + np.arange(k)) % n, n)


def random_support(seed: int, n: int, k: int, *, size: int | None = None) -> np.ndarray:
    """Distinct super-arms, uniformly at random, redrawn all together until they span R^n.

    The papers leave the support of an allocation open; the more rows it has, the better it is conditioned. With
    size = n, cond(Lambda) reaches 1e5.

    Args:
        seed: of `numpy.random.default_rng`.
        n: number of arms.
        k: size of a super-arm, in 2..n-1.
        size: number of rows, in n..C(n, k); 2 n by default, or C(n, k) where that is less.

    Returns:
        bool (size, n): the first n independent rows of the draw, then the others, each in the order drawn.

    Raises:
        ValueError: `k` or `size` is out of range, or none of 1000 draws spans R^n.
    """
    _check_size(n, k)
    count = math.comb(n, k)
    size = min(2 * n, count) if size is None else size
    require(n <= size <= count, "size", f"lie in {n}..{count}", size)
    rng = np.random.default_rng(seed)
    for _ in range(MAX_DRAWS):
        rows = _distinct(rng, n, k, size)
        if _independent(rows).sum() == n:
            return rows[_basis_first(rows)]
    raise ValueError(f"size must be so large that one of {MAX_DRAWS} draws has rank {n}, got {size}")


# Allocations


def g_allocation(
    support: ArrayLike, *, method: Method = "multiplicative", tolerance: float = 1e-6, max_steps: int = 100_000
) -> Allocation:
    """The shares p that minimise the largest |chi_M|^2 in Lambda(p)^-1 over the rows of a support.

    The optimum is n (Kiefer and Wolfowitz). It is taken over the rows alone: over all super-arms the largest |chi_M|^2
    is larger, 1.4 to 4 times at n = 10, k = 5 with 50 to 20 random rows.

    Args:
        support: 0/1 (s, n) of rank n.
        method: "multiplicative" keeps most rows, "frank_wolfe" (with away steps, from the first n independent rows)
            few.
        tolerance: the search ends at a value below n (1 + tolerance).
        max_steps: the search ends after so many steps in any case.

    Returns:
        Allocation with the rows whose share is at least 1e-4, the first n independent ones in front; the others are
        dropped, which raises the value by about their share. lower is n.

    Raises:
        ValueError: an argument is not as above.

    Cost: O(s n^2 + n^3) a step, some thousand steps.

    Source: Silvey, Titterington and Torsney (1978) for the multiplicative steps; Atwood (1973) for the others.
    """
    rows = np.asarray(support)
    _check_rows(rows)
    require(method in get_args(Method), "method", f"be one of {get_args(Method)}", method)
    require(tolerance > 0, "tolerance", "be positive", tolerance)
    require(max_steps >= 1, "max_steps", "be at least 1", max_steps)
    s, n = rows.shape
    arms = rows.astype(np.float64)
    step = _multiplicative_step if method == "multiplicative" else _frank_wolfe_step
    shares = np.full(s, 1 / s)
    if method == "frank_wolfe":
        shares = np.where(_independent(rows), 1 / n, 0)
    for _ in range(max_steps):
        norms = _squared_norms(arms, arms, shares)
        if norms.max() < n * (1 + tolerance):
            break
        shares = step(shares, norms, n)
    return _pruned(rows, arms, shares, float(n))


def xy_allocation(support: ArrayLike, *, k: int, directions: ArrayLike | None = None, steps: int = 1000) -> Allocation:
    """The shares p that minimise the largest |y|^2 in Lambda(p)^-1 over differences y of super-arms.

    Args:
        support: 0/1 (s, n) of rank n, k ones in each row.
        k: size of a super-arm, a Python int.
        directions: float (M, n), the y; by default `difference_directions(n, k)`.
        steps: iterations of the solver.

    Returns:
        Allocation with the rows whose share is at least 1e-4, the first n independent ones in front. Both bounds are
        for the given directions.

    Raises:
        ValueError: an argument is not as above.

    Cost: O(n^3 + (s + M) n^2 + s n M) a step.

    Source: Soare, Lazaric and Munos (2014), the XY-allocation.
    """
    rows = np.asarray(support)
    _check_support(rows, k)
    arms = rows.astype(np.float64)
    ys = difference_directions(rows.shape[1], k) if directions is None else np.asarray(directions, np.float64)
    with jax.enable_x64(True):
        solved = optimal.design(jnp.asarray(arms), jnp.asarray(ys), steps=steps)
        shares, lower = np.asarray(solved.allocation), float(solved.lower)
    return _pruned(rows, ys, shares, lower)


def difference_directions(n: int, k: int) -> np.ndarray:
    """All differences of two super-arms, up to sign, or of single arms where these are too many.

    Args:
        n: number of arms.
        k: size of a super-arm, in 2..n-1.

    Returns:
        float (M, n), entries -1, 0, 1, the first that is not 0 positive. Beyond 200,000 differences of super-arms only
        the n (n-1)/2 differences e_i - e_j: a single swap is the hardest to tell, but not the longest.

    Raises:
        ValueError: `k` is out of range.
    """
    _check_size(n, k)
    swaps = range(1, min(k, n - k) + 1)
    if sum(math.comb(n, 2 * r) * math.comb(2 * r - 1, r - 1) for r in swaps) > MAX_DIRECTIONS:
        swaps = range(1, 2)
    return np.concatenate([_swaps(n, r) for r in swaps])


# Rounding


def tracking_counts(design: Design, t: Array | int) -> Array:
    """Pulls of every super-arm after t pulls of the rule that always pulls argmin T_M / p_M.

    The lowest index among ties, so the first s pulls take every super-arm once. The counts are found at once, without
    the t steps, and grow with t, super-arm by super-arm.

    Args:
        design: the shares p.
        t: int (), pulls, at least 0.

    Returns:
        int (s,) of the default integer type, with sum t. With unequal shares in float32, single counts may be off by a
        few pulls from t = 1e5 on, and then need not grow; with equal shares only integers are used.

    Cost: O(s) with equal shares; else O(s) for each of the about sqrt(s) / 3 corrections.

    Source: Kuroki et al., Appendix D: the efficient rounding of Pukelsheim and Rieder (1992), which is Adams' divisor
    method. (ERRATUM there: the repair runs until the counts sum to t, not to n.)
    """
    s = design.weights.shape[0]
    t = jnp.asarray(t, int)
    in_turn = t // s + (jnp.arange(s) < t % s).astype(int)
    if is_concrete(design.cycle) and int(design.cycle) > 0:
        return in_turn
    # Up to t = s every super-arm gets its first pull in turn. Designs of both kinds may be stacked, and those with
    # equal shares are spared the corrections: at t = s there are none.
    is_in_turn = (design.cycle > 0) | (t <= s)
    return jnp.where(is_in_turn, in_turn, round_allocation(design.weights, jnp.where(is_in_turn, s, t)))


# Pieces


def _check_size(n: int, k: int) -> None:
    require(2 <= k <= n - 1, "k", f"lie in 2..{n - 1}", k)


def _check_rows(rows: np.ndarray) -> None:
    is_matrix = rows.ndim == 2 and rows.shape[0] >= rows.shape[1]
    require(is_matrix, "support", "have shape (s, n) with s >= n", rows.shape)
    require((rows == 0) | (rows == 1), "support", "have entries 0 and 1", rows)
    require(len(np.unique(rows, axis=0)) == len(rows), "support", "have no two equal rows", rows)
    rank, n = _independent(rows).sum(), rows.shape[1]
    if rank < n:
        raise ValueError(f"support must span all arms, got rank {rank} of {n}")


def _check_support(rows: np.ndarray, k: int) -> None:
    _check_rows(rows)
    _check_size(rows.shape[1], k)
    sizes = rows.sum(1)
    require(sizes == k, "support", f"have {k} ones in every row", sizes)


def _masks(members: np.ndarray, n: int) -> np.ndarray:
    masks = np.zeros((len(members), n), bool)
    np.put_along_axis(masks, members, True, axis=1)
    return masks


def _distinct(rng: np.random.Generator, n: int, k: int, size: int) -> np.ndarray:
    """The first `size` different sets in a sequence of independent uniform ones."""
    rows = np.zeros((0, n), bool)
    while len(rows) < size:
        rows = np.concatenate([rows, _masks(np.argsort(rng.random((size, n)), axis=1)[:, :k], n)])
        _, first = np.unique(rows, axis=0, return_index=True)
        rows = rows[np.sort(first)]
    return rows[:size]


def _independent(rows: np.ndarray) -> np.ndarray:
    """Which rows lie outside the span of those before them."""
    basis = np.zeros((0, rows.shape[1]))
    independent = np.zeros(len(rows), bool)
    for i, row in enumerate(rows):
        rest = row.astype(np.float64)
        # Twice, because once leaves what rounding has put back.
        for _ in range(2):
            rest = rest - basis.T @ (basis @ rest)
        length = np.linalg.norm(rest)
        if length > INDEPENDENT:
            independent[i] = True
            basis = np.vstack([basis, rest / length])
        if len(basis) == rows.shape[1]:
            break
    return independent


def _basis_first(rows: np.ndarray) -> np.ndarray:
    """The order that has the independent rows in front."""
    return np.argsort(~_independent(rows), kind="stable")


def _squared_norms(directions: np.ndarray, arms: np.ndarray, shares: np.ndarray) -> np.ndarray:
    inverse = np.linalg.inv(arms.T @ (shares[:, None] * arms))
    return np.einsum("mi,mi->m", directions @ inverse, directions)


def _multiplicative_step(shares: np.ndarray, norms: np.ndarray, n: int) -> np.ndarray:
    shares = shares * norms / n
    return shares / shares.sum()


def _frank_wolfe_step(shares: np.ndarray, norms: np.ndarray, n: int) -> np.ndarray:
    """The exact step along the better of two lines: towards the largest norm, or away from the least in use."""
    largest = np.argmax(norms)
    least = np.argmin(np.where(shares > 0, norms, np.inf))
    if norms[largest] / n - 1 >= 1 - norms[least] / n:
        to, size = largest, (norms[largest] / n - 1) / (norms[largest] - 1)
    else:
        to, size = least, -shares[least] / (1 - shares[least])
        if norms[least] > 1:
            size = max(size, (norms[least] / n - 1) / (norms[least] - 1))
    moved = (1 - size) * shares
    moved[to] += size
    # The share that an away step uses up is 0, not what rounding leaves of it.
    return np.where(moved < 1e-15, 0, moved)


def _pruned(rows: np.ndarray, directions: np.ndarray, shares: np.ndarray, lower: float) -> Allocation:
    rows, shares = rows[shares >= SHARE].astype(bool), shares[shares >= SHARE]
    order = _basis_first(rows)
    rows, shares = rows[order], shares[order] / shares.sum()
    value = _squared_norms(directions, rows.astype(np.float64), shares).max()
    return Allocation(rows, shares, float(value), lower)


def _swaps(n: int, r: int) -> np.ndarray:
    """All differences of two super-arms that share all but r arms, up to sign."""
    places = np.array(list(itertools.combinations(range(2 * r), r)))
    ups = places[places[:, 0] == 0]
    signs = 2.0 * _masks(ups, 2 * r) - 1
    members = np.array(list(itertools.combinations(range(n), 2 * r)))
    directions = np.zeros((len(members), len(signs), n))
    np.put_along_axis(directions, members[:, None, :], signs[None], axis=2)
    return directions.reshape(-1, n)
