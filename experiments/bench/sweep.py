"""Costs of a sweep beyond its rounds: the host's visits, idle lanes, the store, the start of processes.

Everything runs LinGapE on soare(5) in float64 round by round unless the row says otherwise. The bare loop is the same
compiled round, repeated on the device without any visit of the host, in as many threads as the sweep has batches.
"""

import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxbandits
from experiments.bench.case import always
from experiments.report import Report
from experiments.settings import Settings
from jaxbandits import Algorithm, Decision, Environment, linear, memoryless
from jaxbandits.engine.run.loop import advance
from jaxbandits.engine.run.round import streams
from jaxbandits.engine.sweep.layout import cores

KEY = jax.random.key(0)
CHUNK = 256


class Walk(NamedTuple):
    """State of an algorithm that costs next to nothing."""

    pulls: jax.Array
    limit: jax.Array
    values: jax.Array  # (1,)


def walk(limit: jax.Array) -> Algorithm:
    """Builds an algorithm that stops after `limit` rounds."""
    return Algorithm(
        init=lambda key: Walk(jnp.zeros((), int), jnp.asarray(limit, int), jnp.zeros(1)),
        decide=lambda key, state: Decision(jnp.ones(()), state.pulls >= state.limit, jnp.argmax(state.values)),
        observe=lambda state, action, reward: Walk(
            state.pulls + action.astype(int), state.limit, state.values + action * reward
        ),
        idle=jnp.zeros(()),
    )


NOISE = memoryless(jax.random.normal, lambda action, noise: noise)
Row = tuple[str, str, str, str]  # quantity, setting, measured value, aim


def run(options: Settings) -> Report:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        parts = (overheads, visits, occupancies, partial(storage, Path(folder)), partial(processes, Path(folder)))
        for row in itertools.chain.from_iterable(part(options) for part in parts):
            print(*row, sep=" | ", file=sys.stderr)
            rows.append(row)
    columns = dict(zip(("what", "setting", "measured", "aim"), zip(*rows, strict=True), strict=True))
    return Report(
        f"What a sweep costs beyond its rounds, on {cores()} cores",
        lines=[],
        claims=[],
        columns={name: np.array(values) for name, values in columns.items()},
        draw=None,
        grid=[dict(zip(columns, row, strict=True)) for row in rows],
    )


def timed(build: Callable, tasks: Any = None, **settings: Any) -> tuple[float, jaxbandits.Results]:
    """Returns the seconds of a sweep, compilation and store included, and its results."""
    started = time.perf_counter()
    results = jaxbandits.sweep(build, tasks, key=KEY, progress=False, **settings)
    return time.perf_counter() - started, results


def lingape(leap: int = 1) -> Callable:
    """Builds LinGapE on soare(5)."""
    instance = linear.soare(5)
    make = partial(linear.lingape, instance.arms, delta=0.05, leap=leap)
    return always(make, linear.environment(instance, make()))


def overheads(options: Settings) -> Iterator[Row]:
    """Yields the time of a sweep over the time of the bare loop, minus 1, and the sweep's rounds per second."""
    for lanes in (256,) if options.quick else (64, 256, 1024):
        share, speed = overhead(lanes, CHUNK * (64 if options.quick else 512), 2 if options.quick else 4)
        yield "overhead over a bare loop", f"{lanes} lanes a batch", f"{share:+.1%} at {speed:.2e} rounds/s", "< 5 %"


