"""Problems that take the best entries of a table: best arm, top-k, sites, and water planning."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.cpe._problem.floats import floats
from jaxbandits.cpe._problem.kinds.table import Table, table

ROUNDING = 1e-9  # allowed error in the differences of costs, relative to the largest of them


def best_arm(m: int, *, dtype: Any = None) -> Table:
    """Builds the problem of the arm with the largest theta. Other arguments and errors: see `top_k`, with k = 1."""
    return top_k(m, 1, dtype=dtype)


def top_k(m: int, k: Array | int, *, dtype: Any = None) -> Table:
    """Builds the problem of the k arms with the largest theta.

    Args:
        m: number of arms, at least 2.
        k: arms to find, in 1..m-1; may be traced.
        dtype: dtype of the arrays and of the run; by default JAX's own.

    Returns:
        Table with rows of one entry.

    Raises:
        ValueError: `m` or `k` is out of range.
    """
    checks.whole("m", m, least=2)
    checks.integer("k", k, least=1, most=m - 1)
    return table(np.ones((m, 1)), np.zeros((m, 1)), k, dtype=dtype)


def sites(costs: Any, k: Array | int, *, dtype: Any = None) -> Table:
    """Builds the problem of the best k sites: maximise the sum of theta_i - costs_i over the sites taken.

    Args:
        costs: (m,), m >= 2, finite.
        k: sites to take, in 1..m-1; may be traced.
        dtype: dtype of the arrays and of the run; by default JAX's own.

    Returns:
        Table with rows of one entry.

    Raises:
        ValueError: `costs` is not a vector of at least two finite values, or `k` is out of range.

    Source: Huang, Ok, Li and Chen (2018), section 4.1, with binary decisions.
    """
    costs = floats("costs", costs, ("m",), dtype)
    require(costs.size >= 2, "costs", "have shape (m,) with m >= 2", costs.shape)
    checks.integer("k", k, least=1, most=costs.size - 1)
    return table(np.ones((costs.size, 1)), costs[:, None], k, dtype=costs.dtype)


def water(
    costs: Sequence[Any] | Array,
    demand: Array | int,
    *,
    step: Array | float = 1.0,
    tight: bool = True,
    dtype: Any = None,
) -> Table:
    """Builds the problem of water planning: the amounts from each source that meet a demand at the best net yield.

    Maximise sum_i theta_i y_i - f_i(y_i) subject to sum y >= demand * step and 0 <= y_i <= c_i, where y_i is a multiple
    of `step` and the f_i are convex.

    Args:
        costs: costs[i] = (f_i(0), f_i(step), ..., f_i(c_i)), finite. The rows may differ in length, but a traced
            `costs` is one array (m, 1 + W).
        demand: number of steps, at least 1 and less than all sources have.
        step: size of a step, positive.
        tight: True if every unit costs at least as much as it can yield (f_i' >= 1), so the demand is met exactly. If
            False, units beyond the demand are taken wherever they pay.
        dtype: dtype of the arrays and of the run; by default JAX's own.

    Returns:
        Table whose decisions are y.

    Raises:
        ValueError: a cost is not finite or not convex on the grid, a slope is below 1 though `tight`, `demand` or
            `step` is out of range.

    Source: Huang, Ok, Li and Chen (2018), section 4.1.
    """
    checks.positive("step", step)
    checks.flag("tight", tight)
    checks.integer("demand", demand, least=1)
    to_dtype = None if dtype is None else checks.float_dtype("dtype", dtype)
    if is_concrete(costs):
        slopes = _slopes(costs)
    else:
        slopes = jnp.diff(checks.array("costs", costs, ("m", "n"), dtype=to_dtype), axis=1)
    if tight and is_concrete(slopes, step):
        steep = slopes >= np.asarray(step) * (1 - ROUNDING)
        require(steep, "costs", "rise by at least 1 per unit of water if tight (else pass tight=False)", slopes)
    if is_concrete(slopes, demand):
        total = int(np.isfinite(slopes).sum())
        require(int(demand) < total, "demand", f"lie in 1..{total - 1}", demand)
    # DEVIATION: Lemma 3 requires a tight demand. With convex costs the decisions are bi-monotone without it.
    if is_concrete(slopes):
        slopes = np.asarray(slopes, checks.float_dtype("dtype", dtype))
    xp = np if is_concrete(slopes, step) else jnp
    coef = xp.where(xp.isfinite(slopes), xp.asarray(step, slopes.dtype), 0)
    kind = "exactly" if tight else "at least"
    return table(coef, slopes, demand, kind=kind, step=step, dtype=slopes.dtype)


def _slopes(costs: Any) -> np.ndarray:
    """Computes the cost of each step, +inf beyond the last.

    It is the exact difference of the costs as printed, so decimal fractions have their exact slopes.
    """
    is_list = isinstance(costs, (list, tuple)) or np.ndim(costs) == 2
    require(is_list and len(costs) >= 2, "costs", "have at least 2 rows", costs)
    for i, row in enumerate(costs):
        checks.array(f"costs[{i}]", row, ("n",))
    rows = [np.asarray(row) for row in costs]
    slopes = np.full((len(rows), max(row.size for row in rows) - 1), np.inf)
    for i, row in enumerate(rows):
        require(row.size >= 2, f"costs[{i}]", "be f(0), f(step), ..., with one step at least", row)
        exact = [Fraction(str(cost)) for cost in row]
        rise = np.array([float(after - before) for before, after in pairwise(exact)])
        # ERRATUM: Lemma 3 admits concave costs too. Their optima are vertices, which are not bi-monotone.
        is_convex = rise[1:] >= rise[:-1] - ROUNDING * np.abs(row).max()
        expected = f"be convex on the grid for arm {i} (concave costs are not bi-monotone)"
        require(is_convex, "costs", expected, row)
        # The slopes of a linear cost differ by rounding.
        slopes[i, : rise.size] = np.maximum.accumulate(rise)
    return slopes
