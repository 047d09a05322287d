"""Results of a store."""

import logging
import os
from pathlib import Path

import numpy as np

from jaxbandits import checks
from jaxbandits.engine.logs import say
from jaxbandits.engine.results.rules import of_rules
from jaxbandits.engine.results.runs import Results, root_numbers
from jaxbandits.engine.results.tables import number_columns, with_tasks
from jaxbandits.engine.store.manifest import MANIFEST, column_kinds, expected_parts, read_manifest, stored_table
from jaxbandits.engine.store.parts import Unfit, part_paths, read_part, stats_of, to_numpy
from jaxbandits.engine.store.rules import read_rules
from jaxbandits.engine.store.tables import TASKS, Table

log = logging.getLogger(__name__)


def load(store: str | os.PathLike[str]) -> Results:
    """Reads the Results of a store. If its sweep has not ended, they hold the runs that have finished.

    Args:
        store: path of the folder.

    Returns:
        Results, ordered by row and seed, with the values of the table of tasks. The rules of a store of several follow
        one another in the order in which they were added. `stats` adds up all processes that wrote to the store, so
        `seconds` is their total time.

    Raises:
        ValueError: the folder is not a store, or one of its parts is damaged or belongs to another store.
    """
    folder = checks.path("store", store)
    rules = read_rules(folder)
    if rules is None:
        return load_one(folder)
    begun = {rule: folder / name for rule, name in rules.items() if read_manifest(folder / name) is not None}
    if not begun:
        raise ValueError(f"store must be a folder that a sweep has written, but no rule in {str(folder)!r} has begun")
    return of_rules({rule: load_one(each) for rule, each in begun.items()})


def load_one(folder: Path) -> Results:
    """Reads the Results of a store of one rule, as `load` does."""
    import pyarrow as pa

    manifest = read_manifest(folder)
    if manifest is None:
        raise ValueError(f"store must be a folder that a sweep has written, but {str(folder)!r} has no {MANIFEST}")
    tables, all_metadata = [], []
    expected = expected_parts(manifest)
    for path in part_paths(folder):
        part = read_part(path, expected)
        if isinstance(part, Unfit):
            raise ValueError(
                f"store has a part that {part.reason}, {path.name}. Call the same sweep again: it sets the part aside "
                "and repeats its runs."
            )
        tables.append(part.table.replace_schema_metadata(None))
        all_metadata.append(part.metadata)
    missing = sorted(set(manifest["parts"]) - {path.name for path in part_paths(folder)})
    if missing:
        say(log, logging.WARNING, f"{folder}: {len(missing)} parts are missing, such as {missing[0]}")
    runs = sum(map(len, tables))
    table = pa.concat_tables(tables) if runs else {}
    columns = {}
    for name, (dtype, shape) in column_kinds(manifest).items():
        is_empty = 0 in (runs, *shape)  # the parts have no such column
        columns[name] = np.empty((runs, *shape), dtype) if is_empty else to_numpy(table[name]).reshape(runs, *shape)
    order = np.lexsort((columns["seed"], columns["row"]))
    columns = {name: values[order] for name, values in columns.items()}
    repeated = (np.diff(columns["row"]) == 0) & (np.diff(columns["seed"]) == 0)
    if repeated.any():
        n = int(np.argmax(repeated))
        raise ValueError(
            f"store has {int(repeated.sum())} runs more than once, the first (row, seed) = "
            f"({columns['row'][n]}, {columns['seed'][n]}). Call the same sweep again: it sets aside the parts that "
            "repeat them."
        )
    tasks = stored_table(folder, manifest)
    if tasks is None:
        text = "%s: %s is missing or damaged. Call the same sweep again to rewrite it."
        say(log, logging.WARNING, text, folder, TASKS)
    columns = with_tasks(columns, number_columns(_leaves(tasks or {})))
    return Results(columns, stats_of(all_metadata), root_numbers(manifest["arguments"].get("key")))


def _leaves(table: Table) -> dict[str, np.ndarray]:
    """Returns the numbers of a table, by path, without PRNG keys."""
    return {path: numbers for path, (dtype, numbers) in table.items() if str(numbers.dtype) == dtype}
