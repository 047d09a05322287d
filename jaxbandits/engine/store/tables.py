"""The table of tasks of a store: `_tasks.parquet`, one line per row, to be joined with the runs by `row`."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import PyTree
from jaxbandits.engine.results.tables import column_name, is_key, leaves_of
from jaxbandits.engine.store.files import explained, write_file
from jaxbandits.engine.store.parts import METADATA_KEY, to_arrow, to_numpy

TASKS = "_tasks.parquet"  # readers of Parquet folders skip names that begin with an underscore
STORED = {"bool", "float16", "float32", "float64"} | {f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)}

# Most numbers of a leaf that a description spells out; beyond it, the hash stands alone.
SHOWN = 10_000


class Values(NamedTuple):
    """One leaf of a table of tasks, as a store keeps it."""

    dtype: str  # dtype of the leaf
    numbers: np.ndarray  # (rows, ...)   the leaf, or the data of a PRNG key


Table = dict[str, Values]  # leaves by path


def table_of(tasks: PyTree) -> Table:
    """Returns the table as plain values."""
    # A PRNG key has no bytes of its own, only its data has.
    return {
        path: Values(str(leaf.dtype), np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf))
        for path, leaf in leaves_of(tasks).items()
    }


def head(table: Table, rows: int) -> Table:
    """Returns the first `rows` rows of a table."""
    return {path: Values(dtype, numbers[:rows]) for path, (dtype, numbers) in table.items()}


def describe_table(table: Table) -> dict[str, Any]:
    """Describes the table for readers and comparison: a hash of its bytes, the shapes, and the values if they are few.

    Values that are not finite are left out.
    """
    described: dict[str, Any] = {}
    sha = hashlib.sha256()
    for path, (dtype, numbers) in table.items():
        sha.update(f"{path} {dtype} {numbers.shape}".encode())
        sha.update(np.ascontiguousarray(numbers).tobytes())
        described[path] = {"dtype": dtype, "shape": list(numbers.shape)}
        # JSON has no NaN and no infinity.
        if numbers.size <= SHOWN and numbers.dtype.kind in "biuf" and np.isfinite(numbers).all():
            described[path]["values"] = numbers.tolist()
    return {"sha256": sha.hexdigest(), "table": described}


def write_table(folder: Path, table: Table) -> None:
    """Writes the table and replaces an earlier one. A table without a leaf has no file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not table:
        return
    kinds, columns = {}, {}
    for path, (dtype, numbers) in table.items():
        kinds[path] = {"dtype": dtype, "numbers": str(numbers.dtype), "shape": numbers.shape[1:]}
        columns.setdefault("row", to_arrow(np.arange(len(numbers))))
        if numbers.size:  # Parquet has no lists of length 0
            columns[column_name(path)] = to_arrow(numbers if str(numbers.dtype) in STORED else _as_bytes(numbers))
    buffer = pa.BufferOutputStream()
    schema = {METADATA_KEY: json.dumps(kinds)}
    pq.write_table(pa.table(columns).replace_schema_metadata(schema), buffer, compression="zstd")
    with explained(folder):
        write_file(folder / TASKS, buffer.getvalue().to_pybytes())


def read_table(folder: Path) -> Table | None:
    """Reads the table. Returns None if it is missing or cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        columns = pq.ParquetFile(pa.BufferReader((folder / TASKS).read_bytes())).read(use_threads=False)
        kinds = json.loads(columns.schema.metadata[METADATA_KEY])
        return {path: _read(columns, column_name(path), **kind) for path, kind in kinds.items()}
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _read(columns: Any, name: str, *, dtype: str, numbers: str, shape: list[int]) -> Values:
    if 0 in shape:
        return Values(dtype, np.empty((len(columns), *shape), jnp.dtype(numbers)))
    flat = to_numpy(columns[name])
    return Values(dtype, np.ascontiguousarray(flat).view(jnp.dtype(numbers)).reshape(len(columns), *shape))


def _as_bytes(numbers: np.ndarray) -> np.ndarray:
    """Converts numbers of a type that Parquet does not have to bytes (rows, bytes of a row)."""
    return np.ascontiguousarray(numbers).view(np.uint8).reshape(len(numbers), -1)
