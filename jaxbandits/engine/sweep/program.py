"""The compiled call of a sweep: a batch of lanes that advances by some chunks of rounds.

A batch is spread over the devices of a mesh, which do not communicate.
"""

import contextlib
import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.stages import Lowered

from jaxbandits import checks
from jaxbandits.base import Array, Key, PyTree, Status
from jaxbandits.checks import show
from jaxbandits.engine.jaxprs import ClosedJaxpr, eval_jaxpr, without_dead_code
from jaxbandits.engine.logs import say
from jaxbandits.engine.programs import compiling
from jaxbandits.engine.programs.compiling import ON_CPU, Compiled, Span, compiled, remembered, seconds_of
from jaxbandits.engine.programs.identity import Identity, identity, identity_of_types
from jaxbandits.engine.results.rules import RULE
from jaxbandits.engine.results.tables import is_task_column
from jaxbandits.engine.run.gradients import refuse_traced
from jaxbandits.engine.run.loop import advance, outcome_of
from jaxbandits.engine.run.recording import Curves, curve_columns, curves_of, is_numeric, require_arrays, start_curves
from jaxbandits.engine.run.round import streams
from jaxbandits.engine.scalars import qualifies, replace_scalars, rounds_of
from jaxbandits.engine.sweep.layout import (
    Layout,
    OpenLayout,
    Shapes,
    default_chunk,
    default_lanes,
    device_memory,
    local_mesh,
    memory_advice,
    on_cpu,
    platform_of,
    require_memory,
    shapes_of,
    side_by_side,
    with_memory_advice,
)
from jaxbandits.engine.sweep.tasks import Job, build_row, calling, fold_task
from jaxbandits.numerics.indexing import select
from jaxbandits.numerics.platforms import compiled_for

LANES, DEVICES = "lanes", "devices"  # axis names of the vmap within a device and of the mesh
LIFTED_BYTES = 2**20  # size from which closed-over arrays are inputs of the program instead of constants in its text

Carry = tuple[Array, Array, PyTree, PyTree, Curves]  # status, rounds, state, memory and curves of one lane

log = logging.getLogger(__name__)


class Limits(NamedTuple):
    """Upper limits of the runs."""

    rounds: Any  # int32 (lanes,)    the budget; -1 in a lane without a task, which idles
    pulls: Any  # int (lanes,)       the horizon; None if there is none


class Batch(NamedTuple):
    """State of one batch of lanes, carried from chunk to chunk."""

    state: PyTree  # leaves (lanes, ...)    on the devices
    memory: PyTree  # leaves (lanes, ...)   of the environment
    rounds: Array  # int32 (lanes,)
    curves: Curves  # leaves (lanes, ...)


class Lane(NamedTuple):
    """The traced call of one lane: the job's own Python code runs once, whatever the number of lanes."""

    job: Job
    shapes: Shapes
    layout: Layout
    jaxpr: ClosedJaxpr  # (task, key, row, seed, fresh, limits, chunks, batch) -> (batch, report), without a lane axis
    inputs: tuple[PyTree, ...]  # shapes of the inputs, from `row` on
    outputs: PyTree  # shapes of the outputs
    name: Identity | None  # all that its programs depend on beside their layout; None if that is not known
    spans: tuple[Span, ...] = ()  # in which this thread traced it, and checked the sweep before the first round
    check_span: Span | None = None  # in which XLA compiled that check; None if this process had it

    @property
    def constants(self) -> list[Any]:
        """Returns the arrays that the call closes over; a shape in the place of a large one, which is an input."""
        return [jax.ShapeDtypeStruct(x.shape, x.dtype) if _is_large(x) else x for x in self.jaxpr.consts]

    @property
    def data(self) -> list[Array]:
        """Returns the large arrays that the call closes over."""
        return [x for x in self.jaxpr.consts if _is_large(x)]


class Program(NamedTuple):
    """A compiled call that advances one batch by some chunks."""

    call: Callable[..., tuple[Batch, dict[str, Array]]]  # (row, seed, fresh, limits, chunks, batch) -> (batch, report)
    fill: Callable[[], Batch]  # () -> batch of lanes without a task
    layout: Layout
    batches: int  # number of batches that advance side by side
    shapes: Shapes  # shapes of one lane
    seconds: float  # time of tracing, checks, lowering and compiling
    xla_seconds: float  # part of it in which XLA compiled; 0 if this process had all programs
    bytes: int  # device memory of all batches on one device


