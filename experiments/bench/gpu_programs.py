"""Reads the rounds of a program that XLA compiles for a GPU. No GPU is needed.

XLA compiles for the device described in `h200.txtpb` (the card's public figures, from openxla/xla,
`xla/backends/gpu/target_config/specs`). The compiled text lists the kernels that a round launches, their loops, and
the arrays that they read and write. The assembler `ptxas`, which comes with the packages, reports their registers.
"""

import math
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jax.experimental import topologies
from jax.sharding import Mesh

TARGET = Path(__file__).parent / "h200.txtpb"
OPTIONS = {"xla_gpu_autotune_level": "0"}  # there is nothing to time
FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "iota"}
ROWS_READ, ROWS_SET = {"gather", "slice", "dynamic-slice"}, {"scatter", "dynamic-update-slice"}
BYTES = {"pred": 1, "s8": 1, "u8": 1, "f16": 2, "bf16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}


class Operation(NamedTuple):
    """One line of a compiled program."""

    name: str
    kind: str  # kind of operation
    size: float  # bytes of the result; an array with a row for every round of a chunk counts one row
    operands: tuple[str, ...]  # names of operands; for a parameter, its number
    called: dict[str, list[str]]  # body, condition, branches, calls: computations
    trips: int | None  # turns of a loop, if known
    target: str  # library function of a call


class Round(NamedTuple):
    """Work of one round of a batch."""

    kernels: float  # launches
    copies: float
    unknown: int  # loops of unknown length, outside of branches: the host reads a flag in every turn
    branches: int  # conditionals, such as `plan`: the host reads a flag once
    calls: tuple[str, ...]  # library functions called
    bytes: float  # bytes read and written by the whole batch
    names: tuple[str, ...]  # names of the kernels


def target_mesh() -> Mesh:
    """Returns a mesh of one described H200 to compile for.

    Raises:
        RuntimeError: the packages of the extra `gpu` are missing, or they require a GPU and there is none.
    """
    try:
        described = topologies.get_topology_desc(platform="cuda", target_config=TARGET.read_text(), topology="1x1x1")
    except Exception as error:
        needs = "jaxbandits' extra gpu, jax[cuda13], and without a GPU the environment variable JAX_PLATFORMS=cpu"
        raise RuntimeError(f"compiling for a GPU needs {needs}: {error}") from error
    return Mesh(described.devices, ("devices",))


def compile_with_registers(lowered: Any) -> tuple[Any, float, dict[str, tuple[int, int]]]:
    """Returns the compiled program, seconds, and (registers, bytes spilled) of its kernels by name."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        program = lowered.compile(OPTIONS | {"xla_dump_to": folder})
        seconds = time.perf_counter() - started
        registers = {}
        for path in Path(folder).glob("*.ptx"):
            registers |= registers_of(path)
    return program, seconds, registers


def registers_of(ptx: Path) -> dict[str, tuple[int, int]]:
    """Returns (registers, bytes spilled) of each kernel of an assembler file. Empty if there is no assembler."""
    if (assembler := _assembler()) is None:
        return {}
    command = [str(assembler), "-v", "-arch=sm_90a", str(ptx), "-o", "/dev/null"]
    output = subprocess.run(command, capture_output=True, text=True).stderr
    by_kernel = {}
    for part in output.split("Compiling entry function '")[1:]:
        used = re.search(r"Used (\d+) registers", part)
        spilled = re.search(r"(\d+) bytes spill stores", part)
        by_kernel[part.partition("'")[0]] = int(used.group(1)) if used else 0, int(spilled.group(1)) if spilled else 0
    return by_kernel


def kernel_name(instruction: str) -> str:
    """Returns the name of an instruction's kernel in the assembler file."""
    return re.sub(r"[.\-]", "_", instruction)


def _assembler() -> Path | None:
    try:
        import nvidia
    except ModuleNotFoundError:
        return None
    return next((path for root in nvidia.__path__ for path in sorted(Path(root).glob("*/bin/ptxas"))), None)


def read_round(text: str, *, chunk: int, unroll: int = 1) -> Round:
    """Reads the work of one round from a program with a loop over the rounds of a chunk.

    Args:
        text: the compiled program.
        chunk: rounds of a chunk. No other loop may have this length.
        unroll: rounds per turn of the loop.

    Returns:
        Round: the mean over the `unroll` rounds of a turn.

    Raises:
        ValueError: there is no such loop.
    """
    computations = _computations(text, chunk)
    loops = [op for ops in computations.values() for op in ops if op.kind == "while" and op.trips == chunk // unroll]
    if not loops:
        raise ValueError(f"text must have a loop of {chunk // unroll} turns, got none")
    body = max((loop.called["body"][0] for loop in loops), key=lambda name: len(computations[name]))
    kernels = copies = size = 0.0
    unknown, branches, calls, names = 0, 0, [], []
    for op, times, computation in _walk(computations, body):
        if op.kind == "while":
            unknown += op.trips is None
        elif op.kind == "conditional":
            branches += 1
        else:
            size += times * _traffic(op, computations, computation)
            copies += times * (op.kind == "copy")
            kernels += times * (op.kind != "copy")
            calls += [op.target] if op.target else []
            names.append(op.name)
    return Round(
        kernels=kernels / unroll,
        copies=copies / unroll,
        unknown=unknown,
        branches=branches,
        calls=tuple(calls),
        bytes=size / unroll,
        names=tuple(names),
    )


def _traffic(op: Operation, computations: dict[str, list[Operation]], computation: str) -> float:
    """Computes the bytes that a kernel reads and writes. If it reads or sets rows of an array, only these count."""
    sizes = {other.name: other.size for other in computations[computation]}
    read = [sizes.get(name, 0) for name in op.operands]
    if not (names := op.called.get("calls")):
        return op.size + sum(read)
    inside = computations[names[0]]
    written, root = op.size, inside[-1]
    for parameter in (each for each in inside if each.kind == "parameter"):
        users = [each for each in inside if parameter.name in each.operands]
        number, is_first = int(parameter.operands[0]), [each.operands[0] == parameter.name for each in users]
        if all(is_first) and all(each.kind in ROWS_READ for each in users):
            read[number] = min(read[number], sum(each.size for each in users))
        elif len(users) == 1 and all(is_first) and users[0].kind in ROWS_SET:
            setter = users[0]
            if setter is root or setter.name in root.operands:  # in place
                given = {each.name: each.size for each in inside}
                read[number] = given[setter.operands[1 if setter.kind == "dynamic-update-slice" else 2]]
                written += read[number] - setter.size
    return written + sum(read)


def _walk(
    computations: dict[str, list[Operation]], name: str, times: float = 1
) -> Iterator[tuple[Operation, float, str]]:
    """Yields the operations of a loop's body, how often each runs, and its computation. Unknown lengths count as 1."""
    for op in computations[name]:
        if op.kind in FREE:
            continue
        if op.kind == "while":
            yield op, times, name
            yield from _walk(computations, op.called["body"][0], times * (op.trips or 1))
        elif op.kind == "call":
            yield from _walk(computations, op.called["to_apply"][0], times)
        else:
            yield op, times, name


def _computations(text: str, chunk: int) -> dict[str, list[Operation]]:
    by_name: dict[str, list[Operation]] = {}
    current: list[Operation] = []
    for line in text.splitlines():
        # The type of a tuple may contain comments with '='.
        line = re.sub(r"/\*.*?\*/", "", line).strip()
        if head := re.match(r"(?:ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$", line):
            current = by_name.setdefault(head.group(1), [])
        elif match := re.match(r"(?:ROOT )?%?([\w.\-]+) = (\([^=]*?\)|\S+) ([\w\-]+)\((.*)$", line):
            name, shape, kind, tail = match.groups()
            arguments, _, attributes = tail.partition(")")
            if kind == "while" and re.search(r'op_name="[^"]*/plan/while"', attributes):
                kind = "conditional"  # a loop of at most one turn, see `jaxbandits.engine.run.loop`
            trips = re.search(r'known_trip_count":\{"n":"(\d+)"', attributes)
            target = re.search(r'custom_call_target="([^"]+)"', attributes)
            called = {
                key: [one.lstrip("%") for one in re.split(r",\s*", names.strip("{}"))]
                for key, names in re.findall(
                    r"(body|condition|to_apply|calls|branch_computations)=(\{[^}]*\}|%?[\w.\-]+)", attributes
                )
            }
            current.append(
                Operation(
                    name=name,
                    kind=kind,
                    size=_size(shape, chunk),
                    operands=(arguments,) if kind == "parameter" else tuple(re.findall(r"%([\w.\-]+)", arguments)),
                    called=called,
                    trips=int(trips.group(1)) if trips else None,
                    target=target.group(1) if target else "",
                )
            )
    return by_name


def _size(shape: str, chunk: int) -> float:
    """Returns the bytes of a shape. An array with a row for every round of a chunk counts one row."""
    total = 0.0
    for kind, dims in re.findall(r"(\w+)\[([\d,]*)\]", shape):
        sizes = [int(size) for size in dims.split(",") if size]
        total += BYTES.get(kind, 0) * math.prod(sizes) / (chunk if chunk in sizes else 1)
    return total
