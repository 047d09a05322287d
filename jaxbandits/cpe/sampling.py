"""What COCI and uniform sampling share: pull the least pulled arm of a set, until the box around theta is decided."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import require
from jaxbandits.cpe.blocks import Bounds, bounds, shares, slots
from jaxbandits.cpe.estimate import (
    Box,
    Estimator,
    Observations,
    Statistics,
    add,
    box,
    check_confidence,
    empty,
    estimate,
    initial_pulls,
    squared_radius,
)
from jaxbandits.cpe.oracles import solve
from jaxbandits.cpe.problem import Oracle, Problem, Pulls, arm_count, float_dtype


class State(NamedTuple):
    """All that has been seen. Nothing is derived from it that would have to be kept."""

    pulls: Array  # int32 ()
    statistics: Statistics
    leap: Array | None  # int32 ()   pulls of the next round, if the set of arms lasts as long; None for single pulls


class Rule(NamedTuple):
    """Where to pull, and when to stop."""

    look: Callable[[Box, Array], tuple[Array, Array]]  # (box, levels (m,)) -> bool (m,) arms to pull from, bool () stop
    lasts: Callable[[Array, Bounds, Array], Array]
    # (arms bool (m,), bounds of the next rounds, levels (m,)) -> bool (): `look` returns the same in all of them


def sample_least_pulled(
    problem: Problem,
    rule: Rule,
    *,
    delta: Array | float,
    estimator: Estimator,
    observations: Observations,
    block: int,
    clip: bool,
    radius_scale: Array | float,
) -> Algorithm:
    """The algorithm that pulls the least pulled arm of the rule's set, the lowest index among ties.

    Args:
        problem: what is known of the rewards.
        rule: the set and the stop. It is followed once every arm has its estimate; before, all arms are pulled.
        delta: as in `coci`.
        estimator: as in `coci`.
        observations: as in `coci`.
        block: as in `coci`.
        clip: as in `coci`.
        radius_scale: as in `coci`.

    Returns:
        Algorithm with actions `Pulls` of `block` slots and answers int32 (m,), levels.

    Raises:
        ValueError: an argument is out of range, or the problem an oracle that is not bi-monotone.
    """
    check_confidence(
        problem,
        delta=delta,
        estimator=estimator,
        observations=observations,
        clip=clip,
        radius_scale=radius_scale,
    )
    require(isinstance(block, int) and block >= 1, "block", "be a Python int of at least 1", block)
    if isinstance(problem, Oracle):
        expected = "be bi-monotone for the two-call test (for a small class use enumerated(...))"
        require(problem.bi_monotone, "problem", expected, problem)
    m, dtype, tau = arm_count(problem), float_dtype(problem), initial_pulls(estimator)

    def squared(n: Array) -> Array:
        n = jnp.maximum(n, 1).astype(dtype)
        return squared_radius(n, tau=tau, delta=delta, radius_scale=radius_scale)

    def init(key: Key) -> State:
        del key
        statistics = empty(m, dtype, estimator=estimator, observations=observations)
        leap = jnp.ones((), jnp.int32) if block > 1 else None
        return State(jnp.zeros((), jnp.int32), statistics, leap)

    def decide(key: Key, state: State) -> Decision:
        del key
        counts, estimates = state.statistics.counts, estimate(state.statistics, estimator)
        is_ready = jnp.all(counts >= tau)
        T = jnp.maximum(counts, tau)
        radii = jnp.sqrt(squared(state.pulls) / T.astype(dtype))
        levels = solve(problem, estimates)
        mask, stop = rule.look(box(estimates - radii, estimates + radii, clip=clip), levels)
        mask |= ~is_ready
        due = jnp.where(mask, counts, jnp.iinfo(jnp.int32).max)
        arm = jnp.argmin(due).astype(jnp.int32)
        if state.leap is None:
            pulls = Pulls(arm[None], jnp.min(due)[None])
        else:
            number = jnp.where(is_ready, state.leap, jnp.minimum(block, tau * m - state.pulls))
            share = shares(counts, mask, number)
            last = squared(state.pulls + number - 1)
            ahead = bounds(estimates, T, share, tau=tau, first=squared(state.pulls), last=last, clip=clip)
            is_certain = ~is_ready | (number == 1) | rule.lasts(mask, ahead, levels)
            one = (jnp.arange(m, dtype=jnp.int32) == arm).astype(jnp.int32)
            pulls = slots(counts, jnp.where(is_certain, share, one), block)
        return Decision(pulls, is_ready & stop, levels)

    def observe(state: State, action: Pulls, observation: Array) -> State:
        number = jnp.sum(action.arms < m, dtype=jnp.int32)
        leap = state.leap
        if leap is not None:
            next_leap = jnp.where(number == leap, jnp.minimum(2 * leap, block), jnp.maximum(leap // 2, 1))
            is_ready = jnp.all(state.statistics.counts >= tau)
            leap = jnp.where(is_ready & (number > 0), next_leap, leap)
        return State(state.pulls + number, add(state.statistics, action, observation), leap)

    nothing = Pulls(jnp.full(block, m, jnp.int32), jnp.zeros(block, jnp.int32))
    return Algorithm(init, decide, observe, nothing)
