"""A sweep, or a shard of one, in this process."""

import functools
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jaxlib.version
import numpy as np
from jax.sharding import Mesh

from jaxbandits.engine import store as disk
from jaxbandits.engine.lanes import (
    Lane,
    Queue,
    compile_lanes,
    default_chunk,
    default_lanes,
    drive_all,
    fingerprint,
    trace,
)
from jaxbandits.engine.progress import progress_bar
from jaxbandits.engine.results import Results
from jaxbandits.engine.tasks import Job, current_settings, describe_key, describe_tasks, name_of

LOOK_SECONDS = 1.0  # between two looks whether a shard is called off: a network file system takes its time to answer

log = logging.getLogger(__name__)


class Shard(NamedTuple):
    """One of several parts of a sweep. Its tasks are a random choice of all, so that shards take about equally long."""

    number: int  # from 0
    of: int


def run_in_memory(job: Job, *, lanes: int | None, chunk: int | None, mesh: Mesh, progress: bool) -> Results:
    """Runs all tasks; nothing is kept of a sweep that does not end."""
    lanes = lanes or default_lanes(job, mesh, job.total)
    chunk = chunk or default_chunk(job, lanes)
    program = compile_lanes(trace(job, chunk), mesh, tasks=job.total, lanes=lanes)
    queue = Queue(np.arange(job.total), job.rows)
    with progress_bar(job.total, show=progress) as show:
        drive_all(program, job, queue, lambda finished: show(finished, queue.stats(program), queue.censored))
    columns = queue.pop() or {}
    order = np.lexsort((columns["seed"], columns["row"]))
    return Results({name: values[order] for name, values in columns.items()}, queue.stats(program))


def run_into_store(
    job: Job,
    folder: Path,
    *,
    lanes: int | None,
    chunk: int | None,
    mesh: Mesh,
    progress: bool,
    shard: Shard = Shard(0, 1),  # noqa: B008
    called_off: Callable[[], bool] = lambda: False,
) -> None:
    """Runs those tasks of a shard that are not in the store yet. The caller holds the locks."""
    traced = functools.cache(lambda length: trace(job, length))

    def describe(held: dict[str, Any] | None) -> dict[str, Any]:
        settled = held["arguments"] if held else {}
        width = lanes or settled.get("lanes") or default_lanes(job, mesh, -(-job.total // shard.of))
        length = chunk or settled.get("chunk") or default_chunk(job, width)
        return describe_sweep(traced(length), mesh, lanes=width)

    arguments = disk.agree(folder, describe)["arguments"]
    done = disk.finished(folder, job.rows, job.seeds)
    mine = tasks_of(shard, job.total)
    todo = mine[~done[mine]]
    there = len(mine) - len(todo)
    if there:
        log.info("%s: %d of %d runs are there already", folder, there, len(mine))
    if not len(todo):
        return
    program = compile_lanes(traced(arguments["chunk"]), mesh, tasks=len(todo), lanes=arguments["lanes"])
    queue = Queue(todo, job.rows)
    writer = disk.Writer(folder, queue.pop, lambda: queue.stats(program))
    with progress_bar(len(mine), done=there, show=progress) as show:
        looked = time.monotonic()

        def visit(finished: int) -> None:
            nonlocal looked
            show(finished, queue.stats(program), queue.censored)
            if writer.due(queue.waiting):
                writer.write()
            if time.monotonic() - looked > LOOK_SECONDS:
                looked = time.monotonic()
                if called_off():
                    queue.close()

        try:
            drive_all(program, job, queue, visit)
        finally:
            writer.write()


def tasks_of(shard: Shard, total: int) -> np.ndarray:
    """The tasks of a shard, seed by seed: fixed, whoever asks."""
    if shard.of == 1:
        return np.arange(total)
    return np.sort(np.random.default_rng(0).permutation(total)[shard.number :: shard.of])


def describe_call(job: Job, *, lanes: int | None, chunk: int | None) -> dict[str, Any]:
    """The arguments of a sweep, as a manifest has them; without those that the caller leaves open."""
    arguments = {
        "rows": job.rows,
        "seeds": job.seeds,
        "max_rounds": job.max_rounds,
        "key": describe_key(job.key),
        "lanes": lanes,
        "chunk": chunk,
    }
    return {
        "arguments": {name: value for name, value in arguments.items() if value is not None},
        "tasks": describe_tasks(job.tasks),
    }


def describe_sweep(lane: Lane, mesh: Mesh, *, lanes: int) -> dict[str, Any]:
    """The manifest: all that decides the bits of the results, and the columns."""
    from jaxbandits import __version__  # not there yet while the package is being imported

    job = lane.job
    program, columns = fingerprint(lane)
    device = mesh.devices.flat[0]
    return describe_call(job, lanes=lanes, chunk=lane.chunk) | {
        "program": {"sha256": program},  # of build and metrics, with the values that they close over
        "functions": {"build": name_of(job.build), "metrics": name_of(job.metrics)},
        "columns": {"row": "int64", "seed": "int64"} | columns,
        "made_by": {
            "jaxbandits": __version__,
            "jax": jax.__version__,
            "jaxlib": jaxlib.version.__version__,
            "numpy": np.__version__,
            "platform": device.platform,
            "device_kind": device.device_kind,
            "x64": current_settings().enable_x64,
        },
    }
