"""Lanes that are refilled as they finish.

A batch of lanes advances by a few chunks of rounds in one call of a compiled function. The host then takes out the
lanes that have finished and gives them new tasks, so that no lane waits for the slowest one. A batch is spread over the
devices of a mesh, which never talk to each other. Several batches advance side by side, each driven by a thread of its
own: on a CPU they occupy the cores (XLA runs small elementwise kernels on one), on an accelerator one batch computes
while the host looks after the other.
"""

import contextlib
import hashlib
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import eval_jaxpr
from jax.extend.core import ClosedJaxpr
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbandits import checks
from jaxbandits.base import Array, Key, Outcome, PyTree, Status
from jaxbandits.engine.results import Stats
from jaxbandits.engine.running import DEFAULT_CHUNK, advance, streams
from jaxbandits.engine.tasks import Job, current_settings, task_key, under

LANES, DEVICES = "lanes", "devices"  # axis names: of the vmap within a device, of the mesh
CPU_LANES = 256  # enough to fill the vector units: twice as many are no faster
VECTOR = 8  # lanes
CPU_BYTES = 2**23  # of the states of a batch; beyond it they leave the caches (twice as much runs at .7 of the rate)
ACCELERATOR_LANES = 16384
ACCELERATOR_SHARE = 8  # the states of one batch take at most this part of the memory: two batches, inputs and outputs
NOISE_BYTES = 2**28  # most memory for the noise of one chunk of one batch
HOST_SECONDS = 1e-3  # that a batch loses by a visit of the host (measured on two cores, 64 to 256 lanes)
SORTED_FROM = 0.75  # share of the tasks that are handed out seed by seed; the rest, longest rows first
LIFTED_BYTES = 2**20  # closed-over arrays from this size on are inputs of the program rather than constants in its text
CALL_SECONDS = 0.25  # longest time between two visits: progress, interruptions and new parts wait for one

log = logging.getLogger(__name__)


class Batch(NamedTuple):
    """What one batch of lanes carries from chunk to chunk."""

    state: PyTree  # leaves (lanes, ...)    on the devices
    rounds: Array  # int32 (lanes,)


class Lane(NamedTuple):
    """What one lane does in a call, traced: the job's own Python code runs once, however many lanes there will be."""

    job: Job
    chunk: int  # rounds
    jaxpr: ClosedJaxpr  # (tasks, key, row, seed, fresh, budget, chunks, batch) -> (batch, report), without a lane axis
    inputs: tuple[PyTree, ...]  # shapes, from `row` on
    outputs: PyTree  # shapes
    seconds: float  # that tracing took


class Program(NamedTuple):
    """A compiled call that advances one batch by some chunks."""

    call: Callable[..., tuple[Batch, dict[str, Array]]]  # (row, seed, fresh, budget, chunks, batch) -> (batch, report)
    empty: Callable[[], Batch]  # a batch whose lanes have no task
    lanes: int  # of one device
    devices: int
    batches: int  # to be advanced side by side
    chunk: int
    seconds: float  # that tracing and compiling took
    bytes: int  # device memory of all batches on one device

    @property
    def width(self) -> int:
        """Lanes of one batch on all devices."""
        return self.lanes * self.devices


