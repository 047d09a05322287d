"""Rows of arrays that stay whole: a row is read and split into entries."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.engine.scalars.rules import Entries, entries
from jaxbandits.engine.scalars.values import Batch, Whole, as_entries, fits, is_varying, vector

# Largest number of positions in a shared table for a compare and a select each. With more, the row is read.
TABLE = 16
# Largest number of rows of a large array that are read one by one. Stacked, their indices would be another kernel.
PLACES = 4


def is_read_from_table(equation: Any, values: Sequence[Any]) -> bool:
    """Checks whether lanes take a row from an array that they share, at different ones of many positions."""
    name, params, table = equation.primitive.name, equation.params, values[0]
    if name not in ("gather", "dynamic_slice") or is_varying(table) or not any(map(is_varying, values[1:])):
        return False
    shape = equation.invars[0].aval.shape
    return math.prod(n - size + 1 for n, size in zip(shape, params["slice_sizes"], strict=True)) > TABLE


def rows_one_by_one(equation: Any, values: Sequence[Any], batch: Batch) -> Entries | None:
    """Reads a few rows of a large array, one by one. Returns None for any other operation."""
    (table, indices), params = values, equation.params
    taken, out, dims = equation.invars[0].aval, equation.outvars[0].aval, params["dimension_numbers"]
    if not isinstance(table, Whole) or isinstance(indices, Whole) or fits(taken) or indices.ndim != 2:
        return None
    is_plain = dims.offset_dims == tuple(range(1, out.ndim)) and not dims.operand_batching_dims
    if not is_plain or len(indices) > PLACES:
        return None
    row_dims = dims._replace(offset_dims=tuple(range(out.ndim - 1)))

    def row(array: Array, index: list[Array]) -> Array:
        given = {name: params[name] for name in ("slice_sizes", "mode", "fill_value")}
        return lax.gather(array, jnp.stack(index), row_dims, **given)

    row_entries = []
    for index in indices:
        vectors = [vector(x, equation.invars[1].aval.dtype, batch) for x in index]
        rows = jax.vmap(row, in_axes=(table.axis, 0), axis_size=batch.lanes)(table.array, vectors)
        row_entries.extend(as_entries(Whole(rows, 0), batch).ravel())
    return entries(row_entries, out.shape)


def row_of_chunk(equation: Any, values: Sequence[Any], batch: Batch) -> Any:
    """Reads a row of a large array with lanes last, such as the noise of a chunk. Returns None for other arrays."""
    (array, axis), *starts = values
    if axis is None or axis != array.ndim - 1:
        return None
    sizes, starts = equation.params["slice_sizes"], [as_entries(s, batch)[()] for s in starts]
    full = [s == n for s, n in zip(sizes, array.shape[:-1], strict=True)]
    if sizes[0] != 1 or not all(full[1:]):
        return None
    at = jnp.clip(jnp.asarray(starts[0]), 0, array.shape[0] - 1)
    if at.ndim == 0:
        row = lax.dynamic_index_in_dim(array, at, keepdims=True)
    else:
        row = jnp.take_along_axis(array, at.reshape((1,) * axis + (-1,)), 0)
    return as_entries(Whole(row, axis), batch)
