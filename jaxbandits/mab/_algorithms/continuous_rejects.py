"""Continuous rejects: drops an arm as soon as it clearly trails (Wang, Tzeng, Proutiere, 2023)."""

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, check_sub_gaussian, float_dtype, scale
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, algorithm_from_rule, argmax, argmin, one_arm
from jaxbandits.numerics.indexing import entry, is_entry


def continuous_rejects(problem: Problem, *, horizon: Array | int, conservative: bool = True) -> Algorithm:
    """Pulls the remaining arm with the fewest pulls, and drops the worst one as soon as it trails by enough.

    With j > 2 arms remaining, q = (1/2 + sum_{i=2..j} 1/i) (their pulls) / (T - pulls of dropped arms). The worst arm
    is dropped once it has more pulls than any dropped one and trails by more than 1 / sqrt(q) - 1. At most one is
    dropped before a pull. Lots break ties of counts and means.

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`.
        horizon: T, pulls, int () >= K.
        conservative: whether it must trail the worst of the others (CR-C) or their average (CR-A) by this margin.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the remaining arm with the best mean. It
        stops at T pulls.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee**: asymptotically in T a lower error than successive rejects, for rewards in [0, 1]; gaps of Gaussian
    arms are divided by 2 noise_scale, our choice. **Cost**: O(K) per round. **Limit**: a horizon of 2^31 - 1.

    Source: Wang, Tzeng and Proutiere (2023), Best arm identification with fixed budget: a large deviation perspective;
    the rule as in the authors' code.
    """
    check_sub_gaussian(problem, "successive_rejects")
    K, dtype = problem.arms, float_dtype(problem)
    checks.integer("horizon", horizon, least=K, most=2**31 - 1)
    checks.flag("conservative", conservative)
    # 1/2 + sum_{i=2..j} 1/i for j = 0..K; the first two are not read.
    harmonic = jnp.asarray(np.concatenate([[1, 1], 0.5 + np.cumsum(1 / np.arange(2, K + 1))]), dtype)
    numbers = jnp.arange(K + 1, dtype=jnp.int32)

    def survivors(state: State, estimates: Estimates) -> Array:
        """Returns the remaining arms, bool (K,)."""
        active, means = state.memory, estimates.means
        number = jnp.sum(active, dtype=jnp.int32)
        worst = argmin(jnp.where(active, means, jnp.inf), estimates.lots)
        others = active & ~is_entry(worst, means)
        if conservative:
            standard = jnp.min(jnp.where(others, means, jnp.inf))
        else:
            standard = jnp.sum(jnp.where(others, means, 0)) / jnp.maximum(number - 1, 1).astype(dtype)
        # DEVIATION: the paper's rewards lie in [0, 1], where scale is 1/2.
        gap = (standard - entry(means, worst)) / (2 * scale(problem))
        pulls = jnp.sum(jnp.where(active, state.counts, 0)).astype(dtype)
        dropped = jnp.sum(jnp.where(active, 0, state.counts)).astype(dtype)
        q = jnp.sum(jnp.where(numbers == number, harmonic, 0)) * pulls / (jnp.asarray(horizon, dtype) - dropped)
        most = jnp.max(jnp.where(active, 0, state.counts))
        is_dropped = (number > 2) & (entry(state.counts, worst) > most) & (gap > 1 / jnp.sqrt(q) - 1)
        return active & ~(is_dropped & is_entry(worst, means))

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        active = survivors(state, estimates)
        arm = argmin(jnp.where(active, state.counts, jnp.iinfo(jnp.int32).max), estimates.lots)
        best = argmax(jnp.where(active, estimates.means, -jnp.inf), estimates.lots)
        return Choice(one_arm(arm), state.pulls >= jnp.asarray(horizon, state.pulls.dtype), best)

    # Counts tie for any rewards, and the last arms of a turn may get one pull less.
    return algorithm_from_rule(problem, Rule(choose, jnp.ones(K, bool), survivors), draws_lots=True)
