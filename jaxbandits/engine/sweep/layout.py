"""The layout of a sweep: the size of its batches, the devices, and whether they have enough memory.

A call of `sweep` leaves parts of its layout open. `jaxbandits.engine.sweep.program.trace` settles them, because one
part depends on the traced program.
"""

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from jaxbandits.base import PyTree
from jaxbandits.engine.run.loop import DEFAULT_CHUNK
from jaxbandits.engine.run.recording import Curves, start_curves
from jaxbandits.engine.sweep.tasks import Job, build_row

CPU_LANES = 256  # enough to fill the vector units: twice as many are no faster
VECTOR = 8  # number of lanes that fill whole vector registers
# Bytes of a batch's states that stay in the caches (twice as many run at .7 of the rate).
CPU_BYTES = 2**23
# Bytes that an H200 reads or writes while it launches a round of ten kernels: 4.8 TB/s, 2.5 us each.
LAUNCHED_BYTES = 1.2e8
SPREAD = 2  # ratio of the longest run to the mean one
# The states of one batch take at most one eighth of the memory: two batches, inputs and outputs.
ACCELERATOR_SHARE = 8
CHUNK_BYTES = 2**28  # largest memory for the noise and curve values of one batch's chunk
STATM = Path("/proc/self/statm")  # file in which Linux lists the mapped memory of this process
GROUPS, GROUP_ROOT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")  # control groups of this process; their limits


class Layout(NamedTuple):
    """Placement of a sweep's runs on the devices."""

    lanes: int  # number of lanes of one batch on one device
    chunk: int  # rounds between two refreshes
    scalars: bool  # True if rounds work on scalars, see `jaxbandits.engine.scalars`
    mesh: Mesh  # devices over which every batch is spread

    @property
    def all_lanes(self) -> int:
        """Counts the lanes of one batch, on all devices together."""
        return self.lanes * self.mesh.size


class OpenLayout(NamedTuple):
    """A layout as a call gives it; None stands for what it leaves open."""

    lanes: int | None = None
    chunk: int | None = None
    scalars: bool | None = None  # None: where they should be faster
    mesh: Mesh | None = None  # None: all devices of the process that runs the tasks


class Shapes(NamedTuple):
    """Shapes of the arrays that one lane carries and draws, as `jax.ShapeDtypeStruct`s."""

    state: PyTree  # state of the algorithm
    memory: PyTree  # memory of the environment
    noise: PyTree  # noise of one round
    curves: Curves  # curves recorded beside the state

    @property
    def carried_bytes(self) -> int:
        """Counts the bytes that a lane carries from round to round."""
        return size_in_bytes((self.state, self.memory, self.curves))

    @property
    def round_bytes(self) -> int:
        """Counts the bytes that a chunk stores per round: the noise and the recorded curve values."""
        return size_in_bytes(self.noise) + sum(size_in_bytes(x) // x.shape[0] for x in self.curves.entries.values())


def shapes_of(job: Job) -> Shapes:
    """Traces the first row of the table for the shapes of a lane."""

    def first_row() -> tuple[PyTree, PyTree, PyTree, PyTree]:
        algorithm, environment, record = build_row(job, jax.tree.map(lambda x: x[0], job.tasks), job.key)
        curves = start_curves(record, algorithm, environment)
        return algorithm.init(job.key), environment.init(job.key), environment.noise(job.key), curves

    # Rebuilt without weak types: a state made of Python numbers has them, a batch does not.
    return Shapes(*jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), jax.eval_shape(first_row)))


def completed(layout: OpenLayout, manifest: dict[str, Any] | None) -> OpenLayout:
    """Takes what a layout leaves open, except the mesh, from the manifest of a store, if there is one."""
    if manifest is None:
        return layout
    arguments = manifest["arguments"]
    return layout._replace(
        lanes=layout.lanes or arguments["lanes"],
        chunk=layout.chunk or arguments["chunk"],
        # Stores without this entry were computed with arrays.
        scalars=arguments.get("scalars", False) if layout.scalars is None else layout.scalars,
    )


def local_mesh() -> Mesh:
    """Returns a mesh of all devices of this process."""
    return Mesh(np.array(jax.local_devices()), ("devices",))


