"""Discounted UCB: upper bounds from rewards that lose weight with age (Garivier, Moulines, 2011)."""

from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.environment import Pull, Rewards
from jaxbandits.mab._problem.problems import Problem, check_sub_gaussian, float_dtype, scale
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, algorithm_from_rule, argmax, one_arm, unfused
from jaxbandits.numerics.elementary import log
from jaxbandits.numerics.indexing import is_entry, select


class Discounted(NamedTuple):
    """Statistics in which a pull counts discount^s after s further pulls."""

    counts: Array  # float (K,)
    sums: Array  # float (K,)   rewards


def discounted_ucb(problem: Problem, *, discount: Array | float, exploration: Array | float = 0.6) -> Algorithm:
    """Pulls the arm with the largest discounted mean + 4 noise_scale sqrt(exploration log(n) / N).

    A pull counts discount^s after s further pulls. N is the discounted number of the arm's pulls, n their sum over all
    arms. An arm whose N underflows has an infinite bound.

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`. The noise_scale of the last two is 1/2.
        discount: gamma, () in (0, 1). The rule remembers about 1 / (1 - discount) pulls.
        exploration: xi, () > 0. The proof requires more than 1/2.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best discounted mean. It never
        stops: give `run` or `sweep` a `horizon`.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (Theorem 1, rewards in [0, B] with B = 2 noise_scale): with gamma = 1 - sqrt(C / T) / (4 B) for C
    changes of the means in T pulls, the expected number of pulls of an arm while it is not best is O(sqrt(C T) log(T)).
    For Gaussian arms, whose rewards have no bound, none is proved. **Cost**: O(K) per round. **Limit**: 2^31 - 1 pulls.

    Source: Garivier and Moulines (2011), On upper-confidence bound policies for switching bandit problems, D-UCB. The
    paper's radius is 2 B sqrt(xi log(n) / N); a reward in [0, B] is sub-Gaussian with constant B / 2.
    """
    check_sub_gaussian(problem, "kl_ucb")
    checks.probability("discount", discount)
    checks.positive("exploration", exploration)
    K, dtype = problem.arms, float_dtype(problem)
    gamma, xi = jnp.asarray(discount, dtype), jnp.asarray(exploration, dtype)

    def learn(state: State, action: Pull, rewards: Rewards) -> Discounted:
        before: Discounted = state.memory
        pulled = is_entry(action.arms[0], before.counts)
        counts = gamma * before.counts + pulled.astype(dtype)
        sums = gamma * before.sums + jnp.where(pulled, rewards.sums[0], 0)
        return select(rewards.times[0] > 0, Discounted(counts, sums), before)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        memory: Discounted = state.memory
        # Below the smallest normal number a count has lost its digits, and some devices flush it to 0.
        has_weight = memory.counts >= jnp.finfo(dtype).tiny
        counts = jnp.where(has_weight, memory.counts, 1)
        means = jnp.where(has_weight, memory.sums, 0) / counts
        # The last pull counts 1, so n is at least 1 once anything was pulled.
        level = xi * log(jnp.maximum(jnp.sum(memory.counts), 1))
        bounds = jnp.where(has_weight, means + 4 * scale(problem) * jnp.sqrt(level / counts), jnp.inf)
        best = argmax(unfused(jnp.where(has_weight, means, -jnp.inf)), estimates.lots)
        return Choice(one_arm(argmax(unfused(bounds), estimates.lots)), jnp.zeros((), bool), best)

    nothing = jnp.zeros(K, dtype)
    return algorithm_from_rule(problem, Rule(choose, Discounted(nothing, nothing), learn=learn))
