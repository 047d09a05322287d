"""A run read from outside: what its state says of theta, and what decisions are worth."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, PyTree
from jaxbandits.checks import require
from jaxbandits.cpe._problem.entries import entry_values
from jaxbandits.cpe._problem.problems import (
    Enumerated,
    OpinionSampling,
    Oracle,
    Problem,
    Table,
    arm_count,
    check_problem,
)
from jaxbandits.cpe._problem.problems import float_dtype as dtype_of
from jaxbandits.cpe._shared.estimate import Estimator, Statistics, box, estimate, initial_pulls, squared_radius
from jaxbandits.numerics.linalg import dot


class Confidence(NamedTuple):
    """What the samples of a run say of theta."""

    theta: Array  # float (m,)    the estimate
    radius: Array  # float (m,)   theta_i lies within it of the estimate, of all arms and rounds at once
    lo: Array  # float (m,)       the corners of the box that is left for theta
    hi: Array  # float (m,)


def confidence(
    state: PyTree,
    *,
    delta: Array | float,
    estimator: Estimator = "mean",
    clip: bool = True,
    radius_scale: Array | float = 1.0,
) -> Confidence:
    """The estimate, its radii and the box of a state of `coci`, `uniform` or, with its radius "coci", `clucb`.

    Args:
        state: of one lane, such as `outcome.state`; under `vmap`, of many.
        delta: as the algorithm has it.
        estimator: as the algorithm has it; "mean" for `clucb`.
        clip: as the algorithm has it.
        radius_scale: as the algorithm has it.

    Returns:
        Confidence. An arm with fewer samples than an estimate takes counts as having that many.

    Raises:
        ValueError: `state` is no state of this family, or a setting is out of range.

    Cost: O(m).

    Source: Huang, Ok, Li and Chen (2018), Algorithm 1.

    Example:
        >>> import jax, jaxbandits
        >>> from jaxbandits import cpe
        >>> instance = cpe.best5()
        >>> algorithm = cpe.coci(instance.problem, delta=0.05)
        >>> outcome = jaxbandits.run(jax.random.key(0), algorithm, cpe.environment(instance), max_rounds=10**5)
        >>> seen = cpe.confidence(outcome.state, delta=0.05)
        >>> print(((seen.lo <= instance.theta) & (instance.theta <= seen.hi)).all())
        True
        >>> print(cpe.candidates(instance.problem, seen.lo, seen.hi, outcome.answer).any())  # so it has stopped
        False
    """
    is_state = isinstance(getattr(state, "statistics", None), Statistics)
    require(is_state, "state", "be a state of coci, uniform or clucb", state)
    statistics: Statistics = state.statistics
    checks.probability("delta", delta)
    checks.one_of("estimator", estimator, Estimator)
    checks.flag("clip", clip)
    checks.positive("radius_scale", radius_scale)
    sums, dtype, tau = statistics.sums, statistics.poison.dtype, initial_pulls(estimator)
    keeps = estimator == "mean" or getattr(sums, "second", sums) is not None
    require(keeps, "estimator", "be 'mean', as the algorithm's was: the state keeps no squares", estimator)
    n = jnp.maximum(state.pulls, 1).astype(dtype)
    squared = squared_radius(n, tau=tau, delta=delta, radius_scale=radius_scale)
    theta = estimate(statistics, estimator)
    radius = jnp.sqrt(squared / jnp.maximum(statistics.counts, tau).astype(dtype))
    return Confidence(theta, radius, *box(theta - radius, theta + radius, clip=clip))


def reward(problem: Problem, theta: Any, levels: Any) -> Array:
    """What a decision pays beyond the one of all levels 0, r(theta, y) - r(theta, y(0)).

    So differences of two decisions are those of r; for an `Enumerated` class and for `Graphic`, r(theta, y) itself, as
    no arm at level 0 pays anything.

    Args:
        problem: any but an `Oracle`, whose rewards are not known.
        theta: float (m,).
        levels: int (m,), of a decision of the problem, such as an algorithm's answer or `solve(problem, theta)`.

    Returns:
        float (). -inf beyond the last entry of a table's row; NaN for levels that are no row of an `Enumerated` class.

    Raises:
        ValueError: an argument is not as above.

    Cost: O(m W) for a `Table`, O(N m) for `Enumerated`, else O(m).

    Example:
        >>> from jaxbandits import cpe
        >>> problem, theta = cpe.sites([0.1, 0.2, 0.3], 2), jnp.array([0.5, 0.3, 0.9])
        >>> print(reward(problem, theta, cpe.solve(problem, theta)))  # 0.5 - 0.1 and 0.9 - 0.3
        1.0
    """
    check_problem(problem)
    expected = "be a Table, OpinionSampling, Enumerated or Graphic: an Oracle tells its best decision, not what it pays"
    require(not isinstance(problem, Oracle), "problem", expected, type(problem).__name__)
    m, dtype = arm_count(problem), dtype_of(problem)
    theta = checks.array("theta", theta, (m,)).astype(dtype)
    levels = checks.array("levels", levels, (m,), kind="int", least=0).astype(jnp.int32)
    if isinstance(problem, Table):
        values = entry_values(problem, theta)
        width = values.shape[1]
        chosen = jnp.arange(width, dtype=jnp.int32)[None] < levels[:, None]
        total = jnp.sum(jnp.where(chosen, values, 0))
        return jnp.where(jnp.any(levels > width), -jnp.inf, total)
    if isinstance(problem, OpinionSampling):
        return jnp.sum(problem.sizes**2 * theta * (1 - 1 / (1 + levels.astype(dtype))))
    total = dot(theta, levels.astype(dtype))
    if isinstance(problem, Enumerated):
        is_row = jnp.all(problem.rows == levels[None], axis=1)
        total = total - jnp.where(jnp.any(is_row), jnp.sum(jnp.where(is_row, problem.offset, 0)), jnp.nan)
    return total
