"""Drives a sweep, or a shard of one, in this process: lanes that are refilled as they finish.

A batch of lanes advances by a few chunks of rounds in one call of the compiled program. The host then takes out the
lanes that have finished and gives them new tasks, so that no lane waits for the slowest one. Several batches advance
side by side, each driven by a thread of its own: on a CPU they occupy the cores (XLA runs small elementwise kernels on
one), on an accelerator one batch computes while the host attends to the other.
"""

import functools
import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from jaxbandits.base import Status
from jaxbandits.engine.describing import describe_sweep
from jaxbandits.engine.program import Limits, Program, by_scalars, compile_lanes, trace
from jaxbandits.engine.progress import progress_bar
from jaxbandits.engine.queue import Begun, Queue, part_of
from jaxbandits.engine.results import Results, Stats
from jaxbandits.engine.sizing import default_chunk, default_lanes, shapes_of, with_memory_advice
from jaxbandits.engine.store import Writer, agree, finished, table_of
from jaxbandits.engine.tables import leaves_of, number_columns, with_tasks
from jaxbandits.engine.tasks import Job, current_settings, under

HOST_SECONDS = 1e-3  # that a batch loses by a visit of the host (measured on two cores, 64 to 256 lanes)
CALL_SECONDS = 0.25  # longest time between two visits: progress, interruptions and new parts wait for one
STOP_CHECK_SECONDS = (
    1.0  # between two checks whether a shard is called off, each of which a network file system may slow
)

log = logging.getLogger(__name__)


class Shard(NamedTuple):
    """One of several parts of a sweep, whose tasks are a random choice of all, so that shards take equally long."""

    number: int  # from 0
    of: int


def run_in_memory(
    job: Job, *, lanes: int | None, chunk: int | None, mesh: Mesh, progress: bool, scalars: bool | None = None
) -> Results:
    """Runs all tasks; nothing is kept of a sweep that is interrupted."""
    shapes = shapes_of(job)
    lanes = lanes or default_lanes(shapes, mesh, job.total)
    chunk = chunk or default_chunk(shapes, lanes)
    with progress_bar(job.total, show=progress) as report:
        program = compile_lanes(
            by_scalars(trace(job, shapes, chunk), mesh, scalars), mesh, tasks=job.total, lanes=lanes
        )
        queue = Queue(np.arange(job.total), job.rows)
        drive_all(program, job, queue, lambda count: report(count, queue.stats(program), queue.censored))
    _log_advice(queue.stats(program))
    return results_of(job, queue.collect() or {}, queue.stats(program))


