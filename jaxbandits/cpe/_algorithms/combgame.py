"""CombGame: a learner of plays against the closest instance in which another action is best (Jourdan et al., 2021)."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.cpe._problem.environment import Play, made_for
from jaxbandits.cpe._shared.maximum import Playable, actions_of, best_action, closest, gaps_of
from jaxbandits.cpe._shared.playing import (
    PlayEstimates,
    Playing,
    PlayState,
    add_play,
    checked_playing,
    checked_threshold,
    cover_first,
    estimates_at,
    first_state,
    is_sure,
)
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.elementary import log
from jaxbandits.numerics.indexing import first_smallest
from jaxbandits.numerics.linalg import aligned

WORD = 32  # arms that a word holds


class Learned(NamedTuple):
    """The learner: lazy optimistic follow-the-leader over the actions, in arms."""

    shares: Array  # float (K,)   w
    gains: Array  # float (K,)    L, sum of upper bounds on the gradients so far
    strength: Array  # float ()   S, factor of the regulariser


class Tracked(NamedTuple):
    """Actions that the learner has chosen, and how often each was played."""

    words: Array  # uint32 (B, ceil(K / 32))   the actions, one bit per arm; zeros in a free row
    weights: Array  # float (B,)   W, weights of the actions in the learner's shares
    plays: Array  # int32 (B,)     n, number of plays


class CombState(NamedTuple):
    """All samples so far, and the learner."""

    pulls: Array  # int ()
    counts: Array  # int32 (K,)
    sums: Array  # float (K,)
    lost: Array | tuple[()]  # float (K,) in 32 bit, as in `PlayState`
    learned: Learned  # the learner's shares and gains
    tracked: Tracked  # the actions that it has chosen


class CombPlay(NamedTuple):
    """A play and the learner's step. During the cover the learner makes no step, and both rows are -1."""

    decision: Array  # int32 (K,)
    learned: Learned  # the learner after this round
    asked: Array  # uint32 (ceil(K / 32),)   action that the learner chooses
    slot: Array  # int32 ()    row of that action in `Tracked`
    played: Array  # int32 ()  row of the action that is played


