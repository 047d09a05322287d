"""Finished tasks of a store, and the removal of files that do not belong to it."""

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
    """Returns True for every task that is done: bool (seeds * rows,), seed by seed.

    The store may also hold runs of further rows and seeds. Parts of another store do not count. Checksums are not
    verified again: see `tidy`.
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
            counts = (seed < seeds) & (row < rows)
            done[seed[counts] * rows + row[counts]] = True
    return done


def tidy(folder: Path) -> None:
    """Removes half-written files, and sets aside parts that are damaged, foreign, or repeat runs of other parts.

    No other process may write at the same time.
    """
    for path in folder.glob(f"{TEMPORARY}*"):
        if path.is_file():
            path.unlink(missing_ok=True)
            say(log, logging.INFO, "%s: removed %s, which was never finished", folder, path.name)
    manifest = read_manifest(folder)
    if manifest is not None:
        _set_unfit_aside(folder, manifest)
    stop_sign(folder).unlink(missing_ok=True)


def _set_unfit_aside(folder: Path, manifest: dict[str, Any]) -> None:
    """Hides files that have a part's name but do not fit the store, and parts that repeat runs of another part.

    Parts repeat runs if two writers got past the locks.
    """
    expected = expected_parts(manifest)
    runs = []  # (path, runs) of every part that fits
    for path in part_paths(folder):
        part = read_part(path, expected, columns=())
        if isinstance(part, Part):
            runs.append((path, part.runs))
            continue
        _set_aside(path, part.kind)
        say(log, logging.WARNING, f"{folder}: set {path.name} aside, which {part.reason}; its tasks are run again")
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
        text = "%s: set %s aside, which repeats runs of another part; runs that it alone holds are run again"
        say(log, logging.WARNING, text, folder, path.name)


def _set_aside(path: Path, kind: str) -> None:
    """Renames a file so that readers do not see it. Overwrites nothing that was set aside before."""
    name, n = f".{path.name}.{kind}", 1
    while path.with_name(name).exists():
        n += 1
        name = f".{path.name}.{kind}-{n}"
    path.rename(path.with_name(name))
