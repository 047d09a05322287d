"""Uniform sampling: pull all arms in turn, and stop as COCI does."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array
from jaxbandits.cpe._problem.problems import Problem, arm_count
from jaxbandits.cpe._shared.candidates import is_decided, lasting_arms
from jaxbandits.cpe._shared.estimate import Box, Estimator, Observations
from jaxbandits.cpe._shared.leaps import Bounds
from jaxbandits.cpe._shared.sampling import ArmRule, SamplingSettings, algorithm_from_arm_rule, check_settings


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

    Arguments, result and errors are as for `coci`. A round makes 20 to 30 pulls with leap = 32, and up to 100 with
    leap = 128.

    **Guarantee** (Theorem 4): as for COCI, with `uniform_hardness` instead of `hardness` in the bound. **Cost** per
    round: one `solve` and one `stops`, with leaps also the tests of one box, and O(m^2 + m leap). **Limit**: 2^31 - 1
    pulls.

    Source: Huang, Ok, Li and Chen (2018), appendix A.5.
    """
    settings = SamplingSettings(
        delta=delta,
        estimator=estimator,
        observations=observations,
        leap=leap,
        clip=clip,
        radius_scale=radius_scale,
    )
    check_settings(problem, settings)
    all_arms = jnp.ones(arm_count(problem), bool)

    def judge(around: Box, levels: Array) -> tuple[Array, Array]:
        return all_arms, is_decided(problem, *around, levels)

    def lasts(_: Array, bounds: Bounds, levels: Array) -> Array:
        # The order of pulls is fixed, so a single candidate that stays rules out a stop.
        return jnp.any(lasting_arms(problem, *bounds.inner, levels))

    return algorithm_from_arm_rule(problem, ArmRule(judge, lasts), settings)