def cores() -> int:
    """Counts the cores that this process may use. `NPROC`, which XLA reads too, limits a worker to its share."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("NPROC", "")
    return min(available, int(limit)) if limit.isdecimal() and int(limit) > 0 else available


def side_by_side(mesh: Mesh) -> int:
    """Returns the number of batches that advance side by side: one device per core on a CPU, two on an accelerator."""
    return max(1, cores() // mesh.size) if on_cpu(mesh) else 2


def default_lanes(shapes: Shapes, mesh: Mesh, tasks: int) -> int:
    """Computes the default number of lanes of one batch on one device.

    A round of L lanes takes a time of a + b L. A sweep of N tasks takes each batch about N m / L + M rounds, if runs
    last m rounds on average and M at most. The product is smallest at L = sqrt((a / b) N m / M). Runs of pure
    exploration have M / m from 2 to 30.

    On an accelerator a is the time of a round's launches, and b the time to read and write a lane's state: a / b =
    120 MB / (2 states). Memory is the upper limit.

    On a CPU a = 15 b (LinGapE, K = 6), so 3 sqrt(N) is a fair middle. (Measured, gaps from .1 to .5, two cores: 200
    tasks take 1.3 s in 16 lanes, 1.6 s in 64; 1000 tasks 3.1 s in 64 lanes, 9.4 s in 256; 4000 tasks 15 s in 64 or 128,
    12 s in 256.) A state of megabytes is vectorised by itself, and is best alone in the cache (N-KernelUCB, 8 MB: 5.3e4
    queries per second in 1 lane, 4.3e4 in 2, 2.2e4 in 8).

    Args:
        shapes: shapes of one lane.
        mesh: the devices.
        tasks: number of runs that the batches share.

    Returns:
        The number of lanes, at least 1.
    """
    state = max(1, shapes.carried_bytes)
    share = -(-tasks // (side_by_side(mesh) * mesh.size))
    if on_cpu(mesh):
        lanes = min(3 * math.sqrt(share), share, CPU_LANES, CPU_BYTES / state)
        if CPU_BYTES / state < VECTOR:
            return max(1, math.floor(lanes))
    else:
        memory = device_memory(mesh)
        best = math.sqrt(LAUNCHED_BYTES / (2 * state) * share / SPREAD)
        lanes = min(best, share, memory / (ACCELERATOR_SHARE * state) if memory else math.inf)
    # Multiples of `VECTOR` fill whole vector registers, and keep the number of shapes to compile small.
    return max(1, math.ceil(lanes / VECTOR)) * VECTOR


def default_chunk(shapes: Shapes, lanes: int, budget: int) -> int:
    """Computes the default number of rounds of a chunk: no more than runs of this budget may need, up to a factor 2.

    Powers of two keep the number of programs small.
    """
    needed = 1 << (budget - 1).bit_length()
    return max(1, min(DEFAULT_CHUNK, needed, CHUNK_BYTES // max(1, lanes * shapes.round_bytes)))


def on_cpu(mesh: Mesh) -> bool:
    """True if the mesh is made of CPU devices."""
    return platform_of(mesh) == "cpu"


def platform_of(mesh: Mesh) -> str:
    """Returns the name of the platform of the mesh's devices."""
    return mesh.devices.flat[0].platform


def size_in_bytes(shapes: PyTree) -> int:
    """Counts the bytes of arrays of these shapes."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))


def device_memory(mesh: Mesh) -> int | None:
    """Returns the bytes of memory per device; None if unknown."""
    if on_cpu(mesh):
        limits = [limit for limit in (_physical_memory(), _address_space(), _group_memory()) if limit is not None]
        return min(limits) // mesh.size if limits else None
    return (mesh.devices.flat[0].memory_stats() or {}).get("bytes_limit")


def _physical_memory() -> int | None:
    """Returns the bytes of memory of this machine; None if unknown."""
    is_known = "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ())
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if is_known else None


def _address_space() -> int | None:
    """Returns the bytes that this process may still map (`ulimit -v`); None if there is no limit."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        mapped = int(STATM.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, AttributeError, OSError, ValueError):
        return None
    return None if limit == resource.RLIM_INFINITY else max(0, limit - mapped)


def _group_memory() -> int | None:
    """Returns the bytes that this process's control group (a container, a SLURM job) may take; None if unknown."""
    try:
        lines = [line.split(":", 2) for line in GROUPS.read_text().splitlines()]
    except OSError:
        return None
    limits = []
    for _, controllers, path in (line for line in lines if len(line) == 3):
        if controllers in ("", "memory"):  # version 2 and version 1 of control groups
            root, name = (GROUP_ROOT / "memory", "memory.limit_in_bytes") if controllers else (GROUP_ROOT, "memory.max")
            innermost = root / path.strip("/")  # in a container, this may be the path on the host
            # Every limit above the group also applies.
            for group in (innermost, *innermost.parents):
                with contextlib.suppress(OSError, ValueError):
                    limits.append(int((group / name).read_text()))
    return min(limits, default=None)


def require_memory(shapes: Shapes, layout: Layout) -> None:
    """Raises `MemoryError` if not even the states of a batch fit, before minutes of compiling and filling it.

    The other memory of a program is known once it is compiled: see `jaxbandits.engine.sweep.program.compile_lanes`.
    """
    memory, needed = device_memory(layout.mesh), layout.lanes * shapes.carried_bytes
    if memory is not None and needed > memory:
        raise MemoryError(memory_advice(shapes, layout, f"{needed / 1e6:.3g} of {memory / 1e6:.3g} MB"))


def memory_advice(shapes: Shapes, layout: Layout, needed: str) -> str:
    """Returns a message that says which argument to lower if a batch does not fit."""
    lanes, chunk = layout.lanes, layout.chunk
    state, kept = shapes.carried_bytes, shapes.round_bytes
    what = "the noise of its chunk and its curves' values" if shapes.curves.entries else "the noise of its chunk"
    return (
        f"lanes={lanes} with chunk={chunk} do not fit into the device's memory ({needed}): the states of a batch take "
        f"{lanes * state / 1e6:.3g} MB (lower lanes), {what} {lanes * chunk * kept / 1e6:.3g} MB "
        "(lower lanes or chunk)"
    )


@contextlib.contextmanager
def with_memory_advice(shapes: Shapes, layout: Layout) -> Iterator[None]:
    """Turns JAX's error of a device without enough memory into a MemoryError with `memory_advice`."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise MemoryError(memory_advice(shapes, layout, str(error).partition("\n")[0])) from error
