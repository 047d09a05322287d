"""A sweep on several processes or machines: each shard is an ordinary call, submitted to an executor.

A worker that reaches the store writes finished runs to it, part by part. Any other worker runs its shard in memory and
returns the runs, which the caller writes. If it fails, the whole shard is lost, and only this shard.
"""

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

import numpy as np

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
    read_manifest,
    stats_of,
    stop_sign,
    table_of,
    write_part,
)
from jaxbandits.engine.sweep.description import describe_sweep
from jaxbandits.engine.sweep.driving import (
    Shard,
    prepare,
    prepare_for_store,
    run_in_memory,
    run_into_store,
    tasks_of,
)
from jaxbandits.engine.sweep.layout import OpenLayout, completed
from jaxbandits.engine.sweep.progress import Report, silent
from jaxbandits.engine.sweep.tasks import JaxSettings, Job, current_settings, use_settings

DEFAULT_SHARDS = 8
POLL_SECONDS = 0.25  # seconds between two checks for new parts
STOP_SECONDS = 60  # longest wait, in seconds, for running shards to obey the stop sign
START_SECONDS = 60  # seconds before the warning that no worker has begun

log = logging.getLogger(__name__)


class Call(NamedTuple):
    """Arguments that all shards of a sweep share."""

    payload: bytes  # the job, pickled
    settings: JaxSettings
    folder: str | None  # path of the store
    name: str  # name of this call of `sweep`
    layout: OpenLayout  # without a mesh, since each worker uses all devices of its process


class Returned(NamedTuple):
    """Runs of a shard that a worker ran in memory."""

    columns: dict[str, np.ndarray]
    stats: Stats
    manifest: dict[str, Any] | None  # manifest of the sweep, as this worker runs it; None if there is no store


def spread(
    job: Job,
    folder: Path | None,
    layout: OpenLayout,
    *,
    call: str,
    executor: Executor,
    shards: int,
    report: Report,
) -> tuple[list[dict[str, np.ndarray]], Stats]:
    """Runs the tasks that the store lacks, in `shards` calls on an executor. The caller holds the shared lock.

    Returns:
        The finished runs that are not in a store, and the `Stats` of the workers that returned runs.
    """
    common = Call(
        payload=_packed(job),
        settings=current_settings(),
        folder=None if folder is None else str(folder),
        name=call,
        layout=layout if folder is None else completed(layout, read_manifest(folder)),
    )
    known: set[str] = set()
    done = np.zeros(job.total, bool)
    if folder is not None:
        new_parts(folder, known)
        done = finished(folder, rows=job.rows, seeds=job.seeds)
    collected: list[dict[str, np.ndarray]] = []
    returned: list[Stats] = []
    session = uuid.uuid4().hex
    all_metadata, started = [], time.perf_counter()
    futures: list[tuple[Any, Shard]] = []
    pending: list[tuple[Any, Shard]] = []  # futures whose outcome has not been taken
    failures: list[Exception] = []  # errors of workers

    def take(runs: Returned, shard: Shard) -> list[dict[str, Any]]:
        """Stores the runs that a worker returned. Without a store, keeps them and returns metadata as for a part."""
        metadata = {"session": f"{session}-{shard.number}"} | runs.stats._asdict()
        if folder is None or runs.manifest is None:
            collected.append(runs.columns)
            returned.append(runs.stats)
            return [part_metadata(runs.columns, metadata)]
        manifest = _reconciled(folder, job, layout, runs.manifest)
        write_part(folder, runs.columns, metadata, manifest.get("identity"))
        returned.append(runs.stats)
        return []

    def take_ended() -> list[dict[str, Any]]:
        """Takes the runs of all calls that have ended. The error of one costs no other one its runs."""
        new = []
        # One by one: `concurrent.futures.wait` refuses the jobs of submitit, which otherwise act as futures.
        for future, shard in [(future, shard) for future, shard in pending if future.done()]:
            try:
                runs = future.result()
            except Exception as error:
                failures.append(error)
                runs = None
            if runs is not None:
                new += take(runs, shard)
            # An interruption before this line leaves the call to be taken again: its part has the same name.
            pending.remove((future, shard))
        return new

    def others_hold_runs() -> bool:
        """Checks whether the other workers hold runs in memory: they write no parts and no locks."""
        is_written = bool(all_metadata) or (folder is not None and _any_holds_lock(folder, shards))
        return folder is not None and (bool(returned) or not is_written)

    try:
        for n in range(shards):
            shard = Shard(n, shards)
            missing = ~done[tasks_of(shard, job.total)]
            pending.append((executor.submit(run_shard, common, shard, missing), shard))
            futures.append(pending[-1])
        has_begun = False
        while pending:
            time.sleep(POLL_SECONDS)
            failed_before = len(failures)
            new = take_ended()
            # After a ValueError, the call itself was wrong.
            if failures and (isinstance(failures[0], ValueError) or not others_hold_runs()):
                raise failures[0]
            for failure in failures[failed_before:]:
                text = "a shard failed (%r); the others go on, since their workers may hold finished runs in memory"
                say(log, logging.WARNING, text, failure)
            new += new_parts(folder, known) if folder is not None else []
            all_metadata += new
            stats = added(returned) if folder is None else stats_of(all_metadata)
            stats = stats._replace(seconds=time.perf_counter() - started)
            report(
                sum(metadata["runs"] for metadata in new),
                stats,
                *(sum(metadata.get(name, 0) for metadata in all_metadata) for name in ("censored", "failed")),
            )
            if not has_begun and time.perf_counter() - started > START_SECONDS:
                has_begun = True  # one warning is enough
                if not (len(pending) < shards or all_metadata or _any_is_running(folder, shards, futures)):
                    text = (
                        "no worker has begun in %d s: check that the executor has live workers. (One that reaches "
                        "no store may show nothing until its shard ends.)"
                    )
                    say(log, logging.WARNING, text, START_SECONDS)
        if failures:
            raise failures[0]
    except BaseException as error:
        with contextlib.suppress(Exception):  # a full disk may be the cause
            take_ended()
        if folder is not None:
            with contextlib.suppress(OSError):
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
    return collected, added(returned)