def results_of(job: Job, columns: dict[str, np.ndarray], stats: Stats) -> Results:
    """The Results of all runs of a sweep, in order, with the values of its table."""
    order = np.lexsort((columns["seed"], columns["row"]))
    columns = {name: values[order] for name, values in columns.items()}
    return Results(with_tasks(columns, number_columns(leaves_of(job.tasks))), stats)


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
    scalars: bool | None = None,
) -> None:
    """Runs those tasks of a shard that are not in the store yet. The caller holds the locks."""
    shapes = shapes_of(job)
    traced = functools.cache(lambda rounds: trace(job, shapes, rounds))

    def describe(manifest: dict[str, Any] | None) -> dict[str, Any]:
        settled = manifest["arguments"] if manifest else {}
        width = lanes or settled.get("lanes") or default_lanes(shapes, mesh, -(-job.total // shard.of))
        rounds = chunk or settled.get("chunk") or default_chunk(shapes, width)
        chosen = settled.get("scalars", False) if scalars is None and manifest else scalars
        return describe_sweep(by_scalars(traced(rounds), mesh, chosen), mesh, lanes=width)

    arguments = agree(folder, describe, table_of(job.tasks))["arguments"]
    tasks = tasks_of(shard, job.total)
    todo = tasks[~finished(folder, job.rows, job.seeds)[tasks]]
    stored = len(tasks) - len(todo)
    if stored:
        log.info("%s: %d of %d runs are stored already", folder, stored, len(tasks))
    if not len(todo):
        return
    with progress_bar(len(tasks), done=stored, show=progress) as report:
        lane = by_scalars(traced(arguments["chunk"]), mesh, arguments.get("scalars", False))
        program = compile_lanes(lane, mesh, tasks=len(todo), lanes=arguments["lanes"])
        queue = Queue(todo, job.rows)
        writer = Writer(folder, queue.collect, lambda: queue.stats(program))
        checked = time.monotonic()

        def visit(count: int) -> None:
            nonlocal checked
            report(count, queue.stats(program), queue.censored)
            if writer.due(queue.waiting):
                writer.write()
            if time.monotonic() - checked > STOP_CHECK_SECONDS:
                checked = time.monotonic()
                if called_off():
                    queue.close()

        try:
            drive_all(program, job, queue, visit)
        finally:
            writer.write()
    _log_advice(queue.stats(program))


def _log_advice(stats: Stats) -> None:
    """Says what would have been faster."""
    if stats.advice:
        log.info("%s", stats.advice)


def tasks_of(shard: Shard, total: int) -> np.ndarray:
    """The tasks of a shard, seed by seed: the same in every process."""
    if shard.of == 1:
        return np.arange(total)
    return np.sort(np.random.default_rng(0).permutation(total)[shard.number :: shard.of])


def drive_all(program: Program, job: Job, queue: Queue, visit: Callable[[int], None]) -> None:
    """Advances all batches, each in a thread of its own, until the queue is empty or closed.

    Args:
        program: the compiled call.
        job: what is run.
        queue: where the tasks come from and the finished runs go.
        visit: called after every call of every batch, by the batch's thread, with the number of runs that finished.
    """
    settings = current_settings()

    def drive() -> None:
        with under(settings), with_memory_advice(program.shapes, program.lanes, program.chunk):
            _drive(program, job, queue, visit)

    with ThreadPoolExecutor(program.batches, thread_name_prefix="jaxbandits") as threads:
        futures = [threads.submit(drive) for _ in range(program.batches)]
        try:
            for future in as_completed(futures):
                future.result()
        finally:
            queue.close()


def _drive(program: Program, job: Job, queue: Queue, visit: Callable[[int], None]) -> None:
    """Advances one batch of lanes until there is no task left for it."""
    tasks = np.full(program.all_lanes, -1)  # id of the task in each lane; -1: none
    pulls = np.zeros(program.all_lanes, np.int64)
    rounds = np.zeros(program.all_lanes, np.int64)
    begun = queue.resume(program.all_lanes)
    if begun is not None:
        count = len(begun.tasks)
        tasks[:count], pulls[:count], rounds[:count] = begun[:3]
    batch = program.fill(begun.leaves if begun is not None else ())
    chunks = 1
    while not queue.closed:
        fresh = tasks < 0
        new = queue.take(int(fresh.sum()))
        fresh[np.flatnonzero(fresh)[len(new) :]] = False
        tasks[fresh] = new
        pulls[fresh] = rounds[fresh] = 0
        busy = tasks >= 0
        if not busy.any():
            return
        # Ids go seed by seed: rows of different cost are mixed, and a sweep that is cut short has runs of every row.
        seed, row = np.divmod(np.maximum(tasks, 0), job.rows)
        budget = np.where(busy, job.budgets(row), -1)  # a lane without a task idles
        limits = Limits(budget.astype(np.int32), None if job.horizon is None else job.horizon[row])
        started = time.perf_counter()
        batch, report = program.call(
            row.astype(np.int32), seed.astype(np.int32), fresh, limits, np.int32(chunks), batch
        )
        # Wait first: device_get would wait with Python's lock held, and keep the other batches from starting.
        jax.block_until_ready(report)
        report |= jax.device_get({name: report[name] for name in ("status", "pulls", "rounds")})
        round_seconds = (time.perf_counter() - started) / (chunks * program.chunk)
        done = busy & (report["status"] != Status.RUNNING)
        part = {}
        if done.any():
            # Answers and metrics may be large, curves for instance: they are fetched only where runs have ended.
            report |= jax.device_get(report)
            part = {"row": row[done], "seed": seed[done]} | {name: x[done] for name, x in report.items()}
        queue.add(
            part,
            pulls=int((report["pulls"] - pulls)[busy].sum()),
            rounds=int((report["rounds"] - rounds)[busy].sum()),
            capacity=program.all_lanes * chunks * program.chunk,
        )
        pulls, rounds = report["pulls"].astype(np.int64), report["rounds"].astype(np.int64)
        tasks[done] = -1
        chunks = _chunks_until_visit(queue, program, round_seconds)
        visit(int(done.sum()))
    if queue.keeps and (tasks >= 0).any():
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.device_get(batch))]
        queue.keep(part_of(Begun(tasks, pulls, rounds, leaves), np.flatnonzero(tasks >= 0)))


def _chunks_until_visit(queue: Queue, program: Program, round_seconds: float) -> int:
    """Chunks of the next call, from the length of runs so far and the time that a round of the batch takes.

    A visit costs the batch the time of h rounds. With calls of c rounds, a run of m rounds waits c / 2 rounds for the
    visit once it has ended. The losses h / c + c / (2 m) are least at c = sqrt(2 h m).
    """
    m = queue.rounds / (queue.finished + program.all_lanes * program.batches)
    c = min(math.sqrt(2 * HOST_SECONDS / round_seconds * m), CALL_SECONDS / round_seconds)
    return max(1, int(c / program.chunk))
