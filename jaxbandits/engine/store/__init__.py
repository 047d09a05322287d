"""Finished runs on disk: Parquet files and a manifest.

A store is a folder:

- `_manifest.json` identifies the sweep, so that no other one is ever mixed in.
- `_tasks.parquet` is the table of tasks, to be joined with the runs by `row`.
- `part-CHECKSUM.parquet` holds finished runs. A part is written under a hidden name, synced, then renamed. Its name is
  the checksum of its bytes, so a truncated or corrupted file is recognised by its name.

A store of several rules is a folder with such a store for each, in folders `rule=NAME`, and `_rules.json`, the list of
their names in order.

No part is ever changed in place, and writers need no coordination, so a process may be killed at any moment.

A store has an identity, made once, which its manifest and all of its parts carry. A part copied in from another store
is set aside, and so is one whose metadata, columns, rows or seeds do not match the store. A store written before stores
had an identity never gets one: its parts, old and new, are compared by their content.

Locks, all of them `flock` on hidden files of the folder, released by the system when a process ends:

- `.store.lock`: `sweep` holds it exclusively from its first access to the folder until it returns. With an executor it
  then shares it, so that its own workers may share it too, and no other sweep can begin. Each shard holds a share.
  In a store of several rules, it also holds the one of the folder above them.
- `.shard-N.lock`: a worker holds it exclusively while it runs shard N. A worker that was presumed lost may still hold
  it; its successor waits. After an error, the caller reads from it which shards still run before it frees the folder.
- `.manifest.lock`: each shard holds it exclusively, for milliseconds, while it reads and completes the manifest. After
  the shards, `sweep` lists all parts in the manifest under `.store.lock` alone.

Parts need no lock, because their names are unique. `.call` and the stop sign are no locks either: they end the shards
of an earlier call. A shard checks them once a second.
"""

from jaxbandits.engine.store.files import make_folder
from jaxbandits.engine.store.loading import load, load_one
from jaxbandits.engine.store.locks import begin_call, is_called_off, is_reached, locked, stop_sign
from jaxbandits.engine.store.manifest import agree, check_call, read_manifest, seal
from jaxbandits.engine.store.parts import new_parts, stats_of
from jaxbandits.engine.store.rules import folders_of, read_rules, refuse_rules, write_rules
from jaxbandits.engine.store.tables import table_of
from jaxbandits.engine.store.tidying import finished, tidy
from jaxbandits.engine.store.writing import Writer, part_metadata, write_part

__all__ = [
    "Writer",
    "agree",
    "begin_call",
    "check_call",
    "finished",
    "folders_of",
    "is_called_off",
    "is_reached",
    "load",
    "load_one",
    "locked",
    "make_folder",
    "new_parts",
    "part_metadata",
    "read_manifest",
    "read_rules",
    "refuse_rules",
    "seal",
    "stats_of",
    "stop_sign",
    "table_of",
    "tidy",
    "write_part",
    "write_rules",
]
