"""Rewards of a stream in which the n-th pull of an arm has a uniform number of its own; without leaps."""

from collections.abc import Callable
from typing import Any

import jax

from jaxbandits.base import Array, Key
from jaxbandits.streams import key_of

Pay = Callable[[Any, Array, Array, Array, Array, int], tuple[Array, Array]]


def numbered(pay: Pay) -> Callable[[Any, Key, Array, int], Callable[[Array, Array, Array], tuple[Array, Array]]]:
    """Returns the `pay_from_stream` of a law whose `pay` takes a uniform number per slot where the leap is 1."""

    def pay_from_stream(
        problem: Any, stream: Key, means: Array, leap: int
    ) -> Callable[[Array, Array, Array], tuple[Array, Array]]:
        def uniform(arm: Array, number: Array) -> Array:
            return jax.random.uniform(key_of(stream, arm, number), (), means.dtype)

        def pay_numbered(arms: Array, times: Array, before: Array) -> tuple[Array, Array]:
            return pay(problem, jax.vmap(uniform)(arms, before), means, arms, times, leap)

        return pay_numbered

    return pay_from_stream
