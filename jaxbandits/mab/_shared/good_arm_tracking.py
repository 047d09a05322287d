"""Weights and tracking of Track-and-Stop for one arm above a level (Degenne, Koolen, 2019).

Several arms may be right answers, each with weights of its own. Plain Track-and-Stop follows the weights of the best
mean. The sticky form holds on to the first answer, by index, that the data leave open.
"""

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.mab._problem.problems import Problem, divergence
from jaxbandits.mab._problem.questions.above import level_costs
from jaxbandits.mab._problem.questions.good_arm import GoodArm
from jaxbandits.mab._problem.questions.times import time_of_arms
from jaxbandits.mab._shared.frame import Estimates
from jaxbandits.numerics.indexing import entry, first_argmax, first_true, is_entry


def best_answer_weights(problem: Problem, question: GoodArm, estimates: Estimates) -> Array:
    """Returns the optimal proportions at the estimates, float (K,): all for the best mean if it is at least the level.

    With all means below the level, they are those that tell every arm from it.
    """
    means, level = estimates.means, jnp.asarray(question.level, estimates.means.dtype)
    best = first_argmax(means)
    alone = is_entry(best, means).astype(means.dtype)
    return jnp.where(jnp.max(means) >= level, alone, _weights_of_none(problem, question, means))


def held_answer_weights(problem: Problem, question: GoodArm, estimates: Estimates) -> Array:
    """Returns the proportions of the answer that the sticky form holds, float (K,).

    The answer is the first arm that could be the best, and good, at a likelihood ratio of at most log t. If there is
    no such arm, it is that no arm is good. Weights are uniform while the estimates contradict the answer.
    """
    means, level = estimates.means, jnp.asarray(question.level, estimates.means.dtype)
    K = means.shape[0]
    # DEVIATION: theory has log C + 10 log t for log t, which holds an answer much longer.
    is_open = costs_of_best(problem, question, estimates.counts, means) <= jnp.log(estimates.pulls.astype(means.dtype))
    is_arm, arm = jnp.any(is_open), first_true(is_open)
    is_good = is_arm & (entry(means, arm) > level)
    is_none = ~is_arm & (jnp.max(means) <= level)
    uniform = jnp.full(K, 1 / K, means.dtype)
    weights = jnp.where(is_none, _weights_of_none(problem, question, means), uniform)
    return jnp.where(is_good, is_entry(arm, means).astype(means.dtype), weights)


def costs_of_best(problem: Problem, question: GoodArm, counts: Array, means: Array) -> Array:
    """Computes the smallest cost at which each arm becomes the best one with a mean of at least the level.

    It rises to some x, and every arm with a mean above x comes down to x.

    Args:
        problem: kind of the rewards.
        question: the level.
        counts: float (K,).
        means: float (K,).

    Returns:
        float (K,).
    """
    # For every law, the slope of the cost in x is a positive factor times the smallest of linear functions, one for
    # each set of arms that come down. Its root is the largest pooled mean of the arm and such a set, and the best set
    # has the arms above some mean. A set that counts the arm twice pools no larger mean.
    is_above = (means[None] >= means[:, None]).astype(means.dtype)
    number, total = jnp.sum(is_above * counts[None], axis=1), jnp.sum(is_above * (counts * means)[None], axis=1)
    pooled = ((counts * means)[:, None] + total[None]) / (counts[:, None] + number[None])
    level = jnp.asarray(question.level, means.dtype)
    x = jnp.maximum(jnp.maximum(means, jnp.max(pooled, axis=1)), level)
    rise = jnp.where(means < x, counts * divergence(problem, means, x), 0)
    falls = jnp.where(means[None] > x[:, None], counts[None] * divergence(problem, means[None], x[:, None]), 0)
    return rise + jnp.sum(falls, axis=1)


def accumulated(tracked: Array, weights: Array, pulls: Array) -> Array:
    """Adds the weights of this round, with at least 1 / sqrt(K^2 + t + 1) for each arm, to their sum so far."""
    K = weights.shape[0]
    return tracked + lowered(weights, 1 / jnp.sqrt(K**2 + pulls.astype(weights.dtype) + 1))


def lowered(weights: Array, least: Array) -> Array:
    """Projects weights on weights of at least `least`: it raises those below, and lowers the others alike.

    Args:
        weights: float (K,), with sum 1.
        least: float (), at most 1 / K.

    Returns:
        float (K,), with sum 1. All entries above `least` have lost the same amount.
    """
    K = weights.shape[0]
    raised = jnp.maximum(weights, least)
    # The sum of max(raised - c, least) is the largest of linear functions of c, one for each set of arms that are
    # lowered. It is 1 at the largest root of all, and the best set has the arms above some weight.
    is_above = (raised[None] >= raised[:, None]).astype(raised.dtype)
    number, total = jnp.sum(is_above, axis=1), jnp.sum(is_above * raised[None], axis=1)
    cut = jnp.max((total + (K - number) * least - 1) / number)
    return jnp.maximum(raised - jnp.maximum(cut, 0), least)


def _weights_of_none(problem: Problem, question: GoodArm, means: Array) -> Array:
    return time_of_arms(level_costs(question, problem, jnp.ones_like(means), means)).allocation
