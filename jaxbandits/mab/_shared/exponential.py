"""Exponential weights: arms are drawn at random, and a reward changes the weight of its arm, for any rewards in [0, 1].

Nothing is assumed about the rewards except their range: they may change with time, or depend on earlier pulls.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.environment import Pull, Rewards
from jaxbandits.mab._problem.problems import Problem, check_problem, float_dtype, law_of
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, algorithm_from_rule, argmax, one_arm
from jaxbandits.numerics.indexing import entry, is_entry


def check_bounded(problem: Any) -> None:
    """Raises `ValueError` unless it is a problem whose rewards lie in [0, 1]."""
    check_problem(problem)
    has_range = law_of(problem).width is not None
    checks.require(has_range, "problem", "be Bernoulli or Bounded: rewards must lie in [0, 1]", problem)


def algorithm_from_weights(
    problem: Problem, probabilities: Callable[[Array], Array], gain: Callable[[Array, Array], Array]
) -> Algorithm:
    """Builds the algorithm that draws arms from a function of the logarithms of their weights.

    Args:
        problem: `Bernoulli` or `Bounded`.
        probabilities: log weights, float (K,), at most 0, the largest 0 -> probability of each arm, float (K,).
        gain: (reward, probability of its arm) -> what is added to the arm's log weight, float ().

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the largest weight.
    """
    dtype = float_dtype(problem)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        log_weights: Array = state.memory
        uniform = jax.random.uniform(key, (), dtype)
        below = jnp.cumsum(probabilities(log_weights))[:-1] <= uniform
        arm = jnp.sum(below, dtype=jnp.int32)
        return Choice(one_arm(arm), jnp.zeros((), bool), argmax(log_weights, estimates.lots))

    def learn(state: State, action: Pull, rewards: Rewards) -> Array:
        log_weights: Array = state.memory
        arm = action.arms[0]
        gained = gain(rewards.sums[0], entry(probabilities(log_weights), arm))
        updated = log_weights + jnp.where(is_entry(arm, log_weights), gained, 0)
        # Only differences matter. The largest is kept at 0, so that a long run loses no digits.
        return jnp.where(rewards.times[0] > 0, updated - jnp.max(updated), log_weights)

    rule = Rule(choose, jnp.zeros(problem.arms, dtype), learn=learn)
    # A reward is divided by the probability with which its arm was drawn.
    return algorithm_from_rule(problem, rule, in_turn=False)._replace(needs_order=True)


def shares(log_weights: Array) -> Array:
    """Returns each weight divided by the sum of all, float (K,); the largest log weight must be 0."""
    weights = jnp.exp(log_weights)
    return weights / jnp.sum(weights)
