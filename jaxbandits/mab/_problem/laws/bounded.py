"""Rewards in [0, 1] of any law, by the divergence of Bernoulli rewards.

For every law on [0, 1], E exp(l X) <= 1 - mu + mu exp(l): bounds of Bernoulli rewards that need no more hold for all.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Array, Key, static_fields
from jaxbandits.mab._problem.laws import bernoulli
from jaxbandits.mab._problem.laws.law import Slots
from jaxbandits.mab._problem.laws.numbered import numbered
from jaxbandits.mab._problem.laws.posterior import draw_and_uniforms
from jaxbandits.numerics.beta import beta
from jaxbandits.numerics.indexing import entries
from jaxbandits.numerics.random_bits import uniform_noise


@static_fields("arms", "dtype")
class Bounded(NamedTuple):
    """Rewards in [0, 1] of an unknown law. `arms` is the number of arms.

    All fields are static: JAX sees no arrays in it.
    """

    arms: int  # K, at least 2
    dtype: Any = None  # dtype of the run; if None, JAX's default float


def _posterior_draws(problem: Bounded, key: Key, counts: Array, means: Array, number: int | None) -> Array:
    del problem
    shape = counts.shape if number is None else (number, *counts.shape)
    sums = jnp.clip(means * counts, 0, counts)
    return beta(key, jnp.broadcast_to(1 + sums, shape), jnp.broadcast_to(1 + counts - sums, shape))


def _draw(problem: Bounded, key: Key, slots: int, leap: int, dtype: Any) -> Array:
    del problem, leap
    return uniform_noise(key, (slots,), dtype)


def _pay(problem: Bounded, noise: Array, means: Array, action: Slots, leap: int) -> Slots:
    del problem, leap
    arms, times = action
    mean = entries(means, arms)
    reward = mean + (2 * noise - 1) * jnp.minimum(mean, 1 - mean)
    # Traced means could not be checked, and sums of several rewards have no simple law.
    is_lawful = (times <= 1) & (mean >= 0) & (mean <= 1)
    return jnp.where(is_lawful, jnp.where(times > 0, jnp.clip(reward, 0, 1), 0), jnp.nan), times


LAW = bernoulli.LAW._replace(
    posterior_draws=_posterior_draws,
    posterior_draw_and_uniforms=draw_and_uniforms(_posterior_draws),
    draw=_draw,
    pay=_pay,
    pay_from_stream=numbered(_pay),
    are_sums=lambda problem, sums, times: (sums >= 0) & (sums <= times),
    sums_are="be sums of rewards in [0, 1]",
    counts_ones=False,
    largest_leap=1,
)
