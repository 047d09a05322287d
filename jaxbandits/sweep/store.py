"""Finished runs on disk: Parquet files and a manifest.

A store is a folder. `_manifest.json` says what is run, so that another sweep is never mixed in. Finished runs lie in
`part-CHECKSUM.parquet`: a part is written under a hidden name, synced, then renamed, and its name is the checksum of
its bytes, so a file that was cut short or has decayed is known by its name. Nothing is ever changed in place, and
writers need not agree on anything, so a process may be killed at any moment.
"""

import contextlib
import errno
import hashlib
import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandits.base import Status
from jaxbandits.sweep.results import Results, Stats, added

COMPARED = ("arguments", "tasks", "program", "made_by")  # of a manifest: what must be the same to go on
MANIFEST = "_manifest.json"  # readers of Parquet folders pass over names that begin with an underscore or a dot
ABOUT = b"jaxbandits"  # key of a part's own metadata
FIRST_PAUSE, LAST_PAUSE = 1.0, 30.0  # seconds between two parts, at the beginning of a sweep and later
MOST_ROWS = 2**18  # finished runs that wait for being written

log = logging.getLogger(__name__)


def load(store: str | os.PathLike[str]) -> Results:
    """Reads a store: what `sweep` returned when it wrote it, or what is there of a sweep that has not ended.

    Args:
        store: the folder.

    Returns:
        Results, ordered by row and seed. `stats` adds up all processes that wrote to the store, so `seconds` is the
        time of one after the other.

    Raises:
        ValueError: the folder is not a store, or a part of it is damaged.
    """
    import pyarrow as pa

    folder = Path(store)
    manifest = read_manifest(folder)
    if manifest is None:
        raise ValueError(f"store must be a folder that a sweep has written, but {str(folder)!r} has no {MANIFEST}")
    tables, abouts = [], []
    for path, data in _parts(folder):
        if data is None:
            raise ValueError(
                f"store has a damaged part, {path.name}: the same sweep, called again, drops it and runs its tasks anew"
            )
        table, about = _table(data)
        tables.append(table.replace_schema_metadata(None))
        abouts.append(about)
    missing = sorted(set(manifest["parts"]) - {path.name for path in _part_paths(folder)})
    if missing:
        log.warning("%s: %d parts have been taken away, such as %s", folder, len(missing), missing[0])
    if tables:
        columns = {
            name: _numpy(column) for name, column in zip(tables[0].column_names, pa.concat_tables(tables), strict=True)
        }
    else:
        columns = {name: _empty(kind) for name, kind in manifest["columns"].items()}
    order = np.lexsort((columns["seed"], columns["row"]))
    columns = {name: values[order] for name, values in columns.items()}
    twice = (np.diff(columns["row"]) == 0) & (np.diff(columns["seed"]) == 0)
    if twice.any():
        n = int(np.argmax(twice))
        raise ValueError(
            f"store has {int(twice.sum())} runs more than once, the first (row, seed) = "
            f"({columns['row'][n]}, {columns['seed'][n]}): parts of two stores lie in {str(folder)!r}"
        )
    return Results(columns, _stats(abouts))


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """What the store holds; None if it holds nothing yet."""
    try:
        return json.loads((folder / MANIFEST).read_text())
    except FileNotFoundError:
        return None


def agree(folder: Path, describe: Callable[[dict[str, Any] | None], dict[str, Any]]) -> dict[str, Any]:
    """Makes sure that the store holds the sweep that is to be run, and no other.

    Args:
        folder: the store.
        describe: (manifest of the store or None) -> manifest of the sweep to be run. What its caller left open is
            taken over from the store.

    Returns:
        The manifest.

    Raises:
        ValueError: the store holds another sweep; the message lists the differences.
    """
    held = read_manifest(folder)
    mine = describe(held)
    with locked(folder, "manifest", wait=True):
        now = read_manifest(folder)
        if now is None:
            _write(folder / MANIFEST, _dump(mine | {"parts": {}}))
            return mine
    if now != held:  # another shard was first, and what both left open is settled
        mine = describe(now)
    _refuse_another(folder, now, mine)
    return mine


