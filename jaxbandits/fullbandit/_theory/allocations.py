"""Optimal shares of super-arms for pure estimation: G- and XY-optimal allocations."""

import itertools
import math
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxbandits import checks
from jaxbandits.checks import is_concrete, require
from jaxbandits.fullbandit._problem.design import basis_first, check_rows, check_size, check_support, independent, masks
from jaxbandits.numerics.design import design

Method = Literal["multiplicative", "frank_wolfe"]

# Largest number of differences of super-arms; beyond it only single swaps are used.
MAX_DIRECTIONS = 200_000
# Smallest share of an optimal allocation. A smaller one is dropped, or raised if its row is needed to span all arms.
SHARE = 1e-4


class Allocation(NamedTuple):
    """Near-optimal shares, for `make_design(support, k, weights=weights)`."""

    support: np.ndarray  # bool (s, n)    the remaining rows
    weights: np.ndarray  # float (s,)     their shares, positive, with sum 1
    value: float  # value of the shares, an upper bound of the optimum
    lower: float  # lower bound of the optimum


def g_allocation(
    support: ArrayLike, *, method: Method = "multiplicative", tolerance: float = 1e-6, max_steps: int = 100_000
) -> Allocation:
    """Computes the shares p that minimise the largest |chi_M|^2 in Lambda(p)^-1 over the rows of a support.

    The optimum is n (Kiefer and Wolfowitz). It covers only the rows: over all super-arms the largest |chi_M|^2 is
    larger, 1.4 to 4 times at n = 10, k = 5 with 50 to 20 random rows.

    Args:
        support: 0/1 (s, n) of rank n.
        method: "multiplicative" keeps most rows, "frank_wolfe" (with away steps, from the first n independent rows)
            few.
        tolerance: the search ends at a value below n (1 + tolerance).
        max_steps: largest number of steps.

    Returns:
        Allocation with the rows whose share is at least 1e-4, the first n independent ones in front; the others are
        dropped, which raises the value by about their share. lower is n.

    Raises:
        ValueError: an argument is not as above.

    Cost: O(s n^2 + n^3) per step, a few thousand steps.

    Source: Silvey, Titterington and Torsney (1978) for the multiplicative steps; Atwood (1973) for the other ones.
    """
    rows = check_rows("support", support)
    checks.one_of("method", method, Method)
    checks.positive("tolerance", tolerance)
    require(is_concrete(tolerance), "tolerance", "be concrete", tolerance)
    checks.whole("max_steps", max_steps, least=1)
    s, n = rows.shape
    arms = rows.astype(np.float64)
    step = _multiplicative_step if method == "multiplicative" else _frank_wolfe_step
    shares = np.full(s, 1 / s)
    if method == "frank_wolfe":
        shares = np.where(independent(rows), 1 / n, 0)
    for _ in range(max_steps):
        norms = _squared_norms(arms, arms, shares)
        if norms.max() < n * (1 + tolerance):
            break
        shares = step(shares, norms, n)
    return _pruned(rows, arms, shares, float(n))


def xy_allocation(support: ArrayLike, *, directions: ArrayLike | None = None, steps: int = 1000) -> Allocation:
    """Computes the shares p that minimise the largest |y|^2 in Lambda(p)^-1 over differences y of super-arms.

    Args:
        support: 0/1 (s, n) of rank n, equally many ones in all rows.
        directions: float (M, n), the y. If None, all differences of two super-arms, or of two arms if there are more
            than 200,000 differences of super-arms.
        steps: iterations of the solver.

    Returns:
        Allocation with the rows whose share is at least 1e-4, the first n independent ones in front. If these do not
        span all arms, as with few directions, further rows are added, with a share of 1e-4 each. Both bounds are for
        the given directions.

    Raises:
        ValueError: an argument is not as above.

    Cost: O(n^3 + (s + M) n^2 + s n M) per step, on the host: it cannot be called while a program is traced.

    Source: Soare, Lazaric and Munos (2014), the XY-allocation.
    """
    rows = check_support("support", support)
    checks.whole("steps", steps, least=1)
    n, k = rows.shape[1], int(rows[0].sum())
    if directions is None:
        ys = difference_directions(n, k)
    else:
        checks.array("directions", directions, ("M", n))
        require(is_concrete(directions), "directions", "be concrete", directions)
        ys = np.asarray(directions, np.float64)
    arms = rows.astype(np.float64)
    with jax.enable_x64(True):
        solved = design(jnp.asarray(arms), jnp.asarray(ys), steps=steps)
        shares, lower = np.asarray(solved.allocation), float(solved.lower)
    return _pruned(rows, ys, shares, lower)


