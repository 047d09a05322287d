"""The manifest of a store, which identifies its sweep, so that no other one is ever mixed in."""

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

COMPARED = ("arguments", "tasks", "columns", "program", "made_by")  # entries that must be equal to resume a sweep
KIND = re.compile(r"\w+(\[\d+(, \d+)*\])?")  # dtype of a column, and shape of a run's entry
# Readers of Parquet folders skip names that begin with an underscore or a dot.
MANIFEST = "_manifest.json"


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Reads the manifest of a store. Returns None if there is none yet.

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
            f"store has a manifest that cannot be read, {str(folder / MANIFEST)!r} ({error}). Restore a copy of "
            "it, or choose another folder."
        ) from error
    return manifest


def _require_shape(manifest: Any) -> None:
    """Raises `ValueError` if an entry that this module reads is missing or malformed."""
    is_dict = isinstance(manifest, dict)
    if not is_dict or not all(isinstance(manifest.get(name), dict) for name in (*COMPARED, "parts")):
        raise ValueError("it is not the manifest of a sweep")
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
    """Requires that the store holds the sweep to be run, and no other. Records additional seeds and rows in it.

    Args:
        folder: the store.
        describe: (manifest of the store or None) -> manifest of the sweep to be run. It takes from the store the
            arguments that the caller left open.
        table: the table of tasks.

    Returns:
        The manifest.

    Raises:
        ValueError: the store holds another sweep (the message lists the differences), or a column has a dtype that
            Parquet does not have.
    """
    before = read_manifest(folder)
    described = describe(before)
    for name, (dtype, _) in column_kinds(described).items():
        if dtype not in STORED:
            raise ValueError(
                f"answers and metrics must be booleans, integers or floats to be stored, got {dtype} for {name!r}"
            )
    with locked(folder, "manifest", wait=True):
        held = read_manifest(folder)
        if held is None:
            write_table(folder, table)
            manifest = described | {"identity": uuid.uuid4().hex, "parts": {}}
            with explained(folder):
                write_file(folder / MANIFEST, _dump(manifest))
            return manifest
        # Another shard was first: it has fixed the arguments that the call left open.
        if held != before:
            described = describe(held)
        _refuse_another(folder, held=held, called=described, table=table)
        return _grown(folder, held=held, called=described, table=table)


def _grown(folder: Path, *, held: dict[str, Any], called: dict[str, Any], table: Table) -> dict[str, Any]:
    """Returns the manifest of a store, extended if a call has more seeds or rows. Rewrites a lost table."""
    old, new = held["arguments"], called["arguments"]
    grown = held | {"arguments": old | {name: max(old[name], new[name]) for name in ("rows", "seeds")}}
    if new["rows"] >= old["rows"]:
        grown["tasks"] = called["tasks"]
        grown["arguments"] |= {name: new[name] for name in ("horizon",) if name in new}
        if new["rows"] > old["rows"] or stored_table(folder, held) is None:
            # Before the manifest: until it is written, the store's table is the first rows of this one.
            write_table(folder, table)
    if grown != held:
        with explained(folder):
            write_file(folder / MANIFEST, _dump(grown))
    return grown


def stored_table(folder: Path, manifest: dict[str, Any]) -> Table | None:
    """Reads the table of a store's tasks. Returns None if its file is missing, damaged or of another store."""
    if not manifest["tasks"].get("table"):
        return {}
    table = read_table(folder)
    if table is not None:
        table = head(table, manifest["arguments"]["rows"])
        if describe_table(table)["sha256"] != manifest["tasks"]["sha256"]:
            return None
    return table


def check_call(folder: Path, call: dict[str, Any], table: Table) -> None:
    """Raises `ValueError` if a call's arguments differ from the store's. Runs before any shard is submitted."""
    held = read_manifest(folder)
    if held is not None:
        _refuse_another(folder, held=held, called=call, table=table)
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
    """Parses the dtype and the shape of every column of a manifest, written as 'float64[3, 2]'."""
    pairs = {name: kind.rstrip("]").partition("[") for name, kind in manifest["columns"].items()}
    return {name: (dtype, tuple(map(int, filter(None, shape.split(","))))) for name, (dtype, _, shape) in pairs.items()}


