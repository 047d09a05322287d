"""Sums of rewards and of their squared deviations from the mean, from which variances are estimated.

Sums of two samples are merged by the distance of their means, so no digits cancel however large the means are.

Source: Chan, Golub and LeVeque (1983), Algorithms for computing the sample variance; Welford (1962) for one reward.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.checks import require
from jaxbandits.mab._problem.environment import Pull, Rewards, SquaredRewards
from jaxbandits.mab._problem.problems import Gaussian
from jaxbandits.numerics import compensated
from jaxbandits.numerics.compensated import Sum


class Moments(NamedTuple):
    """Statistics of the rewards of every arm, beside their number."""

    sums: Array | Sum  # float (K,), compensated in 32 bit
    squares: Array | Sum  # float (K,), sums of squared deviations from the arm's mean, compensated in 32 bit


def add(
    moments: Moments, counts: Array, action: Pull, rewards: Rewards | SquaredRewards, *, is_slot_per_arm: bool
) -> Moments:
    """Adds the rewards of one round.

    Args:
        moments: the statistics before the round.
        counts: int32 (K,), pulls before the round.
        action: the action.
        rewards: what it paid.
        is_slot_per_arm: True if slot i pulls arm i.

    Returns:
        The statistics after the round.
    """
    times, sums = rewards.times.astype(rewards.sums.dtype), rewards.sums
    # Single rewards do not deviate from their mean.
    squares = rewards.squares if isinstance(rewards, SquaredRewards) else jnp.zeros_like(sums)
    if is_slot_per_arm:
        return _merged(moments, counts.astype(sums.dtype), times, sums, squares)
    before = counts.astype(sums.dtype)
    for slot in range(action.arms.size):
        is_arm = jnp.arange(counts.size, dtype=jnp.int32) == action.arms[slot]
        paid = (jnp.where(is_arm, x[slot], 0) for x in (times, sums, squares))
        moments = _merged(moments, before, *paid)
        before = before + jnp.where(is_arm, times[slot], 0)
    return moments


def variances(problem: Any, moments: Moments, counts: Array) -> Array:
    """Returns the mean squared deviations, positive, and not below a `least_variance` of the problem: float (K,)."""
    squares = moments.squares
    squares = compensated.value(squares) if isinstance(squares, Sum) else squares
    # An arm whose rewards were all equal costs much to move, and is no NaN.
    least = float(problem.least_variance) if isinstance(problem, Gaussian) else 0.0
    least = max(least, float(jnp.finfo(counts.dtype).tiny))
    return jnp.maximum(squares / counts, least)


def require_squares(rewards: Rewards | SquaredRewards, leap: int) -> None:
    """Raises `ValueError` if an environment pays sums of several rewards without their squared deviations."""
    is_given = leap == 1 or isinstance(rewards, SquaredRewards)
    require(is_given, "observation", "be mab.SquaredRewards for several pulls of an arm of unknown variance", rewards)


def _merged(moments: Moments, before: Array, times: Array, sums: Array, squares: Array) -> Moments:
    """Merges two samples of each arm, of `before` and of `times` rewards."""
    so_far = moments.sums
    so_far = compensated.value(so_far) if isinstance(so_far, Sum) else so_far
    distance = sums / jnp.maximum(times, 1) - so_far / jnp.maximum(before, 1)
    between = distance**2 * (before * times / jnp.maximum(before + times, 1))
    return Moments(_plus(moments.sums, sums), _plus(moments.squares, squares + between))


def _plus(sums: Array | Sum, x: Array) -> Array | Sum:
    return compensated.add(sums, x) if isinstance(sums, Sum) else sums + x
