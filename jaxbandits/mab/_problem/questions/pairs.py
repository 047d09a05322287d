"""Costs of two arms that change places: the first mean comes down to a point x, the second goes up to x + epsilon."""

import jax
import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.mab._problem.laws.measured import Measured
from jaxbandits.mab._problem.laws.pooled import Sample
from jaxbandits.mab._problem.problems import Problem, divergence, law_of, mean_range
from jaxbandits.numerics.indexing import entry
from jaxbandits.numerics.roots import bracketed_root


def meeting_points(problem: Problem, first: Sample, second: Sample, epsilon: Array | None) -> tuple[Array, ...]:
    """Computes the x that minimises n_1 kl(m_1, x) + n_2 kl(m_2, x + epsilon).

    Args:
        problem: kind of the rewards.
        first: statistics (...) of the first arm.
        second: statistics (...) of the second arm, of mean at most m_1 + epsilon.
        epsilon: float () >= 0. If None, 0.

    Returns:
        float (...) each: the points, one of which is the minimum.
    """
    law = law_of(problem)
    (n_l, m_l, _), (n_a, m_a, _) = first, second
    if law.meeting is not None:
        return law.meeting(problem, first, second if epsilon is None else second._replace(mean=m_a - epsilon))
    if epsilon is None:
        return ((n_l * m_l + n_a * m_a) / (n_l + n_a),)
    pooled = (n_l * m_l + n_a * (m_a - epsilon)) / (n_l + n_a)
    if law.is_location:
        return (pooled,)
    least, most = mean_range(problem)
    lo, hi = jnp.maximum(m_a - epsilon, least), jnp.minimum(m_l, most - epsilon)

    def slope(x: Array) -> Array:
        """Computes the derivative of the cost, times the two variances: it has the same root and no poles."""
        y = x + epsilon
        return n_l * (x - m_l) * law.variance(problem, y) + n_a * (y - m_a) * law.variance(problem, x)

    return (bracketed_root(slope, lo, hi, jnp.clip(pooled, lo, hi)),)


def moved_divergences(
    problem: Problem, first: Sample, second: Sample, epsilon: Array | None = None
) -> tuple[Array, Array]:
    """Computes kl(m_1, x) and kl(m_2, x + epsilon) at the smallest cost, float (...) each.

    With an epsilon both are 0 where m_2 >= m_1 + epsilon.

    Arguments: see `meeting_points`, except that with an epsilon the second mean is free.
    """
    (x, y), *others = candidate_divergences(problem, first, second, epsilon)
    for x_other, y_other in others:
        is_less = first.pulls * x_other + second.pulls * y_other < first.pulls * x + second.pulls * y
        x, y = jnp.where(is_less, x_other, x), jnp.where(is_less, y_other, y)
    return x, y


def candidate_divergences(
    problem: Problem, first: Sample, second: Sample, epsilon: Array | None = None
) -> list[tuple[Array, Array]]:
    """Computes the two divergences at each of the `meeting_points`; otherwise as `moved_divergences`."""
    is_apart = None
    if epsilon is not None:
        is_apart = first.mean - second.mean + epsilon > 0
        # Harmless numbers where the cost is 0: the derivatives of what is masked must be finite.
        second = second._replace(mean=jnp.where(is_apart, second.mean, first.mean))
    moved = []
    for x in meeting_points(problem, first, second, epsilon):
        y = x if epsilon is None else jnp.minimum(x + epsilon, mean_range(problem)[1])
        here, there = _divergence(problem, first, x), _divergence(problem, second, y)
        if is_apart is not None:
            here, there = jnp.where(is_apart, here, 0), jnp.where(is_apart, there, 0)
        moved.append((here, there))
    return moved


def _divergence(problem: Problem, sample: Sample, q: Array) -> Array:
    if isinstance(problem, Measured):
        problem = problem._replace(variances=sample.variance)
    return divergence(problem, sample.mean, q)


def pair_of(rows: Sample, columns: Sample) -> tuple[Sample, Sample]:
    """Returns the statistics of both arms of all pairs (i, j) of a table, (r, 1) and (1, c)."""
    return jax.tree.map(lambda x: x[:, None], rows), jax.tree.map(lambda x: x[None], columns)


def at_arm(sample: Sample, arm: Array) -> Sample:
    """Returns the statistics of one arm, ()."""
    return jax.tree.map(lambda x: entry(x, arm), sample)


def pooled_costs(problem: Problem, first: Sample, second: Sample, epsilon: Array | None = None) -> Array:
    """Computes the smallest cost n_1 kl(m_1, x) + n_2 kl(m_2, x + epsilon), float (...); 0 where m_2 >= m_1 + epsilon.

    Arguments: see `meeting_points`, except that the second mean is free.
    """
    return law_of(problem).transport(problem, first, second, epsilon)


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
