"""What of a store is done, and what in it is none of its own."""

import logging
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandits.engine.logs import say
from jaxbandits.engine.store.files import TEMPORARY
from jaxbandits.engine.store.locks import stop_sign
from jaxbandits.engine.store.manifest import expected_parts, read_manifest
from jaxbandits.engine.store.parts import Part, part_paths, read_part

log = logging.getLogger(__name__)


def finished(folder: Path, rows: int, seeds: int) -> np.ndarray:
    """Which of so many tasks are done: bool (seeds * rows,), seed by seed; the store may hold runs of others.

    Parts that are none of the store's do not count. Checksums are not verified again: see `tidy`.
    """
    done = np.zeros(seeds * rows, bool)
    manifest = read_manifest(folder)
    if manifest is None:
        return done
    expected = expected_parts(manifest)
    for path in part_paths(folder):
        part = read_part(path, expected, columns=(), verify=False)
        if isinstance(part, Part):
            seed, row = np.divmod(part.runs, 2**32)
            asked = (seed < seeds) & (row < rows)
            done[seed[asked] * rows + row[asked]] = True
    return done


def tidy(folder: Path) -> None:
    """Removes half-written files, and sets aside parts that are damaged, of another store, or repeat others.

    The caller is the only one that writes.
    """
    for path in folder.glob(f"{TEMPORARY}*"):
        if path.is_file():
            path.unlink(missing_ok=True)
            say(log, logging.INFO, "%s: dropped %s, which was never finished", folder, path.name)
    manifest = read_manifest(folder)
    if manifest is not None:
        _set_unfit_aside(folder, manifest)
    stop_sign(folder).unlink(missing_ok=True)


def _set_unfit_aside(folder: Path, manifest: dict[str, Any]) -> None:
    """Hides what is named like a part and is none, or repeats a run of another: two writers got past the locks."""
    expected = expected_parts(manifest)
    runs = []  # of the parts that are kept
    for path in part_paths(folder):
        part = read_part(path, expected, columns=())
        if isinstance(part, Part):
            runs.append((path, part.runs))
            continue
        _set_aside(path, part.kind)
        text = "%s: set %s aside, which %s; its tasks are run again"
        say(log, logging.WARNING, text, folder, path.name, part.reason)
    all_runs = np.concatenate([np.zeros(0, np.int64), *(numbers for _, numbers in runs)])
    if len(np.unique(all_runs)) == len(all_runs):
        return
    kept = np.zeros(0, np.int64)
    for path, numbers in runs:
        merged = np.unique(np.concatenate([kept, numbers]))
        if len(merged) == len(kept) + len(numbers):
            kept = merged
            continue
        _set_aside(path, "doubled")
        text = "%s: set %s aside, which repeats runs of another part; runs that only it had are run again"
        say(log, logging.WARNING, text, folder, path.name)


def _set_aside(path: Path, kind: str) -> None:
    """Renames a file so that it is hidden from readers, but not destroyed, nor anything else that was set aside."""
    name, n = f".{path.name}.{kind}", 1
    while path.with_name(name).exists():
        n += 1
        name = f".{path.name}.{kind}-{n}"
    path.rename(path.with_name(name))
