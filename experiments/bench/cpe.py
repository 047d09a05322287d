"""Combinatorial pure exploration: COCI, uniform sampling and CLUCB on problems of every kind, with and without blocks.

Bernoulli arms (osa4: also a uniform one), delta = 0.1, float64. Whole runs, several one after another in a lane.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

import jaxbandits
from experiments.bench.case import Case
from experiments.bench.reference import cpe as plain
from experiments.report import STYLES, Report, number
from experiments.settings import Settings
from jaxbandits import cpe
from jaxbandits.base import Algorithm
from jaxbandits.engine import Stats
from jaxbandits.engine.shards import local_mesh
from jaxbandits.engine.sizing import side_by_side

DELTA = 0.1
BLOCK = 16  # fastest for COCI: larger ones are seldom filled, and each slot draws its sample
LANES = (64, 256, 1024)
RUNS = 4  # that a lane goes through, so that the last ones, which end one by one, count little
INSTANCES = {
    name: getattr(cpe, name) for name in ("best5", "top2of6", "water3", "osa4", "paths5", "matching3")
}  # the first has the most lanes to show
HEAD = ("instance", "rule", "block", "lanes", "pulls/s", "rounds/s", "pulls a round", "x NumPy", "compile s", "MB")


def run(options: Settings) -> Report:
    rows, parts, loops = [], [], {}
    for name, make in INSTANCES.items():
        instance = make()
        loops[name] = numpy_pulls_per_second(instance)
        for (rule, block), factory in rules(instance).items():
            for lanes in widths(options, name):
                stats = measure(instance, factory, block, lanes=lanes, runs=1 if options.quick else RUNS)
                speed = stats.pulls / stats.seconds
                label = (name, rule, str(block), str(lanes))
                print(*label, f"{speed:.2e} pulls/s", file=sys.stderr, sep=", ")
                rows.append(
                    (
                        *label,
                        f"{speed:.2e}",
                        f"{stats.rounds / stats.seconds:.2e}",
                        f"{stats.pulls / stats.rounds:.1f}",
                        number(round(speed / loops[name])),
                        f"{stats.compile_seconds:.1f}",
                        f"{stats.bytes / 1e6:.1f}",
                    )
                )
                parts.append({"instance": name, "rule": rule, "block": block} | stats._asdict())
    return Report(
        "Combinatorial pure exploration: speed of the whole engine",
        lines=[],
        claims=[],
        columns={column: np.array([part[column] for part in parts]) for column in parts[0]},
        draw=partial(draw, parts=parts, loops=loops),
        notes=[
            "NumPy transcription of COCI, which lists all decisions, one core, pulls a second: "
            + "; ".join(f"{name}: {number(round(speed))}" for name, speed in loops.items())
        ],
        grid=(HEAD, rows),
    )


def widths(options: Settings, name: str) -> tuple[int, ...]:
    """Lanes of a batch to measure: all of them on one instance, the middle ones on the others."""
    return (options.lanes,) if options.lanes else LANES if name == "best5" and not options.quick else LANES[1:2]


def rules(instance: cpe.Instance) -> dict[tuple[str, int], Callable[..., Algorithm]]:
    """All that applies to an instance, by name and block."""
    mean = instance.tau == 1
    common = {"delta": DELTA, "observations": "binary" if mean else "unit"}
    found: dict[tuple[str, int], Callable[..., Algorithm]] = {
        (name, block): partial(rule, estimator="mean" if mean else "variance", leap=block, **common)
        for name, rule in (("COCI", cpe.coci), ("uniform", cpe.uniform))
        for block in (1, BLOCK)
    }
    if isinstance(instance.problem, cpe.Enumerated) or instance.problem.coef.shape[1] == 1:
        found["CLUCB", 1] = partial(cpe.clucb, **common)
    return found


def cases() -> list[Case]:
    """The best two of six arms."""
    name = "top2of6"
    instance = INSTANCES[name]()
    return [
        Case(
            "cpe",
            rule if block == 1 else f"{rule}, blocks",
            name,
            builder(instance, factory, block),
            partial(numpy_pulls_per_second, instance),
            10**6,
            lanes=LANES[1],
            runs=RUNS,
        )
        for (rule, block), factory in rules(instance).items()
    ]


def builder(instance: cpe.Instance, factory: Callable[..., Algorithm], block: int) -> Callable:
    def build(task: None, key: jax.Array) -> tuple[Algorithm, jaxbandits.Environment]:
        return factory(instance.problem), cpe.environment(instance, leap=block)

    return build


def measure(instance: cpe.Instance, factory: Callable[..., Algorithm], block: int, *, lanes: int, runs: int) -> Stats:
    """One sweep that gives every lane of every batch that many runs."""
    seeds, key = runs * side_by_side(local_mesh()) * lanes, jax.random.key(0)
    build = builder(instance, factory, block)
    return jaxbandits.sweep(build, seeds=seeds, key=key, max_rounds=10**6, lanes=lanes, progress=False).stats


def draw(figure: Any, *, parts: list[dict[str, Any]], loops: dict[str, float]) -> None:
    figure.set_size_inches(8, 4.4)
    axes = figure.subplots()
    kinds = (("COCI", 1), ("COCI", BLOCK), ("uniform", 1), ("uniform", BLOCK), ("CLUCB", 1))
    for style, (rule, block) in zip(STYLES, kinds, strict=True):
        fastest = {
            name: max(
                part["pulls"] / part["seconds"]
                for part in parts
                if (part["instance"], part["rule"], part["block"]) == (name, rule, block)
            )
            for name in loops
            if any((part["instance"], part["rule"]) == (name, rule) for part in parts)
        }
        label = rule if block == 1 else f"{rule}, blocks of up to {block}"
        x = [list(loops).index(name) for name in fastest]
        axes.plot(x, list(fastest.values()), label=label, mfc="w", **(style | {"linestyle": ""}))
    axes.plot(range(len(loops)), list(loops.values()), "k_", ms=14, label="NumPy transcription, one core")
    axes.set(yscale="log", ylabel="pulls a second")
    axes.set_xticks(range(len(loops)), list(loops))
    figure.legend(loc="outside lower center", ncols=3, fontsize=9)


def numpy_pulls_per_second(instance: cpe.Instance, seconds: float = 1.0) -> float:
    """Speed of the transcription of COCI: it lists all decisions, and makes one pull at a time."""
    problem, theta = instance.problem, np.asarray(cpe.means(instance.arms))
    if isinstance(problem, cpe.Enumerated):
        loop = plain.linear(np.asarray(problem.rows))
    else:
        kind = "at most" if instance.tau == 2 else "exactly"
        loop = plain.table(np.asarray(problem.coef), np.asarray(problem.cost), int(problem.quota), kind)
    rng, pulls, started = np.random.default_rng(0), 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        tape = (rng.random((len(theta), 200)) < theta[:, None]).astype(float)
        pulls += len(plain.coci(loop, tape, delta=DELTA, tau=instance.tau, rounds=200))
    return pulls / (time.perf_counter() - started)
