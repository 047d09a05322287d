"""Normal rewards whose variances are not known: each arm has its own, and a rule keeps the squares to estimate it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits.base import Array, Key
from jaxbandits.mab._problem.laws import gaussian
from jaxbandits.mab._problem.laws.gaussian import Gaussian
from jaxbandits.mab._problem.laws.law import Slots
from jaxbandits.numerics.gamma import UNIFORMS, gamma_or_not
from jaxbandits.numerics.indexing import entries
from jaxbandits.numerics.quantile import normal_of
from jaxbandits.numerics.random_bits import uniform_noise

Noise = Array | tuple[Array, Array]  # normal numbers (slots,); with leaps also uniform ones (UNIFORMS + 1, slots)
Paid = tuple[Array, ...]  # sums and pulls of the slots, with leaps also the sums of squared deviations, (slots,) each

UNIT = Gaussian(2)  # any problem of unit variance


def _draw(problem: Gaussian, key: Key, slots: int, leap: int, dtype: Any) -> Noise:
    del problem
    if leap == 1:
        return gaussian.LAW.draw(UNIT, key, slots, leap, dtype)
    of_sums, of_squares = jax.random.split(key)
    normals = gaussian.LAW.draw(UNIT, of_sums, slots, leap, dtype)
    return normals, uniform_noise(of_squares, (UNIFORMS + 1, slots), dtype)


def _pay(problem: Gaussian, noise: Noise, means: Array, action: Slots, leap: int, *, sd: Array) -> Paid:
    del problem
    arms, times = action
    pulls, spread = times.astype(means.dtype), entries(sd, arms)
    normals = noise[0] if isinstance(noise, tuple) else noise
    sums = pulls * entries(means, arms) + spread * jnp.sqrt(pulls) * normals
    if not isinstance(noise, tuple):
        # Deviations of several pulls from their mean are in no noise of this form.
        return jnp.where(times <= leap, sums, jnp.nan), times
    # The sum of n rewards and their squared deviations are independent; the second are a chi-square variable with n - 1
    # degrees of freedom, 2 Gamma((n - 1) / 2), of which Gamma(1/2) is half a squared normal variable.
    uniforms = noise[1]
    gammas, accepted = gamma_or_not(uniforms[1:], jnp.maximum(pulls - 1, 2) / 2)
    chi_square = jnp.where(times == 2, normal_of(uniforms[0]) ** 2, 2 * gammas)
    accepted = accepted | (times <= 2)
    squares = jnp.where(accepted & (times >= 2), spread**2 * chi_square, 0)
    return jnp.where(accepted, sums, 0), jnp.where(accepted, times, 0), squares


def _pay_from_stream(
    problem: Gaussian, stream: Key, means: Array, leap: int, *, sd: Array
) -> Callable[[Slots, Array], Slots]:
    del problem
    noise = gaussian.LAW.pay_from_stream(UNIT, stream, jnp.zeros_like(means), leap)

    def pay(action: Slots, before: Array) -> Slots:
        arms, times = action
        steps, _ = noise(action, before)
        return times.astype(means.dtype) * entries(means, arms) + entries(sd, arms) * steps, times

    return pay


# Whatever depends on a variance is in `measured`.
LAW = gaussian.LAW._replace(
    draw=_draw,
    pay=_pay,
    pay_from_stream=_pay_from_stream,
    can_share=lambda leap: leap == 1,
    scale=None,
    posterior_scale=None,
    posterior_quantile=None,
)
