"""Costs of two arms of one law: the smallest divergence to means that agree, or differ by a margin."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Array

Divergence = Callable[[Array, Array], Array]
Times = Callable[[Array, Array], Array]  # (factor, mean) -> the factor times a function of the mean

STEPS = 8  # steps of Newton's method for arms that differ by a margin: error 2e-11 (6: 2e-3), Bernoulli


class Sample(NamedTuple):
    """Statistics of an arm, or of several."""

    pulls: Array  # float (...)
    mean: Array  # float (...), of the rewards
    variance: Any = ()  # float (...), of the rewards, where it is estimated; otherwise ()


def pooled_cost(divergence: Divergence, leader: Sample, other: Sample) -> Array:
    """Computes the minimum over x of n_l kl(m_l, x) + n_a kl(m_a, x), which the pooled mean attains; 0 if m_a >= m_l.

    That the pooled mean attains it holds for every exponential family of laws in their mean.
    """
    (n_l, m_l, _), (n_a, m_a, _) = leader, other
    pooled = (n_l * m_l + n_a * m_a) / (n_l + n_a)
    costs = n_l * divergence(m_l, pooled) + n_a * divergence(m_a, pooled)
    return jnp.where(m_l > m_a, costs, 0)


def directed_share(divergence: Divergence, leader: Sample, challenger: Sample) -> Array:
    """Computes N_l kl(m_l, m) / (N_l kl(m_l, m) + N_c kl(m_c, m)) with the pooled mean m of two arms, 1/2 at 0/0."""
    (n_l, m_l, _), (n_c, m_c, _) = leader, challenger
    pooled = (n_l * m_l + n_c * m_c) / (n_l + n_c)
    of_leader, of_challenger = n_l * divergence(m_l, pooled), n_c * divergence(m_c, pooled)
    total = of_leader + of_challenger
    return jnp.where(total > 0, of_leader / jnp.where(total > 0, total, 1), 0.5)


def cost_with_margin(
    divergence: Divergence,
    leader: Sample,
    other: Sample,
    epsilon: Array,
    *,
    times_variance: Times,
    times_slope: Times,
    most: float | None,
    steps: int = STEPS,
) -> Array:
    """Computes the minimum over x of n_l kl(m_l, x) + n_a kl(m_a, x + epsilon); 0 where m_a >= m_l + epsilon.

    Args:
        divergence: kl.
        leader: pulls n_l and mean m_l of one arm, or of several, (...).
        other: pulls n_a and means m_a of others, (...), broadcast against them.
        epsilon: float () >= 0.
        times_variance: product with the variance V of a reward.
        times_slope: product with the derivative of V.
        most: the largest mean; None if there is none. The smallest one is 0.
        steps: steps of Newton's method, each kept inside a bracket of the root.

    Returns:
        float (...).
    """
    (n_l, m_l, _), (n_a, m_a, _) = leader, other
    lead = m_l - m_a + epsilon
    lo = jnp.broadcast_to(jnp.maximum(0, m_a - epsilon), lead.shape)
    hi = jnp.broadcast_to(m_l if most is None else jnp.minimum(m_l, most - epsilon), lead.shape)
    x = jnp.clip((n_l * m_l + n_a * (m_a - epsilon)) / (n_l + n_a), lo, hi)
    for _ in range(steps):
        y = x + epsilon
        off_x, off_y = n_l * (x - m_l), n_a * (y - m_a)
        # The derivative of the cost, times the two variances: it has the same root and no poles.
        f = times_variance(off_x, y) + times_variance(off_y, x)
        slope = times_variance(n_l, y) + times_slope(off_x, y) + times_variance(n_a, x) + times_slope(off_y, x)
        lo, hi = jnp.where(f < 0, x, lo), jnp.where(f < 0, hi, x)
        new = x - f / jnp.where(slope == 0, 1, slope)
        x = jnp.where((new >= lo) & (new <= hi) & (slope != 0), new, (lo + hi) / 2)
    costs = n_l * divergence(m_l, x) + n_a * divergence(
        m_a, x + epsilon if most is None else jnp.minimum(x + epsilon, most)
    )
    return jnp.where(lead > 0, costs, 0)
