"""A sweep on several processes or machines: shards, each an ordinary call that is submitted to an executor."""

import contextlib
import logging
import time
from concurrent.futures import BrokenExecutor, Executor
from functools import partial
from pathlib import Path
from types import ModuleType

import jax
import numpy as np
from jax.sharding import Mesh

from jaxbandits.engine.driving import Shard, run_into_store
from jaxbandits.engine.progress import progress_bar
from jaxbandits.engine.store import finished, is_called_off, locked, new_parts, stats_of, stop_sign
from jaxbandits.engine.tasks import Job, Settings, current_settings, under
from jaxbandits.engine.workers import start_error

DEFAULT_SHARDS = 8
POLL_SECONDS = 0.25  # between two checks for new parts
STOP_SECONDS = 60  # for running shards to notice the stop sign
START_SECONDS = 60  # after which it is said that no worker has begun

log = logging.getLogger(__name__)


def spread(
    job: Job,
    folder: Path,
    *,
    call: str,
    executor: Executor,
    shards: int,
    lanes: int | None,
    chunk: int | None,
    progress: bool,
) -> None:
    """Runs the tasks that the store lacks, in `shards` calls on an executor. The caller holds the shared lock."""
    payload = _packed(job, lanes, chunk)
    known: set[str] = set()
    new_parts(folder, known)
    before = int(finished(folder, job.rows, job.seeds).sum())
    abouts, started = [], time.perf_counter()
    futures = []
    try:
        for n in range(shards):
            settings = current_settings()
            futures.append(executor.submit(run_shard, settings, payload, str(folder), call, Shard(n, shards)))
        with progress_bar(job.total, done=before, show=progress) as report:
            pending, has_begun = futures, False
            while pending:
                time.sleep(POLL_SECONDS)
                # One by one: the jobs of submitit are used like futures, but `concurrent.futures.wait` refuses them.
                ended = [future for future in pending if future.done()]
                new = new_parts(folder, known)
                abouts += new
                stats = stats_of(abouts)._replace(seconds=time.perf_counter() - started)
                report(sum(about["runs"] for about in new), stats, sum(about["censored"] for about in abouts))
                for future in ended:
                    future.result()
                if not has_begun and time.perf_counter() - started > START_SECONDS:
                    has_begun = True  # as far as warnings go
                    if not (ended or abouts or any(_is_running(folder, n) for n in range(shards))):
                        log.warning("no worker has begun in %d s: has the executor any that live?", START_SECONDS)
                pending = [future for future in pending if future not in ended]
    except BaseException as error:
        with contextlib.suppress(OSError):  # a full disk may be the cause
            stop_sign(folder).touch()
            # Before they are cancelled: some executors kill a running shard, and lose what it has not written yet.
            _wait_for_shards(folder, shards)
        for future in futures:
            future.cancel()
        if not isinstance(error, ValueError):  # the call itself was wrong
            error.add_note(f"Runs that have finished are kept in {folder}; the same call goes on from there.")
        if (advice := _advice(error, executor)) is not None:
            error.add_note(advice)
        raise


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


def run_shard(settings: Settings, payload: bytes, folder: str, call: str, shard: Shard) -> None:
    """The call that an executor carries out: runs the tasks of one shard that the store lacks."""
    store = Path(folder)
    called_off = partial(is_called_off, store, call)
    with contextlib.ExitStack() as stack:
        stack.enter_context(under(settings))
        stack.enter_context(locked(store, "store", shared=True))
        while not called_off():  # an executor may start what it can no longer cancel
            try:
                stack.enter_context(locked(store, _lock(shard.number)))
                break
            except BlockingIOError:  # a worker that was believed dead still holds it
                time.sleep(POLL_SECONDS)
        else:
            return
        job, lanes, chunk = _cloudpickle().loads(payload)
        run_into_store(
            job,
            store,
            lanes=lanes,
            chunk=chunk,
            mesh=local_mesh(),
            progress=False,
            shard=shard,
            called_off=called_off,
        )


def local_mesh() -> Mesh:
    """All devices of this process."""
    return Mesh(np.array(jax.local_devices()), ("devices",))


def _packed(job: Job, lanes: int | None, chunk: int | None) -> bytes:
    """As bytes, so that 64-bit arrays are unpacked only once the worker has switched to the caller's settings."""
    cloudpickle = _cloudpickle()
    try:
        return cloudpickle.dumps((job, lanes, chunk))
    except Exception as error:  # an object that cannot be pickled may raise anything
        raise ValueError(
            "build and metrics must be picklable by cloudpickle to travel to an executor's workers, with all that they "
            f"close over, got {type(error).__name__}: {error}"
        ) from error


def _lock(shard: int) -> str:
    """The name of a shard's lock."""
    return f"shard-{shard}"


def _wait_for_shards(folder: Path, shards: int) -> None:
    """Waits until no shard is running: some futures count as done once they are cancelled, though they still run."""
    deadline = time.monotonic() + STOP_SECONDS
    for n in range(shards):
        while _is_running(folder, n):
            if time.monotonic() > deadline:
                log.warning("%s: shards are still running; they end after their chunk", folder)
                return
            time.sleep(POLL_SECONDS)


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
