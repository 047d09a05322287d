"""Confidence intervals of a distance from the mean of its samples.

`Lil`, `Lemma1` and `KL` select the interval of an algorithm. The functions below take means (...) and counts (...),
ints of at least 1, and return (lower, upper), both (...), of the means' dtype. Their `delta` is the share of one
interval, as `shared_delta` returns it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, static_fields
from jaxbandits.checks import known, require
from jaxbandits.kcenter._problem.problem import Dimensions
from jaxbandits.numerics.elementary import log
from jaxbandits.numerics.kl import kl_bounds

Bounds = Callable[[Array, Array], tuple[Array, Array]]
# "pairs": each interval has delta / n^2, a union bound over all pairs of nodes; "points": delta / n, not proved.
Union = Literal["points", "pairs"]
Scale = Literal["mean", "root"]


@static_fields("union")
class Lil(NamedTuple):
    """The paper's heuristic (22), mean +- sqrt(radius_scale log(1 + (1 + log t) / delta) / t). It is not proved."""

    # float () > 0, the paper's C. Below .03, centers on images are wrong, though their radius is hardly larger.
    radius_scale: Array | float = 0.1
    # DEVIATION: (22) is printed with n^2. The paper's tables grow with 1 / delta as with n, and not with n^2.
    union: Union = "points"


@static_fields("union")
class Lemma1(NamedTuple):
    """Lemma 1, proved for all t at once, and about ten times wider than `Lil`."""

    union: Union = "pairs"  # "pairs": delta / n^2 for each interval; "points": delta / n


@static_fields("union")
class KL(NamedTuple):
    """Interval (14): t kl(mean, q) <= log(k1 t^alpha / delta). Gaussian rewards have the kl of their noise scale."""

    alpha: Array | float = 1.1  # float () > 1
    k1: Array | float | None = None  # float () > 1 + 1 / (alpha - 1); if None, 1 % more (`least_k1`)
    union: Union = "pairs"  # "pairs": delta / n^2 for each interval; "points": delta / n


Interval = Lil | Lemma1 | KL


def check_interval(interval: Any, kinds: tuple[type, ...] = (Lil, Lemma1, KL)) -> None:
    """Raises `ValueError` unless `interval` is one of these kinds, with parameters in their ranges."""
    checks.instance("interval", interval, kinds)
    checks.one_of("interval.union", interval.union, Union)
    if isinstance(interval, Lil):
        checks.positive("interval.radius_scale", interval.radius_scale)
    if isinstance(interval, KL):
        checks.real("interval.alpha", interval.alpha, above=1)
        if interval.k1 is not None:
            checks.positive("interval.k1", interval.k1)
            is_enough = known(interval.k1) > 1 + 1 / (known(interval.alpha) - 1)
            require(is_enough, "interval.k1", "exceed 1 + 1 / (alpha - 1)", interval.k1)


def bounds_of(interval: Interval, n: int, delta: Array | float, noise_scale: Array | float | None = None) -> Bounds:
    """Returns the bounds of an interval, as a function of means and counts.

    Args:
        interval: Lil, Lemma1 or KL.
        n: number of nodes.
        delta: () in (0, 1), allowed probability of error of the run.
        noise_scale: () > 0, standard deviation of Gaussian rewards, with `KL`. If None, rewards lie in [0, 1].

    Returns:
        (means (...), counts (...)) -> (lower, upper).
    """
    delta = shared_delta(delta, n, interval.union)
    if isinstance(interval, Lil):
        return partial(lil, delta=delta, radius_scale=interval.radius_scale)
    if isinstance(interval, Lemma1):
        return partial(lemma1, delta=delta)
    k1 = least_k1(interval.alpha) if interval.k1 is None else interval.k1
    if noise_scale is None:
        return partial(kl, delta=delta, alpha=interval.alpha, k1=k1)
    return partial(kl_gaussian, delta=delta, alpha=interval.alpha, k1=k1, noise_scale=noise_scale)


