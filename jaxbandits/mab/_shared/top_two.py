"""Top-two rules that pull a leader or its challenger at random."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem
from jaxbandits.mab._shared.confidence import (
    LeaderShare,
    StopSettings,
    check_leader_share,
    first_pulls,
    has_separated,
    leader_share_at,
    stop_settings,
)
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, algorithm_from_rule, argmax, one_arm
from jaxbandits.numerics.thresholds import Threshold


class Pair(NamedTuple):
    """Arms compared in a round."""

    leader: Array  # int32 ()
    challenger: Array  # int32 ()


def coin(key: Key, dtype: jnp.dtype) -> Array:
    """Draws a uniform number, float ()."""
    return jax.random.uniform(key, (), dtype)


def pulled_arm(pair: Pair, share: Array, uniform: Array) -> Array:
    """Returns the leader if the uniform number is below its share, otherwise the challenger, int32 ()."""
    return jnp.where(uniform < share, pair.leader, pair.challenger)


def algorithm_from_pair(
    problem: Problem,
    pair_of: Callable[[StopSettings, Estimates], Pair],
    *,
    delta: Array | float,
    threshold: Threshold | None,
    epsilon: Array | float,
    leader_share: Array | LeaderShare,
    start: int | None = None,
) -> Algorithm:
    """Builds the algorithm whose leader and challenger depend only on the estimates; `start` as for `first_pulls`."""
    start = first_pulls(problem, start, threshold)
    settings = stop_settings(problem, delta, threshold, epsilon)
    check_leader_share(leader_share)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        pair = pair_of(settings, estimates)
        share = leader_share_at(problem, leader_share, estimates, *pair)
        arm = pulled_arm(pair, share, coin(key, estimates.means.dtype))
        return Choice(one_arm(arm), has_separated(settings, state, estimates), argmax(estimates.means, estimates.lots))

    return algorithm_from_rule(problem, Rule(choose), start=start)
