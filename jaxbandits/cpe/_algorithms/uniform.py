"""Uniform sampling: pull all arms in turn, and stop as COCI does."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array
from jaxbandits.cpe._problem.problems import Problem, arm_count
from jaxbandits.cpe._shared.candidates import is_decided, lasting_arms
from jaxbandits.cpe._shared.estimate import Box, Estimator, Observations
from jaxbandits.cpe._shared.leaps import Bounds
from jaxbandits.cpe._shared.sampling import Rule, Settings, checked, sample_least_pulled


def uniform(
    problem: Problem,
    *,
    delta: Array | float,
    estimator: Estimator = "mean",
    observations: Observations = "unit",
    leap: int = 1,
    clip: bool = True,
    radius_scale: Array | float = 1.0,
) -> Algorithm:
    """Pulls the arms in turn until the best decision is the same everywhere in the box around theta.

    Arguments, result and errors are those of `coci`. It has 20 to 30 pulls a round with leap = 32, and up to 100 with
    leap = 128.

    **Guarantee** (Theorem 4): that of COCI, with m over the least Lambda^2 in place of their sum. **Cost**: one `solve`
    and one `stops` a round, with leaps also the tests of one box, and O(m^2 + m leap). **Limit**: 2^31 - 1 pulls.

    Source: Huang, Ok, Li and Chen (2018), appendix A.5.
    """
    settings = checked(problem, Settings(delta, estimator, observations, leap, clip, radius_scale))
    all_arms = jnp.ones(arm_count(problem), bool)

    def judge(around: Box, levels: Array) -> tuple[Array, Array]:
        return all_arms, is_decided(problem, *around, levels)

    def lasts(_: Array, ahead: Bounds, levels: Array) -> Array:
        # The order of pulls is fixed: one candidate that stays is enough not to stop.
        return jnp.any(lasting_arms(problem, *ahead.inner, levels))

    return sample_least_pulled(problem, Rule(judge, lasts), settings)
