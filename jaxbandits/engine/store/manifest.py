"""The manifest: what a store holds, so that no other sweep is ever mixed in."""

import json
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandits.engine.store.files import explained, write_file
from jaxbandits.engine.store.locks import locked
from jaxbandits.engine.store.parts import Expected, part_paths, to_arrow
from jaxbandits.engine.store.tables import STORED, Table, describe_table, head, read_table, write_table

COMPARED = ("arguments", "tasks", "columns", "program", "made_by")  # of a manifest: what must be equal to go on
KIND = re.compile(r"\w+(\[\d+(, \d+)*\])?")  # of a column: its dtype, and the shape of a run's entry
MANIFEST = "_manifest.json"  # readers of Parquet folders pass over names that begin with an underscore or a dot


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a store; None if there is none yet.

    Raises:
        ValueError: the manifest cannot be read.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        _require_shape(manifest)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, RecursionError, IsADirectoryError) as error:
        raise ValueError(
            f"store has a manifest that cannot be read, {str(folder / MANIFEST)!r} ({error}): put back a copy of it, "
            "or choose another folder"
        ) from error
    return manifest


def _require_shape(manifest: Any) -> None:
    """Raises `ValueError` unless this is the manifest of a sweep, as far as it is read here."""
    is_dict = isinstance(manifest, dict)
    if not is_dict or not all(isinstance(manifest.get(name), dict) for name in (*COMPARED, "parts")):
        raise ValueError("it is not that of a sweep")
    arguments = manifest["arguments"]
    for name in ("rows", "seeds", "lanes", "chunk"):
        if type(arguments.get(name)) is not int or arguments[name] < 1:
            raise ValueError(f"arguments.{name} must be an integer of at least 1, got {arguments.get(name)!r}")
    for name, kind in ({"row": None, "seed": None} | manifest["columns"]).items():
        if not isinstance(kind, str) or not KIND.fullmatch(kind) or kind.partition("[")[0] not in STORED:
            raise ValueError(f"columns.{name} must be a dtype and a shape, got {kind!r}")
    texts = {"tasks.sha256": manifest["tasks"].get("sha256"), "identity": manifest.get("identity", "")}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"{name} must be a string, got {text!r}")


def agree(folder: Path, describe: Callable[[dict[str, Any] | None], dict[str, Any]], table: Table) -> dict[str, Any]:
    """Makes sure that the store holds the sweep that is to be run, and no other; more seeds and rows are noted in it.

    Args:
        folder: the store.
        describe: (manifest of the store or None) -> manifest of the sweep to be run. Arguments that the caller left
            open are taken over from the store.
        table: the table of tasks.

    Returns:
        The manifest.

    Raises:
        ValueError: the store holds another sweep; the message lists the differences. Or a column is of a dtype that
            Parquet has no name for.
    """
    before = read_manifest(folder)
    wanted = describe(before)
    for name, (dtype, _) in column_kinds(wanted).items():
        if dtype not in STORED:
            raise ValueError(
                f"answers and metrics must be booleans, integers or floats to be stored, got {dtype} for {name!r}"
            )
    with locked(folder, "manifest", wait=True):
        held = read_manifest(folder)
        if held is None:
            write_table(folder, table)
            manifest = wanted | {"identity": uuid.uuid4().hex, "parts": {}}
            with explained(folder):
                write_file(folder / MANIFEST, _dump(manifest))
            return manifest
        if held != before:  # another shard was first, and has settled what the call left open
            wanted = describe(held)
        _refuse_another(folder, held, wanted, table)
        return _grown(folder, held, wanted, table)


def _grown(folder: Path, held: dict[str, Any], wanted: dict[str, Any], table: Table) -> dict[str, Any]:
    """The manifest of a store with the seeds and rows of a call, if they are more; a lost table is written anew."""
    old, new = held["arguments"], wanted["arguments"]
    grown = held | {"arguments": old | {name: max(old[name], new[name]) for name in ("rows", "seeds")}}
    if new["rows"] >= old["rows"]:
        grown["tasks"] = wanted["tasks"]
        grown["arguments"] |= {name: new[name] for name in ("horizon",) if name in new}
        if new["rows"] > old["rows"] or stored_table(folder, held) is None:
            write_table(folder, table)  # before the manifest, which until then speaks of its first rows
    if grown != held:
        with explained(folder):
            write_file(folder / MANIFEST, _dump(grown))
    return grown


def stored_table(folder: Path, manifest: dict[str, Any]) -> Table | None:
    """The table of a store's tasks; None if its file is missing, damaged or another one's."""
    if not manifest["tasks"].get("table"):
        return {}
    table = read_table(folder)
    if table is not None:
        table = head(table, manifest["arguments"]["rows"])
        if describe_table(table)["sha256"] != manifest["tasks"]["sha256"]:
            return None
    return table


