"""What a sweep costs beyond its rounds: the host's visits, idle lanes, the store, the start of processes.

Everything runs LinGapE on soare(5) in float64 round by round unless the line says otherwise. The bare loop is the same
compiled round, repeated on the device without any visit of the host, in as many threads as the sweep has batches.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxbandits
from experiments.report import Report
from experiments.settings import Settings
from jaxbandits import Algorithm, Decision, Environment, linear
from jaxbandits.engine.running import advance, streams
from jaxbandits.engine.sizing import cores

KEY = jax.random.key(0)
CHUNK = 256


class Walk(NamedTuple):
    """The state of an algorithm that costs next to nothing."""

    pulls: jax.Array
    limit: jax.Array
    values: jax.Array  # (1,)


def walk(limit: jax.Array) -> Algorithm:
    """Ends after `limit` rounds."""
    return Algorithm(
        init=lambda key: Walk(jnp.zeros((), int), jnp.asarray(limit, int), jnp.zeros(1)),
        decide=lambda key, state: Decision(jnp.ones(()), state.pulls >= state.limit, jnp.argmax(state.values)),
        observe=lambda state, action, reward: Walk(
            state.pulls + action.astype(int), state.limit, state.values + action * reward
        ),
        idle=jnp.zeros(()),
    )


NOISE = Environment(jax.random.normal, lambda action, noise: noise)


def run(options: Settings) -> Report:
    quick = options.quick
    rows: list[dict[str, str]] = []

    def note(what: str, setting: str, measured: str, aim: str = "") -> None:
        print(what, setting, measured, aim, sep=" | ", file=sys.stderr)
        rows.append({"what": what, "setting": setting, "measured": measured, "aim": aim})

    for lanes in (256,) if quick else (64, 256, 1024):
        share, speed = overhead(lanes, rounds=CHUNK * (64 if quick else 512), repeats=2 if quick else 4)
        note("overhead over a bare loop", f"{lanes} lanes a batch", f"{share:+.1%} at {speed:.2e} rounds/s", "< 5 %")

    for name, tasks, seeds, build in heavy_tails(quick):
        stats = jaxbandits.sweep(
            build, tasks, seeds=seeds, key=KEY, max_rounds=2**31 - 1, lanes=options.lanes, progress=False
        ).stats
        runs = seeds * (1 if tasks is None else len(tasks))
        where = f"{name}, {runs} tasks, {stats.batches} x {stats.lanes} lanes"
        note("occupancy", where, f"{stats.occupancy:.1%}", "> 95 %")

    with tempfile.TemporaryDirectory() as folder:
        for what, setting, measured, aim in storage(Path(folder), 10**5 if quick else 10**6):
            note(what, setting, measured, aim)
        seeds = 400 if quick else 4000
        for workers, seconds in processes(Path(folder), seeds):
            note("seconds, compilation included", f"LinGapE with leaps, {seeds} runs, {workers}", f"{seconds:.1f} s")

    return Report(
        f"What a sweep costs beyond its rounds, on {cores()} cores",
        lines=[],
        claims=[],
        columns={name: np.array([row[name] for row in rows]) for name in rows[0]},
        draw=None,
        grid=rows,
    )


def overhead(lanes: int, *, rounds: int, repeats: int) -> tuple[float, float]:
    """Time of a sweep over that of the bare loop, minus 1; and the sweep's rounds a second. Best of the repeats."""
    instance = linear.soare(5)
    batches = cores()

    def build(task: Any, key: jax.Array) -> tuple[Algorithm, Environment]:
        return linear.lingape(instance.arms, delta=0.05), linear.environment(instance)

    def one(seed: jax.Array) -> jax.Array:
        keys = streams(jaxbandits.task_key(KEY, 0, seed))
        algorithm, environment = build(None, keys.build)

        def chunk(_: jax.Array, carry: Any) -> Any:
            settings = {"max_rounds": rounds, "chunk": CHUNK, "axis_name": "lanes"}
            outcome, _ = advance(algorithm, environment, keys, *carry, **settings)
            return outcome.state, outcome.rounds

        start = algorithm.init(keys.init), jnp.zeros((), jnp.int32)
        return lax.fori_loop(0, rounds // CHUNK, chunk, start)[0].pulls

    seeds = jnp.arange(batches * lanes).reshape(batches, lanes)
    bare = jax.jit(jax.vmap(one, axis_name="lanes")).lower(seeds[0]).compile()
    bare_seconds, sweep_seconds = [], []
    with ThreadPoolExecutor(batches) as threads:
        for _ in range(repeats):  # in turns, so that a busy minute of the machine meets both
            started = time.perf_counter()
            list(threads.map(lambda batch: bare(batch).block_until_ready(), seeds))
            bare_seconds.append(time.perf_counter() - started)
            stats = jaxbandits.sweep(
                build, seeds=seeds.size, key=KEY, max_rounds=rounds, lanes=lanes, chunk=CHUNK, progress=False
            ).stats
            sweep_seconds.append(stats.seconds)
    return min(sweep_seconds) / min(bare_seconds) - 1, seeds.size * rounds / min(sweep_seconds)


def heavy_tails(quick: bool) -> list[tuple[str, Any, int, Callable]]:
    """Tasks whose lengths differ: LinGapE's stopping times over a table of gaps, and lengths from a Pareto law."""
    arms = linear.canonical(0.1).arms

    def lingape(gap: jax.Array, key: jax.Array) -> tuple[Algorithm, Environment]:
        instance = linear.Instance(arms, jnp.zeros(5).at[0].set(gap), jnp.ones(()))
        return linear.lingape(arms, delta=0.05), linear.environment(instance)

    def pareto(exponent: float) -> Callable:
        def build(task: Any, key: jax.Array) -> tuple[Algorithm, Environment]:
            return walk(jnp.ceil(500 * jax.random.pareto(key, exponent)).astype(int)), NOISE

        return build

    gaps = jnp.linspace(0.1, 0.5, 20)
    return [
        ("LinGapE, 20 gaps from .1 to .5", gaps, 50 if quick else 500, lingape),
        ("Pareto lengths, exponent 2", None, 20_000 if quick else 200_000, pareto(2.0)),
        ("Pareto lengths, exponent 1.5", None, 20_000 if quick else 200_000, pareto(1.5)),
    ]


def storage(folder: Path, rows: int) -> list[tuple[str, str, str, str]]:
    """Rows a second to the store, against the same sweep in memory; resuming and loading."""

    def build(task: Any, key: jax.Array) -> tuple[Algorithm, Environment]:
        return walk(1 + jax.random.randint(key, (), 0, 8)), NOISE

    def timed(**settings: Any) -> tuple[float, jaxbandits.Results]:
        started = time.perf_counter()
        results = jaxbandits.sweep(
            build, seeds=rows, key=KEY, max_rounds=100, lanes=1024, chunk=8, progress=False, **settings
        )
        return time.perf_counter() - started, results

    store = folder / "rows"
    memory_seconds, plain = timed()
    seconds, stored = timed(store=store)
    again, _ = timed(store=store)
    started = time.perf_counter()
    loaded = jaxbandits.load(store)
    load_seconds = time.perf_counter() - started
    for name, values in plain.columns.items():
        np.testing.assert_array_equal(values, stored.columns[name])
        np.testing.assert_array_equal(values, loaded.columns[name])
    parts = list(store.glob("*.parquet"))
    size = sum(part.stat().st_size for part in parts)
    return [
        ("rows a second, in memory", f"{rows} short tasks", f"{rows / memory_seconds:.2e}", ""),
        (
            "rows a second, to the store",
            f"{len(parts)} parts, {size / rows:.1f} bytes a row",
            f"{rows / seconds:.2e} ({seconds:.2f} s against {memory_seconds:.2f} s)",
            "",
        ),
        ("resume", f"{rows} finished rows", f"{again:.2f} s", "seconds"),
        ("load", f"{rows} finished rows", f"{load_seconds:.2f} s", ""),
    ]


def processes(folder: Path, seeds: int) -> list[tuple[str, float]]:
    """Seconds of one sweep on the threads of this process, on one worker with one core, and on a worker a core."""
    instance = linear.soare(5)

    def build(task: Any, key: jax.Array) -> tuple[Algorithm, Environment]:
        return linear.lingape(instance.arms, delta=0.05, leap=65536), linear.environment(instance)

    def timed(name: str, **settings: Any) -> float:
        started = time.perf_counter()
        jaxbandits.sweep(
            build, seeds=seeds, key=KEY, max_rounds=2**31 - 1, lanes=64, store=folder / name, progress=False, **settings
        )
        return time.perf_counter() - started

    measured = [(f"threads of one process on {cores()} cores", timed("threads"))]
    for workers in (1, cores()):
        with jaxbandits.process_pool(cores()) as pool:
            list(pool.map(abs, range(4 * cores())))  # the workers have started
            measured.append(
                (f"{workers} workers with a core each", timed(f"workers-{workers}", executor=pool, shards=workers))
            )
    return measured
