"""Confidence intervals of a distance from the mean of its samples.

Each function takes means (...) and counts (...) and returns (lower, upper), both (...), of the means' dtype. Counts are
ints of at least 1. `delta` is what `shared_delta` leaves for one of the intervals.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.checks import known, require, require_positive
from jaxbandits.numerics.kl import kl_bounds

Interval = Callable[[Array, Array], tuple[Array, Array]]  # (means (...), counts (...)) -> (lower, upper)
Form = Literal["lil", "lemma1", "kl"]
Union = Literal["points", "pairs"]


def sampled_interval(
    form: Form,
    n: int,
    *,
    delta: Array | float,
    union: Union | None,
    radius_scale: Array | float = 0.1,
    alpha: Array | float = 1.1,
    k1: Array | float | None = None,
) -> Interval:
    """An interval for distances sampled in single dimensions, with its union bound.

    Args:
        form: `lil`, `lemma1` or `kl`.
        n: number of nodes.
        delta: () in (0, 1), admitted probability of error of the run.
        union: as in `shared_delta`; None: "points" for "lil", "pairs" for the others.
        radius_scale: () > 0, of `lil`.
        alpha: () > 1, of `kl`.
        k1: () > 1 + 1 / (alpha - 1), of `kl`; None: `least_k1(alpha)`.

    Returns:
        The interval.

    Raises:
        ValueError: an argument is out of range or unknown.
    """
    require(form in get_args(Form), "interval", f"be one of {get_args(Form)}", form)
    require_positive("radius_scale", radius_scale)
    check_kl(alpha, k1)
    # DEVIATION: (22) is printed with n^2. The paper's tables grow with 1 / delta as they do with n, and not with n^2.
    union = ("points" if form == "lil" else "pairs") if union is None else union
    delta = shared_delta(delta, n, union)
    if form == "lil":
        return partial(lil, delta=delta, radius_scale=radius_scale)
    if form == "lemma1":
        return partial(lemma1, delta=delta)
    return partial(kl, delta=delta, alpha=alpha, k1=least_k1(alpha) if k1 is None else k1)


def shared_delta(delta: Array | float, n: int, union: Union) -> Array | float:
    """The probability of error for one interval.

    Args:
        delta: () in (0, 1), admitted probability of error of the run.
        n: number of nodes.
        union: "pairs": delta / n^2, a union bound over all pairs of nodes; "points": delta / n, which is not proved.

    Returns:
        ().

    Raises:
        ValueError: delta is out of range or `union` is unknown.
    """
    require((known(delta) > 0) & (known(delta) < 1), "delta", "lie in (0, 1)", delta)
    require(union in get_args(Union), "union", f"be one of {get_args(Union)}", union)
    return delta / n**2 if union == "pairs" else delta / n


def lil(mean: Array, count: Array, *, delta: Array | float, radius_scale: Array | float = 0.1) -> tuple[Array, Array]:
    """The paper's heuristic (22): mean +- sqrt(radius_scale log(1 + (1 + log t) / delta) / t), not clipped."""
    t, delta, scale = (jnp.asarray(x, mean.dtype) for x in (count, delta, radius_scale))
    radius = jnp.sqrt(scale * jnp.log1p((1 + jnp.log(t)) / delta) / t)
    return mean - radius, mean + radius


def lemma1(mean: Array, count: Array, *, delta: Array | float) -> tuple[Array, Array]:
    """Lemma 1, valid at all t at once: mean +- sqrt(2 beta / t) with beta = 2 log(125 log(1.12 t) / delta)."""
    t, delta = jnp.asarray(count, mean.dtype), jnp.asarray(delta, mean.dtype)
    radius = jnp.sqrt(4 * jnp.log(125 * jnp.log(1.12 * t) / delta) / t)
    return mean - radius, mean + radius


def kl(
    mean: Array, count: Array, *, delta: Array | float, alpha: Array | float, k1: Array | float
) -> tuple[Array, Array]:
    """All q whose relative entropy from the mean of samples in [0, 1] is at most log(k1 t^alpha / delta) / t: (14)."""
    upper, lower = kl_bounds(mean, kl_level(count, delta=delta, alpha=alpha, k1=k1, dtype=mean.dtype))
    return lower, upper


def kl_gaussian(
    mean: Array,
    count: Array,
    *,
    delta: Array | float,
    alpha: Array | float,
    k1: Array | float,
    variance: Array | float,
) -> tuple[Array, Array]:
    """As `kl`, for Gaussian samples, where kl(p, q) = (p - q)^2 / (2 variance)."""
    # DEVIATION: (14) is printed without the variance, which costs 1 / variance times the queries.
    level = kl_level(count, delta=delta, alpha=alpha, k1=k1, dtype=mean.dtype)
    radius = jnp.sqrt(2 * jnp.asarray(variance, mean.dtype) * level)
    return mean - radius, mean + radius


def kl_level(count: Array, *, delta: Array | float, alpha: Array | float, k1: Array | float, dtype: jnp.dtype) -> Array:
    """log(k1 t^alpha / delta) / t, the bound of (14) on kl(mean, q); a sum of logs, as t^alpha / delta may overflow."""
    t, delta, alpha, k1 = (jnp.asarray(x, dtype) for x in (count, delta, alpha, k1))
    return (jnp.log(k1) + alpha * jnp.log(t) - jnp.log(delta)) / t


def least_k1(alpha: Array | float) -> Array | float:
    """The k1 of (14) by default: the least that it allows, 1 + 1 / (alpha - 1), and 1 % more.

    It is 11.11 at alpha = 1.1. On images DS-TS needs 7 to 9 % more queries with the usual 405.5, and 11 % more with
    alpha = 2 and its 2.02.
    """
    return 1.01 * (1 + 1 / (alpha - 1))


def check_kl(alpha: Array | float, k1: Array | float | None) -> None:
    """Raises `ValueError` unless alpha > 1 and k1 > 1 + 1 / (alpha - 1), or None."""
    require(known(alpha) > 1, "alpha", "exceed 1", alpha)
    if k1 is not None:
        require(known(k1) > 1 + 1 / (known(alpha) - 1), "k1", "exceed 1 + 1 / (alpha - 1)", k1)
