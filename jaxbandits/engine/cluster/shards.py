"""A sweep on several processes or machines: shards, each an ordinary call that is submitted to an executor."""

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

from jaxbandits.engine.cluster.slices import Choices, Portion, Rest, run_portion
from jaxbandits.engine.cluster.workers import start_error
from jaxbandits.engine.logs import say
from jaxbandits.engine.results.runs import Stats, added
from jaxbandits.engine.store import (
    about_part,
    agree,
    finished,
    is_called_off,
    is_reached,
    locked,
    new_parts,
    stats_of,
    stop_sign,
    table_of,
    write_part,
)
from jaxbandits.engine.sweep.driving import Shard, run_into_store, tasks_of
from jaxbandits.engine.sweep.progress import progress_bar
from jaxbandits.engine.sweep.tasks import Job, Settings, current_settings, under

DEFAULT_SHARDS = 8
POLL_SECONDS = 0.25  # between two checks for new parts
STOP_SECONDS = 60  # for running shards to notice the stop sign
UNREACHED = "the store is not reached"
START_SECONDS = 60  # after which it is said that no worker has begun

log = logging.getLogger(__name__)


class Call(NamedTuple):
    """What all shards of a sweep have in common."""

    payload: bytes  # the job
    settings: Settings
    folder: str | None  # of the store
    name: str  # of this call of `sweep`


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
        Where there is no store, the finished runs, and what the workers did.
    """
    common = Call(_packed(job), current_settings(), None if folder is None else str(folder), call)
    choices = Choices(lanes, chunk, -(-job.total // shards), scalars)
    known: set[str] = set()
    before, done = 0, np.zeros(job.total, bool)
    if folder is not None:
        new_parts(folder, known)
        done = finished(folder, job.rows, job.seeds)
        before = int(done.sum())
    collected: list[dict[str, np.ndarray]] = []
    sums: dict[Shard, Stats] = {}  # of the portions so far
    session = uuid.uuid4().hex
    abouts, started = [], time.perf_counter()
    futures = []

    def rest_of(shard: Shard) -> Rest:
        tasks = tasks_of(shard, job.total)
        return Rest(tasks[~done[tasks]], [])

    def submit(shard: Shard, rest: Rest | None) -> None:
        futures.append((executor.submit(run_shard, common, choices, shard, rest), shard))

    def take(portion: Portion, shard: Shard) -> list[dict[str, Any]]:
        """Keeps what a worker has sent; returns the metadata of a part that is not written."""
        nonlocal choices
        sums[shard] = added([*([sums[shard]] if shard in sums else []), portion.stats])
        identity = None
        if folder is not None:
            manifest = _settled(folder, job, portion.manifest, lanes)
            choices, identity = choices._replace(lanes=manifest["arguments"]["lanes"]), manifest.get("identity")
        # Runs go on with the chunk that they have begun with, wherever that is.
        begun = portion.manifest["arguments"]
        choices = choices._replace(chunk=begun["chunk"], scalars=begun["scalars"])
        if portion.columns is None:
            return []
        about = {"session": f"{session}-{shard.number}"} | sums[shard]._asdict()
        if folder is not None:
            write_part(folder, portion.columns, about, identity)
            return []
        collected.append(portion.columns)
        return [about_part(portion.columns, about)]

    try:
        for n in range(shards):
            shard = Shard(n, shards)
            submit(shard, rest_of(shard) if folder is None else None)
        with progress_bar(job.total, done=before, show=progress) as report:
            pending, has_begun = list(futures), False
            while pending:
                time.sleep(POLL_SECONDS)
                # One by one: the jobs of submitit are used like futures, but `concurrent.futures.wait` refuses them.
                ended = [(future, shard) for future, shard in pending if future.done()]
                pending = [(future, shard) for future, shard in pending if (future, shard) not in ended]
                new = []
                for future, shard in ended:
                    outcome, submitted = future.result(), len(futures)
                    if outcome == UNREACHED:
                        submit(shard, rest_of(shard))
                    elif isinstance(outcome, Portion):
                        new += take(outcome, shard)
                        if not outcome.rest.is_empty:
                            submit(shard, outcome.rest)
                    pending += futures[submitted:]
                new += new_parts(folder, known) if folder is not None else []
                abouts += new
                stats = added(list(sums.values())) if folder is None else stats_of(abouts)
                stats = stats._replace(seconds=time.perf_counter() - started)
                report(sum(about["runs"] for about in new), stats, sum(about["censored"] for about in abouts))
                if not has_begun and time.perf_counter() - started > START_SECONDS:
                    has_begun = True  # as far as warnings go
                    if not (ended or abouts or _any_is_running(folder, shards, futures)):
                        say(
                            log,
                            logging.WARNING,
                            "no worker has begun in %d s: has the executor any that live?",
                            START_SECONDS,
                        )
    except BaseException as error:
        if folder is not None:
            with contextlib.suppress(OSError):  # a full disk may be the cause
                stop_sign(folder).touch()
                # Before they are cancelled: some executors kill a running shard, and lose what it has not written yet.
                _wait_for_shards(folder, shards)
        for future, _ in futures:
            future.cancel()
        if not isinstance(error, ValueError):  # the call itself was wrong
            kept = f"are kept in {folder}; the same call goes on from there" if folder else "are lost without a store"
            error.add_note(f"Runs that have finished {kept}.")
        if (advice := _advice(error, executor)) is not None:
            error.add_note(advice)
        raise
    return collected, added(list(sums.values()))


def _settled(folder: Path, job: Job, manifest: dict[str, Any], lanes: int | None) -> dict[str, Any]:
    """The store's manifest, which that of a worker must agree with, except for lanes that the caller leaves open."""

    def describe(held: dict[str, Any] | None) -> dict[str, Any]:
        if held is None or lanes is not None:
            return manifest
        return manifest | {"arguments": manifest["arguments"] | {"lanes": held["arguments"]["lanes"]}}

    return agree(folder, describe, table_of(job.tasks))


