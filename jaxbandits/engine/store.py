"""Finished runs on disk: Parquet files and a manifest.

A store is a folder. `_manifest.json` says what is run, so that another sweep is never mixed in. Finished runs lie in
`part-CHECKSUM.parquet`: a part is written under a hidden name, synced, then renamed, and its name is the checksum of
its bytes, so a file that was cut short or has decayed is known by its name. Nothing is ever changed in place, and
writers need not agree on anything, so a process may be killed at any moment.
"""

import contextlib
import errno
import hashlib
import importlib.util
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
from jaxbandits.engine.results import Results, Stats, added

COMPARED = ("arguments", "tasks", "columns", "program", "made_by")  # of a manifest: what must be the same to go on
CALL = ".call"  # holds the name of the call of `sweep` that is under way, or was the last
MANIFEST = "_manifest.json"  # readers of Parquet folders pass over names that begin with an underscore or a dot
ABOUT = b"jaxbandits"  # key of a part's own metadata
TEMPORARY = ".jaxbandits-"  # how the names of half-written files begin; the folder may hold other files, too
STORED = {"bool", "float16", "float32", "float64"} | {f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)}
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
                f"store has a damaged part, {path.name}: the same sweep, called again, sets it aside and runs its "
                "tasks anew"
            )
        table, about = _table(data)
        tables.append(table.replace_schema_metadata(None))
        abouts.append(about)
    missing = sorted(set(manifest["parts"]) - {path.name for path in _part_paths(folder)})
    if missing:
        log.warning("%s: %d parts have been taken away, such as %s", folder, len(missing), missing[0])
    runs = sum(map(len, tables))
    table = pa.concat_tables(tables) if runs else {}
    columns = {}
    for name, (dtype, shape) in _kinds(manifest).items():
        empty = 0 in (runs, *shape)  # nothing of it is in the parts
        columns[name] = np.empty((runs, *shape), dtype) if empty else _numpy(table[name]).reshape(runs, *shape)
    order = np.lexsort((columns["seed"], columns["row"]))
    columns = {name: values[order] for name, values in columns.items()}
    twice = (np.diff(columns["row"]) == 0) & (np.diff(columns["seed"]) == 0)
    if twice.any():
        n = int(np.argmax(twice))
        raise ValueError(
            f"store has {int(twice.sum())} runs more than once, the first (row, seed) = "
            f"({columns['row'][n]}, {columns['seed'][n]}): the same sweep, called again, sets aside the parts that "
            "repeat them"
        )
    return Results(columns, stats_of(abouts))


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """What the store holds; None if it holds nothing yet.

    Raises:
        ValueError: the manifest cannot be read.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        if not {*COMPARED, "parts"} <= manifest.keys():
            raise ValueError("it is not that of a sweep")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, AttributeError) as error:
        raise ValueError(
            f"store has a manifest that cannot be read, {str(folder / MANIFEST)!r} ({error}): put back a copy of it, "
            "or choose another folder"
        ) from error
    return manifest


def agree(folder: Path, describe: Callable[[dict[str, Any] | None], dict[str, Any]]) -> dict[str, Any]:
    """Makes sure that the store holds the sweep that is to be run, and no other.

    Args:
        folder: the store.
        describe: (manifest of the store or None) -> manifest of the sweep to be run. What its caller left open is
            taken over from the store.

    Returns:
        The manifest.

    Raises:
        ValueError: the store holds another sweep; the message lists the differences. Or a column is of a dtype that
            Parquet has no name for.
    """
    held = read_manifest(folder)
    mine = describe(held)
    for name, (dtype, _) in _kinds(mine).items():
        if dtype not in STORED:
            raise ValueError(
                f"answers and metrics must be booleans, integers or floats to be stored, got {dtype} for {name!r}"
            )
    with locked(folder, "manifest", wait=True):
        now = read_manifest(folder)
        if now is None:
            with _explained(folder):
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
    elif parts := _part_paths(folder):
        raise ValueError(
            f"store must be a new folder or one that a sweep has written, but {str(folder)!r} has no {MANIFEST} and "
            f"holds {parts[0].name}"
        )


def make_folder(folder: Path) -> None:
    """Creates the store's folder, and finds out now rather than after the first hour that it cannot be written."""
    if importlib.util.find_spec("pyarrow") is None:
        raise ModuleNotFoundError("store= keeps runs in Parquet files with pyarrow: pip install pyarrow")
    with _explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        probe = _temporary(folder)
        probe.write_bytes(b"")
        probe.unlink()


