"""Posterior draws of laws that draw them from a key of their own."""

from collections.abc import Callable
from typing import Any

import jax

from jaxbandits.base import Array, Key

Draws = Callable[[Any, Key, Array, Array, int | None], Array]  # (problem, key, counts, means, number)


def draw_and_uniforms(posterior_draws: Draws) -> Callable[[Any, Key, Array, Array, int], tuple[Array, Array]]:
    """Returns the `posterior_draw_and_uniforms` of a law with these `posterior_draws`."""

    def drawn(problem: Any, key: Key, counts: Array, means: Array, number: int) -> tuple[Array, Array]:
        of_draw, of_uniforms = jax.random.split(key)
        draw = posterior_draws(problem, of_draw, counts, means, None)
        return draw, jax.random.uniform(of_uniforms, (number,), means.dtype)

    return drawn
