"""Confidence widths of the designs that are fixed before the rewards are seen."""

import math
from typing import Literal, get_args

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.checks import known, require, require_positive

Width = Literal["azuma", "subgaussian"]


def check_width(*, delta: Array | float, arms: int, noise_scale: Array | float, union_power: int, width: Width) -> None:
    """Raises ValueError unless the arguments of `confidence_scale` are in range.

    Args:
        delta: error probability, in (0, 1).
        arms: number of arms, at least 2.
        noise_scale: sub-Gaussian constant of the noise, above 0.
        union_power: 1 or 2.
        width: "azuma" or "subgaussian".
    """
    require((known(delta) > 0) & (known(delta) < 1), "delta", "lie in (0, 1)", delta)
    require(arms >= 2, "arms", "number at least 2", arms)
    require_positive("noise_scale", noise_scale)
    require(union_power in (1, 2), "union_power", "be 1 or 2", union_power)
    require(width in get_args(Width), "width", f"be one of {get_args(Width)}", width)


def confidence_scale(
    n: Array | int,
    *,
    delta: Array | float,
    arms: int,
    noise_scale: Array | float = 1.0,
    union_power: int = 2,
    width: Width = "azuma",
) -> Array:
    """What turns a design's norm into a confidence width for least squares.

    After n pulls, placed without regard to the rewards, with A = sum of x x' over them, every gap lies within
    scale(n) ||x_i - x_j|| in A^-1 of its estimate, for all n and the pairs of the union bound at once, with
    probability at least 1 - delta.

    Args:
        n: int or float (...), number of pulls, at least 1.
        delta: float (), error probability, in (0, 1).
        arms: K, a Python int.
        noise_scale: float (), sub-Gaussian constant of the noise. Proposition 1 behind "azuma" asks for
            bounded noise and its bound; the published experiments put 1 for standard Gaussian noise.
        union_power: 2 for a union bound over all pairs, 1 for the pairs with one known arm.
        width: "azuma", as published, or "subgaussian", also valid and tight: its square is smaller by a
            factor 3.8 (K = 6, n = 1e6 to 1.5e7).

    Returns:
        float (...), of n's dtype, or the default one where n counts in integers.

    Raises:
        ValueError: an argument is out of range.

    Source: Soare, Lazaric and Munos (2014), Proposition 1; Xu, Honda and Sugiyama (2018), equation (2).
    """
    check_width(delta=delta, arms=arms, noise_scale=noise_scale, union_power=union_power, width=width)
    n = jnp.asarray(n)
    n = n if jnp.issubdtype(n.dtype, jnp.inexact) else n.astype(float)
    # The sum of logarithms: n^2 would overflow an integer.
    log_union = 2 * jnp.log(n) + union_power * math.log(arms) - jnp.log(jnp.asarray(delta, n.dtype))
    noise_scale = jnp.asarray(noise_scale, n.dtype)
    if width == "subgaussian":
        return noise_scale * jnp.sqrt(2 * (log_union + math.log(math.pi**2 / 3)))
    # As printed. A union over n with weights 6/(pi n)^2 gives pi^2/6 where this has its mirror image 6/pi^2;
    # the factor 2 in front, where 1 suffices, more than covers it.
    return 2 * noise_scale * jnp.sqrt(2 * (log_union + math.log(6 / math.pi**2)))
