"""Index rules, which pull the arm with the largest index."""

from collections.abc import Callable

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, algorithm_from_rule, argmax, one_arm, unfused

Index = Callable[[Key, Estimates], Array]  # (key, estimates) -> float (K,)


def algorithm_from_index(
    problem: Problem, index: Index, *, horizon: Array | int | None = None, ties: bool = True
) -> Algorithm:
    """Builds the algorithm that pulls every arm once, and then the arm with the largest index.

    Papers do not specify ties. Lots break ties of arms whose rewards are whole numbers, which are frequent in the first
    rounds. Otherwise the regret would depend on the order of the arms.

    Args:
        problem: kind of the rewards.
        index: indices of all arms.
        horizon: pulls at which it stops. If None, it never stops.
        ties: whether indices of such arms may tie; False for random indices.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean.
    """

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        stop = jnp.zeros((), bool) if horizon is None else state.pulls >= jnp.asarray(horizon, state.pulls.dtype)
        lots = estimates.lots if ties else ()
        arm = argmax(unfused(index(key, estimates)), lots)
        return Choice(one_arm(arm), stop, argmax(estimates.means, estimates.lots))

    return algorithm_from_rule(problem, Rule(choose))


def next_pull(estimates: Estimates) -> Array:
    """Returns the number of the next pull, t >= 1, float ()."""
    return (estimates.pulls + 1).astype(estimates.means.dtype)
