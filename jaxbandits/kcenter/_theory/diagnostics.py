"""Estimates of the distances of a run's arms, from its state."""

from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array, PyTree
from jaxbandits.checks import require
from jaxbandits.kcenter._problem.problem import Dimensions, Problem, check_dimensions, check_noisy, check_reward_scale
from jaxbandits.kcenter._shared import arm_statistics
from jaxbandits.kcenter._shared.arm_statistics import Samples
from jaxbandits.kcenter._shared.intervals import KL, Interval, Lil, Scale, arm_bounds, bounds_of, check_interval


class Confidence(NamedTuple):
    """Estimates of the arms (node, slot) of a run; a slot without a center has no meaning."""

    mean: Array  # float (n, k-1)   mean reward; 0 for an arm without one
    lower: Array  # float (n, k-1)  0 for an arm that has never been queried
    upper: Array  # float (n, k-1)  inf for such an arm


def confidence(
    state: PyTree,
    problem: Problem,
    *,
    delta: Array | float,
    interval: Interval | None = None,
    noise_scale: Array | float | None = None,
    scale: Scale = "mean",
    cap: int | None = None,
) -> Confidence:
    """Computes the mean rewards of all arms, and confidence intervals of their distances.

    Args:
        state: state of one lane, of any algorithm of this family, such as `outcome.state`.
        problem: problem of the algorithm; the other arguments are also as for the algorithm.
        delta: () in (0, 1).
        interval: `Lil`, `Lemma1` or `KL`. If None, `Lil()` for dimensions and `KL()` for noisy distances.
        noise_scale: () > 0, standard deviation of Gaussian rewards; otherwise None.
        scale: "mean" or "root"; with "root", mean and interval are of the root of a distance.
        cap: queries of an arm until it is read. If None, m. Not for noisy distances.

    Returns:
        Confidence, before any use of the triangle inequality.

    Raises:
        ValueError: `state` is not a state of this problem, or a setting is out of range.

    Cost: O(n k).

    Example:
        >>> import jax, jaxbandits
        >>> from jaxbandits import kcenter
        >>> instance = kcenter.dimension_instance(kcenter.contrast_rows(6, 100, seed=0), k=3)
        >>> algorithm = kcenter.ds_ucb(instance.problem, delta=0.05, interval=kcenter.Lemma1())
        >>> environment = kcenter.environment(instance, algorithm)
        >>> state = jaxbandits.run(jax.random.key(0), algorithm, environment, max_rounds=10**5).state
        >>> bounds = kcenter.confidence(state, instance.problem, delta=0.05, interval=kcenter.Lemma1())
        >>> exact = instance.exact[:, state.stage.centers[:2]] / 100  # the distances to the first two centers
        >>> print(((bounds.lower <= exact + 1e-12) & (exact <= bounds.upper + 1e-12)).all())
        True
    """
    checks.instance("problem", problem, get_args(Problem))
    checks.probability("delta", delta)
    checks.one_of("scale", scale, Scale)
    expected = "be a state of an algorithm for this problem"
    if isinstance(problem, Dimensions):
        check_dimensions(problem)
        is_state = hasattr(state, "counts") and hasattr(state, "sums")
        require(is_state and np.shape(state.counts) == (problem.n, problem.k - 1), "state", expected, state)
        counts, sums = state.counts, state.sums
        require(noise_scale is None, "noise_scale", "be None where dimensions are sampled", noise_scale)
        interval = Lil() if interval is None else interval
        check_interval(interval)
        cap = problem.m if cap is None else checks.whole("cap", cap, least=1)
        bounds, dtype = bounds_of(interval, problem.n, delta), _float_dtype(state)
        lower, upper = arm_bounds(bounds, problem, cap=cap, scale=scale, dtype=dtype)(counts, sums)
        mean = _mean_of_dimensions(problem, counts, sums, cap=cap, scale=scale, dtype=dtype)
    else:
        check_noisy(problem)
        check_reward_scale(noise_scale, problem.noise)
        require(isinstance(getattr(state, "samples", None), Samples), "state", expected, state)
        samples = state.samples
        require(cap is None, "cap", "be None where distances are noisy", cap)
        require(scale == "mean", "scale", "be 'mean' where distances are noisy", scale)
        interval = KL() if interval is None else interval
        check_interval(interval, (KL,))
        counts, mean = samples.counts, arm_statistics.mean(samples, _float_dtype(state))
        lower, upper = bounds_of(interval, problem.n, delta, noise_scale)(mean, jnp.maximum(counts, 1))
    return Confidence(mean, jnp.where(counts > 0, lower, 0), jnp.where(counts > 0, upper, jnp.inf))


def _float_dtype(state: PyTree) -> Any:
    """Returns the dtype of a run's bounds: points and rewards may be integers."""
    return next(x.dtype for x in jax.tree.leaves(state) if jnp.issubdtype(x.dtype, jnp.floating))


def _mean_of_dimensions(
    problem: Dimensions, counts: Array, sums: Array, *, cap: int, scale: Scale, dtype: Any
) -> Array:
    """Computes the mean reward of every arm, over all its dimensions once it has been read."""
    number = jnp.where(counts > cap, problem.m, jnp.maximum(counts, 1)).astype(dtype)
    mean = sums.astype(dtype) / number / (problem.levels or 1) ** 2
    return jnp.sqrt(mean) if scale == "root" else mean