def arm_bounds(bounds: Bounds, problem: Dimensions, *, cap: int, scale: Scale, dtype: Any) -> Bounds:
    """Returns the bounds of a distance from the statistics of its arm, where dimensions are sampled.

    Args:
        bounds: bounds as a function of means and counts.
        problem: Dimensions.
        cap: queries of an arm; with more, it has been read exactly.
        scale: if "mean", bounds are around the mean reward; if "root", around its root.
        dtype: dtype of the bounds.

    Returns:
        (counts int32 (...), sums (...)) -> (lower, upper), finite. They are equal for an arm that has been read; they
        are 0 and the largest finite value for one that has never been queried.
    """
    unit = 1 if problem.levels is None else problem.levels**2

    def of_arm(counts: Array, sums: Array) -> tuple[Array, Array]:
        is_read = counts > cap
        mean = sums.astype(dtype) / jnp.where(is_read, problem.m, jnp.maximum(counts, 1)).astype(dtype) / unit
        if scale == "root":
            mean = jnp.sqrt(mean)
        lower, upper = bounds(mean, jnp.clip(counts, 1, cap))
        lower, upper = jnp.where(is_read, mean, lower), jnp.where(is_read, mean, upper)
        return jnp.where(counts > 0, lower, 0), jnp.where(counts > 0, upper, jnp.finfo(dtype).max)

    return of_arm


def shared_delta(delta: Array | float, n: int, union: Union) -> Array | float:
    """Returns the probability of error of one interval."""
    return delta / n**2 if union == "pairs" else delta / n


@partial(jax.jit, inline=True)
def lil(mean: Array, count: Array, *, delta: Array | float, radius_scale: Array | float) -> tuple[Array, Array]:
    """Computes `Lil`, not clipped."""
    t, delta, radius_scale = (jnp.asarray(x, mean.dtype) for x in (count, delta, radius_scale))
    # log1p(x / delta) as a difference, since x / delta may overflow.
    radius = jnp.sqrt(radius_scale * (log(delta + 1 + log(t)) - jnp.log(delta)) / t)
    return mean - radius, mean + radius


@partial(jax.jit, inline=True)
def lemma1(mean: Array, count: Array, *, delta: Array | float) -> tuple[Array, Array]:
    """Computes `Lemma1`: mean +- sqrt(2 beta / t) with beta = 2 log(125 log(1.12 t) / delta)."""
    t, delta = jnp.asarray(count, mean.dtype), jnp.asarray(delta, mean.dtype)
    radius = jnp.sqrt(4 * (log(125 * log(1.12 * t)) - jnp.log(delta)) / t)
    return mean - radius, mean + radius


def kl(
    mean: Array, count: Array, *, delta: Array | float, alpha: Array | float, k1: Array | float
) -> tuple[Array, Array]:
    """Computes `KL` of samples in [0, 1]: all q of relative entropy at most log(k1 t^alpha / delta) / t."""
    upper, lower = kl_bounds(mean, kl_level(count, delta=delta, alpha=alpha, k1=k1, dtype=mean.dtype))
    return lower, upper


def kl_gaussian(
    mean: Array,
    count: Array,
    *,
    delta: Array | float,
    alpha: Array | float,
    k1: Array | float,
    noise_scale: Array | float,
) -> tuple[Array, Array]:
    """Computes `KL` of Gaussian samples, with kl(p, q) = (p - q)^2 / (2 noise_scale^2)."""
    # DEVIATION: (14) is printed without the variance, and then takes 1 / variance times the queries.
    level = kl_level(count, delta=delta, alpha=alpha, k1=k1, dtype=mean.dtype)
    radius = jnp.asarray(noise_scale, mean.dtype) * jnp.sqrt(2 * level)
    return mean - radius, mean + radius


@partial(jax.jit, static_argnames="dtype", inline=True)
def kl_level(count: Array, *, delta: Array | float, alpha: Array | float, k1: Array | float, dtype: jnp.dtype) -> Array:
    """Computes log(k1 t^alpha / delta) / t, the bound of (14) on kl(mean, q)."""
    t, delta, alpha, k1 = (jnp.asarray(x, dtype) for x in (count, delta, alpha, k1))
    # A sum of logs, as t^alpha / delta may overflow.
    return (jnp.log(k1) + alpha * log(t) - jnp.log(delta)) / t


def least_k1(alpha: Array | float) -> Array | float:
    """Returns the default k1 of (14): 1 % more than the smallest one allowed, 1 + 1 / (alpha - 1).

    It is 11.11 at alpha = 1.1. On images DS-TS needs 7 to 9 % more queries with the usual 405.5, and 11 % more with
    alpha = 2 and its 2.02.
    """
    return 1.01 * (1 + 1 / (alpha - 1))
