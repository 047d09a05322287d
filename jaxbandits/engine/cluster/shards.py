"""A sweep on several processes or machines: each shard is an ordinary call, submitted to an executor."""

import contextlib
import logging
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from jaxbandits.engine.cluster.slices import Choices, Remaining, Slice, run_slice
from jaxbandits.engine.cluster.workers import start_error
from jaxbandits.engine.logs import say
from jaxbandits.engine.results.runs import Stats, added
from jaxbandits.engine.store import (
    agree,
    finished,
    is_called_off,
    is_reached,
    locked,
    new_parts,
    part_metadata,
    stats_of,
    stop_sign,
    table_of,
    write_part,
)
from jaxbandits.engine.sweep.driving import Shard, run_into_store, tasks_of
from jaxbandits.engine.sweep.progress import progress_bar
from jaxbandits.engine.sweep.tasks import JaxSettings, Job, current_settings, use_settings

DEFAULT_SHARDS = 8
POLL_SECONDS = 0.25  # seconds between two checks for new parts
STOP_SECONDS = 60  # longest wait, in seconds, for running shards to obey the stop sign
UNREACHED = "the store is not reached"  # returned by a worker that cannot see the store
START_SECONDS = 60  # seconds before the warning that no worker has begun

log = logging.getLogger(__name__)


class Call(NamedTuple):
    """Arguments that all shards of a sweep share."""

    payload: bytes  # the job, pickled
    settings: JaxSettings
    folder: str | None  # path of the store
    name: str  # name of this call of `sweep`


