"""What the program that XLA compiles for a GPU says of its rounds; a GPU is not needed.

XLA compiles for a device that is described by a file, `h200.txtpb` (the card's public figures, as openxla/xla has them
in `xla/backends/gpu/target_config/specs`). The compiled text shows which kernels a round launches, in which loops, and
what they read and write; the assembler `ptxas`, which comes with the packages, says how many registers they take.
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
    kind: str  # of operation
    size: float  # bytes of the result; those of an array with a row for every round of a chunk count one row
    operands: tuple[str, ...]  # of a parameter, its number
    called: dict[str, list[str]]  # body, condition, branches, calls: computations
    trips: int | None  # of a loop, where it is known
    target: str  # of a call of a library


class Round(NamedTuple):
    """What a round of a batch does."""

    kernels: float  # launches
    copies: float
    unknown: int  # loops whose length is not known, outside of branches: the host looks at a flag in every turn
    branches: int  # conditionals, `plan` for instance: the host looks at a flag once
    calls: tuple[str, ...]  # of libraries
    bytes: float  # read and written, of the whole batch
    names: tuple[str, ...]  # of the kernels


def target_mesh() -> Mesh:
    """One H200, to compile for.

    Raises:
        RuntimeError: the packages of the extra `gpu` are not installed, or they look for a GPU where there is none.
    """
    try:
        described = topologies.get_topology_desc(platform="cuda", target_config=TARGET.read_text(), topology="1x1x1")
    except Exception as error:
        needs = "jaxbandits' extra gpu, jax[cuda13], and without a GPU the environment variable JAX_PLATFORMS=cpu"
        raise RuntimeError(f"compiling for a GPU needs {needs}: {error}") from error
    return Mesh(described.devices, ("devices",))


def compile_with_registers(lowered: Any) -> tuple[Any, float, dict[str, tuple[int, int]]]:
    """The compiled program, seconds, and (registers, bytes spilled) of its kernels by name."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        program = lowered.compile(OPTIONS | {"xla_dump_to": folder})
        seconds = time.perf_counter() - started
        registers = {}
        for path in Path(folder).glob("*.ptx"):
            registers |= registers_of(path)
    return program, seconds, registers


def registers_of(ptx: Path) -> dict[str, tuple[int, int]]:
    """(registers, bytes spilled) of every kernel of an assembler file; nothing where there is no assembler."""
    if (assembler := _assembler()) is None:
        return {}
    command = [str(assembler), "-v", "-arch=sm_90a", str(ptx), "-o", "/dev/null"]
    said = subprocess.run(command, capture_output=True, text=True).stderr
    found = {}
    for part in said.split("Compiling entry function '")[1:]:
        used = re.search(r"Used (\d+) registers", part)
        spilled = re.search(r"(\d+) bytes spill stores", part)
        found[part.partition("'")[0]] = int(used.group(1)) if used else 0, int(spilled.group(1)) if spilled else 0
    return found


def kernel_name(instruction: str) -> str:
    """The name that an instruction's kernel has in the assembler file."""
    return re.sub(r"[.\-]", "_", instruction)


def _assembler() -> Path | None:
    try:
        import nvidia
    except ModuleNotFoundError:
        return None
    return next((path for root in nvidia.__path__ for path in sorted(Path(root).glob("*/bin/ptxas"))), None)


def read_round(text: str, *, chunk: int, unroll: int = 1) -> Round:
    """What a round does in a program whose loop over the rounds of a chunk is in `text`.

    Args:
        text: of the compiled program.
        chunk: rounds of a chunk, a number that no other loop has for its length.
        unroll: rounds in one turn of the loop.

    Returns:
        Round, of one of the `unroll` rounds.

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
    return Round(kernels / unroll, copies / unroll, unknown, branches, tuple(calls), size / unroll, tuple(names))


def _traffic(op: Operation, computations: dict[str, list[Operation]], computation: str) -> float:
    """Bytes that a kernel reads and writes: of an array from which it takes rows, or in which it sets some, those."""
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
    """All that a loop's body launches, how often, and in which computation; loops of unknown length count one turn."""
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
    found: dict[str, list[Operation]] = {}
    current: list[Operation] = []
    for line in text.splitlines():
        # A result that is a tuple has comments with '=' in its type.
        line = re.sub(r"/\*.*?\*/", "", line).strip()
        if head := re.match(r"(?:ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$", line):
            current = found.setdefault(head.group(1), [])
        elif match := re.match(r"(?:ROOT )?%?([\w.\-]+) = (\([^=]*?\)|\S+) ([\w\-]+)\((.*)$", line):
            name, shape, kind, rest = match.groups()
            arguments, _, attributes = rest.partition(")")
            if kind == "while" and re.search(r'op_name="[^"]*/plan/while"', attributes):
                kind = "conditional"  # of at most one turn, see `jaxbandits.engine.run.loop`
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
                    name,
                    kind,
                    _size(shape, chunk),
                    (arguments,) if kind == "parameter" else tuple(re.findall(r"%([\w.\-]+)", arguments)),
                    called,
                    int(trips.group(1)) if trips else None,
                    target.group(1) if target else "",
                )
            )
    return found


def _size(shape: str, chunk: int) -> float:
    """Bytes; of an array with a row for every round of a chunk, those of one row."""
    total = 0.0
    for kind, dims in re.findall(r"(\w+)\[([\d,]*)\]", shape):
        sizes = [int(size) for size in dims.split(",") if size]
        total += BYTES.get(kind, 0) * math.prod(sizes) / (chunk if chunk in sizes else 1)
    return total
