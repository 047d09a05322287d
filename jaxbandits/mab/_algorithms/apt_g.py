"""APT-G: one arm above a level, the arm nearest to it first (Kano et al., 2019)."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array
from jaxbandits.mab._problem.problems import Problem
from jaxbandits.mab._shared.frame import Estimates
from jaxbandits.mab._shared.labels import algorithm_from_labels


def apt_g(
    problem: Problem, *, level: Array | float, delta: Array | float, all_arms: bool = False, every: int = 1
) -> Algorithm:
    """Pulls the unlabelled arm with the smallest sqrt(N) |mean - level|, until one is known to be good.

    Arms are labelled as in `hdoc`. It goes to the arms that are hard to label first: a baseline. Ties go to the lowest
    index.

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`.
        level: () in units of reward, inside the range of the means.
        delta: () in (0, 1), allowed probability of error.
        all_arms: whether it goes on until all arms are labelled, as in `hdoc`.
        every: pulls of an arm between two looks at it, as in `hdoc`.

    Returns:
        Algorithm with actions `Pull` of one slot and the answers of `hdoc`.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee**: P(the answer is wrong) <= delta, as for `hdoc`. **Cost**: O(K) per round. **Limit**: 2^31 - 1 pulls.

    Source: Kano, Honda, Sakamaki, Matsuura, Nakamura and Sugiyama (2019), Good arm identification via bandit feedback,
    a rule that it compares with HDoC.
    """

    def index(estimates: Estimates, radii: Array, level: Array) -> Array:
        del radii
        return -jnp.sqrt(estimates.counts) * jnp.abs(estimates.means - level)

    return algorithm_from_labels(problem, index, level=level, delta=delta, all_arms=all_arms, every=every)
