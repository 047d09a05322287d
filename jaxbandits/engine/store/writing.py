"""Parts that a sweep adds to a store while it runs."""

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandits.engine.logs import say
from jaxbandits.engine.results.runs import Stats
from jaxbandits.engine.results.statistics import CENSORED, FAILED
from jaxbandits.engine.store.files import explained, write_file
from jaxbandits.engine.store.parts import METADATA_KEY, checksum, to_arrow

FIRST_PAUSE, LAST_PAUSE = 1.0, 30.0  # seconds between two parts, at the beginning of a sweep and later
MAX_WAITING = 2**18  # finished runs that may wait to be written

log = logging.getLogger(__name__)


class Writer:
    """Periodic writer of the finished runs of a queue. The threads that drive the lanes share it."""

    def __init__(
        self,
        folder: Path,
        collect: Callable[[], dict[str, np.ndarray] | None],
        stats: Callable[[], Stats],
        identity: str | None,
    ):
        self.folder, self.collect, self.stats, self.identity = folder, collect, stats, identity
        self.session = uuid.uuid4().hex
        self.unwritten: list[dict[str, np.ndarray]] = []  # collected runs, kept until they are on the disk
        self.started = self.last = time.monotonic()
        self.lock = threading.Lock()

    def due(self, waiting: int) -> bool:
        """Checks whether a part is due.

        Parts are frequent at first, so that a kill costs little, and rare later, so that they stay few.
        """
        now = time.monotonic()
        pause = min(max(FIRST_PAUSE, (now - self.started) / 100), LAST_PAUSE)
        return now - self.last > pause or waiting > MAX_WAITING

    def write(self) -> None:
        """Writes the runs that finished since the last part."""
        with self.lock:
            self.last = time.monotonic()
            columns = self.collect()
            if columns is not None:
                self.unwritten.append(columns)
            if self.unwritten:
                names = self.unwritten[0]
                columns = {name: np.concatenate([part[name] for part in self.unwritten]) for name in names}
                metadata = {"session": self.session} | self.stats()._asdict()
                write_part(self.folder, columns, metadata, self.identity)
                self.unwritten = []


def write_part(folder: Path, columns: dict[str, np.ndarray], metadata: dict[str, Any], identity: str | None) -> None:
    """Adds finished runs to the store. When it returns, they are on the disk.

    Args:
        folder: the store.
        columns: the runs.
        metadata: the part's metadata: the session of the writing process and the fields of its `Stats` so far.
        identity: identity of the store, by which a foreign part is recognised. None if the manifest has none.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = part_metadata(columns, metadata) | ({} if identity is None else {"identity": identity})
    # Parquet has no lists of length 0; `load` restores such a column from the manifest.
    table = pa.table({name: to_arrow(values) for name, values in columns.items() if 0 not in values.shape[1:]})
    buffer = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(metadata)}), buffer, compression="zstd")
    data = buffer.getvalue().to_pybytes()
    with explained(folder):
        write_file(folder / f"part-{checksum(data)}.parquet", data)
    say(log, logging.DEBUG, "%s: wrote %d runs", folder, metadata["runs"])


def part_metadata(columns: dict[str, np.ndarray], metadata: dict[str, Any]) -> dict[str, Any]:
    """Returns the metadata of a part, with its numbers of finished, censored and failed runs."""
    status = columns["status"]
    return metadata | {
        "runs": len(status),
        "censored": int(np.isin(status, CENSORED).sum()),
        "failed": int(np.isin(status, FAILED).sum()),
    }
