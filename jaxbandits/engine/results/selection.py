"""Selection of runs by the values of their columns, for `Results.where`."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.checks import SHOWN, show
from jaxbandits.engine.results.printing import labels
from jaxbandits.engine.results.statistics import full_name, is_real, scalar_columns, short_names, suggestion

# Largest difference of equal numbers in units in the last place: .3 equals 3 * .1.
ULPS = 4


def chosen_runs(columns: dict[str, np.ndarray], conditions: Mapping[str, Any]) -> np.ndarray:
    """Returns which runs (runs,) meet all conditions, each one value of a column or a sequence of values.

    Raises:
        ValueError: a condition names no scalar column, or a value that no run has.
    """
    scalar = scalar_columns(columns)
    chosen = np.ones(len(next(iter(columns.values()), ())), bool)
    for name, values in conditions.items():
        full = full_name(name, scalar)
        if full is None:
            known = short_names(scalar)
            raise ValueError(
                f"{name} must be the name of a scalar column, one of {known}, got {name!r}{suggestion(name, known)}"
            )
        is_several = isinstance(values, (list, tuple, range)) or np.ndim(values) > 0
        matches = np.zeros(len(chosen), bool)
        for value in list(values) if is_several else [values]:
            equal = _equal(scalar[full], value)
            if not equal.any():
                near = suggestion(value, np.unique(scalar[full]).tolist()) if scalar[full].dtype.kind == "U" else ""
                raise ValueError(f"{name} must be a value of a run, {_known(scalar[full])}, got {show(value)}{near}")
            matches |= equal
        chosen &= matches
    return chosen


def _equal(column: np.ndarray, value: Any) -> np.ndarray:
    """Returns which entries equal a value. Numbers of floating-point type may differ by rounding to their own type."""
    nothing = np.zeros(len(column), bool)
    if isinstance(value, (jax.Array, np.ndarray)) and value.ndim == 0:
        value = np.asarray(value)[()]
    is_number = isinstance(value, (bool, int, float, np.number, np.bool_))
    if not is_real(column) or not is_number:
        return nothing if is_number or is_real(column) else np.asarray(column == value)
    is_exact = not jnp.issubdtype(column.dtype, jnp.floating)
    if is_exact or not np.isfinite(value):
        return np.asarray(column == value) if value == value else np.asarray(column != column)
    # Sweeps in float32 that were concatenated with others may stand in a column of float64.
    for kind in (column.dtype, np.float32):
        equal = abs(column.astype(float) - float(value)) <= ULPS / 2 * float(jnp.finfo(kind).eps) * abs(float(value))
        if equal.any():
            return equal
    return nothing


def _known(column: np.ndarray) -> str:
    """Lists the values of a column, the first few of many."""
    distinct = np.unique(column)
    texts = ", ".join(labels(distinct[:SHOWN]))
    return f"one of {texts}" + (f", .. ({len(distinct)} values)" if len(distinct) > SHOWN else "")
