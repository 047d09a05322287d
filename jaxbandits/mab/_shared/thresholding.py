"""All arms above a level with a fixed budget: it pulls the arm whose label is most uncertain."""

from collections.abc import Callable

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, check_problem, float_dtype
from jaxbandits.mab._problem.questions.above import check_mean
from jaxbandits.mab._shared.asking import for_question
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, algorithm_from_rule, argmin, one_arm
from jaxbandits.questions import Above

Certainty = Callable[[Array, Array], Array]  # (N, |mean - level|), float (K,) each -> float (K,)


def algorithm_above(problem: Problem, certainty: Certainty, *, level: Array | float, horizon: Array | int) -> Algorithm:
    """Builds the algorithm that pulls every arm once, and then the arm whose label has the smallest certainty.

    Ties go to the lowest index.

    Args:
        problem: any problem of this family.
        certainty: certainty of each arm's label.
        level: () in units of reward, inside the range of the means.
        horizon: T, pulls, int () > K.

    Returns:
        Algorithm with actions `Pull` of one slot and answers bool (K,), the arms with a mean of at least the level. It
        stops at T pulls.

    Raises:
        ValueError: an argument is out of range.
    """
    check_problem(problem)
    check_mean("level", level, problem)
    checks.integer("horizon", horizon, least=problem.arms + 1, most=2**31 - 1)
    level = jnp.asarray(level, float_dtype(problem))

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        arm = argmin(certainty(estimates.counts, jnp.abs(estimates.means - level)))
        stop = state.pulls >= jnp.asarray(horizon, state.pulls.dtype)
        return Choice(one_arm(arm), stop, estimates.means >= level)

    return for_question(algorithm_from_rule(problem, Rule(choose), draws_lots=False), problem, Above(level))
