"""Combinatorial pure exploration with separable rewards: its problems and the action of its algorithms.

A sample of arm i lies in [0, 1]; its unknown mean, or its unknown variance, is theta_i. A decision y gives each arm a
level y_i, and pays r(theta, y) = sum_i r_i(theta_i, y_i). Wanted is the decision that pays most at the true theta.
Among decisions that pay the same, the leading one is the lexicographically smallest, so ties between two arms go to the
larger index.

A problem is what the learner may know: all but theta.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Array, Key
from jaxbandits.checks import is_concrete, require

DRAWS = 1000  # decisions found at once in the search for a violation


class Table(NamedTuple):
    """Entries (i, l) worth coef[i, l] theta_i - cost[i, l]; a decision takes the best ones.

    Rows do not increase in l for any theta_i in [0, 1]. Entry (i, l) precedes (j, k) if it is worth more, or as much
    and i > j, or i = j and l < k. It is chosen if fewer than `quota` entries precede it and it is worth more than
    `floor`, or if it is worth more than `ceiling`. The level of an arm is the number of its chosen entries, which are
    the first of its row.
    """

    coef: Array  # float (m, W)   at least 0; 0 where the row has ended
    cost: Array  # float (m, W)   +inf where the row has ended
    quota: Array  # int32 ()
    floor: Array  # float ()      -inf (exactly, at least) or 0 (at most)
    ceiling: Array  # float ()    +inf (exactly, at most) or 0 (at least)
    base: Array  # float ()       y = base + step * levels
    step: Array  # float ()


class OpinionSampling(NamedTuple):
    """Minimise sum_i sizes_i^2 theta_i / y_i over integers y_i >= 1 with sum y <= budget; y = 1 + levels.

    It is a `Table` with rows sizes_i^2 theta_i / ((l+1) (l+2)) that is never written down. Its budget is a Python int:
    it is closed over, not passed through `jit` or `vmap`.
    """

    sizes: Array  # float (m,)   positive integers
    budget: int  # interviews in all, a Python int


class Enumerated(NamedTuple):
    """A finite class of 0/1 decisions, listed; r(theta, y) = y.theta - offset_y."""

    rows: Array  # int32 (N, m)    0 or 1, in lexicographic order, no two equal
    offset: Array  # float (N,)


class Graphic(NamedTuple):
    """The spanning trees of a graph, not listed; r(theta, y) = y.theta.

    A disconnected graph has spanning forests. The number of nodes is a Python int, so it is closed over.
    """

    nodes: int  # a Python int
    ends: Array  # int32 (m, 2)    the two ends of each edge


class Oracle(NamedTuple):
    """A problem of the user's own, known by its maximiser. It is closed over, not passed through `jit` or `vmap`."""

    solve: Callable[[Array], Array]  # theta (m,) -> levels int (m,)
    arms: int  # m, a Python int
    bi_monotone: bool  # whether the two-call test may be used


Problem = Table | OpinionSampling | Enumerated | Graphic | Oracle


class Pulls(NamedTuple):
    """The action of every algorithm here: slot q pulls arm `arms[q]`, or none where `arms[q]` = m."""

    arms: Array  # int32 (block,)
    # The arm's own number of the sample, from 0: int32 (block,). It hides tuple.index, which nobody needs here.
    index: Array  # pyright: ignore[reportIncompatibleMethodOverride]


# What all problems have


def arm_count(problem: Problem) -> int:
    """The number m of arms."""
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
    """The dtype of a run: that of the problem's floating-point arrays, JAX's default where it has none."""
    match problem:
        case Table():
            return jnp.asarray(problem.coef).dtype
        case OpinionSampling():
            return jnp.asarray(problem.sizes).dtype
        case Enumerated():
            return jnp.asarray(problem.offset).dtype
        case Graphic() | Oracle():
            return jnp.zeros(()).dtype


def decision(problem: Problem, levels: Array) -> Array:
    """The decision y that levels stand for.

    Args:
        problem: any.
        levels: int (m,), such as an algorithm's answer.

    Returns:
        base + step * levels, float (m,), for a table and for opinion sampling (base and step 1); the levels themselves
        for all others.
    """
    match problem:
        case Table():
            return problem.base + problem.step * levels.astype(problem.step.dtype)
        case OpinionSampling():
            return 1 + levels.astype(float_dtype(problem))
        case Enumerated() | Graphic() | Oracle():
            return levels


def entry_values(problem: Table, theta: Array) -> Array:
    """What the entries of a table are worth.

    Args:
        problem: a table.
        theta: float (m,).

    Returns:
        float (m, W), -inf where a row has ended.
    """
    return problem.coef * theta[:, None] - problem.cost


def row_values(problem: Enumerated, theta: Array) -> Array:
    """What the decisions of a class are worth.

    Args:
        problem: an enumerated class.
        theta: float (m,).

    Returns:
        float (N,). The arms are added in the order of their indices, so that decisions which tie at round numbers tie
        on every machine.
    """
    total = jnp.zeros_like(problem.offset)
    for i in range(arm_count(problem)):
        total = total + problem.rows[:, i].astype(total.dtype) * theta[i]
    return total - problem.offset