def trace(job: Job, layout: OpenLayout, *, tasks: int, known: Lane | None = None) -> Lane:
    """Traces the advance of one lane by chunks of rounds, and settles the layout.

    A CPU keeps arrays. By default, XLA for a CPU copies all of a round into each of its outputs, which makes scalars
    five to ten times slower.

    Args:
        job: the sweep.
        layout: layout; what it leaves open gets a default.
        tasks: number of runs that the batches share, for the default number of lanes.
        known: lane of the same job, which is not traced again if its chunk is the same.
    """
    began = time.perf_counter()
    mesh = layout.mesh or local_mesh()
    # Scalars take the code for other platforms on a CPU too.
    with compiled_for(None if layout.scalars and on_cpu(mesh) else platform_of(mesh)):
        shapes = known.shapes if known is not None else shapes_of(job)
        lanes = layout.lanes or default_lanes(shapes, mesh, tasks)
        budget = int(np.max(job.budgets(np.arange(job.rows))))
        chunk = layout.chunk or default_chunk(shapes, lanes, budget)
        settled = Layout(lanes, chunk, False, mesh)
        if known is None or known.layout.chunk != chunk:
            known = _trace(job, shapes, settled)
    scalars = not on_cpu(mesh) if layout.scalars is None else layout.scalars
    if scalars:
        loop = loop_of(known)
        scalars = loop is not None and (layout.scalars is not None or qualifies(loop))
    settled = settled._replace(scalars=scalars)
    return known._replace(layout=settled, spans=(*known.spans, Span(began, time.perf_counter())))


def _trace(job: Job, shapes: Shapes, layout: Layout) -> Lane:
    number: PyTree = jax.ShapeDtypeStruct((), np.int32)
    limits = Limits(number, None if job.horizon is None else jax.ShapeDtypeStruct((), job.horizon.dtype))
    batch = Batch(shapes.state, shapes.memory, number, shapes.curves)
    inputs = (number, number, jax.ShapeDtypeStruct((), bool), limits, number, batch)
    make = jax.make_jaxpr(_advance_lane(job, layout.chunk), axis_env=[(LANES, 1)], return_shape=True)
    task = jax.eval_shape(lambda: jax.tree.map(lambda leaf: leaf[0], job.tasks))
    with checks.without_traced():
        jaxpr, outputs = make(task, job.key, *inputs)
    refuse_traced(jaxpr.consts)
    jaxpr = without_dead_code(jaxpr)
    lane = Lane(job, shapes, layout, jaxpr=jaxpr, inputs=inputs, outputs=outputs, name=None)
    traced = identity(jaxpr.jaxpr, lane.constants)
    return lane._replace(name=traced and (identity_of_types((inputs, outputs)), *traced))


def loop_of(lane: Lane) -> Any:
    """Returns the equation of the loop over a chunk's rounds."""
    return rounds_of(lane.jaxpr.jaxpr, lane.layout.chunk, jax.tree.leaves(lane.inputs[-1]))


def fingerprint(lane: Lane) -> tuple[str, dict[str, str]]:
    """Returns a hash of all operations and constants of a program, and its columns with their types.

    The hash is taken for the lane on arrays, and for a table of one row, because a store may grow by rows.
    """
    lane = lane._replace(layout=lane.layout._replace(scalars=False))
    table = jax.eval_shape(lambda: jax.tree.map(lambda leaf: leaf[:1], lane.job.tasks))

    def of_text() -> tuple[Any, dict[str, str]]:
        lowered = jax.jit(_batched(lane)).lower(lane.data, table, lane.job.key, *_of_lanes(lane.inputs, 1))
        report = lowered.out_info[1]
        columns = {name: f"{leaf.dtype}{list(leaf.shape[1:]) or ''}" for name, leaf in report.items()}
        return hashlib.sha256(lowered.as_text().encode()), columns

    sha, columns = of_text() if lane.name is None else remembered(("fingerprint", *lane.name), of_text)
    sha = sha.copy()
    for array in lane.data:
        sha.update(np.asarray(array).tobytes())
    return sha.hexdigest(), columns


