"""LinGapE on soare(5) and on 30 arms in 8 dimensions, with and without leaps, in both precisions."""

import sys
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments.bench.case import Case
from experiments.bench.reference import fixed_designs
from experiments.bench.reference.lingape import lingape as transcription
from experiments.report import STYLES, Report, number
from experiments.settings import Settings
from jaxbandits import linear
from jaxbandits.base import Algorithm, Environment
from jaxbandits.engine import Stats
from jaxbandits.engine.shards import local_mesh
from jaxbandits.engine.sizing import side_by_side
from jaxbandits.numerics.design import design

LANES = (64, 256, 1024, 4096, 16384)
LEAP = 65536
ROUNDS, LEAP_ROUNDS = 2048, 8192  # of every run; with leaps, about all that soare(5) needs
LEAST, MOST = 10**7, 2**25  # rounds of one measurement: long enough to be timed, short enough to be waited for
HEAD = (
    "instance",
    "leap",
    "dtype",
    "lanes",
    "pulls/s",
    "rounds/s",
    "x NumPy",
    "occupancy",
    "compile s",
    "MB",
)


def run(options: Settings) -> Report:
    instances = {
        "soare(5)": lambda dtype: linear.soare(5, dtype=dtype),
        "K=30, d=8": lambda dtype: linear.sphere(0, 30, 8, 0.05, dtype=dtype),
    }
    lanes = (options.lanes,) if options.lanes else (256, 1024) if options.quick else LANES
    rows, parts, plain = [], [], {}
    for instance, make in instances.items():
        plain[instance] = numpy_rounds_per_second(make(jnp.float64))
        for leap, dtype in ((1, jnp.float64), (1, jnp.float32), (LEAP, jnp.float64)):
            for width in lanes:
                label = (instance, "yes" if leap > 1 else "no", np.dtype(dtype).name, width)
                stats = measure(make(dtype), leap=leap, lanes=width, least=LEAST // (10 if options.quick else 1))
                speed = stats.pulls / stats.seconds
                print(*label, f"{speed:.2e} pulls/s", file=sys.stderr, sep=", ")
                rows.append(
                    (
                        *map(str, label),
                        f"{speed:.2e}",
                        f"{stats.rounds / stats.seconds:.2e}",
                        number(round(speed / plain[instance])),
                        f"{stats.occupancy:.1%}",
                        f"{stats.compile_seconds:.1f}",
                        f"{stats.bytes / 1e6:.1f}",
                    )
                )
                parts.append(dict(zip(("instance", "leap", "dtype"), label, strict=False)) | stats._asdict())

    def draw(figure) -> None:
        for axes, instance in zip(figure.subplots(1, 2, sharey=True), instances, strict=True):
            for style, (leap, dtype) in enumerate((("no", "float64"), ("no", "float32"), ("yes", "float64"))):
                chosen = [p for p in parts if (p["instance"], p["leap"], p["dtype"]) == (instance, leap, dtype)]
                axes.plot(
                    [p["lanes"] for p in chosen],
                    [p["pulls"] / p["seconds"] for p in chosen],
                    label=f"{dtype}{', leap' if leap == 'yes' else ''}",
                    mfc="w",
                    **STYLES[style],
                )
            axes.axhline(plain[instance], color="k", lw=1)
            axes.set(xscale="log", yscale="log", xlabel="lanes of a batch", title=f"LinGapE, {instance}")
            axes.text(lanes[0], plain[instance] * 1.15, "NumPy transcription, one core")
        figure.axes[0].set_ylabel("pulls a second")
        figure.axes[0].legend()

    return Report(
        "LinGapE: speed of the whole engine",
        lines=[],
        claims=[],
        columns={name: np.array([part[name] for part in parts]) for name in parts[0]},
        draw=draw,
        notes=[
            "NumPy transcription, one core, rounds a second: "
            + "; ".join(f"{name}: {number(round(speed))}" for name, speed in plain.items())
        ],
        grid=(HEAD, rows),
    )


def cases() -> list[Case]:
    """On soare(5), float64; single pulls are cut after a number of rounds, the rest are whole runs."""
    instance = linear.soare(5)
    allocation = linear.xy_allocation(instance.arms).allocation

    def case(rule: str, factory: Any, action: Any, plain: Any, max_rounds: int, **more: Any) -> Case:
        def build(task: None, key: jax.Array) -> tuple[Algorithm, Environment]:
            return factory(), linear.environment(instance, action)

        return Case("linear", rule, "soare(5)", build, plain, max_rounds, lanes=256, **more)

    pull_by_pull = partial(numpy_rounds_per_second, instance)
    lingape = partial(linear.lingape, instance.arms, delta=0.05)
    static, exact = (
        partial(rule, instance.arms, allocation, delta=0.05) for rule in (linear.xy_static, linear.xy_static_exact)
    )
    adaptive = partial(linear.xy_adaptive, instance.arms, delta=0.05)
    grid = numpy_static_pulls_per_second
    return [
        case("LinGapE", lingape, linear.Pull, pull_by_pull, 8 * ROUNDS),
        case("LinGapE, leap", partial(lingape, leap=LEAP), linear.Pull, pull_by_pull, LEAP_ROUNDS),
        case("XY-static", static, linear.Allocation, grid, 10**5, runs=8),
        case("XY-static, every pull", exact, linear.Bridge, grid, 10**5, runs=8),
        case("XY-adaptive", adaptive, linear.Allocation, numpy_adaptive_pulls_per_second, 100, runs=2, chunk=4),
    ]


def measure(instance: linear.Instance, *, leap: int, lanes: int, least: int) -> Stats:
    """One sweep that fills every lane of every batch at least once, for a fixed number of rounds."""

    def build(task: None, key: jax.Array):
        return linear.lingape(instance.arms, delta=0.05, leap=leap), linear.environment(instance)

    batches = side_by_side(local_mesh())
    rounds = LEAP_ROUNDS if leap > 1 else max(ROUNDS, least // (batches * lanes))
    rounds = min(rounds, MOST // (batches * lanes))
    seeds = max(256, 4 * batches * lanes if lanes < 256 else batches * lanes)
    results = jaxbandits.sweep(
        build, seeds=seeds, key=jax.random.key(0), max_rounds=rounds, lanes=lanes, progress=False
    )
    return results.stats


def numpy_rounds_per_second(instance: linear.Instance, seconds: float = 1.0) -> float:
    """Speed of the transcription, which inverts A in every round and tries every arm by another inversion."""
    arms, means = np.asarray(instance.arms), np.asarray(instance.arms @ instance.theta)
    rng, rounds, started = np.random.default_rng(0), 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        transcription(arms, lambda arm, _: means[arm] + rng.normal(), delta=0.05, max_rounds=200)
        rounds += 200
    return rounds / (time.perf_counter() - started)


def numpy_static_pulls_per_second(seconds: float = 1.0) -> float:
    """XY-static with a test at every pull, on five canonical arms, where it stops soon."""
    arms, rng, pulls, started = np.eye(5), np.random.default_rng(0), 0, time.perf_counter()
    means = np.eye(5)[0]
    while time.perf_counter() - started < seconds:
        tests = fixed_designs.xy_static(arms, np.full(5, 0.2), means[:, None] + rng.normal(size=(5, 2000)), delta=0.05)
        pulls += tests[-1].n
    return pulls / (time.perf_counter() - started)


def numpy_adaptive_pulls_per_second(seconds: float = 1.0) -> float:
    """XY-adaptive on the same arms; its designs are computed as in ours."""
    arms, means, rng, pulls, started = np.eye(5), np.eye(5)[0], np.random.default_rng(0), 0, time.perf_counter()

    def solve(differences: list[np.ndarray]) -> np.ndarray:
        return np.asarray(design(jnp.asarray(arms), jnp.asarray(differences)).allocation)

    def rewards(phase: int, counts: np.ndarray) -> np.ndarray:
        return means * counts + np.sqrt(counts) * rng.normal(size=5)

    settings = {"alpha": 0.1, "first_width": 1 / 31, "keep_eliminated": False, "max_phases": 8}
    while time.perf_counter() - started < seconds:
        phases = fixed_designs.xy_adaptive(arms, solve, rewards, delta=0.05, **settings)
        pulls += sum(sum(phase.counts) for phase in phases)
    return pulls / (time.perf_counter() - started)
