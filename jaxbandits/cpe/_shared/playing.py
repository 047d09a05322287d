"""The frame of the algorithms that play whole actions: the state, the cover, the test of the likelihood ratio.

A round plays one 0/1 action and observes a sample of every arm in it. An algorithm is a rule from the estimates to an
action. The actions of a cover come first, each once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.cpe._problem.environment import Play, made_for
from jaxbandits.cpe._problem.problems import arm_count, float_dtype
from jaxbandits.cpe._shared.maximum import Best, Playable, best_of, check_cover, check_playable, closest, gaps_of
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.compensated import add_to, no_loss
from jaxbandits.numerics.indexing import select


class PlayState(NamedTuple):
    """All samples so far. `pulls` counts plays: one action is one pull."""

    pulls: Array  # int ()
    counts: Array  # int32 (K,)   samples of each arm
    sums: Array  # float (K,)     sums of its rewards
    lost: Array | tuple[()] = ()  # float (K,) in 32 bit: rounding error of `sums`, as in `compensated`


class Playing(NamedTuple):
    """Settings of an algorithm that plays whole actions."""

    problem: Playable
    cover: Array  # int32 (M, K)
    noise_scale: Array  # float ()
    dtype: Any  # dtype of the run


class PlayEstimates(NamedTuple):
    """Input of a rule in a round. Until every arm has a sample, all estimates are 0."""

    state: PlayState
    is_ready: Array  # bool ()    every arm has a sample
    plays: Array  # float ()      t, at least 1
    counts: Array  # float (K,)   at least 1
    means: Array  # float (K,)    estimates
    best: Best  # the best action at the estimates, the answer


# (key, estimates) -> the action to play, bool or int (K,), and bool () stop
PlayRule = Callable[[Key, PlayEstimates], tuple[Array, Array]]


def checked_playing(problem: Playable, *, noise_scale: Array | float, cover: Any) -> Playing:
    """Returns the settings of a factory; raises `ValueError` for one that is not as its docstring says."""
    check_playable(problem)
    checks.positive("noise_scale", noise_scale)
    dtype = float_dtype(problem)
    rows = checks.constant(check_cover(problem, cover), jnp.int32)
    return Playing(problem, rows, jnp.asarray(noise_scale, dtype), dtype)


def first_state(playing: Playing) -> PlayState:
    """Returns the state without samples."""
    K = arm_count(playing.problem)
    dtype = playing.dtype
    return PlayState(jnp.zeros((), int), jnp.zeros(K, jnp.int32), jnp.zeros(K, dtype), no_loss((K,), dtype))


def add_play(state: PlayState, action: Play, rewards: Array) -> PlayState:
    """Returns the state after a play; the idle one changes nothing. Rewards are 0 where an arm is not played."""
    played = action.decision > 0
    before = (state.sums, state.lost)
    after = add_to(*before, jnp.where(played, rewards, 0))
    return PlayState(
        state.pulls + jnp.any(played).astype(state.pulls.dtype),
        state.counts + action.decision.astype(state.counts.dtype),
        *select(played, after, before),
    )


def estimates_at(playing: Playing, state: PlayState) -> PlayEstimates:
    """Computes the estimates and the best action at them."""
    is_ready = jnp.all(state.counts > 0)
    counts = jnp.maximum(state.counts, 1).astype(playing.dtype)
    means = jnp.where(is_ready, state.sums / counts, 0)
    plays = jnp.maximum(state.pulls, 1).astype(playing.dtype)
    best = best_of(playing.problem, means)
    return PlayEstimates(state=state, is_ready=is_ready, plays=plays, counts=counts, means=means, best=best)


def cover_first(playing: Playing, estimates: PlayEstimates, decision: Array) -> Array:
    """Returns the next action of the cover until all of it is played, then the decision: int32 (K,)."""
    M = playing.cover.shape[0]
    return jnp.where(estimates.state.pulls < M, playing.cover[estimates.state.pulls % M], decision.astype(jnp.int32))


def algorithm_from_play_rule(playing: Playing, rule: PlayRule) -> Algorithm:
    """Returns the algorithm that plays the cover, and then the rule's actions."""

    def init(key: Key) -> PlayState:
        del key
        return first_state(playing)

    def decide(key: Key, state: PlayState) -> Decision:
        estimates = estimates_at(playing, state)
        decision, stop = rule(key, estimates)
        action = Play(cover_first(playing, estimates, decision))
        return Decision(action, estimates.is_ready & stop, estimates.best.action.astype(jnp.int32))

    return Algorithm(init, decide, add_play, idle_play(playing), **made_for(playing.problem))


def idle_play(playing: Playing) -> Play:
    """Returns the action that does nothing."""
    return Play(jnp.zeros(arm_count(playing.problem), jnp.int32))


# The stop


def checked_threshold(
    problem: Playable, delta: Array | float, threshold: thresholds.Threshold | None
) -> thresholds.Threshold:
    """Returns the threshold, `gk16` for None; raises `ValueError` if it or delta is invalid."""
    checks.probability("delta", delta)
    if threshold is None:
        return thresholds.gk16(arms=arm_count(problem))
    return checks.function("threshold", threshold, "delta and evidence")


def ratio(playing: Playing, estimates: PlayEstimates) -> Array:
    """Computes the log likelihood ratio min_x <means, x* - x>^2 / (2 noise_scale^2 sum 1 / counts), float ()."""
    gaps = gaps_of(playing.problem, estimates.best, estimates.means)
    return closest(playing.problem, estimates.best, gaps, 1 / estimates.counts).value / playing.noise_scale**2


def is_sure(playing: Playing, estimates: PlayEstimates, delta: Array | float, threshold: thresholds.Threshold) -> Array:
    """True if the ratio exceeds the threshold, bool ().

    The published code also requires a gap of more than 1e-7. Here it is implied. A ratio above 1 at fewer than 2^31
    samples means a gap of more than 6e-5 noise_scale.
    """
    evidence = thresholds.Evidence(pulls=estimates.state.pulls, counts=estimates.state.counts)
    return ratio(playing, estimates) > threshold(jnp.asarray(delta, playing.dtype), evidence)
