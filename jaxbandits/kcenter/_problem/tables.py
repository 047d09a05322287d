"""Checks of points and of tables of distances."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require

SYMMETRY = 1e-9  # largest difference of distances that count as equal


def check_points(name: str, points: Array | np.ndarray, levels: Any) -> None:
    """Raises `ValueError` unless points are (n, m), with n >= 2 and m >= 1, in 0..levels or, if floats, in [0, 1]."""
    shape, dtype = points.shape, points.dtype
    require(len(shape) == 2, name, "have shape (n, m)", shape)
    require(shape[0] >= 2 and shape[1] >= 1, name, "have n >= 2 rows and m >= 1 columns", shape)
    integers = jnp.issubdtype(dtype, jnp.integer)
    require(integers or jnp.issubdtype(dtype, jnp.floating), name, "be integers or floats", dtype)
    if integers:
        require(levels is not None, "levels", "be given for integer points", levels)
        check_levels("levels", levels, shape[1])
    else:
        require(levels is None, "levels", "be None for float points, which lie in [0, 1]", levels)
    if is_concrete(points):
        values, top = np.asarray(points), levels if integers else 1
        require(integers or np.isfinite(values), name, "be finite", points)
        low, high = values.min(), values.max()
        require(low >= 0 and high <= top, name, f"lie in [0, {top}]", (low.item(), high.item()))


def check_distances(name: str, distances: Array | np.ndarray, *, largest: float = np.inf, floats: bool = True) -> None:
    """Raises `ValueError` unless distances are (n, n), symmetric, with zero diagonal, and in [0, largest]."""
    shape, dtype = distances.shape, distances.dtype
    require(len(shape) == 2 and shape[0] == shape[1], name, "have shape (n, n)", shape)
    require(shape[0] >= 2, name, "have at least two points", shape)
    require(jnp.issubdtype(dtype, jnp.floating if floats else jnp.number), name, "be floats", dtype)
    require(not jnp.issubdtype(dtype, jnp.complexfloating), name, "be real", dtype)
    if is_concrete(distances):
        values = np.asarray(distances)
        require(np.isfinite(values), name, "be finite", distances)
        require(values >= 0, name, "be at least 0", values.min().item())
        require(values <= largest, name, f"be at most {largest:g}", values.max().item())
        require(np.diag(values) == 0, name, "have a zero diagonal", np.diag(values))
        uneven = np.abs(values - values.T).max().item()
        require(uneven <= SYMMETRY, name, f"be symmetric up to {SYMMETRY:g}", uneven)


def check_levels(name: str, levels: Any, m: int) -> None:
    """Raises `ValueError` unless `levels` is a number of levels for which sums over m dimensions are int32."""
    checks.whole(name, levels, least=1)
    require(m * levels**2 < 2**31, name, "give m levels^2 < 2^31, as sums are int32", m * levels**2)


def as_array(name: str, values: Any) -> Any:
    """Returns an array without moving it: a JAX array unchanged, anything else as a NumPy array."""
    if isinstance(values, jax.Array):
        return values
    try:
        values = np.asarray(values)
    except ValueError:
        values = np.asarray(None)
    require(values.dtype.kind in "biuf", name, "be an array of real numbers", values)
    return values


def on_host(name: str, values: Any) -> np.ndarray:
    """Returns concrete values as a NumPy array."""
    require(is_concrete(values), name, "be concrete", values)
    return np.asarray(as_array(name, values))


def sum_dtype(dtype: Any) -> Any:
    """Returns the dtype of sums of squared differences of points."""
    return jnp.dtype(jnp.int32) if jnp.issubdtype(dtype, jnp.integer) else dtype
