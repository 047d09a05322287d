"""Confidence radii of designs that are fixed before the rewards are observed, and of LinGapE, which is adaptive."""

import math
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array

Radius = Literal["azuma", "subgaussian"]


class RadiusSettings(NamedTuple):
    """Arguments of a radius except the number of pulls; see `confidence_radius`."""

    delta: Array | float
    K: int
    noise_scale: Array | float
    union_power: int
    radius: Radius


def checked_radius_settings(
    *, delta: Array | float, K: int, noise_scale: Array | float, union_power: int, radius: Radius
) -> RadiusSettings:
    """Collects the arguments of `confidence_radius`; raises `ValueError` unless they are in range."""
    checks.probability("delta", delta)
    K = checks.whole("K", K, least=2)
    checks.positive("noise_scale", noise_scale)
    union_power = checks.whole("union_power", union_power, least=1, most=2)
    checks.one_of("radius", radius, Radius)
    return RadiusSettings(delta=delta, K=K, noise_scale=noise_scale, union_power=union_power, radius=radius)


def confidence_radius(
    n: Array | float,
    *,
    delta: Array | float,
    K: int,
    noise_scale: Array | float = 1.0,
    union_power: int = 2,
    radius: Radius = "azuma",
) -> Array:
    """Computes the radius C(n) of the confidence intervals around the least-squares estimates of gaps.

    Let A be the sum of x x' over n pulls that were chosen without regard to the rewards. With probability at least
    1 - delta, for all n and for all pairs of the union bound at once, every gap lies within C(n) ||x_i - x_j||_{A^-1}
    of its estimate.

    Args:
        n: int or float (...), number of pulls, at least 1.
        delta: float (), error probability, in (0, 1).
        K: number of arms, a Python int, at least 2.
        noise_scale: float (), sub-Gaussian constant of the noise, in units of reward, above 0. Proposition 1 behind
            "azuma" requires bounded noise and its bound; the published experiments use 1 for standard Gaussian noise.
        union_power: 2 for a union bound over all pairs, 1 for the pairs with one known arm.
        radius: "azuma", as published, or "subgaussian", which is also valid and tighter: its square is smaller by a
            factor 3.8 (K = 6, n = 1e6 to 1.5e7).

    Returns:
        float (...), of n's dtype, or of the default dtype if n is an integer.

    Raises:
        ValueError: an argument is out of range.

    Source: Soare, Lazaric and Munos (2014), Proposition 1; Xu, Honda and Sugiyama (2018), equation (2).
    """
    n = checks.array("n", n, ("...",), least=1)
    settings = checked_radius_settings(
        delta=delta, K=K, noise_scale=noise_scale, union_power=union_power, radius=radius
    )
    return radius_after(n, settings)


def radius_after(n: Array, confidence: RadiusSettings) -> Array:
    """Computes the radius after n pulls, float (...), without checks."""
    delta, K, noise_scale, union_power, radius = confidence
    # A sum of logarithms, because n^2 would overflow an integer.
    log_union = 2 * jnp.log(n) + union_power * math.log(K) - jnp.log(jnp.asarray(delta, n.dtype))
    noise_scale = jnp.asarray(noise_scale, n.dtype)
    if radius == "subgaussian":
        return noise_scale * jnp.sqrt(2 * (log_union + math.log(math.pi**2 / 3)))
    # As printed. A union over n with weights 6/(pi n)^2 gives pi^2/6 where this has its inverse 6/pi^2;
    # the factor 2 in front, where 1 suffices, more than covers it.
    return 2 * noise_scale * jnp.sqrt(2 * (log_union + math.log(6 / math.pi**2)))


def lingape_radius(
    logdet: Array | float,
    *,
    K: int,
    delta: Array | float,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
    norm_bound: Array | float = 2.0,
    union_bound: Array | float | None = None,
) -> Array:
    """Computes the radius C of LinGapE's confidence ellipsoid for theta, in the norm of A = ridge I + sum of x x'.

    With probability at least 1 - delta, in all rounds and for arms chosen by any rule, the gap of every pair lies
    within C ||x_i - x_j||_{A^-1} of its estimate.

    Args:
        logdet: float (...), log det(A / ridge), such as `state.logdet` or `estimate(..).logdet`.
        K: number of arms, a Python int, at least 2.
        delta: () in (0, 1), as for `lingape`; so are the arguments below.
        ridge: () > 0.
        noise_scale: () > 0.
        norm_bound: () >= 0.
        union_bound: () > 0, or None for K^2.

    Returns:
        float (...).

    Raises:
        ValueError: an argument is out of range.

    Source: Xu, Honda and Sugiyama (2018), equation (3); Abbasi-Yadkori, Pal and Szepesvari (2011), Theorem 2.
    """
    logdet = checks.array("logdet", logdet, ("...",))
    K = checks.whole("K", K, least=2)
    checks.probability("delta", delta)
    checks.positive("ridge", ridge)
    checks.positive("noise_scale", noise_scale)
    checks.not_negative("norm_bound", norm_bound)
    union_bound = K**2 if union_bound is None else union_bound
    checks.positive("union_bound", union_bound)
    numbers = (delta, ridge, noise_scale, norm_bound, union_bound)
    return radius_at(logdet, *(jnp.asarray(x, logdet.dtype) for x in numbers))


@partial(jax.jit, inline=True)
def radius_at(
    logdet: Array, delta: Array, ridge: Array, noise_scale: Array, norm_bound: Array, union_bound: Array
) -> Array:
    """Computes `lingape_radius` of numbers of one dtype, without checks."""
    return noise_scale * jnp.sqrt(logdet + 2 * jnp.log(union_bound / delta)) + jnp.sqrt(ridge) * norm_bound