def overhead(lanes: int, rounds: int, repeats: int) -> tuple[float, float]:
    """Measures both by the fastest of the repeats."""
    batches, build = cores(), lingape()

    def one(seed: jax.Array) -> jax.Array:
        keys = streams(jaxbandits.task_key(KEY, 0, seed))
        algorithm, environment = build(None, keys.build)

        def chunk(_: jax.Array, carry: Any) -> Any:
            settings = {"max_rounds": rounds, "chunk": CHUNK, "axis_name": "lanes"}
            state, memory, made = carry
            outcome, _ = advance(algorithm, environment, keys, state, memory, rounds=made, **settings)
            return outcome.state, outcome.memory, outcome.rounds

        start = algorithm.init(keys.init), environment.init(keys.memory), jnp.zeros((), jnp.int32)
        return lax.fori_loop(0, rounds // CHUNK, chunk, start)[0].pulls

    seeds = jnp.arange(batches * lanes).reshape(batches, lanes)
    bare = jax.jit(jax.vmap(one, axis_name="lanes")).lower(seeds[0]).compile()
    bare_seconds, sweep_seconds = [], []
    with ThreadPoolExecutor(batches) as threads:
        # The two take turns, so that a busy minute of the machine slows both.
        for _ in range(repeats):
            started = time.perf_counter()
            list(threads.map(lambda batch: bare(batch).block_until_ready(), seeds))
            bare_seconds.append(time.perf_counter() - started)
            shape = {"seeds": seeds.size, "max_rounds": rounds, "lanes": lanes, "chunk": CHUNK}
            sweep_seconds.append(timed(build, **shape)[1].stats.seconds)
    return min(sweep_seconds) / min(bare_seconds) - 1, seeds.size * rounds / min(sweep_seconds)


def visits(options: Settings) -> Iterator[Row]:
    """Yields the time of the host between two calls, which grows with the lanes."""

    def build(task: Any, key: jax.Array) -> tuple[Algorithm, Environment]:
        return walk(jax.random.randint(key, (), 1, 200)), NOISE

    for lanes in (1024, 16384) if options.quick else (1024, 16384, 262144):
        stats = timed(build, seeds=4 * lanes, max_rounds=2**31 - 1, lanes=lanes, chunk=8)[1].stats
        yield "a visit of the host", f"{lanes} lanes a batch", f"{stats.host_seconds / stats.visits * 1e3:.2f} ms", ""


def occupancies(options: Settings) -> Iterator[Row]:
    """Yields occupancies for tasks of unequal length: LinGapE over a table of gaps, and a Pareto law."""
    arms = linear.canonical(0.1).arms

    def of_gap(gap: jax.Array, key: jax.Array) -> tuple[Algorithm, Environment]:
        instance = linear.Instance(arms, jnp.zeros(5).at[0].set(gap), jnp.ones(()))
        algorithm = linear.lingape(arms, delta=0.05)
        return algorithm, linear.environment(instance, algorithm)

    def pareto(exponent: float, task: Any, key: jax.Array) -> tuple[Algorithm, Environment]:
        return walk(jnp.ceil(500 * jax.random.pareto(key, exponent)).astype(int)), NOISE

    for name, tasks, runs, build in (
        ("LinGapE, 20 gaps from .1 to .5", jnp.linspace(0.1, 0.5, 20), 10_000, of_gap),
        ("Pareto lengths, exponent 2", None, 200_000, partial(pareto, 2.0)),
        ("Pareto lengths, exponent 1.5", None, 200_000, partial(pareto, 1.5)),
    ):
        runs = runs // 10 if options.quick else runs
        seeds = runs if tasks is None else runs // len(tasks)
        stats = timed(build, tasks, seeds=seeds, max_rounds=2**31 - 1, lanes=options.lanes)[1].stats
        where = f"{name}, {runs} tasks, {stats.batches} x {stats.lanes} lanes"
        yield "occupancy", where, f"{stats.occupancy:.1%}", "> 95 %"


def storage(folder: Path, options: Settings) -> Iterator[Row]:
    """Yields the rows per second of the same sweep in memory and to the store, and the times to resume and load."""
    rows, store = 10**5 if options.quick else 10**6, folder / "rows"

    def build(task: Any, key: jax.Array) -> tuple[Algorithm, Environment]:
        return walk(1 + jax.random.randint(key, (), 0, 8)), NOISE

    shape = {"seeds": rows, "max_rounds": 100, "lanes": 1024, "chunk": 8}
    memory_seconds, plain = timed(build, **shape)
    seconds, stored = timed(build, store=store, **shape)
    again, _ = timed(build, store=store, **shape)
    started = time.perf_counter()
    loaded = jaxbandits.load(store)
    load_seconds = time.perf_counter() - started
    for name, values in plain.columns.items():
        np.testing.assert_array_equal(values, stored.columns[name])
        np.testing.assert_array_equal(values, loaded.columns[name])
    parts = list(store.glob("*.parquet"))
    size = f"{len(parts)} parts, {sum(part.stat().st_size for part in parts) / rows:.1f} bytes a row"
    speed = f"{rows / seconds:.2e} ({seconds:.2f} s against {memory_seconds:.2f} s)"
    yield "rows a second, in memory", f"{rows} short tasks", f"{rows / memory_seconds:.2e}", ""
    yield "rows a second, to the store", size, speed, ""
    yield "resume", f"{rows} finished rows", f"{again:.2f} s", "seconds"
    yield "load", f"{rows} finished rows", f"{load_seconds:.2f} s", ""


def processes(folder: Path, options: Settings) -> Iterator[Row]:
    """Yields the seconds of a sweep on the threads of this process, on one worker, and on one worker per core."""
    seeds, build = 400 if options.quick else 4000, lingape(leap=65536)

    def row(name: str, **settings: Any) -> Row:
        shape = {"seeds": seeds, "max_rounds": 2**31 - 1, "lanes": 64, "store": folder / name}
        seconds, _ = timed(build, **shape, **settings)
        setting = f"LinGapE with leaps, {seeds} runs, {name}"
        return "seconds, compilation included", setting, f"{seconds:.1f} s", ""

    yield row(f"threads of one process on {cores()} cores")
    for workers in (1, cores()):
        with jaxbandits.process_pool(cores()) as pool:
            list(pool.map(abs, range(4 * cores())))  # starts the workers
            yield row(f"{workers} workers with a core each", executor=pool, shards=workers)
