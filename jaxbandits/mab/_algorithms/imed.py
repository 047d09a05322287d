"""IMED: indexed minimum empirical divergence (Honda, Takemura, 2015)."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, check_problem, divergence
from jaxbandits.mab._shared.frame import Estimates
from jaxbandits.mab._shared.indices import algorithm_from_index


def imed(problem: Problem) -> Algorithm:
    """Pulls the arm with the smallest N kl(mean, largest mean) + log N.

    Args:
        problem: `Gaussian` or `Bernoulli`.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean. It never stops: give
        `run` or `sweep` a `horizon`.

    Raises:
        ValueError: `problem` is neither `Gaussian` nor `Bernoulli`.

    **Guarantee** (Theorem 5): regret / log(t) tends to the smallest possible limit, `lai_robbins`. **Cost**: O(K) per
    round, K relative entropies. **Limit**: 2^31 - 1 pulls.

    Source: Honda and Takemura (2015), Non-asymptotic analysis of a new bandit algorithm for semi-bounded rewards.
    """
    check_problem(problem)

    def index(key: Key, estimates: Estimates) -> Array:
        del key
        counts, means = estimates.counts, estimates.means
        divergences = divergence(problem, means, jnp.broadcast_to(jnp.max(means), means.shape))
        return -(counts * divergences + jnp.log(counts))

    return algorithm_from_index(problem, index)