def expected_parts(manifest: dict[str, Any]) -> Expected:
    """Returns the requirements on the parts of a store.

    A store written before stores had an identity has none, and neither have its parts: their content is compared, not
    their origin.
    """
    types = {
        name: to_arrow(np.empty((0, *shape), dtype)).type
        for name, (dtype, shape) in column_kinds(manifest).items()
        if 0 not in shape  # Parquet has no lists of length 0
    }
    arguments = manifest["arguments"]
    return Expected(manifest.get("identity"), types, rows=arguments["rows"], seeds=arguments["seeds"])


def _dump(manifest: dict[str, Any]) -> bytes:
    return (json.dumps(manifest, indent=1) + "\n").encode()


def _refuse_another(folder: Path, *, held: dict[str, Any], called: dict[str, Any], table: Table) -> None:
    """Raises `ValueError` with all differences between the manifest of a store and the description of a call.

    The description may be a part of a manifest: only its own entries are compared.
    """
    # Stores without this entry were computed with arrays.
    held = held | {"arguments": {"scalars": False} | held["arguments"]}
    held, called = _over_shared_rows(folder, held=held, called=called, table=table)
    lines = [line for name in COMPARED if name in called for line in _differences(held[name], called[name], name)]
    if "program" in called and held["program"] != called["program"]:
        # Settings of JAX that change no program change no result, so they are compared only here.
        settings = list(_differences(held["settings"], called["settings"], "settings")) if "settings" in held else []
        if settings:
            lines += [*settings, "(program: it may differ by these settings alone)"]
        else:
            lines.append("(program: build and metrics, with all the values that they close over)")
    if lines:
        raise ValueError(
            f"store {str(folder)!r} holds another sweep:\n  " + "\n  ".join(lines) + "\n"
            "Choose another folder, or call with the arguments of the store."
        )


def _over_shared_rows(
    folder: Path, *, held: dict[str, Any], called: dict[str, Any], table: Table
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns both manifests without the number of seeds and without the rows that only one of the tables has.

    A task's stream depends on its row and its seed alone, so neither changes a stored run.
    """
    old, new = held["arguments"].get("rows"), called["arguments"]["rows"]
    if old is not None and old < new:
        called = called | {"tasks": describe_table(head(table, old))}
    elif old is not None and old > new:
        stored = stored_table(folder, held)
        # Without a table to compare with, the numbers of rows count as a difference.
        if stored is None:
            return held, called
        held = held | {"tasks": describe_table(head(stored, new))}

    def without_sizes(manifest: dict[str, Any]) -> dict[str, Any]:
        arguments = {name: x for name, x in manifest["arguments"].items() if name not in ("rows", "seeds")}
        if isinstance(horizons := arguments.get("horizon"), list) and old is not None:
            horizons = horizons[: min(old, new)]
            # The form of `describe_horizon`.
            arguments["horizon"] = horizons[0] if len(set(horizons)) == 1 else horizons
        return manifest | {"arguments": arguments}

    return without_sizes(held), without_sizes(called)


def _differences(old: Any, new: Any, path: str) -> Iterator[str]:
    """Yields one line for every difference between two JSON values, with the path to it."""
    texts = json.dumps(old), json.dumps(new)  # as text, NaN equals itself
    if texts[0] == texts[1]:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name, value in new.items():
            yield from _differences(old.get(name), value, f"{path}.{name}".rstrip("."))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        # Only the first differing entry of a list is reported.
        n = next(n for n, pair in enumerate(zip(old, new, strict=True)) if json.dumps(pair[0]) != json.dumps(pair[1]))
        yield from _differences(old[n], new[n], f"{path}[{n}]")
    else:
        short = [text if len(text) <= 60 else f"{text[:57]}..." for text in texts]
        yield f"{path}: {short[0]} in the store, {short[1]} now"
