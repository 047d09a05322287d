"""IMED: indexed minimum empirical divergence (Honda, Takemura, 2015)."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, check_problem, divergence
from jaxbandits.mab._shared.frame import Estimates
from jaxbandits.mab._shared.indices import algorithm_from_index
from jaxbandits.numerics.elementary import log
from jaxbandits.numerics.indexing import largest
from jaxbandits.numerics.kernels import apart


def imed(problem: Problem) -> Algorithm:
    """Pulls the arm with the smallest N kl(mean, largest mean) + log N.

    Args:
        problem: any problem of this family.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean. It never stops: give
        `run` or `sweep` a `horizon`.

    Raises:
        ValueError: `problem` is no problem of this family.

    **Guarantee** (Theorem 5): regret / log(t) tends to the smallest possible limit, `lai_robbins`. **Cost**: O(K) per
    round, K relative entropies. **Limit**: 2^31 - 1 pulls.

    Source: Honda and Takemura (2015), Non-asymptotic analysis of a new bandit algorithm for semi-bounded rewards.
    """
    check_problem(problem)

    def index(key: Key, estimates: Estimates) -> Array:
        del key
        counts, means = estimates.counts, estimates.means
        best = apart(largest, means)

        def of_arm(count: Array, mean: Array) -> Array:
            return -(count * divergence(problem, mean, jnp.broadcast_to(best, mean.shape)) + log(count))

        return apart(of_arm, counts, means)

    return algorithm_from_index(problem, index)