def compile_lanes(lane: Lane, *, tasks: int) -> Program:
    """Compiles the call of one batch, for as many batches as `tasks` tasks can fill."""
    began = time.perf_counter()
    shapes, mesh = lane.shapes, lane.layout.mesh
    require_memory(shapes, lane.layout)
    with with_memory_advice(shapes, lane.layout):
        program, call, fill = _compile(lane)
        if program.examined.calls_lapack:
            # jaxlib's batched LAPACK calls wait inside the thread pool that does their work, so two at a time would
            # deadlock. The library's own algorithms make no such call (see numerics.linalg).
            say(log, logging.WARNING, "the algorithm calls LAPACK: its lanes advance in one batch on one device")
            if mesh.size > 1:
                mesh = Mesh(mesh.devices.ravel()[:1], (DEVICES,))
                lane = lane._replace(layout=lane.layout._replace(mesh=mesh))
                program, call, fill = _compile(lane)
            batches = 1
        else:
            batches = min(side_by_side(mesh), -(-tasks // lane.layout.all_lanes))
    needed = batches * program.examined.bytes
    memory = device_memory(mesh)
    if memory is not None and needed > memory:
        # A CPU would not fail: the system would kill the process once the memory is used.
        raise MemoryError(memory_advice(shapes, lane.layout, f"{needed / 1e6:.3g} of {memory / 1e6:.3g} MB"))
    xla_spans = [lane.check_span, program.span]
    ready = Program(
        call=call,
        fill=fill,
        layout=lane.layout,
        batches=batches,
        shapes=shapes,
        seconds=seconds_of([*lane.spans, Span(began, time.perf_counter()), *xla_spans]),
        xla_seconds=seconds_of(xla_spans),
        bytes=needed,
    )
    say(
        log,
        logging.INFO,
        "compiled in %.1f s (XLA took %.1f s): %d x %d lanes on each of %d devices, chunks of %d rounds, "
        "%.1f MB per device",
        ready.seconds,
        ready.xla_seconds,
        batches,
        lane.layout.lanes,
        mesh.size,
        lane.layout.chunk,
        ready.bytes / 1e6,
    )
    return ready


def _advance_lane(job: Job, chunk: int) -> Callable:
    """Returns the call of one lane: (task, key, row, seed, fresh, limits, chunks, batch) -> (batch, report)."""

    def one_lane(
        task: PyTree, key: Key, row: Array, seed: Array, fresh: Array, limits: Limits, chunks: Array, batch: Batch
    ) -> tuple[Batch, dict[str, Array]]:
        keys = streams(fold_task(key, row, seed))
        # Built outside the loops, so that a factory's precomputation runs once per call.
        algorithm, environment, record = build_row(job, task, keys.build)
        # Traced once for the four places that decide; inlined, its operations are the same. A new function, because
        # JAX keeps the trace of one that it knows, with the globals of that time.
        decide = algorithm.decide
        algorithm = algorithm._replace(decide=jax.jit(lambda key, state: decide(key, state), inline=True))
        state = select(fresh, algorithm.init(keys.init), batch.state)
        memory = select(fresh, environment.init(keys.memory), batch.memory)
        rounds = jnp.where(fresh, 0, batch.rounds)
        begun = start_curves(record, algorithm, environment)
        curves = select(fresh, begun, batch.curves)

        def one_chunk(_: Array, carry: Carry) -> Carry:
            status, rounds, state, memory, curves = carry
            # A run that has ended keeps every bit, so the time of the host's visit does not matter.
            allowed = jnp.where(status == Status.RUNNING, limits.rounds, -1)
            outcome, curves = advance(
                algorithm,
                environment,
                keys,
                state,
                memory,
                rounds=rounds,
                max_rounds=allowed,
                horizon=limits.pulls,
                record=record,
                curves=curves,
                chunk=chunk,
                axis_name=LANES,
            )
            # A lane that has ended keeps its status; its budget of -1 would turn it into MAX_ROUNDS.
            status = jnp.where(status == Status.RUNNING, outcome.status, status)
            return status, outcome.rounds, outcome.state, outcome.memory, curves

        # `vmap` batches the body of a loop until it knows which parts differ between lanes, and then once more. All
        # differ from the start here, and the function under `jit` is batched once.
        running = jnp.where(fresh, jnp.int32(Status.RUNNING), jnp.int32(Status.RUNNING))
        start = running, rounds, state, memory, curves
        status, rounds, state, memory, curves = lax.fori_loop(0, chunks, jax.jit(one_chunk), start)
        outcome = outcome_of(algorithm, keys, status, rounds, state, memory=memory, curves=curves_of(record, curves))
        report = {"status": outcome.status, "pulls": outcome.pulls, "rounds": outcome.rounds}
        report |= _answer_columns(outcome.answer) | curve_columns(outcome.curves)
        if environment.stream is not None:  # read by `compare(.., paired=True)`
            report["stream"] = jax.random.bits(environment.stream, (2,), jnp.uint32)
        if environment.columns is not None:
            report |= _checked("columns", environment.columns(outcome.memory), report)
        if job.metrics is not None:
            with calling("metrics", "of a task and an outcome"):
                measured = job.metrics(task, outcome)
            report |= _checked("metrics", measured, report)
        return Batch(outcome.state, outcome.memory, outcome.rounds, curves), report

    return one_lane


def _checked(said: str, columns: Mapping[str, Array], report: Mapping[str, Array]) -> Mapping[str, Array]:
    """Returns the columns of a caller's function, whose name is `said`."""
    require_arrays(said, columns)
    for name in columns:
        if name in report or name in ("row", "seed", RULE) or is_task_column(name):
            raise ValueError(f"{said} must not return the name of a column that every sweep has, got {name!r}")
    return columns


def _is_large(constant: Any) -> bool:
    return getattr(constant, "nbytes", 0) >= LIFTED_BYTES


def _batched(lane: Lane) -> Callable:
    """Returns the call of the lanes of one device, with large closed-over arrays as its first argument.

    As constants they would be part of the program's text, which XLA reads, folds, copies and caches: 123 MB of images
    took 2 s to compile and 0.5 s to hash. Small arrays stay constants, so that the compiler knows them.

    Returns:
        (data, tasks, key, row, seed, fresh, limits, chunks, batch) -> (batch, report).
    """

    def advance_lanes(data: list[Array], *arguments: PyTree) -> tuple[Batch, dict[str, Array]]:
        lifted = iter(data)
        values = [next(lifted) if _is_large(constant) else constant for constant in lane.jaxpr.consts]

        def task_of(tasks: PyTree, row: Array) -> PyTree:
            return jax.tree.map(lambda leaf: leaf[row], tasks)

        def one_lane(tasks: PyTree, key: Key, row: Array, *others: PyTree) -> tuple[Batch, dict[str, Array]]:
            task = task_of(tasks, row)
            leaves = eval_jaxpr(lane.jaxpr.jaxpr, values, *jax.tree.leaves((task, key, row, *others)))
            return jax.tree.unflatten(jax.tree.structure(lane.outputs), leaves)

        if not lane.layout.scalars:
            return jax.vmap(one_lane, in_axes=(None, None, 0, 0, 0, 0, None, 0), axis_name=LANES)(*arguments)
        tasks, key, row, seed, fresh, limits, chunks, batch = arguments
        task = jax.vmap(task_of, in_axes=(None, 0))(tasks, row)
        given = [(task, 0), (key, None), (row, 0), (seed, 0), (fresh, 0), (limits, 0), (chunks, None), (batch, 0)]
        flat = [(leaf, axis) for tree, axis in given for leaf in jax.tree.leaves(tree)]
        leaves = replace_scalars(lane.jaxpr, values, flat, loop=loop_of(lane), lanes=row.size, axis_name=LANES)
        return jax.tree.unflatten(jax.tree.structure(lane.outputs), leaves)

    return advance_lanes


def _of_lanes(inputs: tuple[PyTree, ...], lanes: int) -> tuple[PyTree, ...]:
    """Returns the shapes of the inputs of `lanes` lanes, which share the number of chunks."""
    *per_lane, chunks, batch = inputs
    *per_lane, batch = jax.tree.map(lambda x: jax.ShapeDtypeStruct((lanes, *x.shape), x.dtype), [*per_lane, batch])
    return *per_lane, chunks, batch


def lower(lane: Lane) -> Lowered:
    """Lowers the call of one batch, also for devices that are only described."""
    mesh = Mesh(lane.layout.mesh.devices.ravel(), (DEVICES,))
    over_lanes, everywhere = NamedSharding(mesh, PartitionSpec(DEVICES)), NamedSharding(mesh, PartitionSpec())
    inputs = _of_lanes(lane.inputs, lane.layout.all_lanes)
    shared = lane.data, lane.job.tasks, lane.job.key
    shardings = (*[everywhere] * len(shared), *[over_lanes] * 4, everywhere, over_lanes)
    sharded = jax.shard_map(
        _batched(lane),
        mesh=mesh,
        in_specs=tuple(sharding.spec for sharding in shardings),
        out_specs=over_lanes.spec,
        check_vma=False,
    )
    arguments = [
        jax.tree.map(lambda x, on=sharding: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=on), shapes)
        for shapes, sharding in zip((*shared, *inputs), shardings, strict=True)
    ]
    with compiled_for(platform_of(mesh)):
        return jax.jit(sharded, donate_argnums=len(arguments) - 1).lower(*arguments)


def begin_compiling(lane: Lane) -> None:
    """Lets XLA compile the call of one batch while this thread goes on; `compile_lanes` waits for it.

    Errors are left to `compile_lanes`.
    """
    with contextlib.suppress(Exception):
        require_memory(lane.shapes, lane.layout)
        compiling.begin_compiling(**_program(lane))


def _program(lane: Lane) -> dict[str, Any]:
    """Returns the arguments of `compiled`."""
    is_cpu = on_cpu(lane.layout.mesh)
    table = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), (lane.job.tasks, lane.job.key))
    return {
        "name": ("lanes", lane.layout, identity_of_types(table), lane.name),
        "lower": partial(lower, lane),
        "options": ON_CPU if is_cpu else None,
        "examine": partial(_examine, is_cpu=is_cpu),
    }