def _reconciled(folder: Path, job: Job, layout: OpenLayout, manifest: dict[str, Any]) -> dict[str, Any]:
    """Requires a worker's manifest to agree with the store's, except for lanes that the caller leaves open.

    Returns:
        The store's manifest.
    """

    def describe(held: dict[str, Any] | None) -> dict[str, Any]:
        if held is None or layout.lanes is not None:
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


def run_shard(call: Call, shard: Shard, missing: np.ndarray) -> Returned | None:
    """Runs the tasks of one shard that the store lacks. This is the call that an executor carries out.

    Args:
        call: arguments that all shards share.
        shard: the shard.
        missing: bool (n,), tasks of the shard that the store lacked when the call was submitted, for a worker that
            cannot see the store.

    Returns:
        None if the runs of the shard are in the store, or there are none; otherwise the runs.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(use_settings(call.settings))
        if call.folder is None or not is_reached(Path(call.folder)):
            job = _unpacked(call.payload)
            todo = tasks_of(shard, job.total)[missing]
            if not len(todo):
                return None
            prepared = prepare(job, todo, call.layout, shard=shard)
            columns, stats = run_in_memory(prepared, silent)
            return Returned(columns, stats, None if call.folder is None else describe_sweep(prepared.lane))
        store = Path(call.folder)
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
        job = _unpacked(call.payload)
        run_into_store(prepare_for_store(job, store, call.layout, shard=shard), store, silent, called_off)
    return None


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
    if folder is not None and _any_holds_lock(folder, shards):
        return True
    return any(getattr(future, "running", lambda: False)() for future, _ in futures)


def _any_holds_lock(folder: Path, shards: int) -> bool:
    """Checks whether a worker that reaches the store runs a shard."""
    return any(_is_running(folder, n) for n in range(shards))


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