def cores() -> int:
    """Cores that this process may use. `NPROC`, which XLA heeds too, gives a worker its share of a machine."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("NPROC", "")
    return min(available, int(asked)) if asked.isdecimal() and int(asked) > 0 else available


def side_by_side(mesh: Mesh) -> int:
    """Batches that advance at the same time: what makes one device a core busy on a CPU, two on an accelerator."""
    return max(1, cores() // mesh.size) if _on_cpu(mesh) else 2


def default_lanes(job: Job, mesh: Mesh, tasks: int) -> int:
    """Lanes of one batch on one device, where the caller does not say.

    On an accelerator a round takes about as long however many lanes there are, so all tasks run at once if they fit.
    On a CPU a round of L lanes takes a time of a + b L with a = 15 b (LinGapE, K = 6), and a sweep of N tasks a batch
    some N m / L + M rounds, runs being m rounds long in the mean and M at most: the product is least at
    L = sqrt(15 N m / M). Runs of pure exploration have M / m from 2 to 30, so that 3 sqrt(N) is a fair middle.
    (Measured, gaps from .1 to .5, two cores: 200 tasks take 1.3 s in 16 lanes, 1.6 s in 64; 1000 tasks 3.1 s in 64
    lanes, 9.4 s in 256; 4000 tasks 15 s in 64 or 128, 12 s in 256.) A state of megabytes is vectorised by itself, and
    is best alone in the cache (N-KernelUCB, 8 MB: 5.3e4 queries a second in 1 lane, 4.3e4 in 2, 2.2e4 in 8).
    """
    state = max(1, _bytes(_shapes(job)[0]))
    share = -(-tasks // (side_by_side(mesh) * mesh.size))
    if _on_cpu(mesh):
        lanes = min(3 * math.sqrt(share), share, CPU_LANES, CPU_BYTES / state)
        if CPU_BYTES / state < VECTOR:
            return max(1, math.floor(lanes))
    else:
        memory = _memory(mesh)
        lanes = min(share, ACCELERATOR_LANES, memory / (ACCELERATOR_SHARE * state) if memory else ACCELERATOR_LANES)
    return max(1, math.ceil(lanes / VECTOR)) * VECTOR  # whole vector registers, and few distinct shapes to compile


def default_chunk(job: Job, lanes: int) -> int:
    """Rounds of a chunk, where the caller does not say."""
    _, noise = _shapes(job)
    return max(1, min(DEFAULT_CHUNK, NOISE_BYTES // max(1, lanes * _bytes(noise))))


def trace(job: Job, chunk: int) -> Lane:
    """Traces the advance of one lane by chunks of `chunk` rounds."""
    started = time.perf_counter()
    number: PyTree = jax.ShapeDtypeStruct((), np.int32)
    # Made anew, because a state that an algorithm builds from Python's numbers has weak types, and a batch has none.
    state = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), _shapes(job)[0])
    inputs = (number, number, jax.ShapeDtypeStruct((), bool), number, number, Batch(state, number))
    make = jax.make_jaxpr(_advance_lane(job, chunk), axis_env=[(LANES, 1)], return_shape=True)
    with checks.without_traced():
        jaxpr, outputs = make(job.tasks, job.key, *inputs)
    return Lane(job, chunk, jaxpr, inputs, outputs, time.perf_counter() - started)


def fingerprint(lane: Lane) -> tuple[str, dict[str, str]]:
    """What tells one program from another: a hash of all its operations and constants; its columns and their types."""
    advance_lanes, data = _lifted(lane)
    lowered = jax.jit(advance_lanes).lower(data, lane.job.tasks, lane.job.key, *_of_lanes(lane.inputs, 1))
    report = lowered.out_info[1]
    columns = {name: f"{leaf.dtype}{list(leaf.shape[1:]) or ''}" for name, leaf in report.items()}
    sha = hashlib.sha256(lowered.as_text().encode())
    for array in data:
        sha.update(np.asarray(array).tobytes())
    return sha.hexdigest(), columns


def compile_lanes(lane: Lane, mesh: Mesh, *, tasks: int, lanes: int) -> Program:
    """Compiles the advance of one batch of `lanes` lanes a device, for as many batches as `tasks` tasks can fill."""
    started = time.perf_counter()
    job, chunk = lane.job, lane.chunk
    with _advice(job, lanes, chunk):
        compiled, call, empty = _compile(lane, mesh, lanes)
        if _on_cpu(mesh) and "lapack" in (compiled.as_text() or ""):
            # jaxlib's batched LAPACK calls wait inside the pool of threads that is to do their work: two at a time
            # would lock up. The library's own algorithms make no such call (see numerics.linalg).
            log.warning("the algorithm calls LAPACK: its lanes advance in one batch on one device")
            if mesh.size > 1:
                mesh = Mesh(mesh.devices.ravel()[:1], (DEVICES,))
                compiled, call, empty = _compile(lane, mesh, lanes)
            batches = 1
        else:
            batches = min(side_by_side(mesh), -(-tasks // (lanes * mesh.size)))
    memory = compiled.memory_analysis()
    # What is donated counts once.
    needed = memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
    needed = batches * (needed + memory.temp_size_in_bytes)
    there = _memory(mesh)
    if there is not None and needed > there:
        # A CPU would not refuse: the system would kill the process once the memory is touched.
        raise MemoryError(_too_little(job, lanes, chunk, f"{needed / 1e6:.3g} of {there / 1e6:.3g} MB"))
    program = Program(
        call=call,
        empty=empty,
        lanes=lanes,
        devices=mesh.size,
        batches=batches,
        chunk=chunk,
        seconds=lane.seconds + time.perf_counter() - started,
        bytes=needed,
    )
    log.info(
        "compiled in %.1f s: %d x %d lanes on each of %d devices, chunks of %d rounds, %.1f MB a device",
        program.seconds,
        batches,
        lanes,
        mesh.size,
        chunk,
        program.bytes / 1e6,
    )
    return program


class Queue:
    """The tasks that are left and the runs that are finished: the one thing that the threads share."""

    def __init__(self, todo: np.ndarray, rows: int):
        self.todo, self.next, self.rows = todo, 0, rows
        self.lengths, self.runs = np.zeros(rows), np.zeros(rows)  # rounds and number of the finished runs of a row
        self.is_sorted = False
        self.closed = False
        self.parts: list[dict[str, np.ndarray]] = []  # finished, and not taken out yet
        self.finished = self.censored = self.pulls = self.rounds = self.room = 0
        self.started = time.perf_counter()
        self.lock = threading.Lock()

    def take(self, count: int) -> np.ndarray:
        """The next task ids, at most `count`."""
        with self.lock:
            if not self.is_sorted and self.next >= SORTED_FROM * len(self.todo):
                self.todo = np.concatenate([self.todo[: self.next], self._longest_first(self.todo[self.next :])])
                self.is_sorted = True
            ids = self.todo[self.next : self.next + count]
            self.next += len(ids)
            return ids

    def _longest_first(self, ids: np.ndarray) -> np.ndarray:
        """By the mean length of a row's runs so far, so that short ones fill the lanes at the end."""
        means = np.where(
            self.runs > 0, self.lengths / np.maximum(self.runs, 1), np.inf
        )  # none has ended: they are long
        return ids[np.argsort(-means[ids % self.rows], kind="stable")]

    @property
    def waiting(self) -> int:
        """Finished runs that have not been taken out."""
        return sum(len(part["row"]) for part in self.parts)

    def put(self, part: dict[str, np.ndarray], *, pulls: int, rounds: int, room: int) -> None:
        """Finished runs, if any, and what a call has done; `room`: rounds that its lanes could have carried out."""
        with self.lock:
            if part:
                self.parts.append(part)
                self.finished += len(part["row"])
                np.add.at(self.lengths, part["row"], part["rounds"])
                np.add.at(self.runs, part["row"], 1)
                self.censored += int(np.sum(part["status"] == Status.MAX_ROUNDS))
            self.pulls, self.rounds, self.room = self.pulls + pulls, self.rounds + rounds, self.room + room

    def pop(self) -> dict[str, np.ndarray] | None:
        """The columns of the runs that have finished since the last call; None if none has."""
        with self.lock:
            parts, self.parts = self.parts, []
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else None

    def close(self) -> None:
        """Every thread ends after the chunk it is in: one of them has failed, or a person has had enough."""
        self.closed = True

    def stats(self, program: Program) -> Stats:
        """How it went so far."""
        with self.lock:
            return Stats(
                seconds=time.perf_counter() - self.started,
                compile_seconds=program.seconds,
                pulls=self.pulls,
                rounds=self.rounds,
                occupancy=self.rounds / self.room if self.room else 0.0,
                lanes=program.lanes,
                devices=program.devices,
                batches=program.batches,
                chunk=program.chunk,
                bytes=program.bytes,
            )


