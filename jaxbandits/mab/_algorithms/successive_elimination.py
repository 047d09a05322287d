"""Successive elimination: pulls all arms that may be the best, and drops the others (Even-Dar et al., 2006)."""

import math

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, check_sub_gaussian, float_dtype, scale
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, algorithm_from_rule, argmax, argmin, one_arm
from jaxbandits.numerics.indexing import largest
from jaxbandits.numerics.kernels import apart


def successive_elimination(problem: Problem, *, delta: Array | float) -> Algorithm:
    """Pulls every remaining arm once per phase, and drops the arms whose interval lies below another's.

    After phase r the radius of all means is noise_scale sqrt(2 log(4 K r^2 / delta) / r), with noise_scale 1/2 for
    Bernoulli arms. An arm is dropped if it trails the best by more than two radii. It stops when one arm remains.

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`.
        delta: () in (0, 1), allowed probability of error.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the remaining arm with the best mean.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (proved): P(the answer is not the best arm, or it never stops) <= delta, if the best arm is unique. If
    several arms are best, it may drop some of them, and never stops if two that tie remain; set `max_rounds`. **Cost**:
    O(K) per round. **Limit**: 2^31 - 1 pulls.

    Source: Even-Dar, Mannor and Mansour (2006), Action elimination and stopping conditions for the multi-armed bandit
    and reinforcement learning problems, Algorithm 3.
    """
    check_sub_gaussian(problem, "kl_lucb")
    checks.probability("delta", delta)
    K, dtype = problem.arms, float_dtype(problem)
    log_delta = jnp.log(jnp.asarray(delta, dtype))

    def survivors(state: State, estimates: Estimates) -> Array:
        """Returns the remaining arms, bool (K,), after the drop if a phase is complete."""
        active = state.memory
        least = jnp.min(jnp.where(active, state.counts, jnp.iinfo(jnp.int32).max))
        is_complete = jnp.all(~active | (state.counts == least))
        r = jnp.maximum(least, 1).astype(dtype)
        radius = scale(problem) * jnp.sqrt(2 * (math.log(4 * K) + 2 * jnp.log(r) - log_delta) / r)
        best = apart(largest, jnp.where(active, estimates.means, -jnp.inf))
        return active & ~(is_complete & (estimates.means < best - 2 * radius))

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        active = survivors(state, estimates)
        arm = argmin(jnp.where(active, state.counts, jnp.iinfo(jnp.int32).max))
        best = argmax(jnp.where(active, estimates.means, -jnp.inf), estimates.lots)
        return Choice(one_arm(arm), jnp.sum(active, dtype=jnp.int32) == 1, best)

    return algorithm_from_rule(problem, Rule(choose, jnp.ones(K, bool), survivors))
