"""A sweep on several processes or machines: shards, each of them an ordinary call submitted to an executor."""

import contextlib
import logging
import time
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from types import ModuleType

import jax
import numpy as np
from jax.sharding import Mesh

from jaxbandits.engine import store as disk
from jaxbandits.engine.local import Shard, run_into_store
from jaxbandits.engine.progress import progress_bar
from jaxbandits.engine.tasks import Job, Settings, current_settings, under

DEFAULT_SHARDS = 8
POLL_SECONDS = 0.25  # between two looks for new parts
STOP_SECONDS = 60  # that running shards get to notice the stop sign

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
    """Runs what the store lacks, in `shards` calls on an executor. The caller holds the store's lock, shared."""
    payload = _packed(job, lanes, chunk)
    seen: set[str] = set()
    before = sum(about["runs"] for about in disk.new_parts(folder, seen))
    abouts, started = [], time.perf_counter()
    futures = []
    try:
        for n in range(shards):
            settings = current_settings()
            futures.append(executor.submit(run_shard, settings, payload, str(folder), call, Shard(n, shards)))
        with progress_bar(job.total, done=before, show=progress) as show:
            pending = futures
            while pending:
                time.sleep(POLL_SECONDS)
                # One by one: the jobs of submitit are asked like futures, but `concurrent.futures.wait` refuses them.
                ended = [future for future in pending if future.done()]
                new = disk.new_parts(folder, seen)
                abouts += new
                stats = disk.stats_of(abouts)._replace(seconds=time.perf_counter() - started)
                show(sum(about["runs"] for about in new), stats, sum(about["censored"] for about in abouts))
                for future in ended:
                    future.result()
                pending = [future for future in pending if future not in ended]
    except BaseException as error:
        with contextlib.suppress(OSError):  # a full disk is what may have gone wrong
            disk.stop_sign(folder).touch()
            # Before they are cancelled: some executors would kill a running shard, and what it has not written yet.
            _wait_for_shards(folder, shards)
        for future in futures:
            future.cancel()
        if not isinstance(error, ValueError):  # the call itself was wrong
            error.add_note(f"Runs that have finished are kept in {folder}; the same call goes on from there.")
        raise


def run_shard(settings: Settings, payload: bytes, folder: str, call: str, shard: Shard) -> None:
    """The call that an executor carries out: runs what is left of one shard into the store."""
    store = Path(folder)
    called_off = partial(disk.is_called_off, store, call)
    with contextlib.ExitStack() as stack:
        stack.enter_context(under(settings))
        stack.enter_context(disk.locked(store, "store", shared=True))
        while not called_off():  # an executor may start what it can no longer cancel
            try:
                stack.enter_context(disk.locked(store, _lock(shard.number)))
                break
            except BlockingIOError:  # a worker that was given up for dead still has it
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
    except Exception as error:  # whatever an object raises that will not be pickled
        raise ValueError(
            "build and metrics must be picklable by cloudpickle to travel to an executor's workers, with all that they "
            f"close over, got {type(error).__name__}: {error}"
        ) from error


def _lock(shard: int) -> str:
    return f"shard-{shard}"


def _wait_for_shards(folder: Path, shards: int) -> None:
    """Waits until no shard is running: some futures count as done once they are cancelled, whatever still runs."""
    deadline = time.monotonic() + STOP_SECONDS
    for n in range(shards):
        while _is_running(folder, n):
            if time.monotonic() > deadline:
                log.warning("%s: shards are still running; they end after their chunk", folder)
                return
            time.sleep(POLL_SECONDS)


def _is_running(folder: Path, shard: int) -> bool:
    try:
        with disk.locked(folder, _lock(shard)):
            return False
    except BlockingIOError:
        return True


def _cloudpickle() -> ModuleType:
    try:
        import cloudpickle
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "executor= sends functions to its workers with cloudpickle: pip install cloudpickle"
        ) from error
    return cloudpickle
