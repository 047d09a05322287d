"""Results as an xarray data set."""

from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits.engine.results.statistics import constant_within
from jaxbandits.engine.results.tables import is_task_column

if TYPE_CHECKING:
    import xarray


def dataset(columns: dict[str, np.ndarray], row: np.ndarray, seed: np.ndarray) -> "xarray.Dataset":
    """Builds the data set of `Results.to_xarray`, from columns (runs, ...) and each run's `row` and `seed`."""
    try:
        import xarray
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("to_xarray needs xarray: pip install xarray") from error
    rows, first, group = np.unique(row, return_index=True, return_inverse=True)
    seeds, column = np.unique(seed, return_inverse=True)
    position = group * len(seeds) + column
    if len(np.unique(position)) < len(position):
        raise ValueError(
            "results must have every row and seed once to be a data set with these dimensions, as one sweep has. "
            "Make a data set of each sweep, and join them with xarray.concat"
        )
    of_rows = constant_within({name: x for name, x in columns.items() if is_task_column(name)}, first, group)
    short = [name.rpartition(".")[2] for name in of_rows]
    taken = {"row", "seed", *columns}
    coordinates: dict[str, Any] = {"row": rows, "seed": seeds}
    for name, values in of_rows.items():
        last = name.rpartition(".")[2]
        coordinates[last if short.count(last) == 1 and last not in taken else name] = ("row", values)
    variables = {
        name: (
            ("row", "seed", *(f"{name}_{n}" for n in range(values.ndim - 1))),
            _spread(values, position, rows=len(rows), seeds=len(seeds)),
        )
        for name, values in columns.items()
        if name not in of_rows and name not in ("row", "seed")
    }
    return xarray.Dataset(variables, coordinates)


def _spread(values: np.ndarray, position: np.ndarray, *, rows: int, seeds: int) -> np.ndarray:
    """Spreads a column (runs, ...) over an array (rows, seeds, ...), with NaN for missing runs."""
    count, shape = rows * seeds, values.shape[1:]
    if len(position) == count:
        spread = np.empty((count, *shape), values.dtype)
    elif values.dtype.kind in "biu":
        spread = np.full((count, *shape), np.nan)
    else:
        spread = np.full((count, *shape), np.nan, values.dtype if values.dtype.kind in "fc" else object)
    spread[position] = values
    return spread.reshape(rows, seeds, *shape)
