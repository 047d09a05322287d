"""Thompson sampling: the best arm of a posterior draw (Thompson, 1933; Agrawal, Goyal, 2012)."""

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, check_problem, posterior_draws
from jaxbandits.mab._shared.frame import Estimates
from jaxbandits.mab._shared.indices import algorithm_from_index


def thompson(problem: Problem) -> Algorithm:
    """Pulls the arm with the largest draw from its posterior under a prior without information.

    Args:
        problem: any problem of this family. Draws are normal; Beta(1 + ones, 1 + zeros); for Poisson arms Gamma(sum +
            1/2) / count; for exponential arms sum / Gamma(count).

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean. It never stops: give
        `run` or `sweep` a `horizon`.

    Raises:
        ValueError: `problem` is no problem of this family.

    **Guarantee** (Kaufmann, Korda and Munos, 2012, Bernoulli): regret / log(t) tends to the smallest possible limit,
    `lai_robbins`. Every arm is pulled once first, which the Beta prior would not need. **Cost**: K normal numbers per
    round, or 16 K uniform ones. **Limit**: 2^31 - 1 pulls.

    Source: Thompson (1933); Agrawal and Goyal (2012), Analysis of Thompson sampling for the multi-armed bandit problem.
    """
    check_problem(problem)

    def index(key: Key, estimates: Estimates) -> Array:
        return posterior_draws(problem, key, counts=estimates.counts, means=estimates.means)

    return algorithm_from_index(problem, index, ties=False)
