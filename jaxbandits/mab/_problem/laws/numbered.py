"""Rewards of a stream in which the n-th pull of an arm has uniform numbers of its own; without leaps."""

from collections.abc import Callable
from typing import Any

import jax

from jaxbandits.base import Array, Key
from jaxbandits.mab._problem.laws.law import Slots
from jaxbandits.streams import key_of

Pay = Callable[[Any, Array, Array, Slots, int], Slots]
PayNumbered = Callable[[Slots, Array], Slots]


def numbered(pay: Pay, shape: tuple[int, ...] = ()) -> Callable[[Any, Key, Array, int], PayNumbered]:
    """Returns the `pay_from_stream` of a law whose `pay` takes uniform numbers of this shape for each slot."""

    def pay_from_stream(problem: Any, stream: Key, means: Array, leap: int) -> PayNumbered:
        def uniform(arm: Array, number: Array) -> Array:
            return jax.random.uniform(key_of(stream, arm, number), shape, means.dtype)

        def pay_numbered(action: Slots, before: Array) -> Slots:
            return pay(problem, jax.vmap(uniform, out_axes=-1)(action[0], before), means, action, leap)

        return pay_numbered

    return pay_from_stream
