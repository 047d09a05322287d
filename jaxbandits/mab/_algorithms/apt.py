"""APT: all arms above a level with a fixed budget (Locatelli, Gutzeit, Carpentier, 2016)."""

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array
from jaxbandits.mab._problem.problems import Problem, check_problem, float_dtype
from jaxbandits.mab._shared.thresholding import algorithm_above


def apt(problem: Problem, *, level: Array | float, epsilon: Array | float = 0.0, horizon: Array | int) -> Algorithm:
    """Pulls the arm with the smallest sqrt(N) (|mean - level| + epsilon), until the horizon T.

    Its pulls depend on neither T nor the scale of the noise. Ties go to the lowest index.

    Args:
        problem: any problem of this family.
        level: () in units of reward, inside the range of the means.
        epsilon: () >= 0, in units of reward: arms within epsilon of the level may be in the answer or not.
        horizon: T, pulls, int () > K.

    Returns:
        Algorithm with actions `Pull` of one slot and answers bool (K,), the arms with a mean of at least the level. It
        stops at T pulls.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (Theorem 2, T >= 2 K, rewards R-sub-Gaussian): P(`is_right` of `Above(level)` fails with this
    epsilon) <= exp(-T / (64 R^2 H) + 2 log((log T + 1) K)) with H = sum_a (|mu_a - level| + epsilon)^-2. **Cost**: O(K)
    per round. **Limit**: a horizon of 2^31 - 1.

    Source: Locatelli, Gutzeit and Carpentier (2016), An optimal algorithm for the thresholding bandit problem,
    Algorithm 1.

    Example:
        >>> import jax
        >>> from jaxbandits import mab, run
        >>> instance = mab.bernoulli([0.2, 0.4, 0.7, 0.8])
        >>> algorithm = mab.apt(instance.problem, level=0.5, epsilon=0.05, horizon=500)
        >>> outcome = run(jax.random.key(0), algorithm, mab.environment(instance, algorithm), max_rounds=500)
        >>> print(outcome.answer)
        [False False  True  True]
    """
    check_problem(problem)
    checks.not_negative("epsilon", epsilon)
    epsilon = jnp.asarray(epsilon, float_dtype(problem))

    def certainty(counts: Array, distances: Array) -> Array:
        return jnp.sqrt(counts) * (distances + epsilon)

    return algorithm_above(problem, certainty, level=level, horizon=horizon)
