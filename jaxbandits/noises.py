"""Noise other than normal, of unit scale, where theory asks for no more than sub-Gaussian rewards."""

import math
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Key
from jaxbandits.checks import require

Shape = Literal["uniform", "rademacher"]
Sampler = Callable[[Key], Array]  # (key) -> float (), of mean 0 and sub-Gaussian constant 1


def sampler_of(name: str, noise: Any, dtype: Any) -> Sampler:
    """Returns the sampler of a noise of mean 0 and sub-Gaussian constant 1.

    Args:
        name: name of the argument.
        noise: "uniform" on [-sqrt 3, sqrt 3], or "rademacher", -1 or 1; both have variance 1. Or a function
            (key) -> float ().
        dtype: dtype of the rewards.

    Raises:
        ValueError: it is none of these, or its samples are not single numbers.
    """
    if callable(noise):
        drawn: Any = jax.eval_shape(noise, jax.eval_shape(lambda: jax.random.key(0, impl="threefry2x32")))
        is_number = getattr(drawn, "shape", None) == () and jnp.issubdtype(drawn.dtype, jnp.floating)
        require(is_number, name, "return a number, float (), for a key", drawn)
        return lambda key: jnp.asarray(noise(key), dtype)
    checks.one_of(name, noise, Shape)
    if noise == "uniform":
        return lambda key: math.sqrt(3) * jax.random.uniform(key, (), dtype, -1, 1)
    return lambda key: jax.random.rademacher(key, (), dtype)