def drive_all(program: Program, job: Job, queue: Queue, visit: Callable[[int], None]) -> None:
    """Advances all batches until the queue is empty or closed.

    Args:
        program: the compiled call.
        job: what is run.
        queue: where the tasks come from and the finished runs go.
        visit: called after every call of every batch, by the batch's thread, with the number of runs that finished.
    """
    settings = current_settings()

    def drive() -> None:
        with under(settings), _advice(job, program.lanes, program.chunk):
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
    batch, width = program.empty(), program.width
    tasks = np.full(width, -1)  # id of the task in each lane; -1: none
    pulls = np.zeros(width, np.int64)
    rounds = np.zeros(width, np.int64)
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
        # Ids go seed by seed: rows of different cost are mixed, and a sweep that is cut short has all of them.
        seed, row = np.divmod(np.maximum(tasks, 0), job.rows)
        budget = np.where(busy, job.max_rounds, -1)  # a lane without a task idles
        started = time.perf_counter()
        batch, report = program.call(
            row.astype(np.int32), seed.astype(np.int32), fresh, budget.astype(np.int32), np.int32(chunks), batch
        )
        # Wait first: device_get would do so holding the lock of Python, and keep the other batches from starting.
        jax.block_until_ready(report)
        report |= jax.device_get({name: report[name] for name in ("status", "pulls", "rounds")})
        round_seconds = (time.perf_counter() - started) / (chunks * program.chunk)
        done = busy & (report["status"] != Status.RUNNING)
        part = {}
        if done.any():
            # Answers and metrics may be large, curves for instance: else they stay on the device.
            report |= jax.device_get(report)
            part = {"row": row[done], "seed": seed[done]} | {name: x[done] for name, x in report.items()}
        queue.put(
            part,
            pulls=int((report["pulls"] - pulls)[busy].sum()),
            rounds=int((report["rounds"] - rounds)[busy].sum()),
            room=width * chunks * program.chunk,
        )
        pulls, rounds = report["pulls"].astype(np.int64), report["rounds"].astype(np.int64)
        tasks[done] = -1
        chunks = _chunks_until_visit(queue, program, round_seconds)
        visit(int(done.sum()))


