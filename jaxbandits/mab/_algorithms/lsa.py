"""LSA: all arms above a level with a fixed budget, as few wrong ones as possible (Tao et al., 2019)."""

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array
from jaxbandits.mab._problem.problems import Problem, check_sub_gaussian, float_dtype, scale
from jaxbandits.mab._shared.thresholding import algorithm_above
from jaxbandits.numerics.elementary import log


def lsa(problem: Problem, *, level: Array | float, alpha: Array | float = 1.35, horizon: Array | int) -> Algorithm:
    """Pulls the arm with the smallest alpha N (mean - level)^2 / (4 noise_scale^2) + log(N) / 2, until the horizon T.

    For rewards in [0, 1] the noise_scale is 1/2, and this is the paper's index; the form for other scales is ours. Its
    pulls do not depend on T. Unlike `apt`, which guards against any wrong arm, it aims at few wrong arms, and gives up
    arms that are too near to the level. Ties go to the lowest index.

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`.
        level: () in units of reward, inside the range of the means.
        alpha: () > 0. The paper's experiments take the default.
        horizon: T, pulls, int () > K.

    Returns:
        Algorithm with actions `Pull` of one slot and answers bool (K,), the arms with a mean of at least the level. It
        stops at T pulls.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (alpha = 20, rewards in [0, 1]): the mean number of wrong arms is optimal on every instance for large
    T, up to constant factors. **Cost**: O(K) per round. **Limit**: a horizon of 2^31 - 1.

    Source: Tao, Blanco, Peng and Zhou (2019), Thresholding bandit with optimal aggregate regret, Algorithm 1.
    """
    check_sub_gaussian(problem, "apt")
    checks.positive("alpha", alpha)

    def certainty(counts: Array, distances: Array) -> Array:
        factor = jnp.asarray(alpha, float_dtype(problem)) / (4 * scale(problem) ** 2)
        return factor * counts * distances**2 + log(counts) / 2

    return algorithm_above(problem, certainty, level=level, horizon=horizon)
