"""Uniform sampling: pull all arms in turn, and stop as COCI does."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array
from jaxbandits.cpe.blocks import Bounds
from jaxbandits.cpe.candidates import lasting_candidates, stops
from jaxbandits.cpe.estimate import Box, Estimator, Observations
from jaxbandits.cpe.problem import Problem, arm_count
from jaxbandits.cpe.sampling import Rule, sample_least_pulled


def uniform(
    problem: Problem,
    *,
    delta: Array | float,
    estimator: Estimator = "mean",
    observations: Observations = "unit",
    block: int = 1,
    clip: bool = True,
    radius_scale: Array | float = 1.0,
) -> Algorithm:
    """Pulls the arms in turn until the best decision is the same everywhere in the box around theta.

    Args:
        problem: as in `coci`.
        delta: as in `coci`.
        estimator: as in `coci`.
        observations: as in `coci`.
        block: as in `coci`; it has 20 to 30 pulls a round with block = 32 and up to 100 with block = 128.
        clip: as in `coci`.
        radius_scale: as in `coci`.

    Returns:
        Algorithm as `coci`.

    Raises:
        ValueError: as `coci`.

    **Guarantee** (Theorem 4): that of COCI, with m over the least Lambda^2 in place of their sum. **Cost**: one `solve`
    and one `stops` a round, with blocks also the tests of one box, and O(m^2 + m block). **Limit**: 2^31 - 1 pulls.

    Source: Huang, Ok, Li and Chen (2018), appendix A.5.
    """
    all_arms = jnp.ones(arm_count(problem), bool)

    def look(around: Box, levels: Array) -> tuple[Array, Array]:
        return all_arms, stops(problem, *around, levels)

    def lasts(_: Array, ahead: Bounds, levels: Array) -> Array:
        # The order of pulls is fixed: one candidate that stays is enough not to stop.
        return jnp.any(lasting_candidates(problem, *ahead.inner, levels))

    return sample_least_pulled(
        problem,
        Rule(look, lasts),
        delta=delta,
        estimator=estimator,
        observations=observations,
        block=block,
        clip=clip,
        radius_scale=radius_scale,
    )
