"""Argument checks shared by the factories: eager where values are known, silent under a trace."""

from typing import Any

import jax
import jax.core
import numpy as np


def is_concrete(*values: Any) -> bool:
    """True if every value can be looked at now; a tracer's value is known only on the device."""
    return not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def known(value: Any) -> Any:
    """A value that can be looked at now as a NumPy array, a traced one as it is.

    Under a trace even `jax.numpy` operations on constants are traced; what is to be checked there is taken out first.
    """
    return np.asarray(value) if is_concrete(value) else value


def require(holds: Any, name: str, expected: str, got: Any) -> None:
    """Raises `ValueError("NAME must EXPECTED, got GOT")` unless `holds`.

    A traced `holds` is skipped, so a factory may be called inside `jit` and `vmap`.
    """
    if is_concrete(holds) and not bool(np.all(holds)):
        raise ValueError(f"{name} must {expected}, got {_show(got)}")


def require_positive(name: str, value: Any) -> None:
    """Raises `ValueError` unless the value is positive and finite; a traced one is skipped."""
    require(known(value) > 0, name, "be positive", value)
    require(known(value) < np.inf, name, "be finite", value)


def require_not_negative(name: str, value: Any) -> None:
    """Raises `ValueError` unless the value is at least 0 and finite; a traced one is skipped."""
    require(known(value) >= 0, name, "be at least 0", value)
    require(known(value) < np.inf, name, "be finite", value)


def _show(value: Any) -> str:
    if not is_concrete(value):
        return "a traced value"
    if isinstance(value, (jax.Array, np.ndarray)):
        array = np.asarray(value)
        return str(array) if array.size <= 8 else f"an array of shape {array.shape} and dtype {array.dtype}"
    return repr(value)
