"""Diagnostics of a run: the estimates that its state holds."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Array, PyTree
from jaxbandits.checks import require
from jaxbandits.mab._problem.problems import Problem, check_problem, float_dtype
from jaxbandits.mab._shared.frame import State, total_rewards, variances_at


class Estimate(NamedTuple):
    """Statistics of the rewards of each arm."""

    counts: Array  # int32 (K,)   pulls
    sums: Array  # float (K,)     sums of rewards, in units of reward
    means: Array  # float (K,)    empirical means; NaN for an arm that was never pulled
    variances: Array | tuple[()] = ()  # float (K,)   empirical variances if they are unknown, NaN as above; or ()


def estimates(problem: Problem, state: PyTree) -> Estimate:
    """Reads counts, sums and empirical means from a state, whatever the problem and the precision.

    A state stores its sums as floats, as compensated sums in 32 bit, or as counts of ones. This function reads all of
    them.

    Args:
        problem: the algorithm's problem.
        state: state of one lane, of any algorithm of this family, such as `outcome.state`. Use `vmap` for several.

    Returns:
        Estimate.

    Raises:
        ValueError: `problem` is no problem of this family, or `state` is no state of this family for it.

    Cost: O(K).

    Example:
        >>> import jax, jaxbandits
        >>> from jaxbandits import mab
        >>> instance = mab.gk1()
        >>> algorithm, environment = mab.ttucb(instance.problem, delta=0.1), mab.environment(instance)
        >>> outcome = jaxbandits.run(jax.random.key(0), algorithm, environment, max_rounds=10**5)
        >>> known = mab.estimates(instance.problem, outcome.state)
        >>> print(known.counts.sum() == outcome.pulls, int(jnp.argmax(known.means)) == outcome.answer)
        True True
    """
    check_problem(problem)
    expected = f"be a state of this family for {problem.arms} arms"
    fits: Any = isinstance(state, State) and jnp.shape(state.counts) == (problem.arms,)
    require(fits, "state", expected, state)
    sums = total_rewards(problem, state)
    dtype = float_dtype(problem)
    counts = jnp.maximum(state.counts, 1).astype(dtype)
    is_pulled = state.counts > 0
    variances = variances_at(problem, state, counts)
    if not isinstance(variances, tuple):
        variances = jnp.where(is_pulled, variances, jnp.nan)
    return Estimate(state.counts, sums, jnp.where(is_pulled, sums / counts, jnp.nan), variances)