def difference_directions(n: int, k: int) -> np.ndarray:
    """Lists all differences of two super-arms, up to sign, or of single arms if there are too many.

    Args:
        n: number of arms.
        k: arms in a super-arm, in 2..n-1.

    Returns:
        float (M, n), entries -1, 0, 1, the first that is not 0 positive. Beyond 200,000 differences of super-arms only
        the n (n-1)/2 differences e_i - e_j: a single swap is the hardest to detect, but not the longest.

    Raises:
        ValueError: `n` or `k` is out of range.
    """
    check_size(n, k)
    swaps = range(1, min(k, n - k) + 1)
    if sum(math.comb(n, 2 * r) * math.comb(2 * r - 1, r - 1) for r in swaps) > MAX_DIRECTIONS:
        swaps = range(1, 2)
    return np.concatenate([_swaps(n, r) for r in swaps])


# Pieces


def _squared_norms(directions: np.ndarray, arms: np.ndarray, shares: np.ndarray) -> np.ndarray:
    inverse = np.linalg.inv(arms.T @ (shares[:, None] * arms))
    return np.einsum("mi,mi->m", directions @ inverse, directions)


def _multiplicative_step(shares: np.ndarray, norms: np.ndarray, n: int) -> np.ndarray:
    shares = shares * norms / n
    return shares / shares.sum()


def _frank_wolfe_step(shares: np.ndarray, norms: np.ndarray, n: int) -> np.ndarray:
    """Makes the exact step along the better of two lines: to the largest norm, or away from the smallest in use."""
    largest = np.argmax(norms)
    smallest = np.argmin(np.where(shares > 0, norms, np.inf))
    if norms[largest] / n - 1 >= 1 - norms[smallest] / n:
        row, size = largest, (norms[largest] / n - 1) / (norms[largest] - 1)
    else:
        row, size = smallest, -shares[smallest] / (1 - shares[smallest])
        if norms[smallest] > 1:
            size = max(size, (norms[smallest] / n - 1) / (norms[smallest] - 1))
    moved = (1 - size) * shares
    moved[row] += size
    # An away step may use up a share; it is then 0, without its rounding error.
    return np.where(moved < 1e-15, 0, moved)


def _pruned(rows: np.ndarray, directions: np.ndarray, shares: np.ndarray, lower: float) -> Allocation:
    is_kept = shares >= SHARE
    if independent(rows[is_kept]).sum() < rows.shape[1]:
        # Rows that no direction needs have no share in an optimum, but a design must span all arms.
        largest_first = np.argsort(-shares, kind="stable")
        is_kept[largest_first[independent(rows[largest_first])]] = True
        shares = np.maximum(shares, SHARE)
    rows, shares = rows[is_kept].astype(bool), shares[is_kept]
    order = basis_first(rows)
    rows, shares = rows[order], shares[order] / shares.sum()
    value = _squared_norms(directions, rows.astype(np.float64), shares).max()
    return Allocation(rows, shares, float(value), lower)


def _swaps(n: int, r: int) -> np.ndarray:
    """Lists all differences of two super-arms that are r swaps apart, up to sign."""
    positions = np.array(list(itertools.combinations(range(2 * r), r)))
    ups = positions[positions[:, 0] == 0]
    signs = 2.0 * masks(ups, 2 * r) - 1
    members = np.array(list(itertools.combinations(range(n), 2 * r)))
    directions = np.zeros((len(members), len(signs), n))
    np.put_along_axis(directions, members[:, None, :], signs[None], axis=2)
    return directions.reshape(-1, n)
