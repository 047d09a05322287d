"""Normal rewards, and the functions of their law where the variance is known."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array, Key, static_fields
from jaxbandits.checks import require
from jaxbandits.mab._problem.laws.law import Law, Slots
from jaxbandits.mab._problem.laws.pooled import Sample
from jaxbandits.numerics.brownian import increment, one_step
from jaxbandits.numerics.elementary import rsqrt, sqrt
from jaxbandits.numerics.indexing import entries
from jaxbandits.numerics.linalg import aligned
from jaxbandits.numerics.normal import normal, normal_noise, normals_and_uniforms
from jaxbandits.streams import key_of

CostName = Literal["adaptive", "plug-in"]


@static_fields("arms", "noise_scale", "dtype", "cost", "least_variance")
class Gaussian(NamedTuple):
    """Normal rewards. `arms` is the number of arms.

    If the noise_scale is None, every arm has a variance of its own, which a rule estimates. All fields are static: JAX
    sees no arrays in it.
    """

    arms: int  # K, at least 2
    noise_scale: float | None = 1.0  # standard deviation of a reward, in units of reward; None: unknown, one per arm
    dtype: Any = None  # dtype of the run; if None, JAX's default float
    # evidence with unknown variances: the likelihood ratio, "adaptive", or as if the estimates were the variances
    cost: CostName = "adaptive"
    # a floor under estimated variances, in units of reward^2: rewards that repeat must not have a variance of 0
    least_variance: float = 0.0


def check_noise_scale(name: str, noise_scale: Any) -> None:
    """Raises `ValueError` unless the noise scale is a positive number that may be static."""
    checks.positive(name, noise_scale)
    _check_static(name, noise_scale)


def _check_static(name: str, value: Any) -> None:
    is_static = not isinstance(value, (jax.Array, np.ndarray))
    require(is_static, name, "be a Python number, which is known before tracing", value)


def _check(problem: Gaussian, name: str) -> None:
    checks.one_of(f"{name}.cost", problem.cost, CostName)
    least = f"{name}.least_variance"
    checks.not_negative(least, problem.least_variance)
    _check_static(least, problem.least_variance)
    if problem.noise_scale is not None:
        check_noise_scale(f"{name}.noise_scale", problem.noise_scale)
        require(problem.least_variance == 0, least, "be 0 with a noise_scale", problem.least_variance)


def _checked_means(problem: Gaussian, name: str, means: Any) -> Array:
    return checks.array(name, means, (problem.arms,), dtype=checks.float_dtype("problem.dtype", problem.dtype))


def _scale(problem: Gaussian) -> float:
    assert problem.noise_scale is not None
    return float(problem.noise_scale)


def _variance(problem: Gaussian, mean: Array) -> float:
    del mean
    return _scale(problem) ** 2


def _divergence(problem: Gaussian, p: Array, q: Array) -> Array:
    return (p - q) ** 2 / (2 * _scale(problem) ** 2)


def _bounds(problem: Gaussian, mean: Array, c: Array) -> tuple[Array, Array]:
    radius = _scale(problem) * sqrt(2 * c)
    return mean + radius, mean - radius


def _upper_bound(problem: Gaussian, mean: Array, c: Array) -> Array:
    return mean + _scale(problem) * sqrt(2 * c)


def _bound(problem: Gaussian, mean: Array, c: Array, is_upper: Array) -> Array:
    radius = _scale(problem) * sqrt(2 * c)
    return mean + jnp.where(is_upper, radius, -radius)


def _transport(problem: Gaussian, leader: Sample, other: Sample, epsilon: Array | None) -> Array:
    (n_l, m_l, _), (n_a, m_a, _) = leader, other
    lead = jnp.maximum(m_l - m_a if epsilon is None else m_l - m_a + epsilon, 0)
    return lead**2 * (n_l * n_a) / (2 * _scale(problem) ** 2 * (n_l + n_a))


def _share(problem: Gaussian, leader: Sample, challenger: Sample) -> Array:
    # The information-directed share is this, whatever the means. The quotient of two divergences gives .49999 at equal
    # counts, and so breaks exact ties.
    del problem
    return challenger.pulls / (leader.pulls + challenger.pulls)


def _posterior_scale(problem: Gaussian, counts: Array) -> Array:
    return _scale(problem) * rsqrt(counts)


def _posterior_draws(problem: Gaussian, key: Key, counts: Array, means: Array, number: int | None) -> Array:
    shape = counts.shape if number is None else (number, *counts.shape)
    mean, spread = (aligned(x, len(shape)) for x in (means, _posterior_scale(problem, counts)))
    return mean + spread * normal(key, shape, means.dtype)


def _posterior_draw_and_uniforms(
    problem: Gaussian, key: Key, counts: Array, means: Array, number: int
) -> tuple[Array, Array]:
    normals, uniforms = normals_and_uniforms(key, problem.arms, number, means.dtype)
    return means + _posterior_scale(problem, counts) * normals, uniforms


def _posterior_quantile(problem: Gaussian, counts: Array, means: Array, z: Array) -> Array:
    return means + _scale(problem) * z * rsqrt(counts)


def _draw(problem: Gaussian, key: Key, slots: int, leap: int, dtype: Any) -> Array:
    del problem, leap
    return normal_noise(key, (slots,), dtype)


def _pay(problem: Gaussian, noise: Array, means: Array, action: Slots, leap: int) -> Slots:
    arms, times = action
    pulls = times.astype(means.dtype)
    root = pulls if leap == 1 else jnp.sqrt(pulls)
    return pulls * entries(means, arms) + _scale(problem) * root * noise, times


def _pay_from_stream(problem: Gaussian, stream: Key, means: Array, leap: int) -> Callable[[Slots, Array], Slots]:
    def noise(arm: Array, start: Array, times: Array) -> Array:
        walk = key_of(stream, arm)
        if leap > 1:
            return increment(walk, start, times, means.dtype)
        one = jnp.where(times == 0, 0, one_step(walk, start, means.dtype))
        return jnp.where(times <= 1, one, jnp.nan)

    def pay(action: Slots, before: Array) -> Slots:
        arms, times = action
        steps = jax.vmap(noise)(arms, before, times)
        pulls = times.astype(means.dtype)
        return pulls * entries(means, arms) + _scale(problem) * steps, times

    return pay


LAW = Law(
    check=_check,
    checked_means=_checked_means,
    variance=_variance,
    divergence=_divergence,
    inner=lambda problem, mean: mean,
    bounds=_bounds,
    upper_bound=_upper_bound,
    bound=_bound,
    transport=_transport,
    share=_share,
    meeting=None,
    posterior_draws=_posterior_draws,
    posterior_draw_and_uniforms=_posterior_draw_and_uniforms,
    draw=_draw,
    pay=_pay,
    pay_from_stream=_pay_from_stream,
    can_share=lambda leap: True,
    are_sums=None,
    sums_are="be finite",
    scale=_scale,
    posterior_scale=_posterior_scale,
    posterior_quantile=_posterior_quantile,
    width=None,
    largest_leap=None,
    counts_ones=False,
    ties=False,
    has_mixture=False,
    is_location=True,
    is_convex=True,
)
