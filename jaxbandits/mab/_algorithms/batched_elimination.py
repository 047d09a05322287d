"""Batched elimination: successive elimination that looks at the rewards only at the ends of growing batches."""

import math
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.environment import Pull
from jaxbandits.mab._problem.problems import Problem, check_sub_gaussian, float_dtype, scale
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, algorithm_from_rule, argmax, one_arm
from jaxbandits.numerics.indexing import entry

LARGEST = 2**31 - 1  # pulls


class Batches(NamedTuple):
    """Position of a run in its batches. The drop at a batch's end is made with the next pull."""

    active: Array  # bool (K,)   remaining arms
    over: Array  # int32 ()   batches that are over


def batched_elimination(
    problem: Problem, *, delta: Array | float, first: int = 1, growth: int = 2, leap: int = 1
) -> Algorithm:
    """Pulls every remaining arm up to n_r times in batch r, then drops the arms whose interval lies below another's.

    n_r = first growth^(r - 1). After batch r the radius of all means is noise_scale sqrt(2 log(2 K r (r + 1) / delta) /
    n_r), with noise_scale 1/2 for Bernoulli arms. An arm is dropped if it trails the best by more than two radii. It
    stops when one arm remains. The pulls of a batch are known when it begins.

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`.
        delta: () in (0, 1), allowed probability of error.
        first: pulls of every arm in the first batch, an int >= 1.
        growth: factor between the totals n_r of an arm, an int >= 2. With a larger one there are fewer batches and more
            pulls.
        leap: largest number of pulls per round, an int >= 1. With more than 1 an action has a slot for every arm; with
            at least the pulls of the longest batch a round is a batch. The distribution of a run is the same. A
            Bernoulli arm whose sampler misses is pulled again.

    Returns:
        Algorithm with actions `Pull` and answers int32 (), the remaining arm with the best mean.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (proved): P(the answer is not the best arm, or it never stops) <= delta, if the best arm is unique: by
    Hoeffding's inequality for each arm and batch, all intervals hold with probability at least 1 - delta. Then the last
    batch is at most the first one whose radius is less than a quarter of the smallest gap, so for small gaps D there
    are O(log(1 / D)) batches and, for fixed growth, O(log(K log(1 / D) / delta) / D^2) pulls of an arm of gap D. If
    several arms are best, it may drop some of them, and never stops if two that tie remain; set `max_rounds`. **Cost**:
    O(K) per round. **Limit**: 2^31 - 1 pulls.

    Source: Even-Dar, Mannor and Mansour (2006), Action elimination and stopping conditions for the multi-armed bandit
    and reinforcement learning problems, Algorithm 3, tested at the ends of batches alone. The schedule of the batches
    and their radius are ours.
    """
    check_sub_gaussian(problem, "kl_lucb")
    checks.probability("delta", delta)
    first = checks.whole("first", first, least=1, most=LARGEST)
    growth = checks.whole("growth", growth, least=2, most=LARGEST)
    leap = checks.whole("leap", leap, least=1, most=LARGEST)
    K, dtype = problem.arms, float_dtype(problem)
    log_delta = jnp.log(jnp.asarray(delta, dtype))
    totals = [first]
    while totals[-1] * growth <= LARGEST:
        totals.append(totals[-1] * growth)
    # One more entry, which no run reaches: all arms together have at most as many pulls.
    targets = jnp.asarray([*totals, LARGEST], jnp.int32)
    arms = jnp.arange(K, dtype=jnp.int32)

    def advanced(state: State, estimates: Estimates) -> Batches:
        """Returns the position after the drop, if a batch is complete."""
        active, over = state.memory
        target = entry(targets, over)
        is_complete = jnp.all(~active | (state.counts >= target))
        r = (over + 1).astype(dtype)
        level = math.log(2 * K) + jnp.log(r) + jnp.log(r + 1) - log_delta
        radius = scale(problem) * jnp.sqrt(2 * level / target.astype(dtype))
        best = jnp.max(jnp.where(active, estimates.means, -jnp.inf))
        is_worse = is_complete & (estimates.means < best - 2 * radius)
        return Batches(active & ~is_worse, over + is_complete.astype(jnp.int32))

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        active, over = advanced(state, estimates)
        missing = jnp.where(active, jnp.maximum(entry(targets, over) - state.counts, 0), 0)
        if leap == 1:
            action = one_arm(argmax(missing > 0))
        else:
            before = jnp.cumsum(missing, dtype=jnp.int32) - missing
            action = Pull(arms, jnp.clip(leap - before, 0, missing))
        best = argmax(jnp.where(active, estimates.means, -jnp.inf), estimates.lots)
        return Choice(action, jnp.sum(active, dtype=jnp.int32) == 1, best)

    start = Batches(jnp.ones(K, bool), jnp.zeros((), jnp.int32))
    return algorithm_from_rule(problem, Rule(choose, start, advanced), in_turn=False, leap=leap)
