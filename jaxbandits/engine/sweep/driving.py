"""Drives a sweep, or a shard of one, in this process: lanes that are refilled as they finish.

A batch of lanes advances by a few chunks of rounds in one call of the compiled program. The host then collects the
finished runs and gives their lanes new tasks, so that no lane waits for the slowest one. Several batches advance side
by side, each driven by its own thread. On a CPU they occupy the cores (XLA runs small elementwise kernels on one). On
an accelerator one batch computes while the host serves the other.

The life of a lane, from one visit of the host to the next:

    free      no task: tasks[lane] and budget[lane] are -1, so the program idles the lane
      | the queue has a task
    fresh     the host has written row, seed and budget; the next call starts the run
      | the call returns
    running   status RUNNING: the device keeps the lane's state, the host its counts
      | the call returns another status
    done      the host fetches answer and metrics, adds the run to the queue, and frees the lane
"""

import functools
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from jaxbandits.base import Status
from jaxbandits.engine.logs import say
from jaxbandits.engine.programs.compiling import Span
from jaxbandits.engine.results.rules import RULE
from jaxbandits.engine.results.runs import Results, Stats, of_tasks, root_numbers
from jaxbandits.engine.results.tables import leaves_of, number_columns, with_tasks
from jaxbandits.engine.store import Writer, agree, check_call, finished, load_one, read_manifest, table_of
from jaxbandits.engine.sweep.description import describe_key, describe_sweep
from jaxbandits.engine.sweep.layout import OpenLayout, completed, with_memory_advice
from jaxbandits.engine.sweep.preflight import preflight
from jaxbandits.engine.sweep.program import Lane, Limits, Program, begin_compiling, compile_lanes, trace
from jaxbandits.engine.sweep.progress import Report
from jaxbandits.engine.sweep.queue import Queue
from jaxbandits.engine.sweep.tasks import Job, current_settings, use_settings

# Least time, in seconds, that a host visit costs a batch (measured: two cores, 64 to 256 lanes).
HOST_SECONDS = 1e-3
# Longest time between two visits: progress, interruptions and new parts wait for one.
CALL_SECONDS = 0.25
SHORTEST_ROUND = 1e-9  # least time of a round, in seconds: a coarse clock may measure 0
# Seconds between two checks whether a shard is called off. A network file system may make each of them slow.
STOP_CHECK_SECONDS = 1.0
FAILURES = {
    Status.NONFINITE: (
        "a NaN or an infinity in the algorithm's state, often after a reward that is not finite or not lawful for the "
        "problem (such as 0.5 for Bernoulli arms, or the sum of more pulls than leap allows)"
    ),
    Status.INVALID_ACTION: "the action does not exist in the environment, such as an arm that it lacks",
}

T = TypeVar("T")

log = logging.getLogger(__name__)


class Shard(NamedTuple):
    """One of several parts of a sweep, each with a random share of the tasks, so that shards take equally long."""

    number: int  # position among the shards, counted from 0
    of: int  # number of shards


class Prepared(NamedTuple):
    """A sweep, or a shard of one, that has been traced and compiled."""

    job: Job
    todo: np.ndarray  # int (n,)    tasks to be run
    lane: Lane
    program: Program | None  # None if there is nothing to run
    identity: str | None = None  # identity of the store


def checked_lane(job: Job, layout: OpenLayout, *, ahead: bool = False) -> Lane:
    """Traces a sweep, and checks it as `preflight` does.

    Args:
        job: the sweep.
        layout: layout; what it leaves open gets a default.
        ahead: if True, XLA compiles the sweep meanwhile.
    """
    lane, failed = None, None
    try:
        lane = trace(job, layout, tasks=job.total)
    except Exception as error:  # if the check fails too, its message says more
        failed = error
    began = time.perf_counter()
    if ahead and lane is not None:
        begin_compiling(lane)
    check_span = preflight(job, lane)
    if lane is None:
        assert failed is not None
        raise failed
    return lane._replace(spans=(*lane.spans, Span(began, time.perf_counter())), check_span=check_span)


