"""Designs: the super-arms to pull, their shares, and the pulls of each after t pulls in all.

Everything except the counts is computed once, on the host, in float64.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxbandits import checks
from jaxbandits.base import Array, static_fields
from jaxbandits.checks import is_concrete, known, require
from jaxbandits.numerics.tracking import round_allocation

MAX_SUPERARMS = 5_000_000  # largest number of super-arms that are enumerated
MAX_DRAWS = 1000  # draws of a random support before giving up
# Largest condition for float32: beyond it estimates are off by as much as the gaps.
MAX_CONDITION_FLOAT32 = 1e3
INDEPENDENT = 1e-8  # smallest distance of an independent row from the span of the rows before it


@static_fields("k")
class Design(NamedTuple):
    """Super-arms that a learner may pull, with their shares and matrices. Designs of one shape may be stacked."""

    support: Array  # float (s, n)   the super-arms as 0/1 rows, the first n of them independent
    weights: Array  # float (s,)     shares of the pulls, positive, with sum 1
    cycle: Array  # int ()           s if all shares are equal, otherwise 0
    gram: Array  # float (n, n)      Lambda = sum of p_M chi_M chi_M'
    inverse: Array  # float (n, n)   Lambda^-1
    spectral: Array  # float ()      largest eigenvalue of P Lambda^-1 P, with P = I - 11'/n
    condition: Array  # float ()     largest eigenvalue of Lambda over its smallest
    k: int  # arms in a super-arm; static


def make_design(support: ArrayLike, k: int, *, weights: ArrayLike | None = None, dtype: Any = None) -> Design:
    """Builds a design from its super-arms and their shares.

    Args:
        support: 0/1 (s, n), distinct rows with k ones each, of rank n. The first n independent rows are moved to the
            front, with their shares; the others keep their order.
        k: arms in a super-arm, a Python int in 2..n-1.
        weights: float (s,), positive shares with sum 1. If None, equal ones.
        dtype: dtype of the arrays. If None, JAX's default float.

    Returns:
        Design, computed in float64 and then rounded to the dtype.

    Raises:
        ValueError: an argument is not as above, or the dtype is float32 where cond(Lambda) exceeds 1e3.

    Cost: O(s n^2 + n^3), once.
    """
    rows = check_support("support", support)
    n = rows.shape[1]
    checks.whole("k", k, least=2, most=n - 1)
    require(rows[0].sum() == k, "k", "be the ones in a row of support", k)
    shares = np.full(len(rows), 1 / len(rows))
    if weights is not None:
        checks.array("weights", weights, (len(rows),), above=0)
        require(is_concrete(weights), "weights", "be concrete; make designs on the host, and stack them", weights)
        shares = np.asarray(weights, np.float64)
    require(abs(shares.sum() - 1) <= 1e-9, "weights", "sum to 1", float(shares.sum()))
    dtype = checks.float_dtype("dtype", dtype)
    order = basis_first(rows)
    rows, shares = rows[order].astype(np.float64), shares[order]

    gram = rows.T @ (shares[:, None] * rows)
    inverse = np.linalg.inv(gram)
    centring = np.eye(len(gram)) - 1 / len(gram)
    eigenvalues = np.linalg.eigvalsh(gram)
    spectral = np.linalg.eigvalsh(centring @ inverse @ centring)[-1]
    cycle = len(rows) if np.all(shares == shares[0]) else 0
    floats = rows, shares, gram, inverse, spectral, eigenvalues[-1] / eigenvalues[0]
    rows, shares, *matrices = (jnp.asarray(np.asarray(x, np.float64), dtype) for x in floats)
    design = Design(rows, shares, jnp.asarray(cycle, int), *matrices, k=k)
    check_design(design)
    return design


def check_design(design: Design) -> None:
    """Raises `ValueError` unless it is a design, and its dtype suffices; for a traced one only shapes are checked."""
    checks.instance("design", design, Design)
    support = checks.array("design.support", design.support, ("s", "n"), least=0, most=1)
    s, n = support.shape
    checks.array("design.weights", design.weights, (s,), above=0)
    checks.array("design.cycle", design.cycle, (), kind="int", least=0)
    checks.array("design.gram", design.gram, (n, n))
    checks.array("design.inverse", design.inverse, (n, n))
    checks.array("design.spectral", design.spectral, (), least=0)
    checks.array("design.condition", design.condition, (), least=0)
    checks.whole("design.k", design.k, least=2, most=n - 1)
    if is_concrete(design.support):
        sizes = np.asarray(design.support).sum(1)
        require(sizes == design.k, "design.k", f"be the size {sizes[0]:.0f} of its super-arms", design.k)
    dtype = design.support.dtype
    require(jnp.issubdtype(dtype, jnp.floating), "design", "have a floating-point dtype", dtype)
    suffices = dtype == jnp.float64 or known(design.condition) <= MAX_CONDITION_FLOAT32
    require(suffices, "design", f"be float64 where its condition exceeds {MAX_CONDITION_FLOAT32:g}", design.condition)


# Supports


def all_superarms(n: int, k: int) -> np.ndarray:
    """Lists all sets of k out of n arms, in lexicographic order of their members.

    Args:
        n: number of arms.
        k: arms in a super-arm, in 2..n-1.

    Returns:
        bool (C(n, k), n).

    Raises:
        ValueError: `n` or `k` is out of range, or there are more than 5 million sets.
    """
    check_size(n, k)
    count = math.comb(n, k)
    require(count <= MAX_SUPERARMS, "n and k", f"give at most {MAX_SUPERARMS} super-arms", count)
    members = np.fromiter(itertools.chain.from_iterable(itertools.combinations(range(n), k)), np.int64, count * k)
    return masks(members.reshape(count, k), n)


def cyclic_support(n: int, k: int) -> np.ndarray:
    """Lists the n intervals {i, ..., i+k-1 mod n}, whose rank is n if and only if n and k have no common factor.

    Args:
        n: number of arms.
        k: arms in a super-arm, in 2..n-1.

    Returns:
        bool (n, n).

    Raises:
        ValueError: `n` or `k` is out of range.
    """
    check_size(n, k)
    return masks((np.arange(n)[:, None] + np.arange(k)) % n, n)


def random_support(seed: int, n: int, k: int, *, size: int | None = None) -> np.ndarray:
    """Draws distinct super-arms uniformly at random, all of them again until they span R^n.

    The papers do not specify the support of an allocation. The more rows it has, the better it is conditioned: with
    size = n, cond(Lambda) reaches 1e5.

    Args:
        seed: seed of `numpy.random.default_rng`, at least 0.
        n: number of arms.
        k: arms in a super-arm, in 2..n-1.
        size: number of rows, in n..C(n, k). If None, 2 n, or C(n, k) if that is less.

    Returns:
        bool (size, n): the first n independent rows of the draw, then the others, each in the order drawn.

    Raises:
        ValueError: an argument is out of range, or none of 1000 draws spans R^n.
    """
    checks.whole("seed", seed, least=0)
    check_size(n, k)
    count = math.comb(n, k)
    size = min(2 * n, count) if size is None else checks.whole("size", size, least=n, most=count)
    rng = np.random.default_rng(seed)
    for _ in range(MAX_DRAWS):
        rows = _distinct(rng, n, k, size)
        if independent(rows).sum() == n:
            return rows[basis_first(rows)]
    raise ValueError(f"size must be so large that one of {MAX_DRAWS} draws has rank {n}, got {size}")


# Rounding


def tracking_counts(design: Design, t: Array | int) -> Array:
    """Computes the pulls of every super-arm after t pulls of the rule that always pulls argmin T_M / p_M.

    The lowest index wins a tie, so the first s pulls take every super-arm once. The counts are computed at once,
    without the t steps, and the count of every super-arm grows with t.

    Args:
        design: super-arms and their shares p.
        t: int (), pulls, at least 0.

    Returns:
        int (s,) of the default integer type, with sum t. With unequal shares in float32, single counts may be off by a
        few pulls from t = 1e5 on, and then need not grow. With equal shares only integers are used.

    Raises:
        ValueError: an argument is not as above.

    Cost: O(s) with equal shares; otherwise O(s) for each of the about sqrt(s) / 3 corrections.

    Source: Kuroki et al., Appendix D: the efficient rounding of Pukelsheim and Rieder (1992), which is Adams' divisor
    method. (ERRATUM there: the repair runs until the counts sum to t, not to n.)
    """
    check_design(design)
    checks.integer("t", t, least=0)
    return counts_after(design, t)


def counts_after(design: Design, t: Array | int) -> Array:
    """Computes `tracking_counts` without its checks."""
    s = design.weights.shape[0]
    t = jnp.asarray(t, int)
    in_turn = t // s + (jnp.arange(s) < t % s).astype(int)
    if is_concrete(design.cycle) and int(design.cycle) > 0:
        return in_turn
    # Up to t = s every super-arm gets its first pull in turn. Designs of both kinds may be stacked. With equal shares
    # the counts are rounded at t = s, where no corrections are made, so these designs cost none.
    is_in_turn = (design.cycle > 0) | (t <= s)
    return jnp.where(is_in_turn, in_turn, round_allocation(design.weights, jnp.where(is_in_turn, s, t)))


# Pieces


def check_size(n: int, k: int) -> None:
    """Raises `ValueError` unless 2 <= k < n: at least two super-arms, of at least two arms."""
    checks.whole("n", n, least=3)
    checks.whole("k", k, least=2, most=n - 1)


def check_mask(name: str, value: Any, shape: Sequence[int | str]) -> Array:
    """Checks an array as `checks.array` does, of booleans or of zeros and ones."""
    try:
        kind = (value if hasattr(value, "dtype") else np.asarray(value)).dtype.kind
    except ValueError:  # ragged: the next line refuses it
        kind = ""
    mask = checks.array(name, value, shape, kind="bool" if kind == "b" else "float")
    if kind != "b":
        entries = known(value)
        require((entries == 0) | (entries == 1), name, "have entries 0 and 1", value)
    return mask


def check_rows(name: str, rows: ArrayLike) -> np.ndarray:
    """Returns a 0/1 matrix on the host; raises `ValueError` unless its rows differ and span all arms."""
    check_mask(name, rows, ("s", "n"))
    require(is_concrete(rows), name, "be concrete", rows)
    matrix = np.asarray(rows)
    s, n = matrix.shape
    require(s >= n, name, "have shape (s, n) with s >= n", matrix.shape)
    require(len(np.unique(matrix, axis=0)) == s, name, "have no two equal rows", matrix)
    rank = independent(matrix).sum()
    if rank < n:
        raise ValueError(f"{name} must span all arms, got rank {rank} of {n}")
    return matrix


def check_support(name: str, rows: ArrayLike) -> np.ndarray:
    """Checks rows as `check_rows` does, and that all have equally many ones."""
    matrix = check_rows(name, rows)
    sizes = matrix.sum(1)
    require(sizes == sizes[0], name, "have equally many ones in every row", sizes)
    return matrix


def masks(members: np.ndarray, n: int) -> np.ndarray:
    masks = np.zeros((len(members), n), bool)
    np.put_along_axis(masks, members, True, axis=1)
    return masks


def _distinct(rng: np.random.Generator, n: int, k: int, size: int) -> np.ndarray:
    """Draws independent uniform sets, and returns the first `size` different ones."""
    rows = np.zeros((0, n), bool)
    while len(rows) < size:
        rows = np.concatenate([rows, masks(np.argsort(rng.random((size, n)), axis=1)[:, :k], n)])
        _, first = np.unique(rows, axis=0, return_index=True)
        rows = rows[np.sort(first)]
    return rows[:size]


def independent(rows: np.ndarray) -> np.ndarray:
    """Marks the rows that lie outside the span of the rows before them, bool (s,)."""
    basis = np.zeros((0, rows.shape[1]))
    independent = np.zeros(len(rows), bool)
    for i, row in enumerate(rows):
        residual = row.astype(np.float64)
        # Twice, because rounding puts back a little of the span the first time.
        for _ in range(2):
            residual = residual - basis.T @ (basis @ residual)
        length = np.linalg.norm(residual)
        if length > INDEPENDENT:
            independent[i] = True
            basis = np.vstack([basis, residual / length])
        if len(basis) == rows.shape[1]:
            break
    return independent


def basis_first(rows: np.ndarray) -> np.ndarray:
    """Returns the order of the rows that has the independent ones in front."""
    return np.argsort(~independent(rows), kind="stable")
