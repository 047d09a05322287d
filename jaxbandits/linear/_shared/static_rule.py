"""The stopping rule of `xy_static` and `xy_static_exact`: settings, checked in one place, and the test itself."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.linear._problem.arms import checked_arms
from jaxbandits.linear._shared.least_squares import least_squares
from jaxbandits.linear._shared.radius import Radius, RadiusSettings, checked_radius_settings, radius_after
from jaxbandits.numerics.linalg import dot, squared_norms


class StaticRule(NamedTuple):
    """Settings of the rule."""

    arms: Array  # float (K, d)
    allocation: Array  # float (K,)
    ridge: Array | float
    confidence: RadiusSettings
    growth: Array | float
    max_pulls: int


class LeaderComparison(NamedTuple):
    """Comparison of the leader with every arm k, and the test."""

    leader: Array  # int ()
    stop: Array  # bool ()
    theta: Array  # float (d,)          estimate
    directions: Array  # float (K, d)   x_leader - x_k
    gaps: Array  # float (K,)           estimated leads of the leader, at least 0
    radius: Array  # float ()           confidence bound of a direction over its norm
    inverse: Array  # float (d, d)      A^-1


def static_rule(
    arms: Array,
    allocation: Array,
    *,
    delta: Array | float,
    noise_scale: Array | float,
    ridge: Array | float,
    union_power: int,
    radius: Radius,
    growth: Array | float,
    max_pulls: int,
) -> StaticRule:
    """Collects the arguments of `xy_static`; raises `ValueError` unless they are in range."""
    checks.not_negative("ridge", ridge)
    array = checked_arms(arms, full_rank=is_concrete(ridge) and float(ridge) == 0)
    K = array.shape[0]
    shares = checks.array("allocation", allocation, (K,), least=0)
    total = (np.asarray(allocation) if is_concrete(allocation) else shares).sum()
    require(abs(total - 1) < 1e-6, "allocation", "sum to 1", allocation)
    if is_concrete(arms, allocation):
        features = np.asarray(arms)
        pulled = features[np.asarray(allocation) > 0]
        rank, needed = map(np.linalg.matrix_rank, (pulled, np.vstack([pulled, features - features[0]])))
        require(rank == needed, "allocation", "have a support that spans all differences of arms", allocation)
    confidence = checked_radius_settings(
        delta=delta, K=K, noise_scale=noise_scale, union_power=union_power, radius=radius
    )
    checks.real("growth", growth, least=0, below=1)
    max_pulls = checks.whole("max_pulls", max_pulls, least=K, most=int(jnp.iinfo(jnp.result_type(int)).max))
    return StaticRule(
        arms=array,
        allocation=shares.astype(array.dtype),
        ridge=ridge,
        confidence=confidence,
        growth=growth,
        max_pulls=max_pulls,
    )


def compare_leader(rule: StaticRule, counts: Array, sums: Array) -> LeaderComparison:
    """Computes the leader and its leads after some pulls, and whether the rule stops there.

    Args:
        rule: settings of the rule.
        counts: int (K,), pulls of each arm.
        sums: float (K,), sums of rewards.

    Returns:
        LeaderComparison. Cost: O(K d^2 + d^3).
    """
    arms = rule.arms
    n = counts.sum()
    theta, inverse = least_squares(arms, counts, sums, rule.ridge)
    leader = jnp.argmax(dot(arms, theta))
    # Differences first: near ties, x_i.theta - x_k.theta loses all its digits.
    directions = arms[leader][None] - arms
    gaps = dot(directions, theta)
    radius = radius_after(jnp.maximum(n, 1).astype(arms.dtype), rule.confidence)
    bounds = radius * jnp.sqrt(squared_norms(directions, inverse))
    return LeaderComparison(
        leader=leader,
        stop=(n >= arms.shape[0]) & jnp.all(bounds <= gaps),
        theta=theta,
        directions=directions,
        gaps=gaps,
        radius=radius,
        inverse=inverse,
    )


def pulls_to_next_test(rule: StaticRule, n: Array) -> Array:
    """Computes the number of pulls from a test of the rule, after n pulls, to the next, int ()."""
    K, dtype = rule.arms.shape[0], rule.arms.dtype
    step = jnp.floor(jnp.asarray(rule.growth, dtype) * n.astype(dtype)).astype(int)
    return jnp.where(n < K, K, jnp.maximum(step, 1))
