"""Problems: the decisions and their reward, which the learner may know. Only theta is unknown.

A sample of arm i lies in [0, 1]; its unknown mean, or its unknown variance, is theta_i. A decision y gives each arm a
level y_i, and pays r(theta, y) = sum_i r_i(theta_i, y_i). The goal is the decision that pays most at the true theta.
Among decisions that pay the same, the leading one is the lexicographically smallest, so ties between two arms go to the
larger index.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array, static_fields
from jaxbandits.checks import is_concrete, known, require


class Table(NamedTuple):
    """Entries (i, l) worth coef[i, l] theta_i - cost[i, l]; a decision takes the best ones.

    Rows do not increase in l for any theta_i in [0, 1]. Entry (i, l) precedes (j, k) if it is worth more, or as much
    and i > j, or i = j and l < k. It is chosen if fewer than `quota` entries precede it and it is worth more than
    `floor`, or if it is worth more than `ceiling`. The level of an arm is the number of its chosen entries, which are
    the first of its row.

    Entries with the same worth in exact arithmetic count as equal in floating point too, see `solve`.
    """

    coef: Array  # float (m, W)   at least 0; 0 where the row has ended
    cost: Array  # float (m, W)   +inf where the row has ended
    quota: Array  # int32 ()      number of entries to take
    floor: Array  # float ()      -inf (exactly, at least) or 0 (at most)
    ceiling: Array  # float ()    +inf (exactly, at most) or 0 (at least)
    base: Array  # float ()       y = base + step * levels
    step: Array  # float ()


@static_fields("budget")
class OpinionSampling(NamedTuple):
    """Minimise sum_i sizes_i^2 theta_i / y_i over integers y_i >= 1 with sum y <= budget; y = 1 + levels.

    It is a `Table` with rows sizes_i^2 theta_i / ((l+1) (l+2)) that is never written down.
    """

    sizes: Array  # float (m,)   positive integers
    budget: int  # interviews in all; static


class Enumerated(NamedTuple):
    """A finite class of 0/1 decisions, listed; r(theta, y) = y.theta - offset_y."""

    rows: Array  # int32 (N, m)    0 or 1, in lexicographic order, no two equal
    offset: Array  # float (N,)


@static_fields("nodes")
class Graphic(NamedTuple):
    """The spanning trees of a graph, not listed; r(theta, y) = y.theta. A disconnected graph has spanning forests."""

    nodes: int  # static
    ends: Array  # int32 (m, 2)    the two ends of each edge


@static_fields("solve", "arms", "bi_monotone")
class Oracle(NamedTuple):
    """A problem of your own, given by its maximiser. It is static throughout; `oracle` builds one."""

    solve: Callable[[Array], Array]  # theta (m,) -> levels int (m,); static
    arms: int  # m; static
    bi_monotone: bool  # True if the two-call test may be used; static


Problem = Table | OpinionSampling | Enumerated | Graphic | Oracle


def arm_count(problem: Problem) -> int:
    """Returns the number m of arms."""
    match problem:
        case Table():
            return jnp.shape(problem.coef)[0]
        case OpinionSampling():
            return jnp.shape(problem.sizes)[0]
        case Enumerated():
            return jnp.shape(problem.rows)[1]
        case Graphic():
            return jnp.shape(problem.ends)[0]
        case Oracle():
            return problem.arms


def float_dtype(problem: Problem) -> Any:
    """Returns the dtype of a run: the dtype of the problem's floats, or JAX's default if it has none."""
    match problem:
        case Table():
            return jnp.result_type(problem.coef)
        case OpinionSampling():
            return jnp.result_type(problem.sizes)
        case Enumerated():
            return jnp.result_type(problem.offset)
        case Graphic() | Oracle():
            return jnp.result_type(float)


def decision(problem: Problem, levels: Array) -> Array:
    """Converts levels to the decision y.

    Args:
        problem: any.
        levels: int (m,), at least 0, such as an algorithm's answer.

    Returns:
        base + step * levels, float (m,), for a table and for opinion sampling (base and step 1); otherwise the levels
        themselves.

    Raises:
        ValueError: an argument is not as above.
    """
    check_problem(problem)
    levels = checks.array("levels", levels, (arm_count(problem),), kind="int", least=0)
    match problem:
        case Table():
            return problem.base + problem.step * levels.astype(problem.step.dtype)
        case OpinionSampling():
            return 1 + levels.astype(float_dtype(problem))
        case Enumerated() | Graphic() | Oracle():
            return levels


# Checks


def check_problem(problem: Any, name: str = "problem") -> None:
    """Raises `ValueError` unless this is a problem whose parts are as its comments say."""
    checks.instance(name, problem, get_args(Problem))
    match problem:
        case Table():
            check_entries(problem.coef, problem.cost, problem.quota, prefix=f"{name}.")
            for part in ("floor", "ceiling"):
                checks.real(f"{name}.{part}", getattr(problem, part), finite=False)
            checks.real(f"{name}.base", problem.base)
            checks.positive(f"{name}.step", problem.step)
        case OpinionSampling():
            check_sizes(problem.sizes, f"{name}.sizes")
            checks.whole(f"{name}.budget", problem.budget, least=arm_count(problem) + 1)
        case Enumerated():
            rows = checks.array(f"{name}.rows", problem.rows, ("N", "m"), kind="int", least=0, most=1)
            checks.array(f"{name}.offset", problem.offset, (rows.shape[0],))
        case Graphic():
            checks.whole(f"{name}.nodes", problem.nodes, least=2)
            checks.array(f"{name}.ends", problem.ends, ("m", 2), kind="int", least=0, most=problem.nodes - 1)
        case Oracle():
            checks.function(f"{name}.solve", problem.solve, "theta")
            checks.whole(f"{name}.arms", problem.arms, least=2)
            checks.flag(f"{name}.bi_monotone", problem.bi_monotone)


def check_sizes(sizes: Any, name: str = "sizes") -> None:
    """Raises `ValueError` unless the groups' sizes are at least two positive integers, in any dtype."""
    checks.array(name, sizes, ("m",), least=1)
    require(np.size(sizes) >= 2, name, "have shape (m,) with m >= 2", np.shape(sizes))
    require(known(sizes) == known(sizes) // 1, name, "be positive integers", sizes)


def check_entries(coef: Any, cost: Any, quota: Any, *, prefix: str = "") -> None:
    """Raises `ValueError` unless rows of entries do not increase and the quota is a possible number of entries."""
    shape = checks.array(f"{prefix}coef", coef, ("m", "W"), least=0).shape
    require(shape[0] >= 2, f"{prefix}coef", "have shape (m, W) with m >= 2", shape)
    checks.array(f"{prefix}cost", cost, shape, finite=False, above=-np.inf)
    checks.integer(f"{prefix}quota", quota, least=0)
    if not is_concrete(coef, cost):
        return
    coef, cost = known(coef), known(cost)
    entries = int(np.isfinite(cost).sum())
    if is_concrete(quota):
        require(int(quota) <= entries, f"{prefix}quota", f"lie in 0..{entries}, the number of entries", quota)
    room = 4 * rounding(jnp.result_type(float) if coef.dtype.kind != "f" else coef.dtype)
    for theta in (0, 1):
        values = coef * theta - cost
        size = np.where(np.isfinite(cost), coef + abs(cost), 0)
        rises = np.argwhere(values[:, 1:] > values[:, :-1] + room * (size[:, 1:] + size[:, :-1]))
        if rises.size:
            i, l = rises[0]
            expected = f"give rows that do not increase (arm {i}, entries {l} and {l + 1}, at theta = {theta})"
            require(False, f"{prefix}coef and {prefix}cost", expected, values[i, l : l + 2])


def rounding(dtype: Any) -> float:
    """Returns the distance from 1 to the next number of a floating dtype."""
    return float(jnp.finfo(dtype).eps)


def floats(name: str, values: Any, shape: tuple[int | str, ...], dtype: Any = None, **bounds: Any) -> Any:
    """Checks an array of numbers as `checks.array` does, and leaves a known one on the host.

    Under a trace JAX would hide it from further checks. If `dtype` is None, it is JAX's default; a traced array of
    floats keeps its dtype.
    """
    dtype = None if dtype is None else checks.float_dtype("dtype", dtype)
    checks.array(name, values, shape, **bounds)
    if is_concrete(values):
        return np.asarray(values, checks.float_dtype("dtype", dtype))
    values = jnp.asarray(values)
    return values.astype(jnp.result_type(values.dtype, float) if dtype is None else dtype)