def combgame(
    problem: Playable,
    *,
    delta: Array | float,
    noise_scale: Array | float = 1.0,
    threshold: thresholds.Threshold | None = None,
    cover: Any = None,
    capacity: int = 4096,
) -> Algorithm:
    """Finds the best action from plays of actions: a learner chooses actions, and the plays track its choices.

    After the cover, a round adds to every arm's gain an upper bound of (means - lambda)^2 / 2. Here lambda is the
    closest instance, at the learner's shares w, in which another action is best. The learner chooses the action with
    the largest regularised gain, with weight t^(-1/4). The round plays the action with fewest plays for its weight.

    Args:
        problem: as in `pfws`.
        delta: () in (0, 1), allowed probability of error.
        noise_scale: () > 0, in units of reward.
        threshold: as in `pfws`.
        cover: as in `pfws`.
        capacity: B, number of tracked actions, at least the number in the cover. When all rows are taken, a new action
            replaces the one with the smallest weight.

    Returns:
        Algorithm with actions `CombPlay`, states `CombState` and answers int32 (K,), 0 or 1.

    Raises:
        ValueError: an argument is not as above.

    **Guarantee**: as for `pfws`. **Cost** per round: two `maximum`, two searches for the `most_confusing` action, and
    O(B), which makes it slower than P-FWS: about 3000 actions after 6000 plays of E20. **Limit**: 2^31 - 1 plays.

    Source: Jourdan, Mutny, Kirschner and Krause (2021), Efficient pure exploration for combinatorial bandits with
    semi-bandit feedback. Deviations: the diameter of a matroid is bounded, not enumerated; equal actions of the cover
    share a row; `capacity`.
    """
    playing = checked_playing(problem, noise_scale=noise_scale, cover=cover)
    threshold = checked_threshold(problem, delta, threshold)
    start, rows = np.unique(np.asarray(playing.cover), axis=0, return_index=True)
    order = np.argsort(rows)
    start = start[order]
    capacity = checks.whole("capacity", capacity, least=len(start))
    M, K = playing.cover.shape
    B, words = capacity, -(-K // WORD)
    times = np.array([np.all(np.asarray(playing.cover) == row, axis=1).sum() for row in start])
    diameter = actions_of(problem).diameter(problem)
    omega = np.asarray(playing.cover).mean(axis=0)

    def init(key: Key) -> CombState:
        del key
        dtype = playing.dtype
        learned = Learned(jnp.asarray(omega, dtype), jnp.zeros(K, dtype), jnp.zeros((), dtype))
        tracked = Tracked(
            jnp.zeros((B, words), jnp.uint32).at[: len(start)].set(_packed(jnp.asarray(start))),
            jnp.zeros(B, dtype).at[: len(start)].set(jnp.asarray(times / M, dtype)),
            jnp.zeros(B, jnp.int32).at[: len(start)].set(jnp.asarray(times, jnp.int32)),
        )
        return CombState(*first_state(playing), learned, tracked)

    def decide(key: Key, state: CombState) -> Decision:
        del key
        estimates = estimates_at(playing, PlayState(state.pulls, state.counts, state.sums, state.lost))
        is_cover = state.pulls < M
        gamma = estimates.plays**-0.25
        learned, asked = _learn(playing, estimates, state.learned, gamma=gamma, omega=omega, diameter=diameter)
        slot, played, decision = _track(state.tracked, _packed(asked), gamma, K)
        no_row = jnp.full_like(slot, -1)
        action = CombPlay(
            decision=cover_first(playing, estimates, decision),
            learned=learned,
            asked=_packed(asked),
            slot=jnp.where(is_cover, no_row, slot),
            played=jnp.where(is_cover, no_row, played),
        )
        stop = estimates.is_ready & is_sure(playing, estimates, delta, threshold)
        return Decision(action, stop, estimates.best.action.astype(jnp.int32))

    def observe(state: CombState, action: CombPlay, rewards: Array) -> CombState:
        earlier = PlayState(state.pulls, state.counts, state.sums, state.lost)
        samples = add_play(earlier, Play(action.decision), rewards)
        tracked, learns = state.tracked, action.slot >= 0
        gamma = jnp.maximum(state.pulls, 1).astype(playing.dtype) ** -0.25
        row = jnp.arange(B, dtype=jnp.int32)
        # A row that a new action takes over starts from zero.
        is_slot = row == action.slot
        is_new = is_slot & jnp.any(tracked.words != action.asked[None], axis=1)
        weights = jnp.where(learns, (1 - gamma) * jnp.where(is_new, 0, tracked.weights), tracked.weights)
        plays = jnp.where(is_new, 0, tracked.plays) + (row == action.played).astype(jnp.int32)
        learned = Learned(
            *(jnp.where(learns, new, old) for new, old in zip(action.learned, state.learned, strict=True))
        )
        new_words = jnp.where(is_slot[:, None], action.asked[None], tracked.words)
        return CombState(*samples, learned, Tracked(new_words, jnp.where(is_slot, weights + gamma, weights), plays))

    zeros = jnp.zeros(K, jnp.int32)
    no_step = Learned(jnp.zeros(K, playing.dtype), jnp.zeros(K, playing.dtype), jnp.zeros((), playing.dtype))
    no_row = jnp.full((), -1, jnp.int32)
    idle = CombPlay(
        decision=zeros,
        learned=no_step,
        asked=jnp.zeros(words, jnp.uint32),
        slot=no_row,
        played=no_row,
    )
    return Algorithm(init, decide, observe, idle, needs_order=True, **made_for(problem))


def _learn(
    playing: Playing, estimates: PlayEstimates, learned: Learned, *, gamma: Array, omega: np.ndarray, diameter: float
) -> tuple[Learned, Array]:
    """Returns the learner after a round and the action that it chooses, bool (K,). Means are in units of the noise."""
    problem, means = playing.problem, estimates.means / playing.noise_scale
    w, gains, strength = learned
    asked = best_action(problem, gains - strength * w)
    gaps = gaps_of(problem, estimates.best, means)
    closest_instance = closest(problem, estimates.best, gaps, 1 / w)
    moved = jnp.where(closest_instance.differs, closest_instance.slope / w, 0)  # |means - lambda|
    slack = log(estimates.plays) / estimates.counts
    bound = jnp.maximum((moved + jnp.sqrt(2 * slack)) ** 2 / 2, slack)
    rate = gamma / diameter
    return Learned(
        (1 - gamma) * w + gamma * asked.astype(w.dtype),
        gains + rate * jnp.asarray(omega, w.dtype) + bound,
        strength + rate,
    ), asked


def _track(tracked: Tracked, asked: Array, gamma: Array, K: int) -> tuple[Array, Array, Array]:
    """Returns the row of the chosen action, the row that is played, and the action of the latter, int32 (K,)."""
    words, weights, plays = tracked
    row = jnp.arange(len(plays), dtype=jnp.int32)
    is_same = jnp.all(words == asked[None], axis=1)
    # The action's row is the one that it has, otherwise the first free one, otherwise the one with the smallest weight.
    rank = jnp.where(is_same, -2, jnp.where(jnp.any(words > 0, axis=1), weights, -1))
    slot = first_smallest(rank)
    is_slot = row == slot
    is_new = is_slot & ~is_same
    weights = (1 - gamma) * jnp.where(is_new, 0, weights) + jnp.where(is_slot, gamma, 0)
    is_tracked = is_slot | jnp.any(words > 0, axis=1)
    counts = jnp.where(is_new, 0, plays).astype(weights.dtype)
    # An action without plays comes first, even if its weight has fallen to 0.
    need = jnp.where(is_tracked, jnp.where(counts > 0, counts / weights, 0), jnp.inf)
    played = first_smallest(need)
    chosen = jnp.where(played == slot, asked, words[played])
    bits = chosen[:, None] >> jnp.arange(WORD, dtype=jnp.uint32)[None]
    return slot, played, (bits & 1).reshape(-1)[:K].astype(jnp.int32)


def _packed(actions: Array) -> Array:
    """Packs actions (..., K) into bits, uint32 (..., ceil(K / 32))."""
    K = actions.shape[-1]
    padded = jnp.pad(actions.astype(jnp.uint32), [(0, 0)] * (actions.ndim - 1) + [(0, -K % WORD)])
    bits = padded.reshape(*actions.shape[:-1], -1, WORD)
    return jnp.sum(bits << aligned(jnp.arange(WORD, dtype=jnp.uint32), bits.ndim), axis=-1, dtype=jnp.uint32)
