"""Difficulty of an instance: gaps, hardness measures, and the lower bound for all algorithms.

All of these are functions of the truth, which no algorithm reads.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.linear._problem.arms import Leads, checked_arms, leads
from jaxbandits.linear._problem.questions.asked import Question
from jaxbandits.linear._shared.ratios import RatioTables
from jaxbandits.linear._theory.characteristic_time import characteristic_time


def gaps(arms: Array, theta: Array) -> Array:
    """Computes the distance of each arm's mean from the best mean, and for the best arm from the second best.

    Args:
        arms: float (K, d).
        theta: float (d,), under which the best arm must be unique.

    Returns:
        float (K,), positive.

    Raises:
        ValueError: `arms` or `theta` is not valid, or two arms tie for the best.

    Source: Xu, Honda and Sugiyama (2018), equation (14), whose second "arg min" is a minimum.
    """
    return _gaps(leads(arms, theta))


@partial(jax.jit, inline=True)
def _gaps(lead: Leads) -> Array:
    is_best = jnp.arange(lead.gaps.size) == lead.best
    return jnp.where(is_best, jnp.min(jnp.where(is_best, jnp.inf, lead.gaps)), lead.gaps)


def hardness_lingape(arms: Array, theta: Array, *, ratios: RatioTables, epsilon: Array | float = 0.0) -> Array:
    """Computes H_epsilon, which LinGapE's pulls under the ratio rule follow up to logarithms.

    H_epsilon = sum_k max_{i,j} p_k(i,j) rho(i,j) / max(epsilon, (epsilon + Delta_i)/3, (epsilon + Delta_j)/3)^2.

    Args:
        arms: float (K, d).
        theta: float (d,).
        ratios: the `ratio_tables` of the arms.
        epsilon: float (), allowed gap of the answer, at least 0.

    Returns:
        float (), at most H_0, and 9 H_oracle <= H_0 <= 36 K H_oracle.

    Raises:
        ValueError: an argument is not valid, or two arms tie for the best.

    Cost: O(K^3).

    Source: Xu, Honda and Sugiyama (2018), equation (13).
    """
    # Theorem 3 there claims H_0 <= 72 H', with H' the sum of `hardness_oracle_sum`. Its proof's last step sums p_k
    # over pairs that depend on k, and `theorem3_counterexample` refutes it. What holds is the bound given above:
    # sqrt(rho) is a norm, so rho(i,j) <= 2 rho(best,i) + 2 rho(best,j).
    checks.not_negative("epsilon", epsilon)
    p, rho = _tables(arms, ratios)
    distances = gaps(arms, theta)
    return _hardness_lingape(p, rho, distances, checks.constant(epsilon, distances.dtype))


@partial(jax.jit, inline=True)
def _hardness_lingape(p: Array, rho: Array, distances: Array, epsilon: Array) -> Array:
    scale = jnp.maximum(epsilon, (distances + epsilon) / 3)
    hardness = rho / jnp.maximum(scale[:, None], scale[None]) ** 2
    return (p * hardness[..., None]).max((0, 1)).sum()


def hardness_oracle(arms: Array, theta: Array, *, ratios: RatioTables) -> Array:
    """Computes H_oracle = max_{i != best} rho(best,i) / Delta_i^2, float ().

    Arguments and errors: as for `hardness_lingape`.

    Source: Soare, Lazaric and Munos (2014); Xu, Honda and Sugiyama (2018), Theorem 3.
    """
    return _oracle_terms(arms, theta, ratios).max()


def hardness_oracle_sum(arms: Array, theta: Array, *, ratios: RatioTables) -> Array:
    """Computes H' = sum_{i != best} rho(best,i) / Delta_i^2, float (), between H_oracle and (K - 1) H_oracle.

    Arguments and errors: as for `hardness_lingape`.

    Source: Xu, Honda and Sugiyama (2018), Theorem 3.
    """
    return _oracle_terms(arms, theta, ratios).sum()


def hardness_ugape(arms: Array, theta: Array, *, epsilon: Array | float = 0.0) -> Array:
    """Computes the hardness of the same means without the linear structure, for rewards of range 2.

    It is sum_k 4 / max(epsilon, (epsilon + Delta_k)/2)^2. On canonical arms H_epsilon is at most 9/8 of it.

    Args:
        arms: float (K, d).
        theta: float (d,).
        epsilon: float (), allowed gap of the answer, at least 0.

    Returns:
        float ().

    Raises:
        ValueError: an argument is not valid, or two arms tie for the best.

    Source: Gabillon, Ghavamzadeh and Lazaric (2012), UGapE.
    """
    checks.not_negative("epsilon", epsilon)
    distances = gaps(arms, theta)
    return _hardness_ugape(distances, checks.constant(epsilon, distances.dtype))


@partial(jax.jit, inline=True)
def _hardness_ugape(distances: Array, epsilon: Array) -> Array:
    scale = jnp.maximum(epsilon, (distances + epsilon) / 2)
    return (4 / scale**2).sum()


class LowerBound(NamedTuple):
    """Lower bound for all algorithms, and the shares of the pulls of an optimal one."""

    T_star: Array  # float ()         pulls for each unit of information, kl(delta, 1 - delta)
    pulls: Array  # float ()          T_star kl(delta, 1 - delta) <= expected pulls
    allocation: Array  # float (K,)   shares of the pulls at the optimum; it need not be unique


def lower_bound(
    arms: Array,
    theta: Array,
    *,
    delta: Array | float,
    items: Array | None = None,
    noise_scale: Array | float = 1.0,
    steps: int = 5000,
    question: Question | None = None,
) -> LowerBound:
    """Computes the lower bound on the mean pulls of any algorithm with error probability at most delta.

    The bound is T* kl(delta, 1 - delta) with the `characteristic_time` T*. It is for Gaussian noise, and for algorithms
    that give the right answer with probability 1 - delta on every instance.

    Args:
        arms: float (K, d), spanning R^d.
        theta: float (d,), under which the answer must be unique.
        delta: float (), error probability, in (0, 1).
        items: float (M, d), features of the compared items. If None, the arms.
        noise_scale: float (), R, standard deviation of the noise, above 0.
        steps: iterations of the design's solver.
        question: as for `characteristic_time`.

    Returns:
        LowerBound, from the certified lower end of T*: it is a bound even if the solver has not converged.

    Raises:
        ValueError: an argument is not valid, the arms do not span R^d (see `reduce_rank`), or the answer is not unique.

    Cost: as for `characteristic_time`.

    Source: Jedra and Proutiere (2020); Kaufmann, Cappé and Garivier (2016) for the kl.
    """
    checks.probability("delta", delta)
    optimum = characteristic_time(arms, theta, items=items, noise_scale=noise_scale, steps=steps, question=question)
    pulls = _pulls_of(optimum.lower, checks.constant(delta, optimum.lower.dtype))
    return LowerBound(optimum.lower, pulls, optimum.allocation)


@partial(jax.jit, inline=True)
def _pulls_of(T_star: Array, delta: Array) -> Array:
    return T_star * ((1 - 2 * delta) * (jnp.log1p(-delta) - jnp.log(delta)))


def _oracle_terms(arms: Array, theta: Array, ratios: RatioTables) -> Array:
    _, rho = _tables(arms, ratios)
    return _terms(rho, leads(arms, theta))


@partial(jax.jit, inline=True)
def _terms(rho: Array, lead: Leads) -> Array:
    return jnp.where(lead.gaps > 0, rho[lead.best] / lead.gaps**2, 0)


def _tables(arms: Array, ratios: RatioTables) -> tuple[Array, Array]:
    """Returns the two tables in the dtype of the arms."""
    arms = checked_arms(arms)
    K, dtype = arms.shape[0], arms.dtype
    checks.instance("ratios", ratios, RatioTables)
    p = checks.array("ratios.p", ratios.p, (K, K, K), least=0)
    rho = checks.array("ratios.rho", ratios.rho, (K, K), least=0)
    return p.astype(dtype), rho.astype(dtype)
