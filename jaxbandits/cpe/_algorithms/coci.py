"""COCI: pull the arm with fewest pulls on which the best decision is still open (Huang, Ok, Li and Chen, 2018)."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array
from jaxbandits.cpe._problem.problems import Problem
from jaxbandits.cpe._shared.candidates import lasting_arms, open_arms
from jaxbandits.cpe._shared.estimate import Box, Estimator, Observations
from jaxbandits.cpe._shared.leaps import Bounds
from jaxbandits.cpe._shared.sampling import ArmRule, SamplingSettings, algorithm_from_arm_rule, check_settings


def coci(
    problem: Problem,
    *,
    delta: Array | float,
    estimator: Estimator = "mean",
    observations: Observations = "unit",
    leap: int = 1,
    clip: bool = True,
    radius_scale: Array | float = 1.0,
) -> Algorithm:
    """Pulls the candidate with fewest pulls, until there is none (consistently optimal confidence intervals).

    Every arm's theta lies in its confidence interval, so all of theta in a box. A candidate is an arm whose level in
    the best decision is not the same everywhere in the box. The arm with fewest pulls has the widest interval.

    Args:
        problem: any; an `Oracle` only if it is bi-monotone.
        delta: () in (0, 1), allowed probability of error.
        estimator: "mean" if theta are the means of the samples, "variance" if they are their variances.
        observations: "binary" if samples are 0 or 1 (their sums are kept as integers), "unit" if they lie in [0, 1].
            Any other sample ends the run as NONFINITE.
        leap: largest number of pulls per round, a Python int; 1 for single pulls. A round makes several pulls only if
            all of them are certain, so a run makes the same pulls with any leap. With leap = 32 a round makes up to 14
            pulls; a longer leap gains nothing. With leap = 16 the examples of the benchmark (`top2of6`, `water3`, ...)
            make 1.3 to 2.6 times as many pulls per second on two cores.
        clip: True if the box is clipped to [0, 1], where theta must lie. False is for a `Table` and means only.
        radius_scale: () > 0, factor of all radii. The guarantee is for 1. Smaller values make errors frequent enough to
            count.

    Returns:
        Algorithm with actions `Pulls` of `leap` slots, whose observations are samples float (leap,), and answers
        int32 (m,), the levels of the best decision at the estimates. The budget of rounds counts rounds, not pulls.

    Raises:
        ValueError: an argument lies outside the range above, or the estimator does not fit the problem.

    **Guarantee** (Theorem 1): P(the answer is the best decision, after at most `theorem1_bound` pulls) >= 1 - delta, if
    the best decision is unique. **Cost** per round: one `solve` and one `candidates`, with leaps three of them, and
    O(m^2 + m leap). **Limit**: 2^31 - 1 pulls.

    **float32** is safe: the sums are exact, and radii are off by 1e-7.

    Source: Huang, Ok, Li and Chen (2018), Combinatorial Pure Exploration with Continuous and Separable Reward Functions
    and Its Applications, Algorithm 1.
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

    def judge(around: Box, levels: Array) -> tuple[Array, Array]:
        is_open = open_arms(problem, *around, levels)
        return is_open, ~jnp.any(is_open)

    def lasts(is_open: Array, bounds: Bounds, levels: Array) -> Array:
        stay = lasting_arms(problem, *bounds.inner, levels)
        join = open_arms(problem, *bounds.outer, levels)
        return jnp.all(jnp.where(is_open, stay, ~join))

    return algorithm_from_arm_rule(problem, ArmRule(judge, lasts), settings)
