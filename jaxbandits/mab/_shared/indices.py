"""Index rules: the arm with the largest index is pulled."""

from collections.abc import Callable

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem
from jaxbandits.mab._shared.core import Choice, Estimates, Rule, State, algorithm_of, apart, argmax, one_arm

Index = Callable[[Key, Estimates], Array]  # (key, estimates) -> float (K,)


def by_index(problem: Problem, index: Index, *, horizon: Array | int | None = None, ties: bool = True) -> Algorithm:
    """Every arm once, then that with the largest index; it stops at `horizon` pulls, or never.

    Papers leave ties open. Lots break those of Bernoulli arms, which are frequent in the first rounds. Otherwise the
    regret would depend on the order of the arms.

    Args:
        problem: the kind of the rewards.
        index: of all arms.
        horizon: pulls; None for no end.
        ties: whether indices of Bernoulli arms may tie; False for drawn ones.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean.
    """

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        stop = jnp.zeros((), bool) if horizon is None else state.pulls >= jnp.asarray(horizon, state.pulls.dtype)
        lots = estimates.lots if ties else ()
        arm = argmax(apart(index(key, estimates)), lots)
        return Choice(one_arm(arm), stop, argmax(estimates.means, estimates.lots))

    return algorithm_of(problem, Rule(choose))


def next_pull(estimates: Estimates) -> Array:
    """The number of the pull that is to be made, t >= 1, float ()."""
    return (estimates.pulls + 1).astype(estimates.means.dtype)
