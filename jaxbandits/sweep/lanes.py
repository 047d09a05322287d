"""Lanes that are refilled as they finish.

A batch of lanes advances by a chunk of rounds in one call of a compiled function. The host then takes out the lanes
that have finished and gives them new tasks, so that no lane waits for the slowest one. Several batches advance side by
side, each driven by a thread of its own: on a CPU they occupy the cores (XLA runs small elementwise kernels on one), on
an accelerator one batch computes while the host looks after the other.
"""

import functools
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Algorithm, Array, Environment, Key, Outcome, PyTree, Status
from jaxbandits.run import DEFAULT_CHUNK, advance, streams
from jaxbandits.sweep.progress import progress_bar
from jaxbandits.sweep.results import Results, Stats

AXIS = "lanes"
CPU_LANES = 256  # enough to fill the vector units; more only lengthens the tail of a small sweep
ACCELERATOR_LANES = 16384
NOISE_BYTES = 2**28  # most memory for the noise of one chunk of one batch

Build = Callable[[Any, Key], tuple[Algorithm, Environment]]
Metrics = Callable[[Any, Outcome], Mapping[str, Array]]


def task_key(key: Key, row: Array | int, seed: Array | int) -> Key:
    """The key of one task: `run(task_key(key, row, seed), ...)` is what the sweep ran as (row, seed)."""
    return jax.random.fold_in(jax.random.fold_in(key, row), seed)


