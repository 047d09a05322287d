"""Finished runs on disk: Parquet files and a manifest.

A store is a folder. `_manifest.json` says what is run, so that another sweep is never mixed in; `_tasks.parquet` is the
table of tasks, to be joined with the runs by `row`. Finished runs lie in `part-CHECKSUM.parquet`: a part is written
under a hidden name, synced, then renamed, and its name is the checksum of its bytes, so a file that was cut short or
has decayed is recognised by its name. No part is ever changed in place, and writers need not agree on anything, so a
process may be killed at any moment.

A store has an identity, made once, which its manifest and all of its parts carry: a part that was copied in from
another store is set aside, and so is one whose metadata, columns, rows or seeds are not the store's. A store that was
written before there was an identity has none and stays without: its parts, old and new, are compared by what they hold.

Locks, all of them `flock` on hidden files of the folder, released by the system if a process dies:

- `.store.lock`: `sweep` holds it exclusively from its first look at the folder until it returns. With an executor it
  then shares it, so that its own workers may share it too, and no other sweep can begin. Each shard holds a share.
- `.shard-N.lock`: a worker holds it exclusively while it runs shard N. One that was believed dead may still hold it;
  its successor waits. The caller reads from it which shards are running, after an error, before it gives up the folder.
- `.manifest.lock`: each shard holds it exclusively, for milliseconds, while it reads the manifest and writes what is
  missing in it. After the shards, `sweep` lists all parts in the manifest under `.store.lock` alone.

Parts need no lock: each has a name of its own. `.call` and the stop sign are no locks either. They say that the shards
of an earlier call are to end, and a shard looks at them once a second.
"""

from jaxbandits.engine.store.files import make_folder
from jaxbandits.engine.store.loading import load
from jaxbandits.engine.store.locks import begin_call, is_called_off, is_reached, locked, stop_sign
from jaxbandits.engine.store.manifest import agree, check_call, read_manifest, seal
from jaxbandits.engine.store.parts import new_parts, stats_of
from jaxbandits.engine.store.tables import table_of
from jaxbandits.engine.store.tidying import finished, tidy
from jaxbandits.engine.store.writing import Writer, about_part, write_part

__all__ = [
    "Writer",
    "about_part",
    "agree",
    "begin_call",
    "check_call",
    "finished",
    "is_called_off",
    "is_reached",
    "load",
    "locked",
    "make_folder",
    "new_parts",
    "read_manifest",
    "seal",
    "stats_of",
    "stop_sign",
    "table_of",
    "tidy",
    "write_part",
]
