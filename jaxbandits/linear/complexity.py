"""How hard an instance is: gaps, hardness measures, bounds on LinGapE's pulls, the lower bound for all algorithms.

All of it is about the truth, and none of it is for an algorithm to see.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.checks import known, require, require_not_negative, require_positive
from jaxbandits.linear.allocations import oracle_allocation
from jaxbandits.linear.problem import leads
from jaxbandits.linear.ratios import RatioTables


def gaps(arms: Array, theta: Array) -> Array:
    """The distance of each arm's mean from the best one's, and for the best arm from the second best's.

    Args:
        arms: float (K, d).
        theta: float (d,), under which the best arm must be unique.

    Returns:
        float (K,), positive.

    Raises:
        ValueError: `arms` or `theta` are not valid, or two arms tie for the best.

    Source: Xu, Honda and Sugiyama (2018), equation (14), whose second "arg min" is a minimum.
    """
    best, _, behind = leads(arms, theta)
    is_best = jnp.arange(behind.size) == best
    return jnp.where(is_best, jnp.min(jnp.where(is_best, jnp.inf, behind)), behind)


def hardness_lingape(arms: Array, theta: Array, *, ratios: RatioTables, epsilon: Array | float = 0.0) -> Array:
    """H_epsilon, which LinGapE's pulls under the ratio rule follow up to logarithms.

    H_epsilon = sum_k max_{i,j} p_k(i,j) rho(i,j) / max(epsilon, (epsilon + Delta_i)/3, (epsilon + Delta_j)/3)^2.

    Args:
        arms: float (K, d).
        theta: float (d,).
        ratios: the `ratio_tables` of the arms.
        epsilon: float (), admitted gap of the answer, at least 0.

    Returns:
        float (), at most H_0, and 9 H_oracle <= H_0 <= 36 K H_oracle.

    Raises:
        ValueError: `arms`, `theta`, `ratios` or `epsilon` are not valid, or two arms tie for the best.

    Cost: O(K^3).

    Source: Xu, Honda and Sugiyama (2018), equation (13).
    """
    # Theorem 3 there claims H_0 <= 72 H', with H' the sum of `hardness_oracle_sum`. Its proof's last step sums p_k
    # over pairs that depend on k, and `theorem3_counterexample` refutes it. What holds is the bound given above:
    # sqrt(rho) is a norm, so rho(i,j) <= 2 rho(best,i) + 2 rho(best,j).
    p, rho = _tables(arms, ratios)
    epsilon = _epsilon(epsilon, arms)
    scale = jnp.maximum(epsilon, (gaps(arms, theta) + epsilon) / 3)
    hardness = rho / jnp.maximum(scale[:, None], scale) ** 2
    return (p * hardness[..., None]).max((0, 1)).sum()


def hardness_oracle(arms: Array, theta: Array, *, ratios: RatioTables) -> Array:
    """H_oracle = max_{i != best} rho(best,i) / Delta_i^2.

    Args:
        arms: float (K, d).
        theta: float (d,).
        ratios: the `ratio_tables` of the arms.

    Returns:
        float ().

    Raises:
        ValueError: `arms`, `theta` or `ratios` are not valid, or two arms tie for the best.

    Source: Soare, Lazaric and Munos (2014); Xu, Honda and Sugiyama (2018), Theorem 3.
    """
    return _oracle_terms(arms, theta, ratios).max()


def hardness_oracle_sum(arms: Array, theta: Array, *, ratios: RatioTables) -> Array:
    """H' = sum_{i != best} rho(best,i) / Delta_i^2, between H_oracle and K - 1 times that.

    Args:
        arms: float (K, d).
        theta: float (d,).
        ratios: the `ratio_tables` of the arms.

    Returns:
        float ().

    Raises:
        ValueError: `arms`, `theta` or `ratios` are not valid, or two arms tie for the best.

    Source: Xu, Honda and Sugiyama (2018), Theorem 3.
    """
    return _oracle_terms(arms, theta, ratios).sum()


def hardness_ugape(arms: Array, theta: Array, *, epsilon: Array | float = 0.0) -> Array:
    """The hardness of the same means without the linear structure, for rewards of range 2.

    It is sum_k 4 / max(epsilon, (epsilon + Delta_k)/2)^2. On canonical arms H_epsilon is at most 9/8 of it.

    Args:
        arms: float (K, d).
        theta: float (d,).
        epsilon: float (), admitted gap of the answer, at least 0.

    Returns:
        float ().

    Raises:
        ValueError: `arms`, `theta` or `epsilon` are not valid, or two arms tie for the best.

    Source: Gabillon, Ghavamzadeh and Lazaric (2012), UGapE.
    """
    epsilon = _epsilon(epsilon, arms)
    scale = jnp.maximum(epsilon, (gaps(arms, theta) + epsilon) / 2)
    return (4 / scale**2).sum()


def theorem2_ridge_limit(
    *, arms: int, delta: Array | float, noise_scale: Array | float, norm_bound: Array | float
) -> Array:
    """The largest ridge for which `theorem2_bound` holds, 2 R^2 / S^2 log(K^2 / delta).

    Args:
        arms: K, a Python int.
        delta: float (), error probability, in (0, 1).
        noise_scale: float (), R, sub-Gaussian constant of the noise, above 0.
        norm_bound: float (), S, bound of theta's norm, above 0.

    Returns:
        float ().

    Raises:
        ValueError: an argument is out of range.

    Source: Xu, Honda and Sugiyama (2018), the condition of Theorem 2.
    """
    require_positive("norm_bound", norm_bound)
    return 2 * (noise_scale / norm_bound) ** 2 * _log_union(arms, delta)


def theorem2_bound(
    hardness: Array | float,
    *,
    arms: int,
    dimension: int,
    delta: Array | float,
    ridge: Array | float,
    noise_scale: Array | float,
    norm_bound: Array | float,
    arm_norm: Array | float,
    printed: bool = False,
) -> Array:
    """The bound on LinGapE's pulls under the ratio rule, with probability 1 - delta, for a small ridge.

    It is N + 4 H R^2 d log(1 + M^2 L^2 / (ridge d)), with N = 8 H R^2 log(K^2 / delta) + K.

    Args:
        hardness: float (), H = `hardness_lingape`.
        arms: K, a Python int.
        dimension: d, a Python int.
        delta: float (), error probability, in (0, 1).
        ridge: float (), regularisation, above 0 and at most `theorem2_ridge_limit`.
        noise_scale: float (), R, sub-Gaussian constant of the noise, above 0.
        norm_bound: float (), S, bound of theta's norm, above 0.
        arm_norm: float (), L, the largest norm of an arm, above 0.
        printed: whether to take M^2 = 4 (a^2 + N^2), a = 4 H R^2 sqrt(d L^2 / ridge), as printed. By default M is the
            root of M^2 = a M + N, which is what the proof needs and smaller.

    Returns:
        float (), pulls.

    Raises:
        ValueError: an argument is out of range, the ridge among them.

    Source: Xu, Honda and Sugiyama (2018), Theorem 2, equation (16).
    """
    limit = theorem2_ridge_limit(arms=arms, delta=delta, noise_scale=noise_scale, norm_bound=norm_bound)
    require((known(ridge) > 0) & (known(ridge) <= known(limit)), "ridge", f"lie in (0, {limit}]", ridge)
    variance = hardness * noise_scale**2
    leading = 8 * variance * _log_union(arms, delta) + arms
    a = 4 * variance * arm_norm * jnp.sqrt(dimension / ridge)
    m_squared = 4 * (a**2 + leading**2) if printed else ((a + jnp.sqrt(a**2 + 4 * leading)) / 2) ** 2
    return leading + 4 * variance * dimension * jnp.log1p(m_squared * arm_norm**2 / (ridge * dimension))


def theorem2_large_ridge_bound(
    hardness: Array | float,
    *,
    arms: int,
    delta: Array | float,
    ridge: Array | float,
    noise_scale: Array | float,
    norm_bound: Array | float,
    arm_norm: Array | float,
) -> Array:
    """The bound on LinGapE's pulls under the ratio rule, with probability 1 - delta, for a large ridge.

    It is 8 H R^2 log(K^2 / delta) + 4 H ridge S^2 + 2 K.

    Args:
        hardness: float (), H = `hardness_lingape`.
        arms: K, a Python int.
        delta: float (), error probability, in (0, 1).
        ridge: float (), regularisation, above 4 H R^2 L^2.
        noise_scale: float (), R, sub-Gaussian constant of the noise, above 0.
        norm_bound: float (), S, bound of theta's norm, at least 0.
        arm_norm: float (), L, the largest norm of an arm, above 0.

    Returns:
        float (), pulls.

    Raises:
        ValueError: an argument is out of range, the ridge among them.

    Source: Xu, Honda and Sugiyama (2018), Theorem 2, equation (17).
    """
    variance = hardness * noise_scale**2
    limit = 4 * variance * arm_norm**2
    require(known(ridge) > known(limit), "ridge", f"be above {limit}", ridge)
    return 8 * variance * _log_union(arms, delta) + 4 * hardness * ridge * norm_bound**2 + 2 * arms


def theorem2_implicit(
    hardness: Array | float,
    *,
    arms: int,
    dimension: int,
    delta: Array | float,
    ridge: Array | float,
    noise_scale: Array | float,
    norm_bound: Array | float,
    arm_norm: Array | float,
) -> Array:
    """The inequality behind Theorem 2, solved instead of relaxed: on soare(5) five times sharper, for every ridge.

    It is the largest t with t <= H C(t)^2 + K, where C(t) = R sqrt(2 log(K^2 / delta) + d log(1 + t L^2 / (ridge d)))
    + sqrt(ridge) S bounds LinGapE's confidence radius after t pulls.

    Args:
        hardness: float (), H = `hardness_lingape`.
        arms: K, a Python int.
        dimension: d, a Python int.
        delta: float (), error probability, in (0, 1).
        ridge: float (), regularisation, above 0.
        noise_scale: float (), R, sub-Gaussian constant of the noise, above 0.
        norm_bound: float (), S, bound of theta's norm, at least 0.
        arm_norm: float (), L, the largest norm of an arm, above 0.

    Returns:
        float (), pulls.

    Raises:
        ValueError: `delta` or `ridge` is out of range.

    Source: Xu, Honda and Sugiyama (2018), the proof of Theorem 2.
    """
    require_positive("ridge", ridge)
    hardness = jnp.asarray(hardness, float)
    union = _log_union(arms, delta)

    def right_hand_side(t: Array) -> Array:
        logdet = dimension * jnp.log1p(t * arm_norm**2 / (ridge * dimension))
        radius = noise_scale * jnp.sqrt(2 * union + logdet) + jnp.sqrt(ridge) * norm_bound
        return hardness * radius**2 + arms

    # The right-hand side is concave and positive at 0, so it crosses t once; from above the crossing the iteration
    # falls towards it. The pair compares a value with itself: computed twice, it may be rounded in two ways.
    above = lax.while_loop(lambda t: t < right_hand_side(t), lambda t: 2 * t, jnp.asarray(arms, float))
    t, _ = lax.while_loop(
        lambda pair: pair[1] < pair[0],
        lambda pair: (pair[1], right_hand_side(pair[1])),
        (above, right_hand_side(above)),
    )
    return t


class LowerBound(NamedTuple):
    """What no algorithm can beat, and how an optimal one would share out its pulls."""

    T_star: Array  # float ()         pulls for each unit of information, kl(delta, 1 - delta)
    pulls: Array  # float ()          T_star kl(delta, 1 - delta) <= expected pulls
    allocation: Array  # float (K,)   shares of the pulls at the optimum; it need not be unique


def lower_bound(
    arms: Array,
    theta: Array,
    *,
    delta: Array | float,
    noise_scale: Array | float = 1.0,
    steps: int = 5000,
) -> LowerBound:
    """The least expected pulls of any algorithm that names the best arm with probability 1 - delta on every instance.

    1/T* = max_w min_{b != best} Delta_b^2 / (2 R^2 ||x_best - x_b||^2), the norm that of A(w)^-1, so T* is 2 R^2 times
    the value of the oracle's design; and E[pulls] >= T* kl(delta, 1 - delta). For Gaussian noise only.

    Args:
        arms: float (K, d), spanning R^d.
        theta: float (d,), under which the best arm must be unique.
        delta: float (), error probability, in (0, 1).
        noise_scale: float (), R, standard deviation of the noise, above 0.
        steps: iterations of the design's solver.

    Returns:
        LowerBound, from the certified lower value of the design, so that it is a bound whatever the solver's error.

    Raises:
        ValueError: an argument is not valid, the arms do not span R^d (see `reduce_rank`), or two tie for the best.

    Cost: O(d^3 + K^2 d) a step.

    Source: Jedra and Proutiere (2020); Kaufmann, Cappé and Garivier (2016) for the kl.
    """
    require((known(delta) > 0) & (known(delta) < 1), "delta", "lie in (0, 1)", delta)
    require_positive("noise_scale", noise_scale)
    optimum = oracle_allocation(arms, theta=theta, steps=steps)
    dtype = optimum.lower.dtype
    delta, noise_scale = jnp.asarray(delta, dtype), jnp.asarray(noise_scale, dtype)
    T_star = 2 * noise_scale**2 * optimum.lower
    information = (1 - 2 * delta) * (jnp.log1p(-delta) - jnp.log(delta))
    return LowerBound(T_star, T_star * information, optimum.allocation)


def _oracle_terms(arms: Array, theta: Array, ratios: RatioTables) -> Array:
    best, _, behind = leads(arms, theta)
    _, rho = _tables(arms, ratios)
    return jnp.where(behind > 0, rho[best] / behind**2, 0)


def _tables(arms: Array, ratios: RatioTables) -> tuple[Array, Array]:
    K = arms.shape[0]
    require(ratios.p.shape == (K, K, K), "ratios", f"have p of shape {(K, K, K)}", ratios.p.shape)
    return jnp.asarray(ratios.p, arms.dtype), jnp.asarray(ratios.rho, arms.dtype)


def _epsilon(epsilon: Array | float, arms: Array) -> Array:
    require_not_negative("epsilon", epsilon)
    return jnp.asarray(epsilon, arms.dtype)


def _log_union(arms: int, delta: Array | float) -> Array:
    """log(K^2 / delta)."""
    require((known(delta) > 0) & (known(delta) < 1), "delta", "lie in (0, 1)", delta)
    return 2 * math.log(arms) - jnp.log(delta)
