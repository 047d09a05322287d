"""Calls of `sweep` by experiments: under a heading, with the options of the command line."""

import os
import re
import sys
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np

import jaxbandits
from experiments.settings import Settings

T = TypeVar("T")

PAUSE = 5.0  # seconds before a locked store is tried again
SHARDS_PER_WORKER = 2  # a worker that ends early takes another shard


def simulate(
    name: str,
    build: Callable,
    tasks: Any = None,
    *,
    options: Settings,
    seeds: int,
    max_rounds: int,
    lanes: int | None = None,
    noise: str | None = None,
    **settings: Any,
) -> jaxbandits.Results:
    """Runs a sweep under a heading.

    Its root key is made from the name, so that no two sweeps share their noise, except those that name the same
    `noise`, to be compared in pairs. A sweep that is renamed draws other numbers.

    With `--store` its finished runs are kept in a folder of its own; other experiments that need the same sweep read
    them there. With `--workers` it runs on several processes. `settings` go to `sweep`.
    """
    print(f"\n{name}", file=sys.stderr)
    results = when_free(
        partial(
            jaxbandits.sweep,
            build,
            tasks,
            seeds=seeds,
            key=jax.random.key(zlib.crc32((noise or name).encode())),
            max_rounds=max_rounds,
            lanes=options.lanes or lanes,
            store=options.store and options.store / folder_name(name),
            executor=options.executor,
            shards=options.executor and SHARDS_PER_WORKER * options.workers,
            **settings,
        )
    )
    options.count(int(np.sum(results.columns["pulls"])))
    return results


def when_free(call: Callable[[], T]) -> T:
    """Calls a function that writes to a store, again while another process makes the same runs."""
    while True:
        try:
            return call()
        except BlockingIOError as error:  # some experiments of a report share their runs
            print(f"waiting: {error}", file=sys.stderr)
            time.sleep(PAUSE)


def cache_folder() -> Path:
    """Returns the folder for results that take long to make: compiled programs, decoded images."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jaxbandits"


def folder_name(name: str) -> str:
    """Converts a heading to characters that every file system accepts."""
    return re.sub(r"[^a-z0-9.=]+", "-", name.lower()).strip("-")
