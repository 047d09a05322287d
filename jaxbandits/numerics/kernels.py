"""Parts of a round that a CPU computes in kernels of their own.

XLA:CPU copies elementwise work into each kernel that reads its result, and an optimization barrier does not keep it
from that. The leader of a lane, found by a chain of comparisons, is then found again for every arm of the lane in all
kernels that depend on it. A call that stays a call is computed once: TTUCB takes 43 core-ns a round instead of 59.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata

from jaxbandits.base import Array
from jaxbandits.checks import is_concrete
from jaxbandits.numerics.platforms import by_platform


def apart(function: Callable[..., Any], *arrays: Any, elsewhere: Callable[..., Any] | None = None) -> Any:
    """Computes a function of arrays in kernels of its own on a CPU, elsewhere together with the work around it.

    Each call costs a CPU about a microsecond for all lanes of a batch, and its arguments and results are written to
    memory. A function that several kernels read gains, a function of many arrays does not.

    Args:
        function: function of the arrays.
        arrays: arrays, or structures of them.
        elsewhere: function that takes its place on other platforms. If None, it is the same.
    """
    if is_concrete(*arrays):
        return function(*arrays)
    # A function of a module is traced once per shape, others each time.
    name = getattr(function, "__name__", None)
    is_lasting = name is not None and name == getattr(function, "__qualname__", None)
    on_cpu, inlined = (_kept_forms if is_lasting else _forms)(function)
    return by_platform(*arrays, cpu=on_cpu, default=elsewhere or inlined)


def added(total: Array, number: Array) -> Array:
    """Returns total + number, int (), of a number that is at least 0.

    XLA:CPU adds in vectors if more than the sum is to be computed, in 0.8 ns a lane, and otherwise one by one in 1.9.
    """
    return total + jnp.where(number > 0, number, 0).astype(total.dtype)


def _forms(function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Returns the function as a call that stays one, and as part of the program around it."""

    @jax.jit
    def body(*arrays: Array) -> Any:
        # Calls within it, such as `jnp.where`, become part of it.
        with set_xla_metadata(inlineable="true"):
            return function(*arrays)

    def call(*arrays: Array) -> Any:
        with set_xla_metadata(inlineable="false"):
            return body(*arrays)

    return call, jax.jit(function, inline=True)


_kept_forms = cache(_forms)