def check_call(folder: Path, call: dict[str, Any]) -> None:
    """Refuses arguments that are not those of the store, before any worker is bothered; None is left open."""
    held = read_manifest(folder)
    if held is not None:
        _refuse_another(folder, held, call)


def make_folder(folder: Path) -> None:
    """Creates the store's folder, and finds out now rather than after the first hour that it cannot be written."""
    with _explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{uuid.uuid4().hex}.tmp"
        probe.write_bytes(b"")
        probe.unlink()


@contextlib.contextmanager
def locked(folder: Path, name: str, *, shared: bool = False, wait: bool = False) -> Iterator[Callable[[], None]]:
    """Holds a lock that ends with the process, however it ends. Yields a function that makes it a shared one.

    Raises:
        BlockingIOError: another process holds it.
    """
    import fcntl

    with open(folder / f".{name}.lock", "ab") as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise BlockingIOError(
                error.errno, "another process is writing to this store: let it end, or stop it", str(folder)
            ) from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                raise
            log.warning("%s is on a file system without locks: see to it that no two sweeps write to it", folder)
        yield lambda: fcntl.flock(file, fcntl.LOCK_SH)


def tidy(folder: Path) -> None:
    """Drops what a killed process has left half-written. The caller is the only one who writes."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)
        log.info("%s: dropped %s, which was never finished", folder, path.name)
    for path, data in list(_parts(folder)):
        if data is None:
            path.unlink()
            log.warning("%s: dropped %s, which is damaged; its tasks are run again", folder, path.name)
    stop_sign(folder).unlink(missing_ok=True)


def stop_sign(folder: Path) -> Path:
    """The file that asks all writers to end after their chunk."""
    return folder / ".stop"


def finished(folder: Path, rows: int, seeds: int) -> np.ndarray:
    """Which tasks are done: bool (seeds * rows,), seed by seed."""
    done = np.zeros(seeds * rows, bool)
    for _, data in _parts(folder):
        if data is not None:
            table, _ = _table(data, columns=["row", "seed"])
            done[_numpy(table["seed"]) * rows + _numpy(table["row"])] = True
    return done


class Writer:
    """Writes what a queue has finished, now and then; shared by the threads that drive the lanes."""

    def __init__(self, folder: Path, pop: Callable[[], dict[str, np.ndarray] | None], stats: Callable[[], Stats]):
        import threading

        self.folder, self.pop, self.stats = folder, pop, stats
        self.session = uuid.uuid4().hex
        self.started = self.last = time.monotonic()
        self.lock = threading.Lock()

    def due(self, waiting: int) -> bool:
        """Whether a part is due: soon at first, so that a kill costs little; later seldom, so that parts stay few."""
        now = time.monotonic()
        pause = min(max(FIRST_PAUSE, (now - self.started) / 100), LAST_PAUSE)
        return now - self.last > pause or waiting > MOST_ROWS

    def write(self) -> None:
        """Writes the runs that have finished since the last part."""
        with self.lock:
            self.last = time.monotonic()
            columns = self.pop()
            if columns is not None and len(columns["row"]):
                write_part(self.folder, columns, {"session": self.session} | self.stats()._asdict())


def write_part(folder: Path, columns: dict[str, np.ndarray], about: dict[str, Any]) -> None:
    """Adds finished runs to the store; when it returns they are on the disk.

    Args:
        folder: the store.
        columns: the runs.
        about: how the writing process fared up to now: its session, and the fields of `Stats`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    status = columns["status"]
    about = about | {
        "runs": len(status),
        "censored": int(np.sum(status == Status.MAX_ROUNDS)),
        "failed": int(np.sum(status == Status.NONFINITE)),
    }
    table = pa.table({name: _arrow(name, values) for name, values in columns.items()})
    buffer = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({ABOUT: json.dumps(about)}), buffer, compression="zstd")
    data = buffer.getvalue().to_pybytes()
    with _explained(folder):
        _write(folder / f"part-{_checksum(data)}.parquet", data)
    log.debug("%s: wrote %d runs", folder, len(status))