def _advice(error: BaseException, executor: Executor) -> str | None:
    """What is known of workers that died."""
    if (reason := start_error(executor)) is not None:
        return f"A worker could not start: {reason}"
    if isinstance(error, BrokenExecutor):
        return (
            "A worker died. If it had an error of its own, that is printed above; without one, the system ended it, as "
            "it does where memory runs out: fewer workers, or lower lanes."
        )
    if type(error).__name__ == "KilledWorker":  # of Dask
        return (
            "Dask gives a call up once its worker has died four times (distributed.scheduler.allowed-failures), as it "
            "does where memory runs out: fewer threads a worker, or lower lanes. The store is whole."
        )
    return None


def run_shard(call: Call, choices: Choices, shard: Shard, rest: Rest | None) -> Portion | str | None:
    """The call that an executor carries out: runs the tasks of one shard that the store lacks.

    Returns:
        None once the shard is done and its runs are in the store. A worker that sees no store says so (`UNREACHED`);
        called with the `rest` of the shard, it goes on with that, and returns what it has come to.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(under(call.settings))
        if rest is not None:
            return run_portion(call.payload, call.settings, choices, rest, mesh=local_mesh(), unpack=_unpacked)
        store = Path(call.folder or "")
        if not is_reached(store):
            return UNREACHED
        called_off = partial(is_called_off, store, call.name)
        stack.enter_context(locked(store, "store", shared=True))
        while not called_off():  # an executor may start what it can no longer cancel
            try:
                stack.enter_context(locked(store, _lock(shard.number)))
                break
            except BlockingIOError:  # a worker that was believed dead still holds it
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
    """All devices of this process."""
    return Mesh(np.array(jax.local_devices()), ("devices",))


def _packed(job: Job) -> bytes:
    """As bytes, so that 64-bit arrays are unpacked only once the worker has switched to the caller's settings."""
    cloudpickle = _cloudpickle()
    try:
        return cloudpickle.dumps(job)
    except Exception as error:  # an object that cannot be pickled may raise anything
        raise ValueError(
            "build and metrics must be picklable by cloudpickle to travel to an executor's workers, with all that they "
            f"close over, got {type(error).__name__}: {error}"
        ) from error


def _unpacked(payload: bytes) -> Job:
    """The job again."""
    return _cloudpickle().loads(payload)


def _lock(shard: int) -> str:
    """The name of a shard's lock."""
    return f"shard-{shard}"


def _wait_for_shards(folder: Path, shards: int) -> None:
    """Waits until no shard is running: some futures count as done once they are cancelled, though they still run."""
    deadline = time.monotonic() + STOP_SECONDS
    for n in range(shards):
        while _is_running(folder, n):
            if time.monotonic() > deadline:
                say(log, logging.WARNING, "%s: shards are still running; they end after their chunk", folder)
                return
            time.sleep(POLL_SECONDS)


def _any_is_running(folder: Path | None, shards: int, futures: Sequence[tuple[Any, Shard]]) -> bool:
    """Whether a worker has begun, as far as that can be known from here."""
    if folder is not None and any(_is_running(folder, n) for n in range(shards)):
        return True
    return any(getattr(future, "running", lambda: False)() for future, _ in futures)


def _is_running(folder: Path, shard: int) -> bool:
    """Whether a process holds the shard's lock."""
    try:
        with locked(folder, _lock(shard)):
            return False
    except BlockingIOError:
        return True


def _cloudpickle() -> ModuleType:
    """The module, which only executors need."""
    try:
        import cloudpickle
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "executor= sends functions to its workers with cloudpickle: pip install cloudpickle"
        ) from error
    return cloudpickle
