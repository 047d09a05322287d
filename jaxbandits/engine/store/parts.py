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

ABOUT = b"jaxbandits"  # key of a part's own metadata
COUNTED = ("runs", "censored")  # what is read of a part's metadata beside the session and its `Stats`


class Expected(NamedTuple):
    """What the parts of a store must be."""

    identity: str | None  # of the store; None if it was written before stores had one
    types: dict[str, Any]  # PyArrow's, of the columns that Parquet can hold
    rows: int  # the largest numbers that any call has asked for
    seeds: int


class Part(NamedTuple):
    """A part that has been read."""

    table: Any  # PyArrow's, of the columns that were asked for
    about: dict[str, Any]  # its metadata

    @property
    def runs(self) -> np.ndarray:
        """The runs as single numbers, int64 (runs,): the seed in the upper half, the row in the lower."""
        return to_numpy(self.table["seed"]) * 2**32 + to_numpy(self.table["row"])


class Unfit(NamedTuple):
    """Why a file that is named like a part is none of the store's."""

    reason: str  # completes "which .."
    kind: str = "damaged"  # ends the name under which it is set aside


def part_paths(folder: Path) -> list[Path]:
    """All parts, in the order of their names."""
    return sorted(folder.glob("part-*.parquet"))


def checksum(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def read_part(
    path: Path, expected: Expected, *, columns: Sequence[str] | None = None, verify: bool = True
) -> Part | Unfit:
    """Reads a part.

    Args:
        path: of the part.
        expected: what the parts of its store must be.
        columns: that are read; all by default. `row` and `seed` always are.
        verify: whether the checksum is compared, for which the whole file is read.

    Returns:
        The part, or why it is not one of the store's. A right checksum says that a file is whole, not where it is from.

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
            about = _read_about(file)
            if about is None:
                return Unfit("has no metadata that can be read")
            if about.get("identity") != expected.identity:
                return Unfit("is of another store", "foreign")
            if (reason := _misfit(file, expected)) is not None:
                return Unfit(reason)
            # In this thread: one of PyArrow's that lets go of Python's bytes while the process ends can abort it.
            part = Part(file.read(columns=names, use_threads=False), about)
        except (pa.ArrowException, OSError, ValueError, KeyError, RecursionError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # of the disk, not of the file
                raise
            return Unfit(f"cannot be read ({type(error).__name__})")
    for name, most in (("row", expected.rows), ("seed", expected.seeds)):
        values = to_numpy(part.table[name])
        wrong = values[(values < 0) | (values >= most)]
        if len(wrong):
            return Unfit(f"has a run of {name} {wrong[0]}, of 0 to {most - 1}")
    return part


def _opened(path: Path) -> Any:
    """The file, as PyArrow's own.

    PyArrow reads it in a thread of its own, which must hold nothing of Python's. A path that it is given otherwise has
    to be UTF-8, and is searched for the names of partitions.
    """
    import pyarrow as pa

    return pa.OSFile(os.fsencode(path))


def _read_about(file: Any) -> dict[str, Any] | None:
    """The metadata of a part; None if it lacks what every part has."""
    metadata = (file.schema_arrow.metadata or {}).get(ABOUT)
    if metadata is None:
        return None
    try:
        about = json.loads(metadata)
    except (ValueError, RecursionError):
        return None
    if not isinstance(about, dict) or not isinstance(about.get("session"), str):
        return None
    numbers = {**Stats._field_defaults, **about}
    is_whole = all(type(numbers.get(name)) in (int, float) for name in (*Stats._fields, *COUNTED))
    return about if is_whole else None


def _misfit(file: Any, expected: Expected) -> str | None:
    """How the columns of a part differ from those of the store; None if they do not."""
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
    """The metadata of the parts whose names are not in `known`; adds their names to it.

    Parts without metadata that can be read are passed over: they are found when the store is read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = [path for path in part_paths(folder) if path.name not in known]
    known.update(path.name for path in paths)
    abouts = []
    for path in paths:
        with contextlib.suppress(OSError, pa.ArrowException), _opened(path) as source:
            abouts.append(_read_about(pq.ParquetFile(source)))
    return [about for about in abouts if about is not None]


def stats_of(abouts: list[dict[str, Any]]) -> Stats:
    """The `Stats` of all processes together, from the metadata of their parts."""
    last: dict[str, dict[str, Any]] = {}
    for about in abouts:  # each covers all that its process has done so far, and parts come in no order
        if about["seconds"] >= last.get(about["session"], about)["seconds"]:
            last[about["session"]] = about
    return added([Stats(**{name: about[name] for name in Stats._fields if name in about}) for about in last.values()])


def to_arrow(values: np.ndarray) -> Any:
    """A column; arrays become nested lists of fixed size."""
    import pyarrow as pa

    column = pa.array(np.ascontiguousarray(values).reshape(-1))
    for size in reversed(values.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def to_numpy(column: Any) -> np.ndarray:
    """The numbers of a column, flattened."""
    import pyarrow as pa

    values = column.combine_chunks()
    while pa.types.is_fixed_size_list(values.type):
        values = values.flatten()
    return values.to_numpy(zero_copy_only=False)