def new_parts(folder: Path, seen: set[str]) -> list[dict[str, Any]]:
    """What the parts that are not in `seen` say of themselves; `seen` is brought up to date."""
    import pyarrow.parquet as pq

    paths = [path for path in _part_paths(folder) if path.name not in seen]
    seen.update(path.name for path in paths)
    return [json.loads(pq.read_schema(path).metadata[ABOUT]) for path in paths]


def seal(folder: Path) -> None:
    """Lists all parts in the manifest."""
    manifest = read_manifest(folder)
    if manifest is not None:
        listing = {path.name: {"bytes": path.stat().st_size, "sha256": path.stem[5:]} for path in _part_paths(folder)}
        with _explained(folder):
            _write(folder / MANIFEST, _dump(manifest | {"parts": listing}))


def _write(path: Path, data: bytes) -> None:
    """All of it or nothing, also when the power fails."""
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(
            error.errno,
            f"{error.strerror}: the store cannot be written; runs that were stored before are safe, and the same call "
            "goes on from there once there is room and permission",
            str(folder),
        ) from error


def _part_paths(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*.parquet"))


def _parts(folder: Path) -> Iterator[tuple[Path, bytes | None]]:
    """Every part with its bytes; None for a damaged one."""
    for path in _part_paths(folder):
        data = path.read_bytes()
        yield path, data if path.name == f"part-{_checksum(data)}.parquet" else None


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _table(data: bytes, columns: list[str] | None = None) -> tuple[Any, dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(data), columns=columns)
    return table, json.loads(table.schema.metadata[ABOUT])


def _arrow(name: str, values: np.ndarray) -> Any:
    """A column; arrays become lists of fixed size, one within the other."""
    import pyarrow as pa

    if values.dtype.kind not in "biuf":
        raise ValueError(f"metrics must return real numbers to be stored, got dtype {values.dtype} for {name!r}")
    column = pa.array(np.ascontiguousarray(values).reshape(-1))
    for size in reversed(values.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def _numpy(column: Any) -> np.ndarray:
    import pyarrow as pa

    column, shape = column.combine_chunks(), [len(column)]
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    while pa.types.is_fixed_size_list(column.type):
        shape.append(column.type.list_size)
        column = column.flatten()
    return column.to_numpy(zero_copy_only=False).reshape(shape)


def _empty(kind: str) -> np.ndarray:
    """No runs, of a column that the manifest describes as in 'float64[3, 2]'."""
    dtype, _, shape = kind.partition("[")
    return np.empty((0, *(int(n) for n in shape.rstrip("]").split(",") if n)), dtype)


def _stats(abouts: list[dict[str, Any]]) -> Stats:
    last: dict[str, dict[str, Any]] = {}
    for about in abouts:  # a process describes all that it has done up to a part
        if about["seconds"] >= last.get(about["session"], about)["seconds"]:
            last[about["session"]] = about
    return added([Stats(**{name: about[name] for name in Stats._fields}) for about in last.values()])


def _dump(manifest: dict[str, Any]) -> bytes:
    return (json.dumps(manifest, indent=1) + "\n").encode()


def _refuse_another(folder: Path, held: dict[str, Any], mine: dict[str, Any]) -> None:
    found = [line for name in COMPARED if name in mine for line in _differences(held[name], mine[name], name)]
    if "program" in mine and held["program"] != mine["program"]:
        found.append("(program: build and metrics, with all the values that they close over)")
    if found:
        raise ValueError(
            f"store {str(folder)!r} holds another sweep:\n  " + "\n  ".join(found) + "\n"
            "Choose another folder, or call with what the store holds."
        )


def _differences(held: Any, mine: Any, path: str) -> Iterator[str]:
    if isinstance(held, dict) and isinstance(mine, dict):
        for name, value in mine.items():
            yield from _differences(held.get(name), value, f"{path}.{name}")
    elif held != mine:
        short = [text if len(text) <= 60 else f"{text[:57]}..." for text in (json.dumps(held), json.dumps(mine))]
        yield f"{path}: {short[0]} in the store, {short[1]} now"
