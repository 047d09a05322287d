"""Counts of events: rewards 0, 1, 2, .. with a Poisson law."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Key, static_fields
from jaxbandits.mab._problem.laws.law import Law, Slots
from jaxbandits.mab._problem.laws.numbered import numbered
from jaxbandits.mab._problem.laws.pooled import Sample, cost_with_margin, directed_share, pooled_cost
from jaxbandits.mab._problem.laws.posterior import draw_and_uniforms
from jaxbandits.numerics import gamma
from jaxbandits.numerics.excess import excess_root
from jaxbandits.numerics.indexing import entries
from jaxbandits.numerics.kl import poisson_kl
from jaxbandits.numerics.poisson import UNIFORMS, poisson_of
from jaxbandits.numerics.random_bits import uniform_noise

NUMBERED = 64  # uniform numbers of a reward that cannot be asked again: all 32 proposals fail with probability 3e-20


@static_fields("arms", "dtype")
class Poisson(NamedTuple):
    """Rewards 0, 1, 2, .. with a Poisson law. `arms` is the number of arms.

    All fields are static: JAX sees no arrays in it.
    """

    arms: int  # K, at least 2
    dtype: Any = None  # dtype of the run; if None, JAX's default float


def check_positive_means(problem: Any, name: str, means: Any) -> Array:
    """Returns the means as an array of the problem's dtype; raises `ValueError` unless they are positive."""
    dtype = checks.float_dtype("problem.dtype", problem.dtype)
    return checks.array(name, means, (problem.arms,), dtype=dtype, above=0)


def _inner(problem: Poisson, mean: Array) -> Array:
    # Far above the smallest number, so that its ratio to a mean is no 0.
    del problem
    return jnp.maximum(mean, jnp.finfo(mean.dtype).tiny ** 0.5)


def _bound(problem: Poisson, mean: Array, c: Array, is_upper: Array | bool) -> Array:
    del problem
    positive = mean > 0
    inner = jnp.where(positive, mean, 1)
    moved = inner * jnp.exp(excess_root(c / inner, jnp.asarray(is_upper)))
    return jnp.where(positive, moved, jnp.where(is_upper, c, 0))


def _transport(problem: Poisson, leader: Sample, other: Sample, epsilon: Array | None) -> Array:
    del problem
    if epsilon is None:
        return pooled_cost(poisson_kl, leader, other)
    return cost_with_margin(
        poisson_kl,
        leader,
        other,
        epsilon,
        times_variance=lambda factor, mean: factor * mean,
        times_slope=lambda factor, mean: factor,
        most=None,
    )


def _posterior_draws(problem: Poisson, key: Key, counts: Array, means: Array, number: int | None) -> Array:
    del problem
    shape = counts.shape if number is None else (number, *counts.shape)
    uniform = jax.random.uniform(key, (1 + gamma.UNIFORMS, *shape), means.dtype)
    events = jnp.broadcast_to(jnp.round(means * counts), shape)
    # Gamma(a) = Gamma(a + 1) u^(1 / a), for the shape 1/2 of an arm without events.
    draws = gamma.gamma_of(uniform[1:], events + 1.5) * (1 - uniform[0]) ** (1 / (events + 0.5))
    return draws / counts


def _draw(problem: Poisson, key: Key, slots: int, leap: int, dtype: Any) -> Array:
    del problem, leap
    return uniform_noise(key, (UNIFORMS, slots), dtype)


def _pay(problem: Poisson, noise: Array, means: Array, action: Slots, leap: int) -> Slots:
    del problem
    arms, times = action
    mean = entries(means, arms)
    events, accepted = poisson_of(noise, times.astype(means.dtype) * mean)
    sums = jnp.where(accepted, events, 0)
    # Traced means could not be checked: a number without a distribution must not pass for a reward.
    return jnp.where((times <= leap) & (mean > 0), sums, jnp.nan), jnp.where(accepted, times, 0)


LAW = Law(
    check=lambda problem, name: None,
    checked_means=check_positive_means,
    variance=lambda problem, mean: mean,
    divergence=lambda problem, p, q: poisson_kl(p, q),
    inner=_inner,
    bounds=lambda problem, mean, c: (_bound(problem, mean, c, True), _bound(problem, mean, c, False)),
    upper_bound=lambda problem, mean, c: _bound(problem, mean, c, True),
    bound=_bound,
    transport=_transport,
    share=lambda problem, *pair: directed_share(poisson_kl, *pair),
    meeting=None,
    posterior_draws=_posterior_draws,
    posterior_draw_and_uniforms=draw_and_uniforms(_posterior_draws),
    draw=_draw,
    pay=_pay,
    pay_from_stream=numbered(_pay, (NUMBERED,)),
    can_share=lambda leap: leap == 1,
    are_sums=lambda problem, sums, times: (sums >= 0) & (sums == sums // 1) & ((times > 0) | (sums == 0)),
    sums_are="be whole numbers, at least 0",
    scale=None,
    posterior_scale=None,
    posterior_quantile=None,
    width=None,
    largest_leap=None,
    counts_ones=False,
    ties=True,
    has_mixture=True,
    is_location=False,
    is_convex=True,
)
