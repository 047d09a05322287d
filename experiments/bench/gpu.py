"""Kernels per round of every algorithm, compiled for an H200, and the speed that they would allow.

No GPU is needed: with JAX_PLATFORMS=cpu in the environment and the extra `gpu` installed, XLA compiles for a described
device (`gpu_programs`). A round takes at least the longest of three times: the launches of its kernels (2.5 us each,
and 10 us for every turn of a loop whose length the host must read), the memory that it reads and writes, and its
operations. They give the *predicted* speed. On a machine with a GPU, the speed is also measured, on it and on the CPU
cores.
"""

import sys
from argparse import ArgumentParser
from functools import partial
from typing import Any

import jax
import numpy as np

import jaxbandits
from experiments.bench import gpu_programs
from experiments.bench.case import Case, refusing
from experiments.figures import COLORS
from experiments.report import Report
from experiments.settings import Settings
from jaxbandits.engine.scalars import light_operations, unrolled
from jaxbandits.engine.sweep import program
from jaxbandits.engine.sweep.layout import OpenLayout
from jaxbandits.engine.sweep.tasks import make_job

LANES, WIDTHS = 65536, (1024, 16384, 65536, 262144)  # lanes of the prediction, and lanes of the measurements
CHUNK = 88  # rounds: a multiple of 8 that no loop within a round has as its length
LAUNCH, VISIT = 2.5e-6, 1e-5  # seconds of a kernel launch, and of the host reading a flag
BANDWIDTH, L2 = 4.8e12, 50e6  # bytes per second; bytes of the cache, which the state of a batch should fit
RATE = 132 * 64 * 1.98e9  # operations per second in float64: cores, units and clock
MEMORY = 1.41e11  # bytes


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", metavar="ALGORITHM", help="part of names; not for `sweep`")
    parser.add_argument("--arrays", action="store_true", help="for `bench gpu`: rounds on arrays, not on scalars")


def report(cases: list[Case], options: Settings) -> Report:
    """Reports a row per case: its program, its predicted speed and, if there is a GPU, its measured speed."""
    chosen = [case for case in cases if is_wanted(case.rule, options)]
    mesh = gpu_programs.target_mesh()
    parts: list[dict[str, Any]] = []
    refusals: list[str] = []
    scalars = False if options.extra.get("arrays") else None
    for case in chosen:
        with refusing(case, refusals):
            part = predicted(case, mesh, scalars=scalars, lanes=options.lanes or LANES)
            part |= measured(case, part, options) if jax.default_backend() == "gpu" else {}
            parts.append(part)
            print(case.rule, case.instance, f"{part['kernels']:.3g} kernels a round", file=sys.stderr, sep=", ")
    has_gpu = jax.default_backend() == "gpu"
    return Report(
        "Rounds compiled for an H200",
        lines=[],
        claims=[],
        columns={name: np.array([part[name] for part in parts]) for name in parts[0]} if parts else {},
        draw=partial(draw, parts=parts),
        notes=[
            f"predicted: {options.lanes or LANES} lanes or as many as fit twice, at {LAUNCH * 1e6:g} us per launch, "
            f"{VISIT * 1e6:g} us per flag read, {BANDWIDTH / 1e12:g} TB/s and {rate():.3g} operations per second; "
            "the smallest of the three speeds holds.",
            "unknown: loops of unknown length within a round, counted as one turn. branches: conditionals, as of plan.",
            *refusals,
            "measured: " + (jax.devices()[0].device_kind if has_gpu else "nothing, there is no GPU here."),
        ],
        grid=[row(part) for part in parts],
    )


def is_wanted(rule: str, options: Settings) -> bool:
    """True if `--only` is not given or names a part of `rule`."""
    only = options.extra.get("only")
    return not only or any(part.lower() in rule.lower() for part in only)


def rate() -> float:
    """Returns the operations per second in JAX's precision, twice as many in 32 bit."""
    return RATE * (1 if jax.config.read("jax_enable_x64") else 2)


