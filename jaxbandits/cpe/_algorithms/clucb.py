"""CLUCB: pull the arm with fewest pulls on which the best decision and its rival differ (Chen et al., 2014)."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import require
from jaxbandits.cpe._problem.environment import Pulls, made_for
from jaxbandits.cpe._problem.kinds.enumerated import Enumerated
from jaxbandits.cpe._problem.kinds.graphic import Graphic
from jaxbandits.cpe._problem.kinds.table import Table
from jaxbandits.cpe._problem.problems import (
    Problem,
    arm_count,
    best_levels,
    check_problem,
    float_dtype,
    kind_of,
    needed,
)
from jaxbandits.cpe._shared.estimate import Observations, Statistics, add, empty, estimate, squared_radius
from jaxbandits.numerics.elementary import log


class Coci(NamedTuple):
    """Radius of `coci` for `clucb`: the two algorithms then differ only in the arms they pull."""


class Chen(NamedTuple):
    """Published radius of `clucb`, noise_scale sqrt(2 ln(4 m n^3 / delta) / T)."""

    # () > 0, sub-Gaussian constant in units of reward. 1/2 is sharp for samples in [0, 1]; the published choice is 1
    noise_scale: Array | float = 0.5


COCI = Coci()


class State(NamedTuple):
    """All samples so far."""

    pulls: Array  # int ()
    statistics: Statistics


def clucb(
    problem: Table | Enumerated | Graphic,
    *,
    delta: Array | float,
    radius: Coci | Chen = COCI,
    observations: Observations = "unit",
) -> Algorithm:
    """Pulls an arm on which the best decision M and its strongest rival differ.

    After one pull of every arm, each round lowers the estimates of M by their radii and raises all others by theirs.
    The best decision at these values is the rival. If it does not beat M, the run stops. Otherwise the round pulls the
    arm with fewest pulls on which the two differ, the lowest index among ties.

    Args:
        problem: 0/1 decisions with a linear reward: `Enumerated`, `Graphic`, or a `Table` with rows of one entry of
            which exactly `quota` are taken. theta are the means of the samples.
        delta: () in (0, 1), allowed probability of error.
        radius: of the estimates: `Coci()`, or `Chen(noise_scale)`, the published one.
        observations: as in `coci`.

    Returns:
        Algorithm with actions `Pulls` of one slot and answers int32 (m,), 0 or 1.

    Raises:
        ValueError: an argument lies outside the range above, or the problem is of another kind.

    **Guarantee**: P(the answer is the best decision) >= 1 - delta. **Cost** per round: two `solve` and O(m), for
    `Enumerated` O(N m). **Limit**: 2^31 - 1 pulls.

    **float32**: ties of the estimates may break in another way than in 64 bit, and a run may then differ. Its law is
    the same.

    Source: Chen, Lin, King, Lyu and Chen (2014), Combinatorial pure exploration of multi-armed bandits, Algorithm 1.
    """
    lead = _checked_lead(problem)
    checks.probability("delta", delta)
    checks.instance("radius", radius, (Coci, Chen))
    if isinstance(radius, Chen):
        checks.positive("radius.noise_scale", radius.noise_scale)
    checks.one_of("observations", observations, Observations)
    m, dtype = arm_count(problem), float_dtype(problem)

    def squared(n: Array) -> Array:
        n = jnp.maximum(n, 1).astype(dtype)
        if isinstance(radius, Coci):
            return squared_radius(n, tau=1, delta=delta)
        R, log_delta = jnp.asarray(radius.noise_scale, dtype), jnp.log(jnp.asarray(delta, dtype))
        return 2 * R**2 * (math.log(4 * m) + 3 * log(n) - log_delta)

    def init(key: Key) -> State:
        del key
        statistics = empty(m, dtype, estimator="mean", observations=observations)
        return State(jnp.zeros((), int), statistics)

    def decide(key: Key, state: State) -> Decision:
        del key
        counts, estimates = state.statistics.counts, estimate(state.statistics, "mean")
        is_ready = jnp.all(counts >= 1)
        radii = jnp.sqrt(squared(state.pulls) / jnp.maximum(counts, 1).astype(dtype))
        best = best_levels(problem, estimates)
        against = jnp.where(best > 0, estimates - radii, estimates + radii)
        rival = best_levels(problem, against)
        disputed = best != rival
        stop = is_ready & (~jnp.any(disputed) | (lead(problem, against, one=rival, other=best) <= 0))
        due = jnp.where(disputed | ~is_ready, counts, jnp.iinfo(jnp.int32).max)
        return Decision(Pulls(jnp.argmin(due).astype(jnp.int32)[None]), stop, best)

    def observe(state: State, action: Pulls, observation: Array) -> State:
        number = jnp.sum(action.arms < m, dtype=jnp.int32)
        return State(state.pulls + number.astype(state.pulls.dtype), add(state.statistics, action, observation))

    idle = Pulls(jnp.full(1, m, jnp.int32))
    return Algorithm(
        init,
        decide,
        observe,
        idle,
        **made_for(problem, observations),
    )


def _checked_lead(problem: Problem) -> Callable[..., Array]:
    """Returns the function of the lead of one decision over another; raises `ValueError` for an unfit problem."""
    expected = "be Enumerated, Graphic, or a Table with one entry a row of which exactly `quota` are taken"
    check_problem(problem)
    lead = needed(kind_of(problem).lead, problem, expected)
    misfit = kind_of(problem).misfit(problem)
    require(not misfit, "problem", expected, misfit)
    return lead
