"""Transport costs: evidence of the samples against a challenger being better than the leader."""

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.mab._problem.laws.pooled import Sample
from jaxbandits.mab._problem.problems import Problem, law_of
from jaxbandits.mab._shared.frame import Estimates, argmin, unfused
from jaxbandits.numerics.indexing import entry, is_entry


def transport_costs(problem: Problem, estimates: Estimates, leader: Array, epsilon: Array | None = None) -> Array:
    """Computes the cost of every challenger: the minimum over all means that put it epsilon above the leader.

    Args:
        problem: kind of the rewards.
        estimates: estimates of all arms.
        leader: int (), an arm.
        epsilon: float () >= 0. If None, 0.

    Returns:
        float (K,): N_l kl(m_l, x) + N_a kl(m_a, x + epsilon) at its minimum over x; 0 where m_a >= m_l + epsilon; inf
        for the leader itself.
    """
    counts, means = estimates.counts, estimates.means
    count, mean = entry(counts, leader), entry(means, leader)
    costs = law_of(problem).transport(problem, Sample(count, mean), Sample(counts, means), epsilon)
    return unfused(jnp.where(is_entry(leader, means), jnp.inf, costs))


def transport(problem: Problem, estimates: Estimates, leader: Array, epsilon: Array | None = None) -> Array:
    """Returns the challenger with the smallest cost, int32 (); the lots of the estimates break ties."""
    return argmin(transport_costs(problem, estimates, leader, epsilon), estimates.lots)
