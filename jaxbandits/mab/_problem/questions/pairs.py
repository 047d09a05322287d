"""Costs of two arms that change places: the first mean comes down to a point x, the second goes up to x + epsilon."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Array
from jaxbandits.mab._problem.laws.measured import Measured
from jaxbandits.mab._problem.laws.pooled import Sample
from jaxbandits.mab._problem.problems import Problem, divergence, law_of, mean_range, sample_of
from jaxbandits.numerics.indexing import entries, entry
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
    is_apart = None
    if epsilon is not None:
        is_apart = first.mean - second.mean + epsilon > 0
        # Harmless numbers where the cost is 0: the derivatives of what is masked must be finite.
        second = second._replace(mean=jnp.where(is_apart, second.mean, first.mean))
    points = meeting_points(problem, first, second, epsilon)
    (x, y), *others = [divergences_at(problem, first, second, point, epsilon) for point in points]
    for x_other, y_other in others:
        is_less = first.pulls * x_other + second.pulls * y_other < first.pulls * x + second.pulls * y
        x, y = jnp.where(is_less, x_other, x), jnp.where(is_less, y_other, y)
    return (x, y) if is_apart is None else (jnp.where(is_apart, x, 0), jnp.where(is_apart, y, 0))


def divergences_at(
    problem: Problem, first: Sample, second: Sample, x: Array, epsilon: Array | None = None
) -> tuple[Array, Array]:
    """Computes kl(m_1, x) and kl(m_2, x + epsilon), float (...) each."""
    most = mean_range(problem)[1]
    y = x if epsilon is None else jnp.where(x + epsilon < most, x + epsilon, most)  # at the end it does not move
    return _divergence(problem, first, x), _divergence(problem, second, y)


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


def table_of(
    problem: Problem, rows: Array, means: Array, epsilon: Array | None = None, *, rows_are_first: bool = True
) -> tuple[Callable[[Array], tuple[Array, ...]], Callable[[Array], Array]]:
    """Describes the pairs of some arms, the rows of a table, and all arms, its columns, for `time_of`.

    Args:
        problem: kind of the rewards.
        rows: int32 (r,), arms of the rows.
        means: float (K,), the truth.
        epsilon: float () >= 0. If None, 0.
        rows_are_first: whether it is the arms of the rows whose means come down.

    Returns:
        `nearest` and `rates` of the r K pairs, a row after the other; anything for a pair whose first mean is too low.
    """
    K, r = means.shape[0], rows.shape[0]
    arms = np.arange(K, dtype=np.int32)
    at_row, at_column = rows[:, None, None] == arms[None, None], np.eye(K, dtype=bool)[None]

    def pairs(w: Array) -> tuple[Sample, Sample]:
        sample = sample_of(problem, w, means)
        listed, every = pair_of(jax.tree.map(lambda x: entries(x, rows), sample), sample)
        return (listed, every) if rows_are_first else (every, listed)

    def nearest(w: Array) -> tuple[Array, ...]:
        points = meeting_points(problem, *pairs(w), epsilon)
        return tuple(jnp.broadcast_to(x, (r, K)).reshape(-1) for x in points)

    def rates(x: Array) -> Array:
        here, there = divergences_at(problem, *pairs(jnp.ones_like(means)), x.reshape(r, K), epsilon)
        of_row, of_column = (here, there) if rows_are_first else (there, here)
        table = jnp.where(at_row, of_row[..., None], jnp.where(at_column, of_column[..., None], 0))
        return table.reshape(r * K, K)

    return nearest, rates
