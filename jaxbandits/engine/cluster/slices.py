"""Shards on workers that reach no folder of the caller's: finished runs come back as results, a portion at a time.

A worker runs a shard for half a minute, and returns the runs that have finished and those that are under way, in which
the shard goes on wherever the next call is carried out. A worker that dies costs what it has not returned.
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
from jaxbandits.engine.sweep.program import Program, by_scalars, compile_lanes, trace
from jaxbandits.engine.sweep.queue import Begun, Queue
from jaxbandits.engine.sweep.sizing import default_chunk, default_lanes, shapes_of
from jaxbandits.engine.sweep.tasks import Job, Settings

PORTION_SECONDS = 30.0  # that a worker keeps finished runs to itself


class Rest(NamedTuple):
    """What is left of a shard."""

    todo: np.ndarray  # int (n,)    ids of tasks that nobody has begun
    begun: Sequence[Begun]

    @property
    def is_empty(self) -> bool:
        """Whether the shard is done."""
        return not len(self.todo) and not self.begun


class Portion(NamedTuple):
    """What a call has come to."""

    columns: dict[str, np.ndarray] | None  # of the runs that have finished; None if there are none
    rest: Rest
    stats: Stats  # of this call
    manifest: dict[str, Any]  # of the sweep, as this worker runs it


class Choices(NamedTuple):
    """Arguments of the sweep that may be left open, and the size of a shard, which decides what is chosen then."""

    lanes: int | None
    chunk: int | None
    tasks: int
    scalars: bool | None = None


def run_portion(
    payload: bytes, settings: Settings, choices: Choices, rest: Rest, *, mesh: Mesh, unpack: Callable[[bytes], Job]
) -> Portion:
    """Goes on with a shard for `PORTION_SECONDS`, at least for one call of its program; under its settings."""
    started = time.perf_counter()
    job, program, manifest = _prepared(payload, settings, choices, mesh, unpack)
    prepared = time.perf_counter()
    queue = Queue(rest.todo, job.rows, rest.begun)

    def visit(count: int) -> None:
        if time.perf_counter() - prepared > PORTION_SECONDS:
            queue.close()

    drive_all(program, job, queue, visit)
    left = Rest(queue.todo[queue.next :], queue.begun)
    stats = queue.stats(program)._replace(compile_seconds=prepared - started)
    return Portion(queue.collect(), left, stats, manifest)


@functools.lru_cache(maxsize=1)  # the portions of a shard are mostly carried out by one worker
def _prepared(
    payload: bytes, settings: Settings, choices: Choices, mesh: Mesh, unpack: Callable[[bytes], Job]
) -> tuple[Job, Program, dict[str, Any]]:
    job = unpack(payload)
    shapes = shapes_of(job)
    lanes = choices.lanes or default_lanes(shapes, mesh, choices.tasks)
    lane = trace(job, shapes, choices.chunk or default_chunk(shapes, lanes))
    lane = by_scalars(lane, mesh, choices.scalars)
    program = compile_lanes(lane, mesh, tasks=choices.tasks, lanes=lanes)
    return job, program, describe_sweep(lane, mesh, lanes=lanes)
