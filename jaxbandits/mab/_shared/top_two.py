"""Top-two rules with a coin: a leader, a challenger, and a coin that says which of the two is pulled."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem
from jaxbandits.mab._shared.confidence import (
    Confidence,
    LeaderShare,
    check_leader_share,
    checked_confidence,
    has_separated,
    share_of_leader,
)
from jaxbandits.mab._shared.core import Choice, Estimates, Rule, State, algorithm_of, argmax, one_arm
from jaxbandits.numerics.thresholds import Threshold


class Pair(NamedTuple):
    """Who stands against whom."""

    leader: Array  # int32 ()
    challenger: Array  # int32 ()


def coin(key: Key, dtype: jnp.dtype) -> Array:
    """A uniform number, float ()."""
    return jax.random.uniform(key, (), dtype)


def pulled_of(pair: Pair, share: Array, uniform: Array) -> Array:
    """The leader if the coin falls below its share, else the challenger, int32 ()."""
    return jnp.where(uniform < share, pair.leader, pair.challenger)


def with_coin(
    problem: Problem,
    delta: Array | float,
    threshold: Threshold | None,
    epsilon: Array | float,
    leader_share: Array | LeaderShare,
    pair_of: Callable[[Confidence, Estimates], Pair],
) -> Algorithm:
    """The algorithm of a rule whose pair depends on the estimates alone."""
    settings = checked_confidence(problem, delta, threshold, epsilon)
    check_leader_share(leader_share)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        pair = pair_of(settings, estimates)
        share = share_of_leader(problem, leader_share, estimates, *pair)
        arm = pulled_of(pair, share, coin(key, estimates.means.dtype))
        return Choice(one_arm(arm), has_separated(settings, state, estimates), argmax(estimates.means, estimates.lots))

    return algorithm_of(problem, Rule(choose))
