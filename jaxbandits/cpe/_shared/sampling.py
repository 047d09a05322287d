"""The frame of COCI and uniform sampling: pull the arm with fewest pulls in a set, until the box is decided."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import require
from jaxbandits.cpe._problem.environment import Pulls, made_for
from jaxbandits.cpe._problem.problems import Problem, arm_count, best_levels, check_problem, float_dtype, kind_of
from jaxbandits.cpe._shared.estimate import (
    Box,
    Estimator,
    Observations,
    Statistics,
    add,
    box,
    empty,
    estimate,
    initial_pulls,
    squared_radius,
)
from jaxbandits.cpe._shared.leaps import Bounds, bounds, shares, slots


class SamplingSettings(NamedTuple):
    """Keyword arguments of `coci` and `uniform`."""

    delta: Array | float
    estimator: Estimator
    observations: Observations
    leap: int
    clip: bool
    radius_scale: Array | float


class State(NamedTuple):
    """All samples so far. Everything else is computed from them."""

    pulls: Array  # int ()
    statistics: Statistics
    reach: Array | None  # int32 ()   pulls of the next round if the set of arms stays the same; None for single pulls


class ArmRule(NamedTuple):
    """Choice of the arms to pull from, and of the round to stop in."""

    # (box, levels (m,)) -> bool (m,) arms to pull from, bool () stop
    judge: Callable[[Box, Array], tuple[Array, Array]]
    # (arms bool (m,), bounds of the next rounds, levels (m,)) -> bool (): `judge` returns the same in all of them
    lasts: Callable[[Array, Bounds, Array], Array]


def check_settings(problem: Problem, settings: SamplingSettings) -> None:
    """Raises `ValueError` for a setting that is out of range or does not fit the problem."""
    check_problem(problem)
    checks.probability("delta", settings.delta)
    checks.one_of("estimator", settings.estimator, Estimator)
    checks.one_of("observations", settings.observations, Observations)
    checks.whole("leap", settings.leap, least=1)
    checks.flag("clip", settings.clip)
    checks.positive("radius_scale", settings.radius_scale)
    kind = kind_of(problem)
    kind.check_estimator(settings.estimator)
    if not settings.clip:
        fits = kind.is_unbounded and settings.estimator == "mean"
        require(fits, "clip", "be True unless the problem is a Table and the estimator the mean", settings.clip)
    kind.check_candidates(problem)


def algorithm_from_arm_rule(problem: Problem, rule: ArmRule, settings: SamplingSettings) -> Algorithm:
    """Returns the algorithm that pulls the arm with fewest pulls in the rule's set, the lowest index among ties.

    Args:
        problem: the decisions and their reward.
        rule: the set and the stop. It applies once every arm has its estimate. Before, the set is all arms.
        settings: valid settings, see `check_settings`.

    Returns:
        Algorithm with actions `Pulls` of `leap` slots and answers int32 (m,), levels.
    """
    delta, estimator, observations, leap, clip, radius_scale = settings
    m, dtype, tau = arm_count(problem), float_dtype(problem), initial_pulls(estimator)

    def squared(n: Array) -> Array:
        n = jnp.maximum(n, 1).astype(dtype)
        return squared_radius(n, tau=tau, delta=delta, radius_scale=radius_scale)

    def init(key: Key) -> State:
        del key
        statistics = empty(m, dtype, estimator=estimator, observations=observations)
        return State(jnp.zeros((), int), statistics, jnp.ones((), jnp.int32) if leap > 1 else None)

    def decide(key: Key, state: State) -> Decision:
        del key
        counts, estimates = state.statistics.counts, estimate(state.statistics, estimator)
        is_ready = jnp.all(counts >= tau)
        T = jnp.maximum(counts, tau)
        radii = jnp.sqrt(squared(state.pulls) / T.astype(dtype))
        levels = best_levels(problem, estimates)
        mask, stop = rule.judge(box(estimates - radii, estimates + radii, clip=clip), levels)
        mask |= ~is_ready
        due = jnp.where(mask, counts, jnp.iinfo(jnp.int32).max)
        arm = jnp.argmin(due).astype(jnp.int32)
        if state.reach is None:
            pulls = Pulls(arm[None])
        else:
            initial = jnp.minimum(leap, tau * m - state.pulls).astype(jnp.int32)
            number = jnp.where(is_ready, state.reach, initial)
            share = shares(counts, mask, number)
            last = squared(state.pulls + number.astype(state.pulls.dtype) - 1)
            leap_bounds = bounds(estimates, T, share, tau=tau, first=squared(state.pulls), last=last, clip=clip)
            is_certain = ~is_ready | (number == 1) | rule.lasts(mask, leap_bounds, levels)
            single = (jnp.arange(m, dtype=jnp.int32) == arm).astype(jnp.int32)
            pulls = slots(jnp.where(is_certain, share, single), leap)
        return Decision(pulls, is_ready & stop, levels)

    def observe(state: State, action: Pulls, observation: Array) -> State:
        number = jnp.sum(action.arms < m, dtype=jnp.int32)
        reach = state.reach
        if reach is not None:
            # The leap doubles after a success and halves after a failure.
            following = jnp.where(number == reach, jnp.minimum(2 * reach, leap), jnp.maximum(reach // 2, 1))
            is_ready = jnp.all(state.statistics.counts >= tau)
            reach = jnp.where(is_ready & (number > 0), following, reach)
        pulls = state.pulls + number.astype(state.pulls.dtype)
        return State(pulls, add(state.statistics, action, observation), reach)

    return Algorithm(init, decide, observe, Pulls(jnp.full(leap, m, jnp.int32)), **made_for(problem, observations))