def _compile(lane: Lane) -> tuple[Compiled, Callable, Callable[[], Batch]]:
    program = compiled(**_program(lane))
    mesh = Mesh(lane.layout.mesh.devices.ravel(), (DEVICES,))
    over_lanes, everywhere = NamedSharding(mesh, PartitionSpec(DEVICES)), NamedSharding(mesh, PartitionSpec())
    inputs = _of_lanes(lane.inputs, lane.layout.all_lanes)
    shared = jax.device_put((lane.data, lane.job.tasks, lane.job.key), everywhere)

    def fill() -> Batch:
        # Copied, because the call writes into it; a program that makes zeros would have to be compiled.
        zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), inputs[-1])
        return jax.device_put(zeros, over_lanes, may_alias=False)

    def call(
        row: np.ndarray, seed: np.ndarray, fresh: np.ndarray, *, limits: Limits, chunks: np.int32, batch: Batch
    ) -> tuple[Batch, dict[str, Array]]:
        return program.call(*shared, *(row, seed, fresh, limits, chunks, batch))

    return program, call, fill


class _Facts(NamedTuple):
    """Facts of a compiled call, found once."""

    calls_lapack: bool  # on a CPU
    bytes: int  # device memory of one batch on one device


def _examine(program: Any, *, is_cpu: bool) -> _Facts:
    sizes = program.memory_analysis()
    # Donated memory counts once.
    needed = sizes.argument_size_in_bytes + sizes.output_size_in_bytes - sizes.alias_size_in_bytes
    return _Facts(is_cpu and "lapack" in (program.as_text() or ""), needed + sizes.temp_size_in_bytes)


def _answer_columns(answer: PyTree) -> dict[str, Array]:
    """Returns the answer as columns: `answer`, or one column per leaf if it is a structure."""
    leaves, _ = jax.tree.flatten_with_path(answer)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
    columns = {f"answer.{name}" if name else "answer": leaf for name, (_, leaf) in zip(names, leaves, strict=True)}
    for name, leaf in columns.items():
        if not is_numeric(leaf):
            raise ValueError(f"answer must be a pytree of arrays of numbers, got {show(leaf)} as {name!r}")
    return columns
