"""UCB1: the arm with the largest upper bound (Auer, Cesa-Bianchi, Fischer, 2002)."""

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, check_sub_gaussian, float_dtype, scale
from jaxbandits.mab._shared.frame import Estimates
from jaxbandits.mab._shared.indices import algorithm_from_index
from jaxbandits.numerics.elementary import log, rsqrt
from jaxbandits.numerics.kernels import apart


def ucb1(problem: Problem, *, exploration: Array | float = 2.0) -> Algorithm:
    """Pulls the arm with the largest mean + exploration noise_scale sqrt(2 log(t) / N).

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`. The noise_scale of the last two is 1/2.
        exploration: () > 0. 2 is UCB1: for rewards in [0, 1] its radius is sqrt(2 log(t) / N). 1 is asymptotically
            right for Gaussian arms.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean. It never stops: give
        `run` or `sweep` a `horizon`.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (Theorem 1, exploration 2, rewards in [0, 1]): regret <= sum over arms of 8 log(t) / gap +
    (1 + pi^2 / 3) gap. **Cost**: O(K) per round. **Limit**: 2^31 - 1 pulls.

    Source: Auer, Cesa-Bianchi and Fischer (2002), Finite-time analysis of the multiarmed bandit problem, Figure 1.
    """
    check_sub_gaussian(problem, "kl_ucb")
    checks.positive("exploration", exploration)
    factor = jnp.asarray(exploration, float_dtype(problem)) * scale(problem)

    def index(key: Key, estimates: Estimates) -> Array:
        del key
        root = apart(_root_of_log, estimates.pulls, factor)
        # Not `upper_index`, which divides: one root serves all arms here, and the widths need no divider.
        width = rsqrt(estimates.counts)
        return width * (estimates.sums * width + factor * root)

    return algorithm_from_index(problem, index)


def _root_of_log(pulls: Array, like: Array) -> Array:
    return jnp.sqrt(2 * log((pulls + 1).astype(like.dtype)))