def _chunks_until_visit(queue: Queue, program: Program, round_seconds: float) -> int:
    """Chunks of the next call, from the length of runs so far and the time that a round of the batch takes.

    A visit costs the batch h rounds' worth of time. A call of c rounds lets a run of m rounds, once it has ended, wait
    c / 2 rounds for the visit. The losses h / c + c / (2 m) are least at c = sqrt(2 h m).
    """
    m = queue.rounds / (queue.finished + program.width * program.batches)
    c = min(math.sqrt(2 * HOST_SECONDS / round_seconds * m), CALL_SECONDS / round_seconds)
    return max(1, int(c / program.chunk))


def _advance_lane(job: Job, chunk: int) -> Callable:
    """(tasks, key, row, seed, fresh, budget, chunks, batch) -> (batch, report), of one lane."""

    def one_lane(
        tasks: PyTree, key: Key, row: Array, seed: Array, fresh: Array, budget: Array, chunks: Array, batch: Batch
    ) -> tuple[Batch, dict[str, Array]]:
        task = jax.tree.map(lambda x: x[row], tasks)
        keys = streams(task_key(key, row, seed))
        # Built outside the loops: what a factory precomputes is done once a call.
        algorithm, environment = job.build(task, keys.build)
        state = jax.tree.map(lambda new, old: jnp.where(fresh, new, old), algorithm.init(keys.init), batch.state)
        rounds = jnp.where(fresh, 0, batch.rounds)

        def one_chunk(_: Array, carry: tuple[Array, Array, PyTree]) -> tuple[Array, Array, PyTree]:
            status, rounds, state = carry
            # A run that has ended keeps every bit, so that it does not matter when the host looks.
            allowed = jnp.where(status == Status.RUNNING, budget, -1)
            outcome = advance(
                algorithm, environment, keys, state, rounds, max_rounds=allowed, chunk=chunk, axis_name=LANES
            )
            return outcome.status, outcome.rounds, outcome.state

        start = jnp.int32(Status.RUNNING), rounds, state
        status, rounds, state = lax.fori_loop(0, chunks, one_chunk, start)
        answer = algorithm.decide(jax.random.fold_in(keys.decide, rounds), state).answer
        outcome = Outcome(status, state.pulls, rounds, answer, state)
        report = {"status": outcome.status, "pulls": outcome.pulls, "rounds": outcome.rounds}
        report |= _answer_columns(outcome.answer)
        for name, value in (job.metrics(task, outcome) if job.metrics is not None else {}).items():
            if name in report or name in ("row", "seed"):
                raise ValueError(f"metrics must not return the name of a column that every sweep has, got {name!r}")
            report[name] = value
        return Batch(outcome.state, outcome.rounds), report

    return one_lane


def _lifted(lane: Lane) -> tuple[Callable, list[Array]]:
    """The advance of the lanes of one device, with large closed-over arrays as its first argument.

    As constants they would be part of the program's text, for XLA to read, fold, copy and keep in its cache: 123 MB of
    images took 2 s to compile and 0.5 s to hash. Small ones are better known to the compiler.

    Returns:
        (data, tasks, key, row, seed, fresh, budget, chunks, batch) -> (batch, report); the data.
    """
    every = lane.jaxpr.consts
    large = [getattr(const, "nbytes", 0) >= LIFTED_BYTES for const in every]

    def advance_lanes(data: list[Array], *arguments: PyTree) -> tuple[Batch, dict[str, Array]]:
        lifted = iter(data)
        consts = [next(lifted) if is_large else const for const, is_large in zip(every, large, strict=True)]

        def one_lane(*arguments: PyTree) -> tuple[Batch, dict[str, Array]]:
            leaves = eval_jaxpr(lane.jaxpr.jaxpr, consts, *jax.tree.leaves(arguments))
            return jax.tree.unflatten(jax.tree.structure(lane.outputs), leaves)

        return jax.vmap(one_lane, in_axes=(None, None, 0, 0, 0, 0, None, 0), axis_name=LANES)(*arguments)

    return advance_lanes, [const for const, is_large in zip(every, large, strict=True) if is_large]


