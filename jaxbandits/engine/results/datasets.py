"""Results as an xarray data set."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits.engine.results.statistics import appearance, constant_within, full_name, scalar_columns
from jaxbandits.engine.results.summaries import RULE, default_names
from jaxbandits.engine.results.tables import is_task_column

if TYPE_CHECKING:
    import xarray


def dataset(chosen: Mapping[str, np.ndarray], columns: dict[str, np.ndarray]) -> "xarray.Dataset":
    """Builds the data set of `Results.to_xarray`.

    Args:
        chosen: columns (runs, ...) to take, by the names that the caller gave them.
        columns: all columns of the runs.
    """
    try:
        import xarray
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("to_xarray needs xarray: pip install xarray") from error
    labels = default_names(scalar_columns(columns))[:-1]
    full_names = {name: str(full_name(name, columns)) for name in (*labels, "row", "seed")}
    axes = {name: appearance(columns[full_names[name]]) for name in labels}
    axes |= {name: np.unique(columns[name], return_inverse=True) for name in ("row", "seed")}
    shape = {name: len(values) for name, (values, _) in axes.items()}
    position = np.ravel_multi_index([index for _, index in axes.values()], tuple(shape.values()))
    if len(np.unique(position)) < len(position):
        raise ValueError(
            "results must have every row and seed once to be a data set with these dimensions, as one sweep has. "
            "Make a data set of each sweep, and join them with xarray.concat"
        )
    variables: dict[str, Any] = {}
    coordinates: dict[str, Any] = {name: values for name, (values, _) in axes.items()}
    chosen = {name: values for name, values in chosen.items() if full_name(name, columns) not in full_names.values()}
    first, group = np.unique(columns["row"], return_index=True, return_inverse=True)[1:]
    of_rows = constant_within({name: values for name, values in chosen.items() if is_task_column(name)}, first, group)
    short = [name.rpartition(".")[2] for name in of_rows]
    for name, values in chosen.items():
        last = name.rpartition(".")[2]
        if name in of_rows:
            is_clear = short.count(last) == 1 and last not in {*chosen, *axes}
            coordinates[last if is_clear else name] = ("row", of_rows[name])
        elif name == RULE:
            coordinates[name] = values[0] if len(values) else ""
        else:
            dimensions = (*axes, *(f"{name}_{n}" for n in range(values.ndim - 1)))
            variables[name] = dimensions, _spread(values, position, tuple(shape.values()))
    return xarray.Dataset(variables, coordinates)


def _spread(values: np.ndarray, position: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Spreads a column (runs, ...) over an array (*shape, ...), with NaN for missing runs."""
    count = math.prod(shape)
    if len(position) == count:
        spread = np.empty((count, *values.shape[1:]), values.dtype)
    elif values.dtype.kind in "biu":
        spread = np.full((count, *values.shape[1:]), np.nan)
    else:
        kind = values.dtype if values.dtype.kind in "fc" else object
        spread = np.full((count, *values.shape[1:]), np.nan, kind)
    spread[position] = values
    return spread.reshape(*shape, *values.shape[1:])
