"""What all algorithms that play whole actions share: the state, the cover, the test of the likelihood ratio.

A round plays one 0/1 action and shows a sample of every arm in it. An algorithm is a rule, which sees the estimates and
says what to play; the actions of a cover come first, each once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.cpe._problem.environment import made_for
from jaxbandits.cpe._problem.play import Play
from jaxbandits.cpe._problem.problems import arm_count, float_dtype
from jaxbandits.cpe._shared.confusing import closest, gaps_of
from jaxbandits.cpe._shared.maximum import Playable, Row, Swaps, best_of, check_cover, check_playable
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.compensated import add_to, no_loss


class PlayState(NamedTuple):
    """All samples so far. `pulls` counts plays: one action is one pull."""

    pulls: Array  # int ()
    counts: Array  # int32 (K,)   samples of each arm
    sums: Array  # float (K,)     of its rewards
    lost: Array | tuple[()] = ()  # float (K,) in 32 bit: what `sums` has lost to rounding, as in `compensated`


class Playing(NamedTuple):
    """What is known before a run."""

    problem: Playable
    cover: Array  # int32 (M, K)
    noise_scale: Array  # float ()
    dtype: Any  # of the run


class Seen(NamedTuple):
    """What a rule knows before a round. Before every arm is seen all estimates are 0."""

    state: PlayState
    is_ready: Array  # bool ()    every arm has a sample
    plays: Array  # float ()      t, at least 1
    counts: Array  # float (K,)   at least 1
    means: Array  # float (K,)    estimates
    best: Swaps | Row  # the best action at the estimates, the answer


Rule = Callable[[Key, Seen], tuple[Array, Array]]  # what to play, bool or int (K,), and whether to stop, bool ()


def checked(problem: Playable, *, noise_scale: Array | float, cover: Any) -> Playing:
    """The settings of all factories; raises `ValueError` where one is not as their docstrings say."""
    check_playable(problem)
    checks.positive("noise_scale", noise_scale)
    dtype = float_dtype(problem)
    rows = checks.constant(check_cover(problem, cover), jnp.int32)
    return Playing(problem, rows, jnp.asarray(noise_scale, dtype), dtype)


def first_state(playing: Playing) -> PlayState:
    """Nothing seen."""
    K = arm_count(playing.problem)
    dtype = playing.dtype
    return PlayState(jnp.zeros((), int), jnp.zeros(K, jnp.int32), jnp.zeros(K, dtype), no_loss((K,), dtype))


def add_play(state: PlayState, action: Play, rewards: Array) -> PlayState:
    """The state after a play, or as it was after the idle one; rewards are 0 where an arm is not played."""
    played = action.decision > 0
    before = (state.sums, state.lost)
    after = add_to(*before, jnp.where(played, rewards, 0))
    return PlayState(
        state.pulls + jnp.any(played).astype(state.pulls.dtype),
        state.counts + action.decision.astype(state.counts.dtype),
        *jax.tree.map(lambda new, old: jnp.where(played, new, old), after, before),
    )


def look(playing: Playing, state: PlayState) -> Seen:
    """The estimates and the best action at them."""
    is_ready = jnp.all(state.counts > 0)
    counts = jnp.maximum(state.counts, 1).astype(playing.dtype)
    means = jnp.where(is_ready, state.sums / counts, 0)
    plays = jnp.maximum(state.pulls, 1).astype(playing.dtype)
    return Seen(state, is_ready, plays, counts, means, best_of(playing.problem, means))


def as_play(seen: Seen, decision: Array) -> Play:
    """A play of an action (K,); the next samples of its arms."""
    decision = decision.astype(jnp.int32)
    return Play(decision, jnp.where(decision > 0, seen.state.counts, 0))


def cover_first(playing: Playing, seen: Seen, decision: Array) -> Array:
    """The next action of the cover until all of it is played, then the decision: int32 (K,)."""
    M = playing.cover.shape[0]
    return jnp.where(seen.state.pulls < M, playing.cover[seen.state.pulls % M], decision.astype(jnp.int32))


def play_by(playing: Playing, rule: Rule) -> Algorithm:
    """The algorithm that plays the cover, and then what a rule says."""

    def init(key: Key) -> PlayState:
        del key
        return first_state(playing)

    def decide(key: Key, state: PlayState) -> Decision:
        seen = look(playing, state)
        decision, stop = rule(key, seen)
        action = as_play(seen, cover_first(playing, seen, decision))
        return Decision(action, seen.is_ready & stop, seen.best.action.astype(jnp.int32))

    return Algorithm(init, decide, add_play, idle_play(playing), before=played_before, **made_for(playing.problem))


def idle_play(playing: Playing) -> Play:
    """The action that does nothing."""
    nothing = jnp.zeros(arm_count(playing.problem), jnp.int32)
    return Play(nothing, nothing)


def played_before(state: Any, action: Play) -> Array:
    """How often each arm of a play was played before, int32 (K,), as `jaxbandits.numbered` wants it."""
    del state
    return action.index


# The stop


def checked_threshold(
    problem: Playable, delta: Array | float, threshold: thresholds.Threshold | None
) -> thresholds.Threshold:
    """The threshold, `gk16` for None; raises `ValueError` unless delta and it are what they should be."""
    checks.probability("delta", delta)
    if threshold is None:
        return thresholds.gk16(arms=arm_count(problem))
    return checks.function("threshold", threshold, "delta and evidence")


def ratio(playing: Playing, seen: Seen) -> Array:
    """Z = min_x <means, x* - x>^2 / (2 noise_scale^2 sum 1 / counts), float (): the log likelihood ratio."""
    gaps = gaps_of(playing.problem, seen.best, seen.means)
    return closest(playing.problem, seen.best, gaps, 1 / seen.counts).value / playing.noise_scale**2


def is_sure(playing: Playing, seen: Seen, delta: Array | float, threshold: thresholds.Threshold) -> Array:
    """Whether the ratio exceeds the threshold, bool ().

    The published code also asks for a gap of more than 1e-7. It is implied: a ratio above 1 at fewer than 2^31 samples
    means a gap of more than 6e-5 noise_scale.
    """
    evidence = thresholds.Evidence(pulls=seen.state.pulls, counts=seen.state.counts)
    return ratio(playing, seen) > threshold(jnp.asarray(delta, playing.dtype), evidence)
