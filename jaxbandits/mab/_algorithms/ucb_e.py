"""UCB-E: upper bounds with an exploration that is set by the hardness (Audibert, Bubeck, Munos, 2010)."""

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, check_problem, float_dtype
from jaxbandits.mab._shared.frame import Estimates, upper_index
from jaxbandits.mab._shared.indices import algorithm_from_index


def ucb_e(
    problem: Problem, *, horizon: Array | int, hardness: Array | float, exploration: Array | float = 2.0
) -> Algorithm:
    """Pulls the arm with the largest mean + sqrt(exploration T / (hardness N)), until the horizon T.

    Lots break ties of bounds and means of Bernoulli arms.

    Args:
        problem: any problem of this family.
        horizon: T, pulls, int () >= K.
        hardness: () > 0, H1 of the instance, in units of reward^-2: the truth, which no learner knows (see
            `mab.hardness`).
        exploration: () > 0. The theorem needs at most 25/36 (T - K) / T; 2 is the customary strong choice.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean. It stops at T pulls.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (Theorem 1, rewards in [0, 1]): P(the answer is not the best arm) <= 2 T K exp(-2 a / 25) with
    a = exploration T / H1, for the exploration above. **Cost**: O(K) per round. **Limit**: a horizon of 2^31 - 1.

    Source: Audibert, Bubeck and Munos (2010), Best arm identification in multi-armed bandits, Figure 1.
    """
    check_problem(problem)
    checks.integer("horizon", horizon, least=problem.arms, most=2**31 - 1)
    checks.positive("hardness", hardness)
    checks.positive("exploration", exploration)
    dtype = float_dtype(problem)
    scaled = jnp.asarray(exploration, dtype) * jnp.asarray(horizon, dtype) / jnp.asarray(hardness, dtype)

    def index(key: Key, estimates: Estimates) -> Array:
        del key
        return upper_index(estimates, 1, scaled)

    return algorithm_from_index(problem, index, horizon=horizon)
