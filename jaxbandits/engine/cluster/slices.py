"""Shards on workers that reach no folder of the caller's: finished runs are returned, one time slice after the other.

A worker runs a shard for half a minute. It returns the finished runs and the unfinished ones, and the shard continues
from these on any worker that takes the next call. A worker that fails loses only what it has not returned.
"""

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.sharding import Mesh

from jaxbandits.engine.results.runs import Stats
from jaxbandits.engine.sweep.description import describe_sweep
from jaxbandits.engine.sweep.driving import drive_all
from jaxbandits.engine.sweep.program import Program, choose_scalars, compile_lanes, trace
from jaxbandits.engine.sweep.queue import Queue, UnfinishedRuns
from jaxbandits.engine.sweep.sizing import default_chunk, default_lanes, shapes_of
from jaxbandits.engine.sweep.tasks import JaxSettings, Job

SLICE_SECONDS = 30.0  # longest time, in seconds, that a worker holds finished runs


class Remaining(NamedTuple):
    """Tasks of a shard that have not finished."""

    todo: np.ndarray  # int (n,)    ids of tasks that no worker has begun
    begun: Sequence[UnfinishedRuns]

    @property
    def is_empty(self) -> bool:
        """True if the shard is done."""
        return not len(self.todo) and not self.begun


class Slice(NamedTuple):
    """Result of one call: the part of a shard that it ran."""

    columns: dict[str, np.ndarray] | None  # finished runs; None if there are none
    remaining: Remaining
    stats: Stats  # stats of this call alone
    manifest: dict[str, Any]  # manifest of the sweep, as this worker runs it


class Choices(NamedTuple):
    """Arguments of the sweep that may be left open, and the size of a shard, on which their defaults depend."""

    lanes: int | None
    chunk: int | None
    tasks: int
    scalars: bool | None = None


def run_slice(
    payload: bytes,
    settings: JaxSettings,
    choices: Choices,
    remaining: Remaining,
    *,
    mesh: Mesh,
    unpack: Callable[[bytes], Job],
) -> Slice:
    """Continues a shard for `SLICE_SECONDS`, at least for one call of its program. Its settings must be in force."""
    started = time.perf_counter()
    job, program, manifest = _prepared(payload, settings, choices, mesh, unpack)
    prepared = time.perf_counter()
    queue = Queue(remaining.todo, job.rows, remaining.begun)

    def visit(count: int) -> None:
        if time.perf_counter() - prepared > SLICE_SECONDS:
            queue.close()

    drive_all(program, job, queue, visit)
    still_remaining = Remaining(queue.todo[queue.next :], queue.unfinished)
    stats = queue.stats(program)._replace(compile_seconds=prepared - started)
    return Slice(queue.collect(), still_remaining, stats, manifest)


# One entry is enough: a worker mostly runs slices of one sweep.
@functools.lru_cache(maxsize=1)
def _prepared(
    payload: bytes, settings: JaxSettings, choices: Choices, mesh: Mesh, unpack: Callable[[bytes], Job]
) -> tuple[Job, Program, dict[str, Any]]:
    job = unpack(payload)
    shapes = shapes_of(job)
    lanes = choices.lanes or default_lanes(shapes, mesh, choices.tasks)
    lane = trace(job, shapes, choices.chunk or default_chunk(shapes, lanes))
    lane = choose_scalars(lane, mesh, choices.scalars)
    program = compile_lanes(lane, mesh, tasks=choices.tasks, lanes=lanes)
    return job, program, describe_sweep(lane, mesh, lanes=lanes)