def entries_above(weights: Array, value: Array, *, limit: int, inclusive: Array | bool = False) -> Array:
    """For opinion sampling: how many of w/(1*2), w/(2*3), w/(3*4), ... exceed a value.

    Args:
        weights: float (m,), w = sizes^2 theta, at least 0.
        value: float, at least 0, of a shape that broadcasts with (m,), such as () or (n, 1).
        limit: entries of a row, a Python int. In float32 the count may be off by one beyond about 10^6.
        inclusive: bool, likewise; whether entries equal to `value` count too, if they are positive.

    Returns:
        int32 (m,) or (n, m), at most `limit`. Every comparison is one of w/(l (l+1)), rounded once, with `value`: of
        two equal entries neither exceeds the other.
    """
    dtype = weights.dtype
    tiny = 1e-37 if dtype == jnp.float32 else 1e-300
    ratio = jnp.minimum(weights / jnp.maximum(value, tiny), 4.0 * limit**2)
    count = jnp.floor((jnp.sqrt(1 + 4 * ratio) - 1) / 2)

    def exceeds(number: Array) -> Array:
        entry = weights / (number * (number + 1))
        return (entry > value) | (jnp.asarray(inclusive) & (entry == value) & (entry > 0))

    # The root above may be off by a rounding: one comparison on each side settles it.
    count = jnp.where((count > 0) & ~exceeds(jnp.maximum(count, 1)), count - 1, count)
    count = jnp.where(exceeds(count + 1), count + 1, count)
    return jnp.minimum(count, limit).astype(jnp.int32)


def floats(values: Any, dtype: Any) -> Array | np.ndarray:
    """Values as floats of a dtype, on the host if they are known: under a trace JAX would hide them from checks.

    A dtype of None stands for JAX's default, and for a traced array's own if that is a float.
    """
    if is_concrete(values):
        return np.asarray(values, jnp.zeros((), dtype).dtype)
    values = jnp.asarray(values)
    return values.astype(jnp.result_type(values.dtype, float) if dtype is None else dtype)


# The user's own


def oracle(solve: Callable[[Array], Array], arms: int, *, bi_monotone: bool) -> Oracle:
    """A problem of the user's own.

    Args:
        solve: pure JAX function, theta float (m,) -> levels int (m,): one fixed, deterministic maximiser.
        arms: m, a Python int, at least 2.
        bi_monotone: the caller's promise that raising theta_i never lowers the level of arm i and never raises that
            of another. The test that algorithms use for an oracle is silently wrong where it does not hold; see
            `find_bi_monotone_violation`.

    Returns:
        Oracle.

    Raises:
        ValueError: `solve` is not callable or does not return integers (m,), `arms` is below 2, or `bi_monotone` is
            not a bool.
    """
    require(callable(solve), "solve", "be callable", solve)
    require(isinstance(arms, int) and arms >= 2, "arms", "be a Python int of at least 2", arms)
    require(isinstance(bi_monotone, bool), "bi_monotone", "be a bool", bi_monotone)
    levels = jax.eval_shape(solve, jax.ShapeDtypeStruct((arms,), jnp.zeros(()).dtype))
    fits = getattr(levels, "shape", None) == (arms,) and jnp.issubdtype(levels.dtype, jnp.integer)
    require(fits, "solve", f"return integers of shape ({arms},)", levels)
    return Oracle(solve, arms, bi_monotone)


def find_bi_monotone_violation(
    solve: Callable[[Array], Array], key: Key, arms: int, *, samples: int = 10_000
) -> tuple[Array, Array] | None:
    """Searches for a proof that a maximiser is not bi-monotone.

    It raises one coordinate at a time, half the samples at uniform points of [0, 1]^m, half on the grid of eighths,
    where ties are common.

    Args:
        solve: theta float (m,) -> levels int (m,).
        key: of the samples.
        arms: m.
        samples: number of pairs tried, at least 2.

    Returns:
        (theta, theta'), which differ in one coordinate i, larger in theta', where level i falls or another one rises;
        None if none was found, which proves nothing.

    Raises:
        ValueError: `samples` is below 2.

    Cost: 2 * samples calls of `solve`.
    """
    require(samples >= 2, "samples", "be at least 2", samples)
    keys = jax.random.split(key, 3)
    shape = (samples, arms + 1)
    fine = jax.random.uniform(keys[0], shape)
    coarse = jax.random.randint(keys[1], shape, 0, 9).astype(fine.dtype) / 8
    draws = jnp.where(jnp.arange(samples)[:, None] % 2 == 0, fine, coarse)
    moved = jax.random.randint(keys[2], (samples,), 0, arms)

    def change(draw: Array, i: Array) -> tuple[Array, Array, Array]:
        theta, other = draw[:arms], draw[arms]
        before = theta.at[i].min(other)
        after = theta.at[i].max(other)
        rise = solve(after) - solve(before)
        own = jnp.arange(arms) == i
        return before, after, jnp.any(jnp.where(own, -rise, rise) > 0)

    before, after, broken = jax.jit(lambda pairs: jax.lax.map(lambda pair: change(*pair), pairs, batch_size=DRAWS))(
        (draws, moved)
    )
    found = np.flatnonzero(np.asarray(broken))
    return (before[found[0]], after[found[0]]) if found.size else None