def prepare(
    job: Job,
    todo: np.ndarray,
    layout: OpenLayout,
    *,
    shard: Shard = Shard(0, 1),  # noqa: B008
    known: Lane | None = None,
) -> Prepared:
    """Compiles the program for the tasks `todo` of a shard, at least one, in memory; its lane may be known."""
    lane = trace(job, layout, tasks=-(-job.total // shard.of), known=known)
    return Prepared(job, todo, lane, compile_lanes(lane, tasks=len(todo)))


def run_in_memory(
    prepared: Prepared, report: Report, is_over: Callable[[], bool] = lambda: False
) -> tuple[dict[str, np.ndarray], Stats]:
    """Runs tasks in memory; if interrupted, it loses their runs.

    Returns:
        The columns of the runs, in the order of their ends; the stats.
    """
    job, program = prepared.job, prepared.program
    assert program is not None  # there is at least one task
    queue = Queue(prepared.todo, job.rows)

    def visit(count: int) -> None:
        report(count, queue.stats(program), queue.censored, queue.failed)
        if is_over():
            queue.close()

    drive_all(program, job, queue, visit)
    stats = queue.stats(program)
    _log_advice(stats)
    return queue.collect() or {}, stats


def results_of(job: Job, columns: dict[str, np.ndarray], stats: Stats) -> Results:
    """Returns the Results of all runs of a sweep, in order, with the values of its table."""
    order = np.lexsort((columns["seed"], columns["row"]))
    columns = {name: values[order] for name, values in columns.items()}
    root = root_numbers(describe_key(job.key))
    return Results(with_tasks(columns, number_columns(leaves_of(job.tasks))), stats, root)


def prepare_for_store(
    job: Job,
    folder: Path,
    layout: OpenLayout,
    *,
    shard: Shard = Shard(0, 1),  # noqa: B008
    known: Lane | None = None,
) -> Prepared:
    """Compiles the program for the tasks of a shard that the store lacks, if any; its lane may be known.

    The caller must hold the locks.

    Raises:
        ValueError: the store holds another sweep.
    """
    lane = known

    def describe(held: dict[str, Any] | None) -> dict[str, Any]:
        nonlocal lane
        lane = trace(job, completed(layout, held), tasks=-(-job.total // shard.of), known=lane)
        return describe_sweep(lane)

    manifest = agree(folder, describe, table_of(job.tasks))
    assert lane is not None  # `agree` calls `describe` at least once, last with the manifest that it agrees with
    tasks = tasks_of(shard, job.total)
    todo = tasks[~finished(folder, rows=job.rows, seeds=job.seeds)[tasks]]
    if len(todo) < len(tasks):
        say(log, logging.INFO, "%s: %d of %d runs are stored already", folder, len(tasks) - len(todo), len(tasks))
    program = compile_lanes(lane, tasks=len(todo)) if len(todo) else None
    return Prepared(job, todo, lane, program, manifest.get("identity"))


def run_into_store(
    prepared: Prepared,
    folder: Path,
    report: Report,
    called_off: Callable[[], bool],
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Runs tasks that a store lacks. The caller must hold the locks.

    Args:
        prepared: the tasks and their program.
        folder: the store.
        report: receives the counts after every call of a batch.
        called_off: True if the runs must end. It reads files, so it is called once a second.
        is_over: True if the runs must end, called after every call of a batch.
    """
    job, program = prepared.job, prepared.program
    if program is None:
        return
    queue = Queue(prepared.todo, job.rows)
    writer = Writer(folder, queue.collect, lambda: queue.stats(program), prepared.identity)
    last_check = time.monotonic()

    def visit(count: int) -> None:
        nonlocal last_check
        report(count, queue.stats(program), queue.censored, queue.failed)
        if writer.due(queue.waiting):
            writer.write()
        if is_over():
            queue.close()
        if time.monotonic() - last_check > STOP_CHECK_SECONDS:
            last_check = time.monotonic()
            if called_off():
                queue.close()

    try:
        drive_all(program, job, queue, visit)
    finally:
        writer.write()
    _log_advice(queue.stats(program))


def run_in_turn(
    prepare_all: Sequence[Callable[[], Prepared]], run: Callable[[int, Prepared, Callable[[], bool]], T]
) -> list[T]:
    """Runs several sweeps one after the other, and compiles the programs of the later ones meanwhile.

    Programs are traced and compiled in this thread, under its settings of JAX, as fast as they come; the runs have
    another one. XLA compiles without Python's lock. If a program cannot be compiled, the current runs end after their
    call, so that an error in the last rule shows within minutes.

    Args:
        prepare_all: functions that compile the sweeps.
        run: (n, prepared, is_over) -> result of sweep n, called in another thread unless there is only one sweep. It
            ends early once `is_over()` is True.

    Returns:
        The results.
    """
    if len(prepare_all) == 1:
        return [run(0, prepare_all[0](), lambda: False)]
    settings, is_over = current_settings(), threading.Event()

    def turn(n: int, prepared: Prepared) -> T:
        with use_settings(settings):
            return run(n, prepared, is_over.is_set)

    with ThreadPoolExecutor(1, thread_name_prefix="jaxbandits-rules") as runner:
        futures: list[Future[T]] = []
        try:
            for n, prepare_one in enumerate(prepare_all):
                # An error of the runs ends the sweep before the next program is compiled.
                for future in filter(Future.done, futures):
                    future.result()
                futures.append(runner.submit(turn, n, prepare_one()))
            return [future.result() for future in futures]
        except BaseException:
            is_over.set()
            runner.shutdown(wait=False, cancel_futures=True)
            raise


def warn_of_failures(columns: dict[str, np.ndarray]) -> None:
    """Logs a warning that says how many runs failed and why, if any did; a full bar and a mean would not show it."""
    status = columns["status"]
    causes = {kind: int((status == kind).sum()) for kind in FAILURES}
    if not any(causes.values()):
        return
    reasons = "; ".join(f"{count} {kind.name}: {FAILURES[kind]}" for kind, count in causes.items() if count)
    n = int(np.argmax(np.isin(status, list(FAILURES))))
    first = ", ".join(f"{name} {columns[name][n]}" for name in (RULE, "row", "seed") if name in columns)
    text = "%d of %d runs failed, the first in %s. %s. Statistics leave them out."
    say(log, logging.WARNING, text, sum(causes.values()), len(status), first, reasons)


def read_finished(job: Job, folder: Path, layout: OpenLayout) -> Results | None:
    """Reads a store that cannot be written; returns None unless it holds all runs.

    Raises:
        ValueError: the store holds another sweep, or a part of another store.
    """
    if not finished(folder, rows=job.rows, seeds=job.seeds).all():
        return None
    lane = trace(job, completed(layout, read_manifest(folder)), tasks=job.total)
    check_call(folder, describe_sweep(lane), table_of(job.tasks))
    return of_tasks(load_one(folder), job.rows, job.seeds)


def _log_advice(stats: Stats) -> None:
    """Logs the arguments that would have been faster, if any."""
    if stats.advice:
        say(log, logging.INFO, "%s", stats.advice)


def tasks_of(shard: Shard, total: int) -> np.ndarray:
    """Returns the tasks of a shard, seed by seed: the same in every process."""
    if shard.of == 1:
        return np.arange(total)
    return np.sort(_permutation(total)[shard.number :: shard.of])


# A caller needs the tasks of every shard, and ten million take seconds to permute.
@functools.lru_cache(maxsize=1)
def _permutation(total: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(total)


def drive_all(program: Program, job: Job, queue: Queue, visit: Callable[[int], None]) -> None:
    """Advances all batches, each in a thread of its own, until the queue is empty or closed.

    Args:
        program: the compiled call.
        job: the sweep.
        queue: source of the tasks and collector of the finished runs.
        visit: called after every call of every batch, by the batch's thread, with the number of runs that finished.
    """
    settings = current_settings()

    def drive() -> None:
        with use_settings(settings), with_memory_advice(program.shapes, program.layout):
            _drive(program, job, queue, visit)

    with ThreadPoolExecutor(program.batches, thread_name_prefix="jaxbandits") as threads:
        futures = [threads.submit(drive) for _ in range(program.batches)]
        try:
            for future in as_completed(futures):
                future.result()
        finally:
            queue.close()


def _drive(program: Program, job: Job, queue: Queue, visit: Callable[[int], None]) -> None:
    """Advances one batch of lanes until the queue has no task for it.

    Only the entries of lanes that change are written, and sums run over whole arrays. A visit that passed over a few
    hundred thousand lanes a dozen times would take as long as their rounds.
    """
    tasks = np.full(program.layout.all_lanes, -1)  # id of the task in each lane; -1 if there is none
    row, seed = np.zeros((2, program.layout.all_lanes), np.int32)
    budget = np.full(program.layout.all_lanes, -1, np.int32)  # a lane without a task idles
    horizon = None if job.horizon is None else np.repeat(job.horizon[:1], program.layout.all_lanes)
    fresh = np.zeros(program.layout.all_lanes, bool)
    free = np.arange(program.layout.all_lanes)
    counted = {"pulls": 0, "rounds": 0}  # counts of the unfinished runs

    def give(lanes: np.ndarray, ids: np.ndarray) -> None:
        """Gives lanes new tasks. Ids run seed by seed: this mixes rows of different cost, also in a sweep cut short."""
        tasks[lanes] = ids
        seed[lanes], row[lanes] = np.divmod(ids, job.rows)
        budget[lanes] = job.budgets(row[lanes])
        if job.horizon is not None and horizon is not None:
            horizon[lanes] = job.horizon[row[lanes]]

    def total(counts: np.ndarray) -> int:
        return int(counts.sum(dtype=np.int64))

    batch = program.fill()
    chunks, visited = 1, time.perf_counter()  # visited: time at which the last `visit` returned
    while not queue.closed:
        new = queue.take(len(free))
        filled, free = free[: len(new)], free[len(new) :]
        if len(free) == program.layout.all_lanes:
            return
        give(filled, new)
        fresh[filled] = True
        limits = Limits(budget, horizon)
        started = time.perf_counter()
        batch, answered = program.call(row, seed, fresh, limits=limits, chunks=np.int32(chunks), batch=batch)
        # Wait first: device_get would wait with Python's lock held, and keep the other batches from starting. A CPU may
        # read its input arrays in place, so they are written only once the call has ended.
        jax.block_until_ready(answered)
        ended = time.perf_counter()
        report = answered | jax.device_get({name: answered[name] for name in ("status", "pulls", "rounds")})
        fresh[filled] = False
        done = np.flatnonzero(report["status"] != Status.RUNNING)
        done = done[tasks[done] >= 0]
        part = {}
        if len(done):
            # Answers and metrics may be large, curves for instance, so they are fetched only if runs have ended.
            report |= jax.device_get(answered)
            part = {"row": row[done].astype(np.int64), "seed": seed[done].astype(np.int64)}
            part |= {name: x[done] for name, x in report.items()}
        # A lane without a task still has the counts of its last run.
        sums = {name: total(report[name]) - total(report[name][free]) for name in counted}
        queue.add(
            part,
            **{name: sums[name] - counted[name] for name in sums},
            capacity=program.layout.all_lanes * chunks * program.layout.chunk,
            host_seconds=started - visited + time.perf_counter() - ended,
        )
        counted = {name: sums[name] - total(report[name][done]) for name in sums}
        tasks[done], budget[done] = -1, -1
        free = np.concatenate([free, done])
        chunks = _chunks_until_visit(queue, program, (ended - started) / (chunks * program.layout.chunk))
        visit(len(done))
        visited = time.perf_counter()


def _chunks_until_visit(queue: Queue, program: Program, round_seconds: float) -> int:
    """Computes the chunks of the next call from the length of runs so far and the batch's time per round.

    A visit costs the batch the time of h rounds. With calls of c rounds, a run of m rounds waits c / 2 rounds for the
    visit once it has ended. The loss h / c + c / (2 m) is smallest at c = sqrt(2 h m).
    """
    m = queue.rounds / (queue.finished + program.layout.all_lanes * program.batches)
    visit_seconds = max(HOST_SECONDS, queue.host_seconds / queue.visits)
    round_seconds = max(round_seconds, SHORTEST_ROUND)
    c = min(math.sqrt(2 * visit_seconds / round_seconds * m), CALL_SECONDS / round_seconds)
    return max(1, int(c / program.layout.chunk))
