"""The parts of a store: Parquet files of finished runs, each named by the checksum of its bytes."""

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.engine.results.runs import Stats, added

METADATA_KEY = b"jaxbandits"  # key of a part's own metadata
COUNTED = ("runs", "censored")  # counts in a part's metadata, beside the session and its `Stats`


class Expected(NamedTuple):
    """Requirements on the parts of a store."""

    identity: str | None  # identity of the store; None if it was written before stores had one
    types: dict[str, Any]  # PyArrow types by column, for the columns that Parquet can hold
    rows: int  # largest number of rows of any call
    seeds: int  # largest number of seeds of any call


class Part(NamedTuple):
    """A part that has been read."""

    table: Any  # PyArrow table of the requested columns
    metadata: dict[str, Any]

    @property
    def runs(self) -> np.ndarray:
        """Runs as single numbers, int64 (runs,): the seed in the upper half, the row in the lower."""
        return to_numpy(self.table["seed"]) * 2**32 + to_numpy(self.table["row"])


class Unfit(NamedTuple):
    """The reason why a file with a part's name does not belong to the store."""

    reason: str  # predicate, to follow "a part that .."
    kind: str = "damaged"  # suffix of the name under which the file is set aside


def part_paths(folder: Path) -> list[Path]:
    """Returns the paths of all parts, in the order of their names."""
    return sorted(folder.glob("part-*.parquet"))


def checksum(data: bytes) -> str:
    """Returns the SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def read_part(
    path: Path, expected: Expected, *, columns: Sequence[str] | None = None, verify: bool = True
) -> Part | Unfit:
    """Reads a part.

    Args:
        path: path of the part.
        expected: requirements on the parts of its store.
        columns: columns to read, in addition to `row` and `seed`. If None, all.
        verify: if True, compares the checksum, which reads the whole file.

    Returns:
        The part, or the reason why it does not fit. A right checksum proves that a file is whole, not where it is from.

    Raises:
        OSError: the file cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.is_dir():
        return Unfit("is a folder")
    names = None if columns is None else list(dict.fromkeys(("row", "seed", *columns)))
    with contextlib.ExitStack() as stack:
        if verify:
            data = path.read_bytes()
            if path.name != f"part-{checksum(data)}.parquet":
                return Unfit("is damaged")
            source = pa.BufferReader(data)
        else:
            source = stack.enter_context(_opened(path))
        try:
            file = stack.enter_context(pq.ParquetFile(source))
            metadata = _read_metadata(file)
            if metadata is None:
                return Unfit("has no metadata that can be read")
            if metadata.get("identity") != expected.identity:
                return Unfit("is of another store", "foreign")
            if (reason := _misfit(file, expected)) is not None:
                return Unfit(reason)
            # In this thread: a thread of PyArrow that releases Python's bytes while the process ends can abort it.
            part = Part(file.read(columns=names, use_threads=False), metadata)
        except (pa.ArrowException, OSError, ValueError, KeyError, RecursionError) as error:
            # An error number comes from the disk, not from the content of the file.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            return Unfit(f"cannot be read ({type(error).__name__})")
    for name, most in (("row", expected.rows), ("seed", expected.seeds)):
        values = to_numpy(part.table[name])
        wrong = values[(values < 0) | (values >= most)]
        if len(wrong):
            return Unfit(f"has a run of {name} {wrong[0]}, of 0 to {most - 1}")
    return part


def _opened(path: Path) -> Any:
    """Opens the file as one of PyArrow's.

    PyArrow reads it in a thread of its own, which must hold no object of Python. Given a path instead, PyArrow requires
    UTF-8 and searches it for names of partitions.
    """
    import pyarrow as pa

    return pa.OSFile(os.fsencode(path))


def _read_metadata(file: Any) -> dict[str, Any] | None:
    """Reads the metadata of a part. Returns None if it is incomplete."""
    text = (file.schema_arrow.metadata or {}).get(METADATA_KEY)
    if text is None:
        return None
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("session"), str):
        return None
    numbers = {**Stats._field_defaults, **metadata}
    is_whole = all(type(numbers.get(name)) in (int, float) for name in (*Stats._fields, *COUNTED))
    return metadata if is_whole else None


def _misfit(file: Any, expected: Expected) -> str | None:
    """Returns the first difference between the columns of a part and of the store, or None if they agree."""
    schema = file.schema_arrow
    for name, kind in expected.types.items():
        if schema.get_field_index(name) < 0:
            return f"has no column {name!r}"
        if schema.field(name).type != kind:
            return f"has a column {name!r} of type {schema.field(name).type}, not {kind}"
    metadata = file.metadata
    for group in range(metadata.num_row_groups):
        for n in range(metadata.num_columns):
            column = metadata.row_group(group).column(n)
            if column.statistics is not None and column.statistics.null_count:
                return f"has a column {column.path_in_schema!r} with missing values"
    return None


def new_parts(folder: Path, known: set[str]) -> list[dict[str, Any]]:
    """Reads the metadata of the parts whose names are not in `known`, and adds their names to it.

    Skips parts whose metadata cannot be read: `load` and `tidy` report them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = [path for path in part_paths(folder) if path.name not in known]
    known.update(path.name for path in paths)
    all_metadata = []
    for path in paths:
        with contextlib.suppress(OSError, pa.ArrowException), _opened(path) as source:
            all_metadata.append(_read_metadata(pq.ParquetFile(source)))
    return [metadata for metadata in all_metadata if metadata is not None]


def stats_of(all_metadata: list[dict[str, Any]]) -> Stats:
    """Adds up the `Stats` of all processes, from the metadata of their parts."""
    # The metadata cover all that a process has done so far, and parts come in no order: the longest time is the last.
    last: dict[str, dict[str, Any]] = {}
    for metadata in all_metadata:
        if metadata["seconds"] >= last.get(metadata["session"], metadata)["seconds"]:
            last[metadata["session"]] = metadata
    return added(
        [Stats(**{name: metadata[name] for name in Stats._fields if name in metadata}) for metadata in last.values()]
    )


def to_arrow(values: np.ndarray) -> Any:
    """Converts values to a column. Arrays become nested lists of fixed size."""
    import pyarrow as pa

    column = pa.array(np.ascontiguousarray(values).reshape(-1))
    for size in reversed(values.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def to_numpy(column: Any) -> np.ndarray:
    """Returns the numbers of a column, flattened."""
    import pyarrow as pa

    values = column.combine_chunks()
    while pa.types.is_fixed_size_list(values.type):
        values = values.flatten()
    return values.to_numpy(zero_copy_only=False)