def _of_lanes(inputs: tuple[PyTree, ...], lanes: int) -> tuple[PyTree, ...]:
    """The shapes of a lane's inputs for so many of them, which share the number of chunks."""
    *each, chunks, batch = inputs
    *each, batch = jax.tree.map(lambda x: jax.ShapeDtypeStruct((lanes, *x.shape), x.dtype), [*each, batch])
    return *each, chunks, batch


def _compile(lane: Lane, mesh: Mesh, lanes: int) -> tuple[Any, Callable, Callable[[], Batch]]:
    mesh = Mesh(mesh.devices.ravel(), (DEVICES,))
    over_lanes, everywhere = NamedSharding(mesh, PartitionSpec(DEVICES)), NamedSharding(mesh, PartitionSpec())
    (advance_lanes, data), inputs = _lifted(lane), _of_lanes(lane.inputs, lanes * mesh.size)
    shardings = (over_lanes, over_lanes, over_lanes, over_lanes, everywhere, over_lanes)
    sharded = jax.shard_map(
        advance_lanes,
        mesh=mesh,
        in_specs=(*[everywhere.spec] * 3, *[sharding.spec for sharding in shardings]),
        out_specs=over_lanes.spec,
        check_vma=False,
    )
    shared = jax.device_put((data, lane.job.tasks, lane.job.key), everywhere)
    arguments = [
        jax.tree.map(lambda x, on=sharding: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=on), shapes)
        for shapes, sharding in zip(inputs, shardings, strict=True)
    ]
    donated = len(shared) + len(inputs) - 1
    compiled = jax.jit(sharded, donate_argnums=donated).lower(*shared, *arguments).compile()

    def empty() -> Batch:
        # Copied, because the call is to write into it; a program that makes zeros would have to be compiled.
        zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), inputs[-1])
        return jax.device_put(zeros, over_lanes, may_alias=False)

    return compiled, lambda *given: compiled(*shared, *given), empty


def _shapes(job: Job) -> tuple[PyTree, PyTree]:
    """Shapes of one lane's state, and of the noise of one of its rounds."""

    def one() -> tuple[PyTree, PyTree]:
        algorithm, environment = job.build(jax.tree.map(lambda x: x[0], job.tasks), job.key)
        return algorithm.init(job.key), environment.noise(job.key)

    return jax.eval_shape(one)


def _answer_columns(answer: PyTree) -> dict[str, Array]:
    """The answer as columns: `answer`, or one column a leaf where it is a structure."""
    leaves, _ = jax.tree.flatten_with_path(answer)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
    return {f"answer.{name}" if name else "answer": leaf for name, (_, leaf) in zip(names, leaves, strict=True)}


def _on_cpu(mesh: Mesh) -> bool:
    return mesh.devices.flat[0].platform == "cpu"


def _bytes(shapes: PyTree) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))


def _memory(mesh: Mesh) -> int | None:
    """Bytes of memory for each device; None where it is not known."""
    if _on_cpu(mesh):
        known = "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ())
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // mesh.size if known else None
    return (mesh.devices.flat[0].memory_stats() or {}).get("bytes_limit")


def _too_little(job: Job, lanes: int, chunk: int, needed: str) -> str:
    state, noise = (_bytes(shapes) for shapes in _shapes(job))
    return (
        f"lanes={lanes} with chunk={chunk} do not fit into the device's memory ({needed}): the states of a batch take "
        f"{lanes * state / 1e6:.3g} MB (lower lanes), the noise of its chunk {lanes * chunk * noise / 1e6:.3g} MB "
        "(lower lanes or chunk)"
    )


@contextlib.contextmanager
def _advice(job: Job, lanes: int, chunk: int) -> Iterator[None]:
    """Says which argument to lower when the device runs out of memory."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise MemoryError(_too_little(job, lanes, chunk, str(error).partition("\n")[0])) from error
