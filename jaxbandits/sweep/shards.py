"""A sweep on several processes or machines: shards, each of them an ordinary call submitted to an executor."""

import time
from concurrent.futures import FIRST_EXCEPTION, Executor, wait
from pathlib import Path
from types import ModuleType

import jax
import numpy as np
from jax.sharding import Mesh

from jaxbandits.sweep import store as disk
from jaxbandits.sweep.job import Job, Settings, current_settings, under
from jaxbandits.sweep.local import Shard, run_into_store
from jaxbandits.sweep.progress import progress_bar
from jaxbandits.sweep.results import Stats, added

DEFAULT_SHARDS = 8
POLL_SECONDS = 0.5  # between two looks for new parts
STOP_SECONDS = 60  # that running shards get to notice the stop sign


def spread(
    job: Job, folder: Path, *, executor: Executor, shards: int, lanes: int | None, chunk: int | None, progress: bool
) -> None:
    """Runs what the store lacks, in `shards` calls on an executor. The caller holds the store's lock, shared."""
    cloudpickle = _cloudpickle()
    # Bytes, so that 64-bit arrays are unpacked only once the worker has switched to the caller's settings.
    payload = cloudpickle.dumps((job, lanes, chunk))
    seen: set[str] = set()
    before = sum(about["runs"] for about in disk.new_parts(folder, seen))
    sessions: dict[str, Stats] = {}
    censored, started = 0, time.perf_counter()
    futures = [
        executor.submit(run_shard, current_settings(), payload, str(folder), Shard(n, shards)) for n in range(shards)
    ]
    try:
        with progress_bar(job.total, done=before, show=progress) as show:
            pending = set(futures)
            while pending:
                finished, pending = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_EXCEPTION)
                runs = 0
                for about in disk.new_parts(folder, seen):
                    sessions[about["session"]] = Stats(**{name: about[name] for name in Stats._fields})
                    runs, censored = runs + about["runs"], censored + about["censored"]
                show(runs, added(list(sessions.values()))._replace(seconds=time.perf_counter() - started), censored)
                for future in finished:
                    future.result()
    except BaseException:
        disk.stop_sign(folder).touch()
        for future in futures:
            future.cancel()
        wait(futures, timeout=STOP_SECONDS)
        raise


def run_shard(settings: Settings, payload: bytes, folder: str, shard: Shard) -> None:
    """The call that an executor carries out: runs what is left of one shard into the store."""
    store = Path(folder)
    with under(settings), disk.locked(store, "store", shared=True), disk.locked(store, f"shard-{shard.number}"):
        job, lanes, chunk = _cloudpickle().loads(payload)
        run_into_store(job, store, lanes=lanes, chunk=chunk, mesh=local_mesh(), progress=False, shard=shard)


def local_mesh() -> Mesh:
    """All devices of this process."""
    return Mesh(np.array(jax.local_devices()), ("devices",))


def _cloudpickle() -> ModuleType:
    try:
        import cloudpickle
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "executor= sends functions to its workers with cloudpickle: pip install cloudpickle"
        ) from error
    return cloudpickle
