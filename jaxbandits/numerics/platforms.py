"""Code that is one thing on a CPU and another on other platforms, in programs that know theirs, or any."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
from jax import lax

# Part of the key of `jax.jit`'s caches. Functions that were compiled before this import are traced once more.
_platform = jax.make_user_context(None)


def compiled_for(platform: str | None) -> AbstractContextManager[None]:
    """Traces programs for one platform, without the code of the others.

    JAX would trace and batch the code of all, and drop all but one when it lowers the program.

    Args:
        platform: name of the platform, such as "cpu"; None for programs that may be lowered for any.
    """
    return _platform(platform)


def known_platform() -> str | None:
    """Returns the name of the platform that the program is traced for; None if it may be lowered for any."""
    return _platform.value


def by_platform(*arrays: Any, cpu: Callable[..., Any], default: Callable[..., Any]) -> Any:
    """Computes a function of arrays by the code of the platform, as `lax.platform_dependent` does.

    Args:
        arrays: arrays, or structures of them.
        cpu: function of the arrays that a CPU computes.
        default: function of the arrays that other platforms compute.
    """
    platform = known_platform()
    if platform is None:
        return lax.platform_dependent(*arrays, cpu=cpu, default=default)
    return (cpu if platform == "cpu" else default)(*arrays)
