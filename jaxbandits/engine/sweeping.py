"""The door: one call runs any number of tasks."""

import contextlib
import os
from concurrent.futures import Executor
from functools import partial
from pathlib import Path

from jax.sharding import Mesh

from jaxbandits.base import Key, PyTree
from jaxbandits.engine import store as disk
from jaxbandits.engine.local import describe_call, run_in_memory, run_into_store
from jaxbandits.engine.results import Results
from jaxbandits.engine.shards import DEFAULT_SHARDS, local_mesh, spread
from jaxbandits.engine.tasks import Build, Metrics, checked


def sweep(
    build: Build,
    tasks: PyTree = None,
    *,
    seeds: int,
    key: Key,
    max_rounds: int,
    metrics: Metrics | None = None,
    lanes: int | None = None,
    chunk: int | None = None,
    store: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    shards: int | None = None,
    mesh: Mesh | None = None,
    progress: bool = True,
) -> Results:
    """Runs `seeds` independent repetitions of every row of a table of tasks.

    Args:
        build: (task, key) -> (algorithm, environment) for one row of `tasks`. It is traced once, for one
            lane, and one compilation serves the whole table. `key` is the run's own, for instances that are drawn at
            random.
        tasks: pytree of arrays whose leading axis counts the rows (instances, parameters); None for a single row.
        seeds: repetitions of every row. More seeds leave the earlier ones as they were.
        key: root key. Task (row, seed) has the stream of `task_key(key, row, seed)`, whatever the lanes.
        max_rounds: budget of rounds; a run that reaches it ends as `Status.MAX_ROUNDS`.
        metrics: (task, outcome) -> dict of arrays, evaluated on the device for every finished run.
        lanes: width of one batch of lanes on one device. By default at most 256 on a CPU and 16384 on an accelerator,
            fewer if there are few tasks or the states are large: see `jaxbandits.engine.lanes.default_lanes`. As many
            batches advance side by side as keep the cores busy (an accelerator: two).
        chunk: rounds between two refreshes of an algorithm's cache; 256 by default, or fewer if their noise would not
            fit into 256 MB. The host looks in after one chunk or several, the longer the runs are, at least every
            quarter of a second if a chunk takes no longer.
        store: folder for the finished runs, as Parquet files that any reader takes for one table. A sweep that was
            killed or interrupted goes on when it is called again: what is there is not run again; a part that has
            decayed is set aside, and its tasks are. Where `lanes` and `chunk` are left open, those of the store hold.
        executor: runs the sweep as `shards` calls on its workers (processes, Dask, MPI, SLURM), which all reach the
            folder `store`. Functions and arrays travel by cloudpickle, and the JAX settings of the caller with them.
        shards: calls into which an executor's sweep is cut, 8 by default; at least as many as there are workers. Each
            compiles the program anew (seconds), unless JAX keeps compiled ones (`jax_compilation_cache_dir`).
        mesh: devices of this process to spread every batch over; all of them by default. They do not communicate.
        progress: show a bar with finished runs, pulls a second, occupancy of the lanes, censored runs and the time
            left.

    Returns:
        Results with `columns`: row, seed, status, pulls, rounds, answer (a structured answer: answer.FIELD), and the
        metrics, ordered by row and seed. Equal arguments, lanes, chunk and kind of device (of
        processor, on a CPU) give equal bits, on any number of devices, processes and interruptions.

    Raises:
        ValueError: an argument does not fit, or the store holds another sweep; what differs is named.
        MemoryError: the device is too small for `lanes` or `chunk`.
        OSError: the store cannot be written, or another process is writing to it.
        KeyboardInterrupt: as it came, after the call under way has ended and what is finished is in the store.
        RuntimeError: the store lacks runs though all that was asked for has ended, because someone has put up a stop
            sign (a file `.stop`) or a network file system is late; the same call goes on.

    Example:
        >>> import jax
        >>> from jaxbandits import linear, sweep
        >>> bandit = linear.canonical(0.5)
        >>> def build(delta, key):
        ...     return linear.lingape(bandit.arms, delta=delta), linear.gaussian(bandit)
        >>> deltas, key = jax.numpy.array([0.1, 0.01]), jax.random.key(0)
        >>> results = sweep(build, deltas, seeds=3, key=key, max_rounds=10**6, progress=False)
        >>> print(results.summary()["stopped"], results.columns["answer"])
        [3 3] [0 0 0 0 0 0]
    """
    job = checked(
        build,
        tasks,
        seeds=seeds,
        key=key,
        max_rounds=max_rounds,
        metrics=metrics,
        lanes=lanes,
        chunk=chunk,
        shards=shards,
    )
    if executor is None and shards is not None:
        raise ValueError(f"shards are the calls made on an executor, got shards={shards} without one")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ValueError(f"executor must have a method submit, as those of concurrent.futures do, got {executor!r}")
    if executor is not None and store is None:
        raise ValueError("executor needs a store, a folder that all its workers reach, got store=None")
    if executor is not None and mesh is not None:
        raise ValueError("mesh must be None with an executor, whose workers use all the devices that they see")
    if store is None:
        return run_in_memory(job, lanes=lanes, chunk=chunk, mesh=mesh or local_mesh(), progress=progress)

    folder = Path(store).absolute()
    disk.make_folder(folder)
    with disk.locked(folder, "store") as let_others_write:
        disk.check_call(folder, describe_call(job, lanes=lanes, chunk=chunk))
        disk.tidy(folder)
        call = disk.begin_call(folder)
        try:
            if executor is None:
                run_into_store(
                    job,
                    folder,
                    lanes=lanes,
                    chunk=chunk,
                    mesh=mesh or local_mesh(),
                    progress=progress,
                    called_off=partial(disk.is_called_off, folder, call),
                )
            else:
                let_others_write()
                spread(
                    job,
                    folder,
                    call=call,
                    executor=executor,
                    shards=shards or DEFAULT_SHARDS,
                    lanes=lanes,
                    chunk=chunk,
                    progress=progress,
                )
        except BaseException as error:
            with contextlib.suppress(OSError):  # a full disk may be what has gone wrong
                disk.seal(folder)
            if not isinstance(error, KeyboardInterrupt):
                raise
            stored = int(disk.finished(folder, job.rows, job.seeds).sum())
            raise KeyboardInterrupt(
                f"{stored} of {job.total} runs are finished and stored in {folder}; the same call goes on from there"
            ) from None
        disk.seal(folder)
        results = disk.load(folder)
    if (stored := len(results.columns["row"])) < job.total:
        raise RuntimeError(f"{stored} of {job.total} runs are in {folder}: the same call goes on from there")
    return results
