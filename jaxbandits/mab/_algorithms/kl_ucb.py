"""KL-UCB: the arm with the largest upper bound of the relative entropy (Garivier, Cappe, 2011)."""

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, check_problem, float_dtype, upper_bound
from jaxbandits.mab._shared.frame import Estimates
from jaxbandits.mab._shared.indices import algorithm_from_index, next_pull
from jaxbandits.numerics.elementary import log
from jaxbandits.numerics.kernels import apart


def kl_ucb(problem: Problem, *, c: Array | float = 0.0) -> Algorithm:
    """Pulls the arm with the largest q for which N kl(mean, q) <= log(t) + c log log t.

    Args:
        problem: any problem of this family.
        c: () >= 0. The theorem needs 3; the authors recommend 0.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean. It never stops: give
        `run` or `sweep` a `horizon`.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (Theorem 1, c = 3): regret / log(t) tends to the smallest possible limit, `lai_robbins`. **Cost**:
    O(K) per round, for Bernoulli arms 2 K relative entropies. **Limit**: 2^31 - 1 pulls.

    Source: Garivier and Cappe (2011), The KL-UCB algorithm for bounded stochastic bandits and beyond, Algorithm 1.
    """
    check_problem(problem)
    checks.not_negative("c", c)
    weight = jnp.asarray(c, float_dtype(problem))

    def index(key: Key, estimates: Estimates) -> Array:
        del key
        log_t = apart(log, next_pull(estimates))
        # Indices are first read at t = K + 1 >= 3, so log log t is positive there.
        level = log_t + weight * apart(log, jnp.maximum(log_t, 1))
        return upper_bound(problem, estimates.means, level / estimates.counts)

    return algorithm_from_index(problem, index)
