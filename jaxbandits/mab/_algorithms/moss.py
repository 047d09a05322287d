"""MOSS: upper bounds that are minimax optimal for a known horizon (Audibert, Bubeck, 2009)."""

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, check_sub_gaussian, float_dtype, scale
from jaxbandits.mab._shared.frame import Estimates, upper_index
from jaxbandits.mab._shared.indices import algorithm_from_index
from jaxbandits.numerics.elementary import log


def moss(problem: Problem, *, horizon: Array | int) -> Algorithm:
    """Pulls the arm with the largest mean + 2 noise_scale sqrt(max(log(T / (K N)), 0) / N).

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`. The noise_scale of the last two is 1/2.
        horizon: T, pulls, an integer >= 1; may be traced. It sets only the index, and does not end the run.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean. It never stops: give
        `run` or `sweep` the same `horizon`.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (Theorem 5, rewards in [0, 1]): regret at T <= 49 sqrt(T K). **Cost**: O(K) per round. **Limit**:
    2^31 - 1 pulls.

    Source: Audibert and Bubeck (2009), Minimax policies for adversarial and stochastic bandits.
    """
    check_sub_gaussian(problem, "kl_ucb")
    checks.integer("horizon", horizon, least=1)
    log_share = jnp.log(jnp.asarray(horizon).astype(float_dtype(problem)) / problem.arms)

    def index(key: Key, estimates: Estimates) -> Array:
        del key
        level = jnp.maximum(log_share - log(estimates.counts), 0)
        return upper_index(estimates, 2 * scale(problem), level)

    return algorithm_from_index(problem, index)