def predicted(case: Case, mesh: Any, *, scalars: bool | None, lanes: int) -> dict[str, Any]:
    """Returns the figures of the compiled program for `lanes` lanes, or for as many as fit."""
    job = make_job(case.build, case.tasks, seeds=1, key=jax.random.key(0), max_rounds=case.max_rounds, metrics=None)
    lane = program.trace(job, OpenLayout(lanes, CHUNK, scalars, mesh), tasks=1)
    loop = program.loop_of(lane)
    unroll = unrolled(loop) if lane.layout.scalars else 1
    while True:
        compiled, seconds, registers = gpu_programs.compile_with_registers(program.lower(lane))
        sizes = compiled.memory_analysis()
        held = sizes.argument_size_in_bytes + sizes.output_size_in_bytes - sizes.alias_size_in_bytes
        most_lanes = MEMORY / ((held + sizes.temp_size_in_bytes) / lanes) / 2  # two batches
        if lanes <= most_lanes:
            break
        # Given more lanes, XLA would compute twice what it cannot store.
        lanes = 2 ** int(np.log2(most_lanes))
        lane = lane._replace(layout=lane.layout._replace(lanes=lanes))
    launched = gpu_programs.read_round(compiled.as_text(), chunk=CHUNK, unroll=unroll)
    used = [registers[name] for name in map(gpu_programs.kernel_name, launched.names) if name in registers]
    by = {
        "launches": lanes
        / (LAUNCH * (launched.kernels + launched.copies) + VISIT * (launched.unknown + launched.branches)),
        "memory": BANDWIDTH / (launched.bytes / lanes),
        "arithmetic": rate() / light_operations(loop, selects=lane.layout.scalars),
    }
    limit = min(by, key=lambda name: by[name])
    return {
        "family": case.family,
        "rule": case.rule,
        "instance": case.instance,
        "scalars": lane.layout.scalars,
        "unroll": unroll,
        "kernels": launched.kernels,
        "copies": launched.copies,
        "unknown": launched.unknown,
        "branches": launched.branches,
        "calls": len(launched.calls),
        "bytes": launched.bytes / lanes,
        "registers": max((count for count, _ in used), default=0),
        "spilled": max((spilled for _, spilled in used), default=0),
        "compile_seconds": seconds,
        "lanes": lanes,
        "most_lanes": most_lanes,
        **{f"predicted_{name}": rate for name, rate in by.items()},
        "predicted": by[limit],
        "limit": limit,
    }


def measured(case: Case, part: dict[str, Any], options: Settings) -> dict[str, Any]:
    """Measures rounds and queries per second on this machine's GPU at several widths, and on its CPU."""
    speeds: dict[str, Any] = {}
    for lanes in WIDTHS[:2] if options.quick else WIDTHS:
        rounds, queries, host = speed(case, jax.local_devices(backend="gpu"), lanes)
        speeds |= {f"rounds_{lanes}": rounds, f"queries_{lanes}": queries, f"host_{lanes}": host}
        if lanes == (options.lanes or LANES):
            speeds |= {"of_predicted": rounds / part["predicted"]}
    cpu, *_ = speed(case, jax.local_devices(backend="cpu"), case.lanes)
    return speeds | {"x_cpu": max(speeds[name] for name in speeds if name.startswith("rounds")) / cpu}


def speed(case: Case, devices: list[Any], lanes: int | None) -> tuple[float, float, float]:
    """Measures rounds and queries per second of a sweep, and its share of time waiting for the host."""
    stats = jaxbandits.sweep(
        case.build,
        case.tasks,
        seeds=2 * (lanes or 1) * len(devices),
        key=jax.random.key(0),
        max_rounds=case.max_rounds,
        lanes=lanes,
        chunk=case.chunk,
        mesh=jax.sharding.Mesh(np.array(devices), ("devices",)),
        progress=False,
    ).stats
    host = stats.host_seconds / stats.batches / stats.seconds
    return stats.rounds / stats.seconds, stats.pulls / stats.seconds, host


def row(part: dict[str, Any]) -> dict[str, str]:
    """Returns one row as text."""
    cells = {
        "algorithm": part["rule"],
        "instance": part["instance"],
        "scalars": f"{part['unroll']} a turn" if part["scalars"] else "",
        "kernels": f"{part['kernels']:.3g}",
        "copies": f"{part['copies']:.3g}",
        "unknown": str(part["unknown"]),
        "branches": str(part["branches"]),
        "calls": str(part["calls"]),
        "bytes": f"{part['bytes']:.0f}",
        "registers": str(part["registers"]),
        "spilled": str(part["spilled"]),
        "compile s": f"{part['compile_seconds']:.0f}",
        "lanes": str(part["lanes"]),
        "lanes that fit": f"{part['most_lanes']:.1e}",
        **{name: f"{part[f'predicted_{name}']:.1e}" for name in ("launches", "memory", "arithmetic")},
        "predicted rounds/s": f"{part['predicted']:.1e}",
    }
    for name in part:
        if name.startswith("rounds_"):
            cells[f"measured, {name.removeprefix('rounds_')}"] = f"{part[name]:.1e}"
        elif name.startswith("host_"):
            cells[f"host, {name.removeprefix('host_')}"] = f"{part[name]:.0%}"
    for name, title in (("of_predicted", "of predicted"), ("x_cpu", "x CPU")):
        if name in part:
            cells[title] = f"{part[name]:.2g}"
    return cells | {"limited by": part["limit"]}


def draw(figure: Any, *, parts: list[dict[str, Any]]) -> None:
    figure.set_size_inches(7, 1 + 0.22 * len(parts))
    axes, y = figure.subplots(), np.arange(len(parts))[::-1]
    for name, marker in (("launches", "|"), ("memory", "x"), ("arithmetic", "+")):
        axes.plot([part[f"predicted_{name}"] for part in parts], y, marker, label=name, ms=8, color=COLORS[0])
    axes.set(xscale="log", xlabel="rounds a second, predicted", ylim=(-1, len(parts)))
    axes.set_yticks(y, ["{rule}, {instance}".format(**part) for part in parts], fontsize=8)
    figure.legend(loc="outside upper center", ncols=3, fontsize=9)
