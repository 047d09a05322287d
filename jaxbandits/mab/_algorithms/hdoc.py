"""HDoC: one arm above a level, the arm that looks best first (Kano et al., 2019)."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array
from jaxbandits.mab._problem.problems import Problem, scale
from jaxbandits.mab._shared.frame import Estimates
from jaxbandits.mab._shared.indices import next_pull
from jaxbandits.mab._shared.labels import algorithm_from_labels
from jaxbandits.numerics.elementary import log


def hdoc(
    problem: Problem, *, level: Array | float, delta: Array | float, all_arms: bool = False, every: int = 1
) -> Algorithm:
    """Pulls the unlabelled arm with the largest mean + noise_scale sqrt(2 log(t) / N), until one is known to be good.

    Every pull may label the pulled arm: bad if its interval mean +- noise_scale sqrt(2 log(4 K N^2 / delta) / N) lies
    below the level, good if it lies at the level or above. Labelled arms are pulled no more. t is the number of the
    next pull, and the noise_scale of rewards in [0, 1] is 1/2. Ties go to the lowest index.

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`.
        level: () in units of reward, inside the range of the means.
        delta: () in (0, 1), allowed probability of error.
        all_arms: whether it goes on after the first good arm, until all arms are labelled. The state's memory has the
            pulls at which each good arm was found, as `good_at` (K,).
        every: pulls per decision, an int >= 1. With more than 1, a round pulls one arm `every` times after the first K
            pulls, and looks at it once, at the end.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), a good arm, or K: there is none, or none yet.
        With `all_arms` bool (K,), the good arms.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee**: P(the answer is wrong) <= delta (`is_right` of `GoodArm(level)`, with `all_arms` of `Above(level)`),
    since some interval fails with a smaller probability. **Cost**: O(K) per round. **Limit**:
    2^31 - 1 pulls.

    Source: Kano, Honda, Sakamaki, Matsuura, Nakamura and Sugiyama (2019), Good arm identification via bandit feedback,
    Algorithm 1.

    Example:
        >>> import jax
        >>> from jaxbandits import mab, run
        >>> instance = mab.bernoulli([0.2, 0.4, 0.9])
        >>> algorithm = mab.hdoc(instance.problem, level=0.5, delta=0.05)
        >>> outcome = run(jax.random.key(0), algorithm, mab.environment(instance, algorithm), max_rounds=10**5)
        >>> print(outcome.answer)
        2
    """

    def index(estimates: Estimates, radii: Array, level: Array) -> Array:
        del radii, level
        return estimates.means + scale(problem) * jnp.sqrt(2 * log(next_pull(estimates)) / estimates.counts)

    return algorithm_from_labels(problem, index, level=level, delta=delta, all_arms=all_arms, every=every)
