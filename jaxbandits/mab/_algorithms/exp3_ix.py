"""Exp3-IX: exponential weights with implicit exploration, for any rewards (Neu, 2015)."""

import math
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array
from jaxbandits.mab._problem.problems import Problem, float_dtype
from jaxbandits.mab._shared.exponential import algorithm_from_weights, check_bounded, shares


def exp3_ix(problem: Problem, *, eta: Array | float, gamma: Array | float) -> Algorithm:
    """Pulls an arm drawn in proportion to exp(-eta L), with the estimated loss L of every arm.

    A reward x of an arm that was drawn with probability p adds (1 - x) / (p + gamma) to its L. The bias of this
    estimate replaces the uniform exploration of `exp3`.

    Args:
        problem: `Bernoulli` or `Bounded`, since rewards must lie in [0, 1].
        eta: () > 0, learning rate. See `exp3_ix_constants`.
        gamma: () > 0, implicit exploration.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the smallest estimated loss. It
        never stops: give `run` or `sweep` a `horizon`.

    Raises:
        ValueError: an argument is out of range, or the problem is neither.

    **Guarantee** (Theorem 1, any rewards in [0, 1]): see `exp3_ix_constants`. **Cost**: O(K) and one uniform number per
    round. **Limit**: 2^31 - 1 pulls.

    Source: Neu (2015), Explore no more: improved high-probability regret bounds for non-stochastic bandits, Algorithm
    1, with rates that do not change.
    """
    check_bounded(problem)
    checks.positive("eta", eta)
    checks.positive("gamma", gamma)
    dtype = float_dtype(problem)
    rate, bias = jnp.asarray(eta, dtype), jnp.asarray(gamma, dtype)

    def gain(reward: Array, probability: Array) -> Array:
        return -rate * (1 - reward) / (probability + bias)

    return algorithm_from_weights(problem, shares, gain)


class IxConstants(NamedTuple):
    """Constants of `exp3_ix` for a known horizon."""

    eta: Array  # float ()   sqrt(2 log(K) / (K T))
    gamma: Array  # float ()   eta / 2


def exp3_ix_constants(problem: Problem, *, horizon: Array | int) -> IxConstants:
    """Computes the constants of `exp3_ix` for a known horizon, eta = 2 gamma = sqrt(2 log(K) / (K T)).

    Args:
        problem: `Bernoulli` or `Bounded`.
        horizon: T, pulls, an integer >= 1; may be traced.

    Returns:
        IxConstants of the problem's dtype, for `exp3_ix(problem, **exp3_ix_constants(problem, horizon=T)._asdict())`.
        With them and with probability at least 1 - delta, for any delta, the sum of rewards falls short of the best
        single arm's by at most 2 sqrt(2 K T log(K)) + (sqrt(2 K T / log(K)) + 1) log(2 / delta).

    Raises:
        ValueError: an argument is out of range, or the problem is neither.

    Source: Neu (2015), Theorem 1.
    """
    check_bounded(problem)
    checks.integer("horizon", horizon, least=1)
    T = jnp.asarray(horizon).astype(float_dtype(problem))
    eta = jnp.sqrt(2 * math.log(problem.arms) / (problem.arms * T))
    return IxConstants(eta, eta / 2)
