"""Transport costs: evidence of the samples against a challenger being better than the leader."""

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.mab._problem.problems import Problem, law_of, measured_problem, sample_of
from jaxbandits.mab._problem.questions.pairs import at_arm
from jaxbandits.mab._shared.frame import Estimates, argmin, unfused
from jaxbandits.numerics.indexing import is_entry


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
    problem = measured_problem(problem, estimates.variances)
    sample = sample_of(problem, counts, means)
    costs = law_of(problem).transport(problem, at_arm(sample, leader), sample, epsilon)
    return unfused(jnp.where(is_entry(leader, means), jnp.inf, costs))


def transport(problem: Problem, estimates: Estimates, leader: Array, epsilon: Array | None = None) -> Array:
    """Returns the challenger with the smallest cost, int32 (); the lots of the estimates break ties."""
    return argmin(transport_costs(problem, estimates, leader, epsilon), estimates.lots)
