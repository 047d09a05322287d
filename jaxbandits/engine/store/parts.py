"""The parts of a store: Parquet files of finished runs, each named by the checksum of its bytes."""

import hashlib
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandits.engine.logs import say
from jaxbandits.engine.results import Stats, added
from jaxbandits.engine.store.files import TEMPORARY
from jaxbandits.engine.store.locks import stop_sign

ABOUT = b"jaxbandits"  # key of a part's own metadata

log = logging.getLogger(__name__)


def part_paths(folder: Path) -> list[Path]:
    """All parts, in the order of their names."""
    return sorted(folder.glob("part-*.parquet"))


def read_parts(folder: Path) -> Iterator[tuple[Path, bytes | None]]:
    """Every part with its bytes; None for a damaged one."""
    for path in part_paths(folder):
        data = path.read_bytes()
        yield path, data if path.name == f"part-{checksum(data)}.parquet" else None


def checksum(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def read_part(data: bytes) -> tuple[Any, dict[str, Any]]:
    """The runs of a part as a PyArrow table, and the part's own metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(data))
    return table, json.loads(table.schema.metadata[ABOUT])


def new_parts(folder: Path, known: set[str]) -> list[dict[str, Any]]:
    """The metadata of the parts whose names are not in `known`; adds their names to it."""
    import pyarrow.parquet as pq

    paths = [path for path in part_paths(folder) if path.name not in known]
    known.update(path.name for path in paths)
    return [json.loads(pq.read_schema(path).metadata[ABOUT]) for path in paths]


def stats_of(abouts: list[dict[str, Any]]) -> Stats:
    """The `Stats` of all processes together, from the metadata of their parts."""
    last: dict[str, dict[str, Any]] = {}
    for about in abouts:  # each covers all that its process has done so far, and parts come in no order
        if about["seconds"] >= last.get(about["session"], about)["seconds"]:
            last[about["session"]] = about
    return added([Stats(**{name: about[name] for name in Stats._fields if name in about}) for about in last.values()])


def finished(folder: Path, rows: int, seeds: int) -> np.ndarray:
    """Which of so many tasks are done: bool (seeds * rows,), seed by seed; the store may hold runs of others.

    Checksums are not verified again: see `tidy`.
    """
    done = np.zeros(seeds * rows, bool)
    for path in part_paths(folder):
        seed, row = np.divmod(_runs(path), 2**32)
        asked = (seed < seeds) & (row < rows)
        done[seed[asked] * rows + row[asked]] = True
    return done


def _runs(path: Path) -> np.ndarray:
    """The runs of a part as single numbers: the seed in the upper half, the row in the lower."""
    import pyarrow.parquet as pq

    # Not `read_table`, which takes a folder above the store that is named `seed=4` for a column.
    with pq.ParquetFile(path) as file:
        table = file.read(columns=["row", "seed"])
    return to_numpy(table["seed"]) * 2**32 + to_numpy(table["row"])


def tidy(folder: Path) -> None:
    """Removes half-written files and sets damaged parts aside. The caller is the only one that writes."""
    for path in folder.glob(f"{TEMPORARY}*"):
        path.unlink(missing_ok=True)
        say(log, logging.INFO, "%s: dropped %s, which was never finished", folder, path.name)
    for path, data in read_parts(folder):
        if data is None:
            path.rename(path.with_name(f".{path.name}.damaged"))  # hidden from readers, but not destroyed
            say(log, logging.WARNING, "%s: set %s aside, which is damaged; its tasks are run again", folder, path.name)
    _set_doubles_aside(folder)
    stop_sign(folder).unlink(missing_ok=True)


def _set_doubles_aside(folder: Path) -> None:
    """Hides parts that repeat a run of another one: two writers got past the locks, or a part was copied in."""
    paths = part_paths(folder)
    runs = [_runs(path) for path in paths]
    all_runs = np.concatenate([np.zeros(0, np.int64), *runs])
    if len(np.unique(all_runs)) == len(all_runs):
        return
    kept = np.zeros(0, np.int64)
    for path, runs_of_part in zip(paths, runs, strict=True):
        merged = np.unique(np.concatenate([kept, runs_of_part]))
        if len(merged) == len(kept) + len(runs_of_part):
            kept = merged
            continue
        path.rename(path.with_name(f".{path.name}.doubled"))
        say(
            log,
            logging.WARNING,
            "%s: set %s aside, which repeats runs of another part; runs that only it had are run again",
            folder,
            path.name,
        )


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
