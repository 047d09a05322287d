"""Costs of two arms that change places: the first mean comes down to a point x, the second goes up to x + epsilon."""

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.mab._problem.laws.pooled import Sample
from jaxbandits.mab._problem.problems import Problem, divergence, law_of, mean_range
from jaxbandits.numerics.roots import bracketed_root


def meeting_point(problem: Problem, *, n_l: Array, m_l: Array, n_a: Array, m_a: Array, epsilon: Array) -> Array:
    """Computes the x that minimises n_l kl(m_l, x) + n_a kl(m_a, x + epsilon).

    Args:
        problem: kind of the rewards.
        n_l: float (...), pulls of the first arm.
        m_l: float (...), its mean.
        n_a: float (...), pulls of the second arm.
        m_a: float (...), its mean, at most m_l + epsilon.
        epsilon: float () >= 0.

    Returns:
        float (...).
    """
    pooled = (n_l * m_l + n_a * (m_a - epsilon)) / (n_l + n_a)
    law = law_of(problem)
    if law.is_location:
        return pooled
    least, most = mean_range(problem)
    lo, hi = jnp.maximum(m_a - epsilon, least), jnp.minimum(m_l, most - epsilon)

    def slope(x: Array) -> Array:
        """Computes the derivative of the cost, times the two variances: it has the same root and no poles."""
        y = x + epsilon
        return n_l * (x - m_l) * law.variance(problem, y) + n_a * (y - m_a) * law.variance(problem, x)

    return bracketed_root(slope, lo, hi, jnp.clip(pooled, lo, hi))


def moved_divergences(
    problem: Problem, *, n_l: Array, m_l: Array, n_a: Array, m_a: Array, epsilon: Array
) -> tuple[Array, Array]:
    """Computes kl(m_l, x) and kl(m_a, x + epsilon) at the smallest cost, float (...) each.

    Both are 0 where m_a >= m_l + epsilon.

    Arguments: see `meeting_point`, except that the second mean is free.
    """
    is_apart = m_l - m_a + epsilon > 0
    # Harmless numbers where the cost is 0: the derivatives of what is masked must be finite.
    m_a = jnp.where(is_apart, m_a, m_l)
    x = meeting_point(problem, n_l=n_l, m_l=m_l, n_a=n_a, m_a=m_a, epsilon=epsilon)
    y = jnp.minimum(x + epsilon, mean_range(problem)[1])
    first, second = divergence(problem, m_l, x), divergence(problem, m_a, y)
    return jnp.where(is_apart, first, 0), jnp.where(is_apart, second, 0)


def pooled_costs(problem: Problem, *, n_l: Array, m_l: Array, n_a: Array, m_a: Array) -> Array:
    """Computes the smallest cost n_l kl(m_l, x) + n_a kl(m_a, x), float (...); 0 where m_a >= m_l."""
    return law_of(problem).transport(problem, Sample(n_l, m_l), Sample(n_a, m_a), None)


def pooled_divergences(problem: Problem, *, n_l: Array, m_l: Array, n_a: Array, m_a: Array) -> tuple[Array, Array]:
    """Computes the divergences of two means from their pooled mean, float (...) each."""
    pooled = (n_l * m_l + n_a * m_a) / (n_l + n_a)
    return divergence(problem, m_l, pooled), divergence(problem, m_a, pooled)


def placed(first: Array, second: Array) -> Array:
    """Returns a row of all arms for each pair: the first number at arm i, the second at arm j, float (K^2, K).

    Args:
        first: float (K, K), entry (i, j) for the pair of arms i and j.
        second: float (K, K).
    """
    K = first.shape[0]
    is_arm = jnp.eye(K, dtype=bool)
    rows = jnp.where(is_arm[:, None], first[..., None], jnp.where(is_arm[None], second[..., None], 0))
    return rows.reshape(K * K, K)