class Batch(NamedTuple):
    """What one batch of lanes carries from chunk to chunk."""

    state: PyTree  # leaves (lanes, ...)    on the device
    rounds: Array  # int32 (lanes,)


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
    progress: bool = True,
) -> Results:
    """Runs `seeds` independent repetitions of every row of a table of tasks.

    Args:
        build: (task, key) -> (algorithm, environment) for one row of `tasks`. It is traced under `vmap`, so one
            compilation serves the whole table. `key` is the run's own, for instances that are drawn at random.
        tasks: pytree of arrays whose leading axis counts the rows (instances, parameters); None for a single row.
        seeds: repetitions of every row. More seeds leave the earlier ones as they were.
        key: root key. Task (row, seed) has the stream of `task_key(key, row, seed)`, whatever the lanes.
        max_rounds: budget of rounds; a run that reaches it ends as `Status.MAX_ROUNDS`.
        metrics: (task, outcome) -> dict of arrays, evaluated on the device for every finished run.
        lanes: width of one batch of lanes; by default 256 on a CPU and 16384 on an accelerator, or fewer if there are
            fewer tasks. As many batches advance side by side as the CPU has cores (an accelerator: two).
        chunk: rounds between two visits of the host, which are also the rounds between two refreshes of an algorithm's
            cache; 256 by default, or fewer if their noise would not fit into 256 MB.
        progress: show a bar with finished runs, pulls a second and the time left.

    Returns:
        Results with `columns`: row, seed, status, pulls, rounds, answer (a structured answer: answer.FIELD), and the
        metrics, ordered by row and seed. Equal arguments, lanes, chunk and device kind give equal bits.

    Raises:
        ValueError: an argument does not fit; it is named.
    """
    rows = _count_rows(tasks)
    for name, value in (("seeds", seeds), ("max_rounds", max_rounds), ("lanes", lanes), ("chunk", chunk)):
        if value is not None and not 1 <= value < 2**31:
            raise ValueError(f"{name} must lie in [1, 2^31), got {value}")
    if rows * seeds == 0:
        raise ValueError(f"tasks must have at least one row, got {rows}")
    tasks = jax.tree.map(jnp.asarray, tasks)
    total = rows * seeds

    def one_state_and_noise() -> tuple[PyTree, PyTree]:
        algorithm, environment = build(jax.tree.map(lambda x: x[0], tasks), key)
        return algorithm.init(key), environment.noise(key)

    state_shape, noise_shape = jax.eval_shape(one_state_and_noise)

    on_cpu = jax.default_backend() == "cpu"
    batches = side_by_side()
    if lanes is None:
        # An even share, rounded up to a multiple of 8: whole vector registers, and few distinct shapes to compile.
        lanes = min(CPU_LANES if on_cpu else ACCELERATOR_LANES, -(-total // (8 * batches)) * 8)
    batches = min(batches, -(-total // lanes))
    if chunk is None:
        chunk = max(1, min(DEFAULT_CHUNK, NOISE_BYTES // (lanes * _size(noise_shape))))

    def one_lane(
        tasks: PyTree, key: Key, row: Array, seed: Array, fresh: Array, budget: Array, batch: Batch
    ) -> tuple[Batch, dict[str, Array]]:
        task = jax.tree.map(lambda x: x[row], tasks)
        keys = streams(task_key(key, row, seed))
        # Built inside vmap but outside the loop over the chunk: what a factory precomputes is done once a chunk.
        algorithm, environment = build(task, keys.build)
        state = jax.tree.map(lambda new, old: jnp.where(fresh, new, old), algorithm.init(keys.init), batch.state)
        rounds = jnp.where(fresh, 0, batch.rounds)
        outcome = advance(
            algorithm,
            environment,
            keys,
            state,
            rounds,
            max_rounds=budget,
            chunk=chunk,
            axis_name=AXIS,
        )
        report = {"status": outcome.status, "pulls": outcome.pulls, "rounds": outcome.rounds}
        report |= _answer_columns(outcome.answer)
        for name, value in (metrics(task, outcome) if metrics is not None else {}).items():
            if name in report or name in ("row", "seed"):
                raise ValueError(f"metrics must not return the name of a column that every sweep has, got {name!r}")
            report[name] = value
        return Batch(outcome.state, outcome.rounds), report

    started = time.perf_counter()
    empty = [_empty_batch(state_shape, lanes) for _ in range(batches)]
    integers = np.zeros(lanes, np.int32)
    compiled = (
        jax.jit(jax.vmap(one_lane, in_axes=(None, None, 0, 0, 0, 0, 0), axis_name=AXIS), donate_argnums=6)
        .lower(tasks, key, integers, integers, np.zeros(lanes, bool), integers, empty[0])
        .compile()
    )
    compile_seconds = time.perf_counter() - started
    if on_cpu and "lapack" in (compiled.as_text() or ""):
        # jaxlib's batched LAPACK calls wait inside the pool of threads that is to do their work: two batches at a time
        # would lock up. The library's own algorithms make no such call (see numerics.linalg).
        empty = empty[:1]

    started = time.perf_counter()
    queue = _Queue(total)
    with progress_bar(total, show=progress) as show:

        def finished(count: int) -> None:
            with queue.lock:
                show(count, queue.pulls / (time.perf_counter() - started))

        def drive(batch: Batch) -> None:
            call = functools.partial(compiled, tasks, key)
            _drive(call, batch, queue, finished, lanes=lanes, seeds=seeds, max_rounds=max_rounds)

        with ThreadPoolExecutor(len(empty)) as threads:
            futures = [threads.submit(drive, batch) for batch in empty]
            try:
                for future in as_completed(futures):
                    future.result()
            finally:
                queue.close()

    stats = Stats(
        seconds=time.perf_counter() - started,
        compile_seconds=compile_seconds,
        pulls=queue.pulls,
        rounds=queue.rounds,
        occupancy=queue.rounds / (queue.calls * lanes * chunk),
        lanes=lanes,
        batches=len(empty),
        chunk=chunk,
        bytes=len(empty) * _bytes(compiled),
    )
    return Results(queue.columns(), stats)


def side_by_side() -> int:
    """Batches that advance at the same time: one a core of this process on a CPU, two on an accelerator."""
    if jax.default_backend() != "cpu":
        return 2
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Queue:
    """The tasks that are left and the rows that are finished: the one thing that the threads share."""

    def __init__(self, total: int):
        self.total, self.next, self.pulls, self.rounds, self.calls = total, 0, 0, 0, 0
        self.closed = False
        self.parts: list[dict[str, np.ndarray]] = []
        self.lock = threading.Lock()

    def take(self, count: int) -> np.ndarray:
        """The next task ids, at most `count`."""
        with self.lock:
            first, self.next = self.next, min(self.next + count, self.total)
            return np.arange(first, self.next)

    def close(self) -> None:
        """Every thread ends after the chunk it is in: one of them has failed, or a person has had enough."""
        self.closed = True

    def put(self, part: dict[str, np.ndarray], *, pulls: int, rounds: int) -> None:
        with self.lock:
            if len(part["row"]) or not self.parts:  # a chunk in which nothing finished leaves no trace
                self.parts.append(part)
            self.pulls, self.rounds, self.calls = self.pulls + pulls, self.rounds + rounds, self.calls + 1

    def columns(self) -> dict[str, np.ndarray]:
        columns = {name: np.concatenate([part[name] for part in self.parts]) for name in self.parts[0]}
        order = np.lexsort((columns["seed"], columns["row"]))
        return {name: values[order] for name, values in columns.items()}


def _drive(
    call: Callable,
    batch: Batch,
    queue: _Queue,
    finished: Callable[[int], None],
    *,
    lanes: int,
    seeds: int,
    max_rounds: int,
) -> None:
    """Advances one batch of lanes until there is no task left for it."""
    tasks = np.full(lanes, -1)  # id of the task in each lane; -1: none
    pulls = np.zeros(lanes, np.int64)
    rounds = np.zeros(lanes, np.int64)
    while not queue.closed:
        fresh = tasks < 0
        new = queue.take(int(fresh.sum()))
        fresh[np.flatnonzero(fresh)[len(new) :]] = False
        tasks[fresh] = new
        pulls[fresh] = rounds[fresh] = 0
        busy = tasks >= 0
        if not busy.any():
            return
        row, seed = np.divmod(np.maximum(tasks, 0), seeds)
        budget = np.where(busy, max_rounds, 0)  # a lane without a task idles: it has no rounds to spend
        batch, report = call(row.astype(np.int32), seed.astype(np.int32), fresh, budget.astype(np.int32), batch)
        report = jax.device_get(report)
        done = busy & (report["status"] != Status.RUNNING)
        part = {"row": row[done], "seed": seed[done]} | {name: x[done] for name, x in report.items()}
        queue.put(
            part,
            pulls=int((report["pulls"] - pulls)[busy].sum()),
            rounds=int((report["rounds"] - rounds)[busy].sum()),
        )
        pulls, rounds = report["pulls"].astype(np.int64), report["rounds"].astype(np.int64)
        tasks[done] = -1
        finished(int(done.sum()))


def _count_rows(tasks: PyTree) -> int:
    leaves = jax.tree.leaves(tasks)
    sizes = {np.shape(leaf)[:1] for leaf in leaves}
    if () in sizes or len(sizes) > 1:
        shapes = [np.shape(leaf) for leaf in leaves]
        raise ValueError(f"tasks must be arrays with one common leading axis, got shapes {shapes}")
    return next(iter(sizes))[0] if sizes else 1


def _size(shapes: PyTree) -> int:
    """Bytes of a pytree of shapes, at least 1."""
    return max(1, sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes)))


def _bytes(compiled: Any) -> int:
    """Device memory of one batch; what is donated counts once."""
    memory = compiled.memory_analysis()
    return (
        memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        + memory.temp_size_in_bytes
        - memory.alias_size_in_bytes
    )


def _empty_batch(shapes: PyTree, lanes: int) -> Batch:
    return Batch(
        state=jax.tree.map(lambda leaf: jnp.zeros((lanes, *leaf.shape), leaf.dtype), shapes),
        rounds=jnp.zeros(lanes, jnp.int32),
    )


def _answer_columns(answer: PyTree) -> dict[str, Array]:
    """The answer as columns: `answer`, or one column a leaf where it is a structure."""
    leaves, _ = jax.tree.flatten_with_path(answer)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
    return {f"answer.{name}" if name else "answer": leaf for name, (_, leaf) in zip(names, leaves, strict=True)}
