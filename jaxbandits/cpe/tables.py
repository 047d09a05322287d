"""Problems that take the best entries of a table: best arm, top-k, sites, water planning and opinion sampling."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, known, require, require_positive
from jaxbandits.cpe.problem import OpinionSampling, Table, floats

TABLE_WIDTH = 32  # levels of opinion sampling beyond which no table is written down
ROUNDING = 1e-9  # admitted in the differences of costs, relative to the largest of them

Kind = Literal["exactly", "at most", "at least"]


def table(
    coef: Any,
    cost: Any,
    quota: Array | int,
    *,
    kind: Kind = "exactly",
    base: Array | float = 0.0,
    step: Array | float = 1.0,
    dtype: Any = None,
) -> Table:
    """A problem that takes the best entries of a table; see `Table`.

    Args:
        coef: (m, W), m >= 2, finite and at least 0.
        cost: (m, W), finite, or +inf where a row has ended (coef is 0 there).
        quota: int (), how many entries.
        kind: "exactly" for the `quota` best entries; "at most" for those among them that are worth more than 0; "at
            least" for them and every further entry that is worth more than 0.
        base: y of level 0.
        step: y per level, positive.
        dtype: dtype of the arrays and of the run; by default JAX's own.

    Returns:
        Table. Its leading optimum is bi-monotone: raising theta_i never lowers the level of arm i and never raises
        that of another.

    Raises:
        ValueError: the shapes differ, m < 2, a value is out of range, a row increases for some theta in [0, 1], `kind`
            is unknown, or there are not enough entries or only one decision.
    """
    require(kind in get_args(Kind), "kind", f"be one of {get_args(Kind)}", kind)
    require_positive("step", step)
    coef = floats(coef, dtype)
    cost = floats(cost, coef.dtype)
    shape = coef.shape
    require(len(shape) == 2 and shape[0] >= 2 and shape[1] >= 1, "coef", "have shape (m, W) with m >= 2", shape)
    require(cost.shape == shape, "cost", f"have shape {shape}", cost.shape)
    if is_concrete(coef, cost):
        _check_rows(np.asarray(coef), np.asarray(cost))
    if is_concrete(cost, quota):
        _check_quota(int(quota), int(np.isfinite(np.asarray(cost)).sum()), kind)
    dtype = coef.dtype
    return Table(
        coef=jnp.asarray(coef),
        cost=jnp.asarray(cost),
        quota=jnp.asarray(quota, jnp.int32),
        floor=jnp.asarray(0 if kind == "at most" else -jnp.inf, dtype),
        ceiling=jnp.asarray(0 if kind == "at least" else jnp.inf, dtype),
        base=jnp.asarray(base, dtype),
        step=jnp.asarray(step, dtype),
    )


def best_arm(m: int, *, dtype: Any = None) -> Table:
    """The arm of the largest theta: `top_k` with k = 1; arguments, result and errors as there."""
    return top_k(m, 1, dtype=dtype)


def top_k(m: int, k: Array | int, *, dtype: Any = None) -> Table:
    """The k arms of the largest theta.

    Args:
        m: number of arms, at least 2.
        k: arms to find, in 1..m-1; may be traced.
        dtype: dtype of the arrays and of the run; by default JAX's own.

    Returns:
        Table of width 1.

    Raises:
        ValueError: `m` or `k` is out of range.
    """
    require(m >= 2, "m", "be at least 2", m)
    _check_k(k, m)
    return table(np.ones((m, 1)), np.zeros((m, 1)), k, dtype=dtype)


def sites(costs: Any, k: Array | int, *, dtype: Any = None) -> Table:
    """The k sites of the largest yield net of a known cost: maximise sum over the sites taken of theta_i - costs_i.

    Args:
        costs: (m,), m >= 2, finite.
        k: sites to take, in 1..m-1; may be traced.
        dtype: dtype of the arrays and of the run; by default JAX's own.

    Returns:
        Table of width 1.

    Raises:
        ValueError: `costs` is not a vector of at least two finite values, or `k` is out of range.

    Source: Huang, Ok, Li and Chen (2018), section 4.1, with binary decisions.
    """
    costs = floats(costs, dtype)
    require(costs.ndim == 1 and costs.size >= 2, "costs", "have shape (m,) with m >= 2", costs.shape)
    if is_concrete(costs):
        require(np.isfinite(costs), "costs", "be finite", costs)
    _check_k(k, costs.size)
    return table(np.ones((costs.size, 1)), costs[:, None], k, dtype=costs.dtype)


def water(
    costs: Sequence[Any] | Array,
    demand: Array | int,
    *,
    step: Array | float = 1.0,
    tight: bool = True,
    dtype: Any = None,
) -> Table:
    """Water resource planning: how much to take from each source, to meet a demand at the best yield net of costs.

    Maximise sum_i theta_i y_i - f_i(y_i) subject to sum y >= demand * step and 0 <= y_i <= c_i, where y_i is a multiple
    of `step` and the f_i are convex.

    Args:
        costs: costs[i] = (f_i(0), f_i(step), ..., f_i(c_i)), finite; the rows may differ in length, but a traced
            `costs` is one array (m, 1 + W).
        demand: number of steps, at least 1 and less than all sources have.
        step: size of a step, positive.
        tight: whether every unit costs at least what it can yield (f_i' >= 1), so that the demand is met exactly;
            otherwise units beyond the demand are taken wherever they pay.
        dtype: dtype of the arrays and of the run; by default JAX's own.

    Returns:
        Table whose decisions are y.

    Raises:
        ValueError: a cost is not finite or not convex on the grid, a slope is below 1 though `tight`, `demand` or
            `step` is out of range.

    Source: Huang, Ok, Li and Chen (2018), section 4.1.
    """
    require_positive("step", step)
    require(jnp.issubdtype(jnp.asarray(demand).dtype, jnp.integer), "demand", "be a whole number of steps", demand)
    slopes = _slopes(costs) if is_concrete(costs) else jnp.diff(jnp.asarray(costs), axis=1)
    if tight and is_concrete(slopes, step):
        steep = slopes >= np.asarray(step) * (1 - ROUNDING)
        require(steep, "costs", "rise by at least 1 per unit of water if tight (else pass tight=False)", slopes)
    if is_concrete(slopes, demand):
        total = int(np.isfinite(slopes).sum())
        require(1 <= int(demand) < total, "demand", f"lie in 1..{total - 1}", demand)
    # DEVIATION: Lemma 3 asks for a tight demand. With convex costs the decisions are bi-monotone without it.
    slopes = floats(slopes, dtype)
    xp = np if is_concrete(slopes, step) else jnp
    coef = xp.where(xp.isfinite(slopes), xp.asarray(step, slopes.dtype), 0)
    kind = "exactly" if tight else "at least"
    return table(coef, slopes, demand, kind=kind, step=step, dtype=slopes.dtype)


def opinion_sampling(sizes: Any, budget: int, *, dtype: Any = None) -> Table | OpinionSampling:
    """Stratified opinion polls: how many people to ask in each group, so that the estimate varies least.

    Minimise sum_i sizes_i^2 theta_i / y_i over integers y_i >= 1 with sum y <= budget, where theta_i is the variance of
    an opinion in group i: to be run with variance estimates.

    Args:
        sizes: (m,), m >= 2, positive integers, exact in the dtype.
        budget: people to ask, a Python int above m.
        dtype: dtype of the arrays and of the run; by default JAX's own.

    Returns:
        Table whose decisions are y, or `OpinionSampling` if it would be wider than 32.

    Raises:
        ValueError: `sizes` are not at least two positive integers, or `budget` is at most m.

    Source: Huang, Ok, Li and Chen (2018), section 4.2 and Definition 3 of its appendix.
    """
    sizes = floats(sizes, dtype)
    require(sizes.ndim == 1 and sizes.size >= 2, "sizes", "have shape (m,) with m >= 2", sizes.shape)
    if is_concrete(sizes):
        n = np.asarray(sizes)
        require((n >= 1) & (n == np.floor(n)) & np.isfinite(n), "sizes", "be positive integers", sizes)
    m = sizes.size
    require(isinstance(budget, int), "budget", "be a Python int", budget)
    require(budget > m, "budget", f"exceed {m}, or the only decision is known without a pull", budget)
    width = budget - m
    if width > TABLE_WIDTH:
        return OpinionSampling(jnp.asarray(sizes), budget)
    level = np.arange(1, width + 1, dtype=sizes.dtype)
    coef = sizes[:, None] ** 2 / (level * (level + 1))
    return table(coef, np.zeros(coef.shape), width, kind="at most", base=1.0, dtype=sizes.dtype)


def _check_k(k: Array | int, m: int) -> None:
    require((known(k) >= 1) & (known(k) <= m - 1), "k", f"lie in 1..{m - 1}", k)


def _check_quota(quota: int, entries: int, kind: Kind) -> None:
    require(0 <= quota <= entries, "quota", f"lie in 0..{entries}, the number of entries", quota)
    alone = {"exactly": quota in (0, entries), "at most": quota == 0, "at least": quota == entries}[kind]
    expected = f"leave a choice among {entries} entries, or the only decision is known without a pull"
    require(not alone, "quota", expected, quota)


def _check_rows(coef: np.ndarray, cost: np.ndarray) -> None:
    require((coef >= 0) & np.isfinite(coef), "coef", "be finite and at least 0", coef)
    require(cost > -np.inf, "cost", "be finite, or +inf where a row has ended", cost)
    for theta in (0, 1):
        values = coef * theta - cost
        rises = np.argwhere(values[:, 1:] > values[:, :-1])
        if rises.size:
            i, l = rises[0]
            expected = f"give rows that do not increase (arm {i}, entries {l} and {l + 1}, at theta = {theta})"
            require(False, "coef and cost", expected, values[i, l : l + 2])


def _slopes(costs: Any) -> np.ndarray:
    """What each step costs, +inf beyond the last."""
    rows = [np.asarray(row, np.float64) for row in costs]
    require(len(rows) >= 2, "costs", "have at least 2 rows", len(rows))
    slopes = np.full((len(rows), max(row.size for row in rows) - 1), np.inf)
    for i, row in enumerate(rows):
        fits = row.ndim == 1 and row.size >= 2 and bool(np.isfinite(row).all())
        require(fits, "costs", f"be f(0), f(step), ... for arm {i}, finite, with one step at least", row)
        rise = np.diff(row)
        # ERRATUM: Lemma 3 admits concave costs too. Their optima are vertices, and those are not bi-monotone.
        convex = rise[1:] >= rise[:-1] - ROUNDING * np.abs(row).max()
        require(convex, "costs", f"be convex on the grid for arm {i} (concave costs are not bi-monotone)", row)
        slopes[i, : rise.size] = np.maximum.accumulate(rise)  # a linear cost has slopes that differ by rounding
    return slopes
