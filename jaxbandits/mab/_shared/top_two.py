"""Top-two rules that pull a leader or its challenger at random."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem
from jaxbandits.mab._shared.batches import algorithm_in_batches
from jaxbandits.mab._shared.confidence import (
    LeaderShare,
    StopSettings,
    check_leader_share,
    first_pulls,
    has_separated,
    leader_share_at,
    stop_settings,
)
from jaxbandits.mab._shared.frame import Choice, Estimates, Proposal, Rule, State, argmax, one_arm
from jaxbandits.numerics.thresholds import Threshold


class Pair(NamedTuple):
    """Arms compared in a round."""

    leader: Array  # int32 ()
    challenger: Array  # int32 ()


def coin(key: Key, dtype: jnp.dtype) -> Array:
    """Draws a uniform number, float ()."""
    return jax.random.uniform(key, (), dtype)


def tossed(pair: Pair, share: Array, uniform: Array, K: int) -> Proposal:
    """Proposes the leader if the uniform number is below its share, otherwise the challenger."""
    return Proposal(jnp.where(uniform < share, pair.leader, pair.challenger), lambda: shares_of(pair, share, K))


def shares_of(pair: Pair, share: Array | float, K: int) -> Array:
    """Returns the shares of all arms, given the leader's, float (K,)."""
    arms, share = jnp.arange(K, dtype=jnp.int32), jnp.asarray(share)
    return jnp.where(arms == pair.leader, share, jnp.where(arms == pair.challenger, 1 - share, 0))


def algorithm_from_pair(
    problem: Problem,
    pair_of: Callable[[StopSettings, Estimates], Pair],
    *,
    delta: Array | float,
    threshold: Threshold | None,
    epsilon: Array | float,
    leader_share: Array | LeaderShare,
    every: int,
    start: int | None = None,
) -> Algorithm:
    """Builds the algorithm whose leader and challenger depend only on the estimates; `start` as for `first_pulls`."""
    start = first_pulls(problem, start, threshold)
    settings = stop_settings(problem, delta, threshold, epsilon)
    check_leader_share(leader_share)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        pair = pair_of(settings, estimates)
        share = leader_share_at(problem, leader_share, estimates, *pair)
        arm, shares = tossed(pair, share, coin(key, estimates.means.dtype), problem.arms)
        action, stop = one_arm(arm), has_separated(settings, state, estimates)
        return Choice(action, stop, argmax(estimates.means, estimates.lots), shares)

    return algorithm_in_batches(problem, Rule(choose), every=every, start=start)
