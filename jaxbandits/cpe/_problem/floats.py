"""Floats of problems and arms: their checks, and their rounding."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.checks import is_concrete


def rounding(dtype: Any) -> float:
    """Returns the distance from 1 to the next number of a floating dtype."""
    return float(jnp.finfo(dtype).eps)


def floats(name: str, values: Any, shape: tuple[int | str, ...], dtype: Any = None, **bounds: Any) -> Any:
    """Checks an array of numbers as `checks.array` does, and leaves a known one on the host.

    Under a trace JAX would hide it from further checks. If `dtype` is None, it is JAX's default; a traced array of
    floats keeps its dtype.
    """
    dtype = None if dtype is None else checks.float_dtype("dtype", dtype)
    checks.array(name, values, shape, **bounds)
    if is_concrete(values):
        return np.asarray(values, checks.float_dtype("dtype", dtype))
    values = jnp.asarray(values)
    return values.astype(jnp.result_type(values.dtype, float) if dtype is None else dtype)