def check_call(folder: Path, call: dict[str, Any], table: Table) -> None:
    """Raises `ValueError` if the arguments of a call are not those of the store; done before any shard is submitted."""
    held = read_manifest(folder)
    if held is not None:
        _refuse_another(folder, held, call, table)
    elif parts := part_paths(folder):
        raise ValueError(
            f"store must be a new folder or one that a sweep has written, but {str(folder)!r} has no {MANIFEST} and "
            f"holds {parts[0].name}"
        )


def seal(folder: Path) -> None:
    """Lists all parts in the manifest."""
    manifest = read_manifest(folder)
    if manifest is not None:
        listing = {path.name: {"bytes": path.stat().st_size, "sha256": path.stem[5:]} for path in part_paths(folder)}
        with explained(folder):
            write_file(folder / MANIFEST, _dump(manifest | {"parts": listing}))


def column_kinds(manifest: dict[str, Any]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The dtype and the shape of every column of a manifest, which writes them as 'float64[3, 2]'."""
    pairs = {name: kind.rstrip("]").partition("[") for name, kind in manifest["columns"].items()}
    return {name: (dtype, tuple(map(int, filter(None, shape.split(","))))) for name, (dtype, _, shape) in pairs.items()}


def expected_parts(manifest: dict[str, Any]) -> Expected:
    """What the parts of a store must be.

    A store that was written before stores had an identity has none, and nor do the parts that it is given: what they
    hold is compared, but not where they are from.
    """
    types = {
        name: to_arrow(np.empty((0, *shape), dtype)).type
        for name, (dtype, shape) in column_kinds(manifest).items()
        if 0 not in shape  # Parquet has no lists of no elements
    }
    arguments = manifest["arguments"]
    return Expected(manifest.get("identity"), types, arguments["rows"], arguments["seeds"])


def _dump(manifest: dict[str, Any]) -> bytes:
    return (json.dumps(manifest, indent=1) + "\n").encode()


def _refuse_another(folder: Path, held: dict[str, Any], wanted: dict[str, Any], table: Table) -> None:
    """Raises `ValueError` with all differences between the manifest of a store and that of a call."""
    # A store that does not say worked on arrays.
    held = held | {"arguments": {"scalars": False} | held["arguments"]}
    held, wanted = _over_shared_rows(folder, held, wanted, table)
    lines = [line for name in COMPARED if name in wanted for line in _differences(held[name], wanted[name], name)]
    if "program" in wanted and held["program"] != wanted["program"]:
        # Settings of JAX that change no program change no result, and so are only looked at here.
        told = list(_differences(held["settings"], wanted["settings"], "settings")) if "settings" in held else []
        close_over = "build and metrics, with all the values that they close over"
        lines += [*told, "(program: it may differ by these settings alone)"] if told else [f"(program: {close_over})"]
    if lines:
        raise ValueError(
            f"store {str(folder)!r} holds another sweep:\n  " + "\n  ".join(lines) + "\n"
            "Choose another folder, or call with the arguments of the store."
        )


def _over_shared_rows(
    folder: Path, held: dict[str, Any], wanted: dict[str, Any], table: Table
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both manifests without what may grow: the number of seeds, and the rows that only one of the tables has.

    A task's stream depends on its row and its seed alone, so neither changes a run that is stored.
    """
    old, new = held["arguments"].get("rows"), wanted["arguments"]["rows"]
    if old is not None and old < new:
        wanted = wanted | {"tasks": describe_table(head(table, old))}
    elif old is not None and old > new:
        stored = stored_table(folder, held)
        if stored is None:  # then there is nothing to compare with, and the numbers of rows are a difference
            return held, wanted
        held = held | {"tasks": describe_table(head(stored, new))}

    def without_sizes(manifest: dict[str, Any]) -> dict[str, Any]:
        arguments = {name: x for name, x in manifest["arguments"].items() if name not in ("rows", "seeds")}
        if isinstance(horizons := arguments.get("horizon"), list) and old is not None:
            horizons = horizons[: min(old, new)]
            arguments["horizon"] = horizons[0] if len(set(horizons)) == 1 else horizons  # as `describe_horizon` has it
        return manifest | {"arguments": arguments}

    return without_sizes(held), without_sizes(wanted)


def _differences(held: Any, wanted: Any, path: str) -> Iterator[str]:
    """One line for every difference, with the path to it."""
    texts = json.dumps(held), json.dumps(wanted)  # as text, NaN equals itself
    if texts[0] == texts[1]:
        return
    if isinstance(held, dict) and isinstance(wanted, dict):
        for name, value in wanted.items():
            yield from _differences(held.get(name), value, f"{path}.{name}".rstrip("."))
    elif isinstance(held, list) and isinstance(wanted, list) and len(held) == len(wanted):
        pairs = enumerate(zip(held, wanted, strict=True))
        n = next(n for n, (old, new) in pairs if json.dumps(old) != json.dumps(new))
        yield from _differences(held[n], wanted[n], f"{path}[{n}]")  # the first one stands for the rest
    else:
        short = [text if len(text) <= 60 else f"{text[:57]}..." for text in texts]
        yield f"{path}: {short[0]} in the store, {short[1]} now"
