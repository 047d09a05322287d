"""Waiting times: positive rewards with an exponential law."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Array, Key, static_fields
from jaxbandits.mab._problem.laws.law import Law, Slots
from jaxbandits.mab._problem.laws.numbered import numbered
from jaxbandits.mab._problem.laws.poisson import check_positive_means
from jaxbandits.mab._problem.laws.pooled import Sample, cost_with_margin, directed_share, pooled_cost
from jaxbandits.mab._problem.laws.posterior import draw_and_uniforms
from jaxbandits.numerics.excess import excess_root
from jaxbandits.numerics.gamma import UNIFORMS, gamma_of, gamma_or_not
from jaxbandits.numerics.indexing import entries
from jaxbandits.numerics.kl import exponential_kl
from jaxbandits.numerics.random_bits import uniform_noise

STEPS = 16  # steps of Newton's method for arms that differ by a margin


@static_fields("arms", "dtype")
class Exponential(NamedTuple):
    """Positive rewards with an exponential law. `arms` is the number of arms.

    All fields are static: JAX sees no arrays in it.
    """

    arms: int  # K, at least 2
    dtype: Any = None  # dtype of the run; if None, JAX's default float


def _kl(p: Array, q: Array) -> Array:
    # The mean of an arm that was never pulled is 0.
    tiny = jnp.finfo(p.dtype).tiny ** 0.5
    return exponential_kl(jnp.maximum(p, tiny), jnp.maximum(q, tiny))


def _bound(problem: Exponential, mean: Array, c: Array, is_upper: Array | bool) -> Array:
    del problem
    return mean * jnp.exp(-excess_root(c, ~jnp.asarray(is_upper)))


def _transport(problem: Exponential, leader: Sample, other: Sample, epsilon: Array | None) -> Array:
    del problem
    if epsilon is None:
        return pooled_cost(_kl, leader, other)
    return cost_with_margin(
        _kl,
        leader,
        other,
        epsilon,
        times_variance=lambda factor, mean: factor * mean**2,
        times_slope=lambda factor, mean: 2 * factor * mean,
        most=None,
        steps=STEPS,
    )


def _posterior_draws(problem: Exponential, key: Key, counts: Array, means: Array, number: int | None) -> Array:
    del problem
    shape = counts.shape if number is None else (number, *counts.shape)
    uniform = jax.random.uniform(key, (UNIFORMS, *shape), means.dtype)
    return means * counts / gamma_of(uniform, jnp.broadcast_to(counts, shape))


def _draw(problem: Exponential, key: Key, slots: int, leap: int, dtype: Any) -> Array:
    del problem
    return uniform_noise(key, (slots,) if leap == 1 else (UNIFORMS, slots), dtype)


def _pay(problem: Exponential, noise: Array, means: Array, action: Slots, leap: int) -> Slots:
    del problem
    arms, times = action
    mean = entries(means, arms)
    # Traced means could not be checked: a number without a distribution must not pass for a reward.
    is_lawful = (times <= leap) & (mean > 0)
    if leap == 1:
        # A uniform number of 0 stands for those below the spacing of the numbers; the reward must not be 0.
        waited = -jnp.log1p(-jnp.maximum(noise, jnp.finfo(noise.dtype).eps / 2))
        return jnp.where(is_lawful, jnp.where(times > 0, mean * waited, 0), jnp.nan), times
    gamma, accepted = gamma_or_not(noise, jnp.maximum(times, 1).astype(means.dtype))
    sums = jnp.where(accepted & (times > 0), mean * gamma, 0)
    return jnp.where(is_lawful, sums, jnp.nan), jnp.where(accepted, times, 0)


LAW = Law(
    check=lambda problem, name: None,
    checked_means=check_positive_means,
    variance=lambda problem, mean: mean**2,
    divergence=lambda problem, p, q: _kl(p, q),
    inner=lambda problem, mean: mean,
    bounds=lambda problem, mean, c: (_bound(problem, mean, c, True), _bound(problem, mean, c, False)),
    upper_bound=lambda problem, mean, c: _bound(problem, mean, c, True),
    bound=_bound,
    transport=_transport,
    share=lambda problem, *pair: directed_share(_kl, *pair),
    meeting=None,
    posterior_draws=_posterior_draws,
    posterior_draw_and_uniforms=draw_and_uniforms(_posterior_draws),
    draw=_draw,
    pay=_pay,
    pay_from_stream=numbered(_pay),
    can_share=lambda leap: leap == 1,
    are_sums=lambda problem, sums, times: (sums > 0) == (times > 0),
    sums_are="be positive where an arm was pulled",
    scale=None,
    posterior_scale=None,
    posterior_quantile=None,
    width=None,
    largest_leap=None,
    counts_ones=False,
    ties=False,
    has_mixture=True,
    is_location=False,
    is_convex=False,
)
