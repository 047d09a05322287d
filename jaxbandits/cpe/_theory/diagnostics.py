"""Diagnostics of a run: the estimate and confidence box in its state, and the reward of a decision."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, PyTree
from jaxbandits.checks import require
from jaxbandits.cpe._problem.problems import Problem, arm_count, check_problem, float_dtype, kind_of, needed
from jaxbandits.cpe._shared.estimate import Estimator, Statistics, box, estimate, initial_pulls, squared_radius


class Confidence(NamedTuple):
    """Estimate and confidence box of theta from the samples of a run."""

    theta: Array  # float (m,)    the estimate
    radius: Array  # float (m,)   confidence radius of each estimate, for all arms and rounds at once
    lo: Array  # float (m,)       lower corner of the confidence box
    hi: Array  # float (m,)       upper corner of the confidence box


def confidence(
    state: PyTree,
    *,
    delta: Array | float,
    estimator: Estimator = "mean",
    clip: bool = True,
    radius_scale: Array | float = 1.0,
) -> Confidence:
    """Computes the estimate, its radii and the box from a state of `coci`, `uniform`, or `clucb` with radius `Coci()`.

    Args:
        state: state of one lane, such as `outcome.state`; use `vmap` for several.
        delta: the algorithm's delta.
        estimator: the algorithm's estimator; "mean" for `clucb`.
        clip: the algorithm's clip.
        radius_scale: the algorithm's radius_scale.

    Returns:
        Confidence. An arm with fewer samples than an estimate requires counts as having that many.

    Raises:
        ValueError: `state` is not a state of these algorithms, or a setting is out of range.

    Cost: O(m).

    Source: Huang, Ok, Li and Chen (2018), Algorithm 1.

    Example:
        >>> import jax, jaxbandits
        >>> from jaxbandits import cpe
        >>> instance = cpe.best5()
        >>> algorithm = cpe.coci(instance.problem, delta=0.05)
        >>> environment = cpe.environment(instance, algorithm)
        >>> outcome = jaxbandits.run(jax.random.key(0), algorithm, environment, max_rounds=10**5)
        >>> box = cpe.confidence(outcome.state, delta=0.05)
        >>> print(((box.lo <= instance.theta) & (instance.theta <= box.hi)).all())
        True
        >>> print(cpe.candidates(instance.problem, box.lo, box.hi, outcome.answer).any())  # so it has stopped
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
    """Computes the reward of a decision minus the reward of the one with all levels 0, r(theta, y) - r(theta, y(0)).

    Differences between two decisions are differences of r. For an `Enumerated` class and for `Graphic` it is
    r(theta, y) itself, because no arm at level 0 pays anything.

    Args:
        problem: any except an `Oracle`, whose rewards are not known.
        theta: float (m,).
        levels: int (m,), levels of a decision, such as an algorithm's answer or `solve(problem, theta)`.

    Returns:
        float (). -inf beyond the last entry of a table's row; NaN for levels that are no row of an `Enumerated` class.

    Raises:
        ValueError: an argument is not as above.

    Cost: O(m W) for a `Table`, O(N m) for `Enumerated`, otherwise O(m).

    Example:
        >>> from jaxbandits import cpe
        >>> problem, theta = cpe.sites([0.1, 0.2, 0.3], 2), jnp.array([0.5, 0.3, 0.9])
        >>> print(reward(problem, theta, cpe.solve(problem, theta)))  # 0.5 - 0.1 and 0.9 - 0.3
        1.0
    """
    check_problem(problem)
    expected = "be a Table, OpinionSampling, Enumerated or Graphic: an Oracle has a best decision but no reward"
    pays = needed(kind_of(problem).reward, problem, expected)
    m = arm_count(problem)
    theta = checks.array("theta", theta, (m,)).astype(float_dtype(problem))
    levels = checks.array("levels", levels, (m,), kind="int", least=0).astype(jnp.int32)
    return pays(problem, theta, levels)