def spread(
    job: Job,
    folder: Path | None,
    *,
    call: str,
    executor: Executor,
    shards: int,
    lanes: int | None,
    chunk: int | None,
    progress: bool,
    scalars: bool | None = None,
) -> tuple[list[dict[str, np.ndarray]], Stats]:
    """Runs the tasks that the store lacks, in `shards` calls on an executor. The caller holds the shared lock.

    Returns:
        The finished runs that are not in a store, and the `Stats` of the workers that sent runs.
    """
    common = Call(_packed(job), current_settings(), None if folder is None else str(folder), call)
    choices = Choices(lanes=lanes, chunk=chunk, tasks=-(-job.total // shards), scalars=scalars)
    known: set[str] = set()
    before, done = 0, np.zeros(job.total, bool)
    if folder is not None:
        new_parts(folder, known)
        done = finished(folder, rows=job.rows, seeds=job.seeds)
        before = int(done.sum())
    collected: list[dict[str, np.ndarray]] = []
    sums: dict[Shard, Stats] = {}  # stats of the slices so far
    session = uuid.uuid4().hex
    all_metadata, started = [], time.perf_counter()
    futures = []

    def remaining_of(shard: Shard) -> Remaining:
        tasks = tasks_of(shard, job.total)
        return Remaining(tasks[~done[tasks]], [])

    def submit(shard: Shard, remaining: Remaining | None) -> None:
        futures.append((executor.submit(run_shard, common, choices, shard, remaining), shard))

    def take(piece: Slice, shard: Shard) -> list[dict[str, Any]]:
        """Stores the runs that a worker sent. Without a store, keeps them and returns the metadata of their part."""
        nonlocal choices
        sums[shard] = added([*([sums[shard]] if shard in sums else []), piece.stats])
        identity = None
        if folder is not None:
            manifest = _reconciled(folder, job, piece.manifest, lanes)
            choices, identity = choices._replace(lanes=manifest["arguments"]["lanes"]), manifest.get("identity")
        # A run keeps the chunk that it began with, on whatever worker it continues.
        begun = piece.manifest["arguments"]
        choices = choices._replace(chunk=begun["chunk"], scalars=begun["scalars"])
        if piece.columns is None:
            return []
        metadata = {"session": f"{session}-{shard.number}"} | sums[shard]._asdict()
        if folder is not None:
            write_part(folder, piece.columns, metadata, identity)
            return []
        collected.append(piece.columns)
        return [part_metadata(piece.columns, metadata)]

    try:
        for n in range(shards):
            shard = Shard(n, shards)
            submit(shard, remaining_of(shard) if folder is None else None)
        with progress_bar(job.total, done=before, show=progress) as report:
            pending, has_begun = list(futures), False
            while pending:
                time.sleep(POLL_SECONDS)
                # One by one: `concurrent.futures.wait` refuses the jobs of submitit, which otherwise act as futures.
                ended = [(future, shard) for future, shard in pending if future.done()]
                pending = [(future, shard) for future, shard in pending if (future, shard) not in ended]
                new = []
                for future, shard in ended:
                    outcome, submitted = future.result(), len(futures)
                    if outcome == UNREACHED:
                        submit(shard, remaining_of(shard))
                    elif isinstance(outcome, Slice):
                        new += take(outcome, shard)
                        if not outcome.remaining.is_empty:
                            submit(shard, outcome.remaining)
                    pending += futures[submitted:]
                new += new_parts(folder, known) if folder is not None else []
                all_metadata += new
                stats = added(list(sums.values())) if folder is None else stats_of(all_metadata)
                stats = stats._replace(seconds=time.perf_counter() - started)
                report(
                    sum(metadata["runs"] for metadata in new),
                    stats,
                    sum(metadata["censored"] for metadata in all_metadata),
                )
                if not has_begun and time.perf_counter() - started > START_SECONDS:
                    has_begun = True  # one warning is enough
                    if not (ended or all_metadata or _any_is_running(folder, shards, futures)):
                        text = "no worker has begun in %d s: check that the executor has live workers"
                        say(log, logging.WARNING, text, START_SECONDS)
    except BaseException as error:
        if folder is not None:
            with contextlib.suppress(OSError):  # a full disk may be the cause
                stop_sign(folder).touch()
                # Before they are cancelled: some executors kill a running shard, which then loses its unwritten runs.
                _wait_for_shards(folder, shards)
        for future, _ in futures:
            future.cancel()
        # After a ValueError, the call itself was wrong.
        if not isinstance(error, ValueError):
            kept = f"are kept in {folder}; the same call goes on from there" if folder else "are lost without a store"
            error.add_note(f"Runs that have finished {kept}.")
        if (advice := _advice(error, executor)) is not None:
            error.add_note(advice)
        raise
    return collected, added(list(sums.values()))


def _reconciled(folder: Path, job: Job, manifest: dict[str, Any], lanes: int | None) -> dict[str, Any]:
    """Requires a worker's manifest to agree with the store's, except for lanes that the caller leaves open.

    Returns:
        The store's manifest.
    """

    def describe(held: dict[str, Any] | None) -> dict[str, Any]:
        if held is None or lanes is not None:
            return manifest
        return manifest | {"arguments": manifest["arguments"] | {"lanes": held["arguments"]["lanes"]}}

    return agree(folder, describe, table_of(job.tasks))


def _advice(error: BaseException, executor: Executor) -> str | None:
    """Returns a likely cause of a failed worker, and advice, or None."""
    if (reason := start_error(executor)) is not None:
        return f"A worker could not start: {reason}"
    if isinstance(error, BrokenExecutor):
        return (
            "A worker process ended. If it had an error of its own, that is printed above; without one, the system "
            "ended it, for instance because memory ran out. Use fewer workers, or lower lanes."
        )
    if type(error).__name__ == "KilledWorker":  # Dask's
        return (
            "Dask gives up a call whose worker has failed four times (distributed.scheduler.allowed-failures), for "
            "instance because memory ran out. Use fewer threads per worker, or lower lanes. The store is intact."
        )
    return None


def run_shard(call: Call, choices: Choices, shard: Shard, remaining: Remaining | None) -> Slice | str | None:
    """Runs the tasks of one shard that the store lacks. This is the call that an executor carries out.

    Args:
        call: arguments that all shards share.
        choices: arguments of the sweep that may be left open.
        shard: the shard.
        remaining: remaining tasks of the shard, for a worker that cannot see the store; None otherwise.

    Returns:
        None once the shard is done and its runs are in the store; `UNREACHED` if the worker cannot see the store; or,
        if `remaining` is given, the slice of the shard that was run.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(use_settings(call.settings))
        if remaining is not None:
            return run_slice(call.payload, call.settings, choices, remaining, mesh=local_mesh(), unpack=_unpacked)
        store = Path(call.folder or "")
        if not is_reached(store):
            return UNREACHED
        called_off = partial(is_called_off, store, call.name)
        stack.enter_context(locked(store, "store", shared=True))
        # An executor may start a call that it can no longer cancel.
        while not called_off():
            try:
                stack.enter_context(locked(store, _lock(shard.number)))
                break
            except BlockingIOError:  # a worker that was presumed lost still holds it
                time.sleep(POLL_SECONDS)
        else:
            return None
        run_into_store(
            _unpacked(call.payload),
            store,
            lanes=choices.lanes,
            chunk=choices.chunk,
            mesh=local_mesh(),
            progress=False,
            shard=shard,
            called_off=called_off,
            scalars=choices.scalars,
        )
    return None


def local_mesh() -> Mesh:
    """Returns a mesh of all devices of this process."""
    return Mesh(np.array(jax.local_devices()), ("devices",))


def _packed(job: Job) -> bytes:
    """Pickles a job. Its 64-bit arrays are then unpacked only after the worker adopts the caller's settings."""
    cloudpickle = _cloudpickle()
    try:
        return cloudpickle.dumps(job)
    except Exception as error:  # an object that cannot be pickled may raise anything
        raise ValueError(
            "build and metrics must be picklable by cloudpickle to be sent to an executor's workers, with all that "
            f"they close over, got {type(error).__name__}: {error}"
        ) from error


def _unpacked(payload: bytes) -> Job:
    """Unpickles a job."""
    return _cloudpickle().loads(payload)


def _lock(shard: int) -> str:
    """Returns the name of a shard's lock."""
    return f"shard-{shard}"


def _wait_for_shards(folder: Path, shards: int) -> None:
    """Waits until no shard is running. Some futures count as done once they are cancelled, though they still run."""
    deadline = time.monotonic() + STOP_SECONDS
    for n in range(shards):
        while _is_running(folder, n):
            if time.monotonic() > deadline:
                say(log, logging.WARNING, "%s: shards are still running; they end after their chunk", folder)
                return
            time.sleep(POLL_SECONDS)


def _any_is_running(folder: Path | None, shards: int, futures: Sequence[tuple[Any, Shard]]) -> bool:
    """Checks whether a worker has begun, as far as the locks and the futures show."""
    if folder is not None and any(_is_running(folder, n) for n in range(shards)):
        return True
    return any(getattr(future, "running", lambda: False)() for future, _ in futures)


def _is_running(folder: Path, shard: int) -> bool:
    """Checks whether a process holds the shard's lock."""
    try:
        with locked(folder, _lock(shard)):
            return False
    except BlockingIOError:
        return True


def _cloudpickle() -> ModuleType:
    """Imports cloudpickle, which only executors need."""
    try:
        import cloudpickle
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "executor= sends functions to its workers with cloudpickle: pip install cloudpickle"
        ) from error
    return cloudpickle
