"""Exp3: exponential weights mixed with uniform exploration, for any rewards (Auer et al., 2002)."""

import math

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array
from jaxbandits.mab._problem.problems import Problem, float_dtype
from jaxbandits.mab._shared.exponential import algorithm_from_weights, check_bounded, shares


def exp3(problem: Problem, *, gamma: Array | float) -> Algorithm:
    """Pulls an arm drawn with probability p = (1 - gamma) w / (sum of all w) + gamma / K, with weights w.

    A reward x multiplies the weight of its arm by exp(gamma x / (K p)).

    Args:
        problem: `Bernoulli` or `Bounded`, since rewards must lie in [0, 1].
        gamma: () in (0, 1], the share of uniform exploration. See `exp3_gamma`.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the largest weight. It never stops:
        give `run` or `sweep` a `horizon`.

    Raises:
        ValueError: an argument is out of range, or the problem is neither.

    **Guarantee** (Theorem 3.1, any sequence of rewards in [0, 1] that is fixed in advance): the expected sum of rewards
    falls short of the sum G of the best single arm by at most (e - 1) gamma G + K log(K) / gamma. **Cost**: O(K) and
    one uniform number per round. **Limit**: 2^31 - 1 pulls.

    Source: Auer, Cesa-Bianchi, Freund and Schapire (2002), The nonstochastic multiarmed bandit problem, Figure 1.
    """
    check_bounded(problem)
    checks.real("gamma", gamma, above=0, most=1)
    K, share = problem.arms, jnp.asarray(gamma, float_dtype(problem))

    def probabilities(log_weights: Array) -> Array:
        return (1 - share) * shares(log_weights) + share / K

    def gain(reward: Array, probability: Array) -> Array:
        return share * reward / (K * probability)

    return algorithm_from_weights(problem, probabilities, gain)


def exp3_gamma(problem: Problem, *, horizon: Array | int) -> Array:
    """Computes the `gamma` of `exp3` for a known horizon, min(1, sqrt(K log(K) / ((e - 1) T))).

    Args:
        problem: `Bernoulli` or `Bounded`.
        horizon: T, pulls, an integer >= 1; may be traced.

    Returns:
        Float (), of the problem's dtype. With it, the expected sum of rewards falls short of the best single arm's by
        at most 2.63 sqrt(T K log(K)).

    Raises:
        ValueError: an argument is out of range, or the problem is neither.

    Source: Auer, Cesa-Bianchi, Freund and Schapire (2002), Corollary 3.2 with g = T.
    """
    check_bounded(problem)
    checks.integer("horizon", horizon, least=1)
    T = jnp.asarray(horizon).astype(float_dtype(problem))
    return jnp.minimum(jnp.sqrt(problem.arms * math.log(problem.arms) / ((math.e - 1) * T)), 1)
