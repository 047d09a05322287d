"""Rewards 0 or 1."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Key, static_fields
from jaxbandits.mab._problem.laws.law import Law, Slots
from jaxbandits.mab._problem.laws.numbered import numbered
from jaxbandits.mab._problem.laws.pooled import Sample, cost_with_margin, directed_share, pooled_cost
from jaxbandits.mab._problem.laws.posterior import draw_and_uniforms
from jaxbandits.numerics import kl
from jaxbandits.numerics.beta import beta
from jaxbandits.numerics.binomial import UNIFORMS, binomial_of
from jaxbandits.numerics.indexing import entries
from jaxbandits.numerics.random_bits import uniform_noise


@static_fields("arms", "dtype")
class Bernoulli(NamedTuple):
    """Rewards 0 or 1. `arms` is the number of arms. All fields are static: JAX sees no arrays in it."""

    arms: int  # K, at least 2
    dtype: Any = None  # dtype of the run; if None, JAX's default float


def _checked_means(problem: Bernoulli, name: str, means: Any) -> Array:
    dtype = checks.float_dtype("problem.dtype", problem.dtype)
    return checks.array(name, means, (problem.arms,), dtype=dtype, least=0, most=1)


def _divergence(problem: Bernoulli, p: Array, q: Array) -> Array:
    del problem
    return kl.bernoulli_kl(p, q)


def _inner(problem: Bernoulli, mean: Array) -> Array:
    del problem
    edge = jnp.finfo(mean.dtype).eps
    return jnp.clip(mean, edge, 1 - edge)


def _transport(problem: Bernoulli, leader: Sample, other: Sample, epsilon: Array | None) -> Array:
    del problem
    if epsilon is None:
        return pooled_cost(kl.bernoulli_kl, leader, other)
    return cost_with_margin(
        kl.bernoulli_kl,
        leader,
        other,
        epsilon,
        times_variance=lambda factor, mean: factor * mean * (1 - mean),
        times_slope=lambda factor, mean: factor * (1 - 2 * mean),
        most=1,
    )


def _posterior_draws(problem: Bernoulli, key: Key, counts: Array, means: Array, number: int | None) -> Array:
    del problem
    shape = counts.shape if number is None else (number, *counts.shape)
    ones = jnp.round(means * counts)
    return beta(key, jnp.broadcast_to(1 + ones, shape), jnp.broadcast_to(1 + counts - ones, shape))


def beta_quantile(problem: Bernoulli, counts: Array, means: Array, z: Array) -> Array:
    """Approximates the quantile of Beta(1 + ones, 1 + zeros) whose upper tail is the normal upper tail at z.

    Args:
        problem: Bernoulli arms.
        counts: float (K,), pulls.
        means: float (K,), empirical means.
        z: float (), positive.

    Returns:
        float (K,): the root of its signed large-deviation rate, twice corrected.
    """
    # DEVIATION: the paper takes the exact quantile, which JAX cannot compute without a loop.
    del problem
    n = counts + 2
    center = (1 + counts * means) / n
    r = jnp.broadcast_to(z, center.shape)
    for _ in range(2):
        q = kl.kl_upper(center, r * r / (2 * n))
        v = jnp.sqrt(n) * (q - center) / jnp.sqrt(center * (1 - center))
        r = z - jnp.log(v / r) / r
    return kl.kl_upper(center, r * r / (2 * n))


def _draw(problem: Bernoulli, key: Key, slots: int, leap: int, dtype: Any) -> Array:
    del problem
    return uniform_noise(key, (slots,) if leap == 1 else (UNIFORMS, slots), dtype)


def _pay(problem: Bernoulli, noise: Array, means: Array, action: Slots, leap: int) -> Slots:
    del problem
    arms, times = action
    mean = entries(means, arms)
    # Traced means could not be checked: a number without a distribution must not pass for a reward.
    if leap == 1:
        sums = ((noise < mean) & (times > 0)).astype(means.dtype)
        is_lawful = (times <= 1) & (mean >= 0) & (mean <= 1)
        return jnp.where(is_lawful, sums, jnp.nan), times
    ones, accepted = binomial_of(noise, times, mean)
    is_lawful = (times <= leap) & (mean >= 0) & (mean <= 1)
    sums = jnp.where(accepted, ones, 0).astype(means.dtype)
    return jnp.where(is_lawful, sums, jnp.nan), jnp.where(accepted, times, 0)


LAW = Law(
    check=lambda problem, name: None,
    checked_means=_checked_means,
    variance=lambda problem, mean: mean * (1 - mean),
    divergence=_divergence,
    inner=_inner,
    bounds=lambda problem, mean, c: kl.kl_bounds(mean, c),
    upper_bound=lambda problem, mean, c: kl.kl_upper(mean, c),
    bound=lambda problem, mean, c, is_upper: kl.kl_bound(mean, c, is_upper),
    transport=_transport,
    share=lambda problem, *pair: directed_share(kl.bernoulli_kl, *pair),
    meeting=None,
    posterior_draws=_posterior_draws,
    posterior_draw_and_uniforms=draw_and_uniforms(_posterior_draws),
    draw=_draw,
    pay=_pay,
    pay_from_stream=numbered(_pay),
    can_share=lambda leap: leap == 1,
    are_sums=lambda problem, sums, times: (sums >= 0) & (sums <= times) & (sums == sums // 1),
    sums_are="count the ones among the rewards, each of which is 0 or 1",
    scale=lambda problem: 0.5,
    posterior_scale=None,
    posterior_quantile=beta_quantile,
    width=1,
    largest_leap=None,
    counts_ones=True,
    ties=True,
    has_mixture=False,
    is_location=False,
    is_convex=True,
)
