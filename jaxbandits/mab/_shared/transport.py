"""Transport costs: evidence of the samples against a challenger being better than the leader."""

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.mab._problem.problems import Gaussian, Problem, divergence, scale
from jaxbandits.mab._shared.frame import Estimates, argmin, unfused
from jaxbandits.numerics.indexing import entry, is_entry

STEPS = 8  # steps of Newton's method for Bernoulli arms with epsilon: error 2e-11 (6: 2e-3)


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
    if isinstance(problem, Gaussian):
        lead = jnp.maximum(mean - means if epsilon is None else mean - means + epsilon, 0)
        costs = lead**2 * (count * counts) / (2 * scale(problem) ** 2 * (count + counts))
    elif epsilon is None:
        pooled = (count * mean + counts * means) / (count + counts)
        costs = count * divergence(problem, mean, pooled) + counts * divergence(problem, means, pooled)
        costs = jnp.where(mean > means, costs, 0)
    else:
        costs = _bernoulli_costs(problem, n_l=count, m_l=mean, n_a=counts, m_a=means, epsilon=epsilon)
    return unfused(jnp.where(is_entry(leader, means), jnp.inf, costs))


def transport(problem: Problem, estimates: Estimates, leader: Array, epsilon: Array | None = None) -> Array:
    """Returns the challenger with the smallest cost, int32 (); the lots of the estimates break ties."""
    return argmin(transport_costs(problem, estimates, leader, epsilon), estimates.lots)


def _bernoulli_costs(problem: Problem, *, n_l: Array, m_l: Array, n_a: Array, m_a: Array, epsilon: Array) -> Array:
    lead = m_l - m_a + epsilon
    lo = jnp.broadcast_to(jnp.maximum(0, m_a - epsilon), m_a.shape)
    hi = jnp.broadcast_to(jnp.minimum(m_l, 1 - epsilon), m_a.shape)
    x = jnp.clip((n_l * m_l + n_a * (m_a - epsilon)) / (n_l + n_a), lo, hi)
    for _ in range(STEPS):
        y = x + epsilon
        off_x, off_y = n_l * (x - m_l), n_a * (y - m_a)
        # The derivative of the cost, times the two variances: it has the same root and no poles.
        f = off_x * y * (1 - y) + off_y * x * (1 - x)
        slope = n_l * y * (1 - y) + off_x * (1 - 2 * y) + n_a * x * (1 - x) + off_y * (1 - 2 * x)
        lo, hi = jnp.where(f < 0, x, lo), jnp.where(f < 0, hi, x)
        new = x - f / jnp.where(slope == 0, 1, slope)
        x = jnp.where((new >= lo) & (new <= hi) & (slope != 0), new, (lo + hi) / 2)
    costs = n_l * divergence(problem, m_l, x) + n_a * divergence(problem, m_a, jnp.minimum(x + epsilon, 1))
    return jnp.where(lead > 0, costs, 0)