@contextlib.contextmanager
def locked(folder: Path, name: str, *, shared: bool = False, wait: bool = False) -> Iterator[Callable[[], None]]:
    """Holds a lock that ends with the process, however it ends. Yields a function that makes it a shared one.

    Raises:
        BlockingIOError: another process holds it.
    """
    import fcntl

    with open(folder / f".{name}.lock", "a+b") as file:  # over NFS, a shared lock wants a file that can be read

        def take(kind: int) -> None:
            try:
                fcntl.flock(file, kind)
            except BlockingIOError as error:
                raise BlockingIOError(
                    error.errno, "another process is writing to this store: let it end, or stop it", str(folder)
                ) from None
            except OSError as error:
                if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                    raise
                log.warning("%s is on a file system without locks: see to it that no two sweeps write to it", folder)

        take((fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        yield lambda: take(fcntl.LOCK_SH | fcntl.LOCK_NB)


def tidy(folder: Path) -> None:
    """Clears away what was left half-written and what has decayed. The caller is the only one who writes."""
    for path in folder.glob(f"{TEMPORARY}*"):
        path.unlink(missing_ok=True)
        log.info("%s: dropped %s, which was never finished", folder, path.name)
    for path, data in _parts(folder):
        if data is None:
            path.rename(path.with_name(f".{path.name}.damaged"))  # hidden from readers, but not destroyed
            log.warning("%s: set %s aside, which is damaged; its tasks are run again", folder, path.name)
    _set_doubles_aside(folder)
    stop_sign(folder).unlink(missing_ok=True)


def _set_doubles_aside(folder: Path) -> None:
    """Parts with a run that another part has too: two writers got past the locks, or a part was copied in."""
    paths = _part_paths(folder)
    runs = [_runs(path) for path in paths]
    together = np.concatenate([np.zeros(0, np.int64), *runs])
    if len(np.unique(together)) == len(together):
        return
    seen = np.zeros(0, np.int64)
    for path, here in zip(paths, runs, strict=True):
        merged = np.unique(np.concatenate([seen, here]))
        if len(merged) == len(seen) + len(here):
            seen = merged
            continue
        path.rename(path.with_name(f".{path.name}.doubled"))
        log.warning(
            "%s: set %s aside, which has runs of another part; what only it had is run again", folder, path.name
        )


def begin_call(folder: Path) -> str:
    """Marks that a new call of `sweep` begins. Shards of earlier ones, which an executor may hold, are called off.

    Returns:
        The name of the call, for `is_called_off`.
    """
    name = uuid.uuid4().hex
    with _explained(folder):
        _write(folder / CALL, name.encode())
    return name


def is_called_off(folder: Path, call: str) -> bool:
    """Whether the shards of a call are to end: a stop sign is up, or another call has begun."""
    return stop_sign(folder).exists() or (folder / CALL).read_text() != call


def stop_sign(folder: Path) -> Path:
    """The file that asks all writers to end after their chunk."""
    return folder / ".stop"


def finished(folder: Path, rows: int, seeds: int) -> np.ndarray:
    """Which tasks are done: bool (seeds * rows,), seed by seed. The store is `tidy`: checksums are not looked at."""
    done = np.zeros(seeds * rows, bool)
    for path in _part_paths(folder):
        seed, row = np.divmod(_runs(path), 2**32)
        done[seed * rows + row] = True
    return done


def _runs(path: Path) -> np.ndarray:
    """The runs of a part as single numbers: the seed in the upper half, the row in the lower."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["row", "seed"])
    return _numpy(table["seed"]) * 2**32 + _numpy(table["row"])


class Writer:
    """Writes what a queue has finished, now and then; shared by the threads that drive the lanes."""

    def __init__(self, folder: Path, pop: Callable[[], dict[str, np.ndarray] | None], stats: Callable[[], Stats]):
        import threading

        self.folder, self.pop, self.stats = folder, pop, stats
        self.session = uuid.uuid4().hex
        self.unwritten: list[dict[str, np.ndarray]] = []  # taken over, and kept until they are on the disk
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
            if columns is not None:
                self.unwritten.append(columns)
            if self.unwritten:
                names = self.unwritten[0]
                columns = {name: np.concatenate([part[name] for part in self.unwritten]) for name in names}
                write_part(self.folder, columns, {"session": self.session} | self.stats()._asdict())
                self.unwritten = []


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
    # Parquet has no lists of no elements; `load` knows such a column from the manifest.
    table = pa.table({name: _arrow(values) for name, values in columns.items() if 0 not in values.shape[1:]})
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
    temporary = _temporary(path.parent)
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
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems sync folders by themselves
            raise
    finally:
        os.close(directory)


def _temporary(folder: Path) -> Path:
    return folder / f"{TEMPORARY}{uuid.uuid4().hex}"


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


def _table(data: bytes) -> tuple[Any, dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(data))
    return table, json.loads(table.schema.metadata[ABOUT])


def _arrow(values: np.ndarray) -> Any:
    """A column; arrays become lists of fixed size, one within the other."""
    import pyarrow as pa

    column = pa.array(np.ascontiguousarray(values).reshape(-1))
    for size in reversed(values.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def _numpy(column: Any) -> np.ndarray:
    """The numbers of a column, of whatever shape, one after the other."""
    import pyarrow as pa

    values = column.combine_chunks()
    while pa.types.is_fixed_size_list(values.type):
        values = values.flatten()
    return values.to_numpy(zero_copy_only=False)


def _kinds(manifest: dict[str, Any]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The dtype and the shape of every column of a manifest, which has them as in 'float64[3, 2]'."""
    pairs = {name: kind.rstrip("]").partition("[") for name, kind in manifest["columns"].items()}
    return {name: (dtype, tuple(map(int, filter(None, shape.split(","))))) for name, (dtype, _, shape) in pairs.items()}


def stats_of(abouts: list[dict[str, Any]]) -> Stats:
    """All processes together, from what their parts say of them."""
    last: dict[str, dict[str, Any]] = {}
    for about in abouts:  # a process describes all that it has done up to a part, and parts come in no order
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
    texts = json.dumps(held), json.dumps(mine)  # as a text, NaN equals itself
    if texts[0] == texts[1]:
        return
    if isinstance(held, dict) and isinstance(mine, dict):
        for name, value in mine.items():
            yield from _differences(held.get(name), value, f"{path}.{name}".rstrip("."))
    elif isinstance(held, list) and isinstance(mine, list) and len(held) == len(mine):
        n = next(n for n, pair in enumerate(zip(held, mine, strict=True)) if json.dumps(pair[0]) != json.dumps(pair[1]))
        yield from _differences(held[n], mine[n], f"{path}[{n}]")  # the first speaks for the rest
    else:
        short = [text if len(text) <= 60 else f"{text[:57]}..." for text in texts]
        yield f"{path}: {short[0]} in the store, {short[1]} now"
