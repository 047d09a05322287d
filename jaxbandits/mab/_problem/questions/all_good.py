"""All arms with means within epsilon of the largest."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import require
from jaxbandits.mab._problem.laws.pooled import Sample
from jaxbandits.mab._problem.problems import Problem, divergence, has_unknown_variances, law_of, mean_range
from jaxbandits.mab._problem.questions.kind import Alternatives, CharacteristicTime, Kind, Nearest, alternatives_of
from jaxbandits.mab._problem.questions.pairs import at_arm, moved_divergences, pair_of, pooled_costs, table_of
from jaxbandits.mab._problem.questions.times import time_of
from jaxbandits.numerics.indexing import entry, is_entry, row_maxima, row_sums, smallest_entry
from jaxbandits.numerics.kernels import apart
from jaxbandits.numerics.roots import bracketed_root
from jaxbandits.questions import checked_set

NODES = 32  # intervals of the grid for laws whose cost may have two minima


class AllGood(NamedTuple):
    """Question for all arms with means of at least the largest minus epsilon. Its answers are bool (K,)."""

    epsilon: Array | float  # () >= 0, in units of reward, below the length of the range of the means; may be traced


def check_epsilon(question: Any, problem: Problem, name: str) -> None:
    """Raises `ValueError` unless epsilon is at least 0 and two means may differ by more."""
    least, most = mean_range(problem)
    checks.real(f"{name}.epsilon", question.epsilon, least=0, below=None if math.isinf(most) else most - least)


def _check(question: AllGood, problem: Problem, name: str) -> None:
    is_known = not has_unknown_variances(problem)
    require(is_known, name, "not be AllGood with unknown variances", question)
    check_epsilon(question, problem, name)


def _margin(question: AllGood, means: Array) -> Array:
    return jnp.asarray(question.epsilon, means.dtype)


def _answer(question: AllGood, problem: Problem, counts: Array, means: Array) -> Array:
    del problem, counts
    return means >= jnp.max(means) - _margin(question, means)


def _divergences_at(problem: Problem, epsilon: Array, x: Array, means: Array) -> Array:
    """Computes how far all arms move where arm a rises to x, and all above x + epsilon come down to that.

    Args:
        problem: kind of the rewards.
        epsilon: float ().
        x: float (K,), a point for each arm.
        means: float (K,).

    Returns:
        float (K, K), row a for arm a: kl(m_b, lambda_b) of every arm b.
    """
    others = jnp.minimum(means[None], (x + epsilon)[:, None])
    target = jnp.where(np.eye(means.shape[0], dtype=bool), x[:, None], others)
    return divergence(problem, means[None], target)


def _rises_to(problem: Problem, epsilon: Array, counts: Array, means: Array) -> Array:
    """Computes the point x to which each arm rises, float (K,)."""
    law, top = law_of(problem), jnp.maximum(jnp.max(means) - epsilon, means)
    # For Gaussian arms the slope of the cost is the smallest of linear functions, one for each set of arms that come
    # down. So its root is the largest of their roots, and the best set has the arms above some mean.
    x = apart(_largest_root, counts, means, *apart(_weights_above, counts, means, epsilon))
    if law.is_location:
        return x

    def slope(x: Array) -> Array:
        """Computes the derivative of the cost, times the two variances: it has the same root and no poles."""
        y = x + epsilon
        down = jnp.sum(counts[None] * jnp.minimum(y[:, None] - means[None], 0), axis=1)
        return counts * (x - means) * law.variance(problem, y) + down * law.variance(problem, x)

    if law.is_convex:
        return bracketed_root(slope, means, top, jnp.clip(x, means, top))

    def cost(x: Array) -> Array:
        others = jnp.minimum(means[None], (x + epsilon)[:, None])
        parts = jnp.sum(counts[None] * divergence(problem, means[None], others), axis=1)
        return parts + counts * divergence(problem, means, x)

    # There may be two minima: the search starts at the best point of a grid.
    width = (top - means) / NODES
    costs = jax.vmap(lambda n: cost(means + n * width))(jnp.arange(NODES + 1).astype(means.dtype))
    best = means + jnp.argmin(lax.stop_gradient(costs), axis=0).astype(means.dtype) * width
    return bracketed_root(slope, jnp.maximum(best - width, means), jnp.minimum(best + width, top), best)


def _weights_above(counts: Array, means: Array, epsilon: Array) -> tuple[Array, Array]:
    """Returns the pulls, and the sums of rewards less epsilon, of all arms with means of at least each, float (K,)."""
    is_above = (means[None] >= means[:, None]).astype(means.dtype)
    return row_sums(is_above * counts[None]), row_sums(is_above * (counts * (means - epsilon))[None])


def _largest_root(counts: Array, means: Array, number: Array, total: Array) -> Array:
    pooled = ((counts * means)[:, None] + total[None]) / (counts[:, None] + number[None])
    return jnp.maximum(means, row_maxima(pooled))


def _costs(question: AllGood, problem: Problem, counts: Array, means: Array) -> Array:
    """Computes the costs of all alternatives of arm a in row a, float (K, K).

    A fall is at the column of its b; a rise is in the first column. Other entries are inf.
    """
    epsilon, K = _margin(question, means), means.shape[0]
    is_good = _answer(question, problem, counts, means)[:, None]
    x = _rises_to(problem, epsilon, counts, means)

    def of_rises(counts: Array, means: Array, x: Array, epsilon: Array) -> Array:
        return row_sums(counts[None] * _divergences_at(problem, epsilon, x, means))

    def of_all(counts: Array, means: Array, rise: Array, epsilon: Array) -> Array:
        sample = Sample(counts, means)
        costs = pooled_costs(problem, *pair_of(sample, sample), epsilon)
        falls = jnp.where(np.eye(K, dtype=bool), jnp.inf, costs)
        rises = jnp.where(np.arange(K)[None] == 0, rise[:, None], jnp.inf)
        return jnp.where(is_good, falls, rises)

    return apart(of_all, counts, means, apart(of_rises, counts, means, x, epsilon), epsilon)


def _alternatives(question: AllGood, problem: Problem, counts: Array, means: Array) -> Alternatives:
    # DEVIATION: a fall moves two arms, and could be held against a threshold of two. A rise moves any number, so both
    # are held against a threshold of all arms, which is proved for both at once.
    costs = _costs(question, problem, counts, means).reshape(-1)
    everyone = jnp.ones((costs.size, means.shape[0]), means.dtype)
    return alternatives_of(costs, everyone * counts[None], everyone * means[None])


def _nearest(question: AllGood, problem: Problem, counts: Array, means: Array) -> Nearest:
    epsilon, K = _margin(question, means), means.shape[0]
    index, cost = smallest_entry(_costs(question, problem, counts, means).reshape(-1))
    a, b = index // K, index % K
    is_good = entry(_answer(question, problem, counts, means).astype(jnp.int32), a) > 0
    sample, is_a = Sample(counts, means), is_entry(a, means)
    falling, other = at_arm(sample, a), at_arm(sample, b)
    first, second = moved_divergences(problem, falling, other, epsilon)
    fall = jnp.where(is_a, falling.pulls * first, jnp.where(is_entry(b, means), other.pulls * second, 0))
    x = entry(_rises_to(problem, epsilon, counts, means), a)
    rise = counts * divergence(problem, means, jnp.where(is_a, x, jnp.minimum(means, x + epsilon)))
    return Nearest(cost, jnp.where(is_good, fall, rise), a)


def _is_right(question: AllGood, means: Array, answer: Array) -> Array:
    return jnp.all(answer == (means >= jnp.max(means) - _margin(question, means)))


def _characteristic_time(question: AllGood, problem: Problem, means: Array, steps: int) -> CharacteristicTime:
    epsilon, K = _margin(question, means), means.shape[0]
    is_good = means >= jnp.max(means) - epsilon
    falls = table_of(problem, jnp.arange(K, dtype=jnp.int32), means, epsilon)

    def nearest(w: Array) -> tuple[Array, ...]:
        (x,) = falls[0](w)
        return (jnp.concatenate([x, _rises_to(problem, epsilon, w, means)]),)

    def rates(x: Array) -> Array:
        return jnp.concatenate([falls[1](x[: K * K]), _divergences_at(problem, epsilon, x[K * K :], means)])

    is_fall = is_good[:, None] & ~np.eye(K, dtype=bool)
    is_tie = jnp.any(is_fall & (means[:, None] - means[None] + epsilon <= 0))
    return time_of(nearest, rates, jnp.concatenate([is_fall.reshape(-1), ~is_good]), is_tie, means, steps=steps)


def _check_answer(question: AllGood, answer: Any, K: int) -> Array:
    del question
    return checked_set(answer, K)


KIND = Kind(
    check=_check,
    answer=_answer,
    alternatives=_alternatives,
    nearest=_nearest,
    is_right=_is_right,
    characteristic_time=_characteristic_time,
    check_answer=_check_answer,
)
