"""Arms: laws of samples in [0, 1], and normal ones."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import known, require
from jaxbandits.cpe._problem.floats import floats

ROUNDING = 1e-6  # allowed error in the sum of an arm's weights


class Arms(NamedTuple):
    """m laws on [0, 1], the truth: never given to a factory.

    A sample of arm i falls into segment c with probability weight[i, c], and is uniform on [low, high] there.
    """

    low: Array  # float (m, V)
    high: Array  # float (m, V)
    weight: Array  # float (m, V)   0 for a segment that is not there


class GaussianArms(NamedTuple):
    """K normal laws with one known variance, the truth: never given to a factory. They are played, not pulled."""

    means: Array  # float (K,)
    noise_scale: Array  # float ()   standard deviation of a sample


def bernoulli(p: Any, *, dtype: Any = None) -> Arms:
    """Builds arms whose samples are 1 with probability p_i, otherwise 0.

    Args:
        p: (m,), in [0, 1].
        dtype: dtype of the samples; by default JAX's own.

    Returns:
        Arms.

    Raises:
        ValueError: `p` is not a vector in [0, 1].
    """
    p = floats("p", p, ("m",), dtype, least=0, most=1)
    return _bernoulli(p)


@partial(jax.jit, inline=True)
def _bernoulli(p: Array) -> Arms:
    values = jnp.broadcast_to(jnp.asarray([1, 0], p.dtype), (p.shape[0], 2))
    return Arms(values, values, jnp.stack([p, 1 - p], axis=1))


def uniform_arms(low: Any, high: Any, *, dtype: Any = None) -> Arms:
    """Builds arms whose samples are uniform on [low_i, high_i].

    Args:
        low: (m,), in [0, 1].
        high: (m,), in [0, 1], at least `low`.
        dtype: dtype of the samples; by default JAX's own.

    Returns:
        Arms.

    Raises:
        ValueError: the shapes differ or a value is out of range.
    """
    low = floats("low", low, ("m",), dtype, least=0, most=1)
    high = floats("high", high, low.shape, dtype, least=0, most=1)
    _check_order("high", low, high)
    return Arms(jnp.asarray(low[:, None]), jnp.asarray(high[:, None]), jnp.ones((low.shape[0], 1), low.dtype))


def discrete(values: Any, weights: Any, *, dtype: Any = None) -> Arms:
    """Builds arms whose samples are values[i, c] with probability weights[i, c].

    Args:
        values: (m, V), in [0, 1].
        weights: (m, V), at least 0, each row summing to 1 within 1e-6.
        dtype: dtype of the samples; by default JAX's own.

    Returns:
        Arms.

    Raises:
        ValueError: the shapes differ or a value is out of range.
    """
    values = floats("values", values, ("m", "V"), dtype, least=0, most=1)
    weights = floats("weights", weights, values.shape, dtype, least=0)
    _check_weights("weights", weights)
    values = jnp.asarray(values)
    return Arms(values, values, jnp.asarray(weights))


def constant(values: Any, *, dtype: Any = None) -> Arms:
    """Builds arms whose samples are always values[i], for a run without noise.

    Args:
        values: (m,), in [0, 1].
        dtype: dtype of the samples; by default JAX's own.

    Returns:
        Arms.

    Raises:
        ValueError: `values` is not a vector in [0, 1].
    """
    values = floats("values", values, ("m",), dtype, least=0, most=1)
    return uniform_arms(values, values, dtype=values.dtype)


def gaussian(means: Any, noise_scale: Any = 1.0, *, dtype: Any = None) -> GaussianArms:
    """Builds normal arms with means means_i and standard deviation noise_scale, to be played in whole decisions.

    Args:
        means: (K,), finite, in units of reward.
        noise_scale: () > 0, in units of reward.
        dtype: dtype of the samples; by default JAX's own.

    Returns:
        GaussianArms. COCI, uniform sampling and CLUCB pull single arms whose samples lie in [0, 1], so their
        environment refuses Gaussian arms.

    Raises:
        ValueError: `means` is not a vector of finite numbers, or `noise_scale` is not positive.
    """
    means = floats("means", means, ("K",), dtype)
    checks.positive("noise_scale", noise_scale)
    return GaussianArms(jnp.asarray(means), jnp.asarray(noise_scale, means.dtype))


def stack_arms(parts: Sequence[Arms]) -> Arms:
    """Joins the arms of all parts in their order, for laws of different kinds in one instance.

    Args:
        parts: Arms of one dtype, of any numbers of arms (m,) and segments (m, V).

    Returns:
        Arms.

    Raises:
        ValueError: `parts` is not a list of Arms.
    """
    is_list = isinstance(parts, (list, tuple)) and not isinstance(parts, Arms) and len(parts) > 0
    require(is_list, "parts", "be a list of Arms, at least one", parts)
    for number, part in enumerate(parts):
        check_bounded(part, f"parts[{number}]")
    segments = max(part.low.shape[1] for part in parts)
    padded = [
        jax.tree.map(lambda field: jnp.pad(field, ((0, 0), (0, segments - field.shape[1]))), part) for part in parts
    ]
    return jax.tree.map(lambda *fields: jnp.concatenate(fields), *padded)


def means(arms: Arms | GaussianArms) -> Array:
    """Computes the mean of each arm, float (m,); raises `ValueError` if `arms` are not valid laws."""
    check_arms(arms)
    if isinstance(arms, GaussianArms):
        return jnp.asarray(arms.means)
    return _means(arms)


@partial(jax.jit, inline=True)
def _means(arms: Arms) -> Array:
    return jnp.sum(arms.weight * (arms.low + arms.high) / 2, axis=1)


def variances(arms: Arms | GaussianArms) -> Array:
    """Computes the variance of each arm, float (m,); raises `ValueError` if `arms` are not valid laws."""
    centre = means(arms)
    if isinstance(arms, GaussianArms):
        return jnp.broadcast_to(jnp.asarray(arms.noise_scale, centre.dtype) ** 2, centre.shape)
    return _variances(arms, centre)


@partial(jax.jit, inline=True)
def _variances(arms: Arms, centre: Array) -> Array:
    middle = (arms.low + arms.high) / 2
    spread = (arms.high - arms.low) ** 2 / 12 + (middle - centre[:, None]) ** 2
    return jnp.sum(arms.weight * spread, axis=1)


# Checks


def check_arms(arms: Any, name: str = "arms") -> None:
    """Raises `ValueError` unless arms are laws on [0, 1], or normal ones."""
    checks.instance(name, arms, (Arms, GaussianArms))
    if isinstance(arms, GaussianArms):
        checks.array(f"{name}.means", arms.means, ("K",))
        checks.positive(f"{name}.noise_scale", arms.noise_scale)
    else:
        check_bounded(arms, name)


def check_bounded(arms: Any, name: str = "arms") -> Arms:
    """Returns the arms; raises `ValueError` unless they are laws on [0, 1]."""
    require(not isinstance(arms, GaussianArms), name, "be Arms: samples must lie in [0, 1]", "GaussianArms")
    checks.instance(name, arms, Arms)
    shape = checks.array(f"{name}.low", arms.low, ("m", "V"), least=0, most=1).shape
    checks.array(f"{name}.high", arms.high, shape, least=0, most=1)
    checks.array(f"{name}.weight", arms.weight, shape, least=0)
    _check_order(f"{name}.high", arms.low, arms.high)
    _check_weights(f"{name}.weight", arms.weight)
    return arms


def number_of(arms: Arms | GaussianArms) -> int:
    """Returns the number of arms."""
    return (arms.means if isinstance(arms, GaussianArms) else arms.low).shape[0]


def _check_order(name: str, low: Any, high: Any) -> None:
    require(known(high) >= known(low), name, "be at least low", high)


def _check_weights(name: str, weights: Any) -> None:
    require(abs(known(weights).sum(axis=1) - 1) <= ROUNDING, name, "sum to 1 for every arm", weights)
