"""Finished runs on disk: Parquet files and a manifest.

A store is a folder. `_manifest.json` says what is run, so that another sweep is never mixed in; `_tasks.parquet` is the
table of tasks, to be joined with the runs by `row`. Finished runs lie in `part-CHECKSUM.parquet`: a part is written
under a hidden name, synced, then renamed, and its name is the checksum of its bytes, so a file that was cut short or
has decayed is recognised by its name. No part is ever changed in place, and writers need not agree on anything, so a
process may be killed at any moment.

A store has an identity, made once, which its manifest and all of its parts carry: a part that was copied in from
another store is set aside, and so is one whose metadata, columns, rows or seeds are not the store's. A store that was
written before there was an identity has none and stays without: its parts, old and new, are compared by what they hold.
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
