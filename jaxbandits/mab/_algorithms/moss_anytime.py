"""MOSS-anytime: MOSS without a horizon (Degenne, Perchet, 2016)."""

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, check_sub_gaussian, float_dtype, scale
from jaxbandits.mab._shared.frame import Estimates, upper_index
from jaxbandits.mab._shared.indices import algorithm_from_index, next_pull
from jaxbandits.numerics.elementary import log


def moss_anytime(problem: Problem, *, alpha: Array | float = 1.35) -> Algorithm:
    """Pulls the arm with the largest mean + 2 noise_scale sqrt((1 + alpha) / 2 max(log(t / (K N)), 0) / N).

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`. The noise_scale of the last two is 1/2.
        alpha: () > 0. With 1 it is MOSS whose horizon is the number of the pull.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean. It never stops: give
        `run` or `sweep` a `horizon`.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (alpha = 1.35, sub-Gaussian rewards): regret at any t is O(sqrt(t K)). **Cost**: O(K) per
    round. **Limit**: 2^31 - 1 pulls.

    Source: Degenne and Perchet (2016), Anytime optimal algorithms in stochastic multi-armed bandits.
    """
    check_sub_gaussian(problem, "kl_ucb")
    checks.positive("alpha", alpha)
    half = (1 + jnp.asarray(alpha, float_dtype(problem))) / 2

    def index(key: Key, estimates: Estimates) -> Array:
        del key
        counts = estimates.counts
        level = half * jnp.maximum(log(next_pull(estimates) / (problem.arms * counts)), 0)
        return upper_index(estimates, 2 * scale(problem), level)

    return algorithm_from_index(problem, index)
