"""Distributed kernel bandits on Branin, 2000 candidates, 10 agents, 50 rounds, beta .2 to 5: agent-rounds a second.

One query of one agent is an agent-round. The floor is the time in which this machine reads the memory that a round
needs (the rows seen so far, or the features of the inducing points) or, for DUETS, multiplies the matrices of its three
synchronisations as large as they are when no draw repeats and nothing has been trimmed; both rates are measured in the
same run, on as many cores as the sweep uses. DUETS often needs less: repeats and trimming make its matrices smaller.
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments.bench.case import Case
from experiments.bench.reference import kernel_approx, kernel_duets, kernel_ucb
from experiments.report import Report, number
from experiments.settings import Settings
from jaxbandits import kernel
from jaxbandits.base import Algorithm
from jaxbandits.engine import Stats
from jaxbandits.engine.sizing import cores
from jaxbandits.kernel import Instance, branin, epoch_lengths, paper_kernel

AGENTS, HORIZON, SIZE, NOISE_VARIANCE = 10, 50, 2000, 0.04
MAX_INDUCING = 64
BETAS = (0.2, 0.5, 1.0, 2.0, 5.0)
LANES = (1, 2, 4, 16, None)  # None: what the sweep chooses
SEEDS, QUICK_SEEDS = 40, 12  # of each beta
RULES: dict[str, Callable[..., Algorithm]] = {
    "DUETS": kernel.duets,
    "DisKernelUCB": kernel.dis_kernel_ucb,
    "ApproxDisKernelUCB": kernel.approx_dis_kernel_ucb,
    "N-KernelUCB": kernel.n_kernel_ucb,
}
# Numbers that a round must read in the mean: the rows so far, of which there are T / 2 for each agent; or W.
READ = {
    "DisKernelUCB": AGENTS * HORIZON * SIZE / 2,
    "ApproxDisKernelUCB": MAX_INDUCING * SIZE,
    "N-KernelUCB": AGENTS * HORIZON * SIZE / 2,
}
HEAD = ("rule", "precision", "lanes", "agent-rounds/s", "x NumPy", "share of floor", "busy", "compile s", "MB")


def run(options: Settings) -> Report:
    loops = {name: _rate_of(loop) for name, loop in numpy_loops().items()}
    rows, parts = [], []
    for dtype in ("float64", "float32"):
        reads, products = bandwidth(dtype), flops(dtype)
        for rule in RULES:
            for lanes in widths(options):
                stats = measure(rule, dtype, lanes, QUICK_SEEDS if options.quick else SEEDS)
                speed = stats.pulls / stats.seconds
                floor = floor_of(rule, dtype, reads, products)
                print(rule, dtype, lanes, f"{speed:.2e} agent-rounds/s", file=sys.stderr, sep=", ")
                rows.append(
                    (
                        rule,
                        dtype,
                        str(stats.lanes),
                        f"{speed:.2e}",
                        number(round(speed / loops[rule])),
                        f"{speed / floor:.0%}",
                        f"{stats.occupancy:.0%}",
                        f"{stats.compile_seconds:.1f}",
                        f"{stats.bytes / 1e6:.0f}",
                    )
                )
                parts.append({"rule": rule, "dtype": dtype, "floor": floor} | stats._asdict())
        speed, compiling = unrolled(dtype, 64 if options.quick else 256)
        share = speed / floor_of("DUETS", dtype, reads, products)
        row = ("duets_run", dtype, "1", f"{speed:.2e}", number(round(speed / loops["DUETS"])), f"{share:.0%}")
        rows.append((*row, "100%", f"{compiling:.1f}", ""))
    return Report(
        "Distributed kernel bandits: speed of the whole engine",
        lines=[],
        claims=[],
        columns={column: np.array([part[column] for part in parts]) for column in parts[0]},
        draw=None,
        notes=[
            "NumPy, one core, agent-rounds a second: "
            + "; ".join(f"{name}: {number(round(speed))}" for name, speed in loops.items())
            + ". All but the last solve every posterior anew; the last updates N-KernelUCB's by one row, as we do.",
            "duets_run: a compiled call a run, one after the other; XLA shares out its products over the cores.",
        ],
        grid=(HEAD, rows),
    )


def widths(options: Settings) -> tuple[int | None, ...]:
    """Lanes of a batch to measure."""
    return (options.lanes,) if options.lanes else LANES[:1] if options.quick else LANES


def settings(rule: str) -> dict[str, Any]:
    more = {"max_inducing": MAX_INDUCING} if rule == "ApproxDisKernelUCB" else {}
    return {
        "kernel": paper_kernel("branin"),
        "n_agents": AGENTS,
        "horizon": HORIZON,
        "noise_variance": NOISE_VARIANCE,
    } | more


def cases() -> list[Case]:
    """Branin, float64, one lane a batch."""

    def floor(rule: str) -> tuple[float, str]:
        return floor_of(rule, "float64", bandwidth("float64"), flops("float64")), (
            "products" if rule == "DUETS" else "memory"
        )

    return [
        Case(
            "kernel",
            rule,
            "Branin",
            builder(rule, "float64"),
            partial(_rate_of, loop),
            HORIZON + 1,
            lanes=1,
            runs=5 * len(BETAS),
            chunk=HORIZON + 1,
            tasks=jnp.asarray(BETAS),
            floor=partial(floor, rule),
        )
        for rule, loop in numpy_loops().items()
        if rule in RULES
    ]


def builder(rule: str, dtype: str) -> Callable:
    """Each run has candidates of its own."""

    def build(beta: jax.Array, key: jax.Array) -> tuple[Algorithm, jaxbandits.Environment]:
        instance = branin(key, size=SIZE, dtype=dtype)
        environment = kernel.environment(instance, n_agents=AGENTS)
        return RULES[rule](instance.candidates, beta=beta, **settings(rule)), environment

    return build


def measure(rule: str, dtype: str, lanes: int | None, seeds: int) -> Stats:
    """One sweep over seeds and beta."""
    return jaxbandits.sweep(
        builder(rule, dtype),
        jnp.asarray(BETAS, dtype),
        seeds=seeds,
        key=jax.random.key(0),
        max_rounds=HORIZON + 1,
        lanes=lanes,
        chunk=HORIZON + 1,
        progress=False,
    ).stats


def unrolled(dtype: str, runs: int, lanes: int = 1) -> tuple[float, float]:
    """Agent-rounds a second of `duets_run`, and seconds of compiling."""

    def one(key: jax.Array, beta: jax.Array) -> jax.Array:
        return kernel.duets_run(key, branin(key, size=SIZE, dtype=dtype), beta=beta, **settings("DUETS")).regret[-1]

    def batch(index: int) -> tuple[jax.Array, jax.Array]:
        keys = jax.random.split(jax.random.key(index), lanes)
        return keys, jnp.asarray(np.roll(np.resize(BETAS, max(lanes, len(BETAS))), -index)[:lanes], dtype)

    started = time.perf_counter()
    compiled = jax.jit(jax.vmap(one)).lower(*batch(0)).compile()
    compiling = time.perf_counter() - started
    jax.block_until_ready(compiled(*batch(0)))
    started = time.perf_counter()
    for index in range(runs // lanes):
        jax.block_until_ready(compiled(*batch(index)))
    return runs * AGENTS * HORIZON / (time.perf_counter() - started), compiling


def floor_of(rule: str, dtype: str, reads: float, products: float) -> float:
    """Agent-rounds a second that no program that does this work can exceed."""
    if rule == "DUETS":
        sizes = [AGENTS * rounds for rounds in epoch_lengths(HORIZON)[:-1]]
        work = sum(n**2 * (SIZE + n) for n in sizes)  # a triangular solve and a factor, additions and products
        return AGENTS * HORIZON * products / work
    return AGENTS * reads / (READ[rule] * np.dtype(dtype).itemsize)


def bandwidth(dtype: str) -> float:
    """Bytes a second that all cores together read where N-KernelUCB's buffer lies."""
    rows = jnp.ones((AGENTS, HORIZON, SIZE), dtype)
    product = jax.jit(lambda c, rows: jnp.einsum("nt,ntm->nm", c, rows, precision="highest"))
    return _rate(lambda: product(rows[..., 0], rows)) * rows.nbytes


def flops(dtype: str, n: int = 512) -> float:
    """Operations a second of matrix products on all cores."""
    a = jnp.ones((n, n), dtype)
    product = jax.jit(lambda a: jnp.matmul(a, a, precision="highest"))
    return _rate(lambda: product(a)) * 2 * n**3


def _rate(call: Callable[[], jax.Array], seconds: float = 0.5) -> float:
    """Calls a second, a thread a core."""

    def count() -> int:
        calls, started = 0, time.perf_counter()
        while time.perf_counter() - started < seconds:
            jax.block_until_ready(call())
            calls += 1
        return calls

    jax.block_until_ready(call())
    with ThreadPoolExecutor(cores()) as pool:
        return sum(future.result() for future in [pool.submit(count) for _ in range(cores())]) / seconds


def numpy_loops() -> dict[str, Callable[[], Any]]:
    """The plain loops, each one run of beta = 1."""
    instance = branin(jax.random.key(1), size=SIZE, dtype="float64")
    candidates, values = np.asarray(instance.candidates), np.asarray(instance.values)
    rng = np.random.default_rng(0)
    uniforms, thinning = rng.random((2, AGENTS, HORIZON))
    coins = kernel.Coins(uniforms, thinning, rng.random((HORIZON, AGENTS, HORIZON)))
    rewards = values + 0.2 * rng.standard_normal((HORIZON, AGENTS, SIZE))
    pairs = kernel_duets.squared_exponential(0.2)
    gram = pairs(candidates, candidates)
    common = {"beta": 1.0, "noise_variance": NOISE_VARIANCE}
    return {
        "DUETS": lambda: kernel_duets.duets(
            candidates,
            lambda n, t, a: rewards[t, n, a],
            uniforms,
            thinning,
            kernel=pairs,
            lengths=epoch_lengths(HORIZON),
            **common,
        ),
        "DisKernelUCB": lambda: kernel_ucb.dis_kernel_ucb(gram, 2, rewards, uniforms, threshold=10.0, **common),
        "ApproxDisKernelUCB": lambda: kernel_approx.approx_dis_kernel_ucb(
            gram, 2, rewards, coins, threshold=20.0, oversampling=1.0, **common
        ),
        "N-KernelUCB": lambda: kernel_ucb.n_kernel_ucb(gram, rewards, uniforms, **common),
        "N-KernelUCB, a row at a time": lambda: a_row_at_a_time(gram, instance, rewards, uniforms),
    }


def _rate_of(loop: Callable[[], Any]) -> float:
    """Agent-rounds a second of one run."""
    started = time.perf_counter()
    loop()
    return AGENTS * HORIZON / (time.perf_counter() - started)


def a_row_at_a_time(gram: np.ndarray, instance: Instance, rewards: np.ndarray, coins: np.ndarray) -> np.ndarray:
    """N-KernelUCB as a NumPy programmer in a hurry writes it; returns the queries (T, N)."""
    size = len(instance.values)
    rows = np.zeros((AGENTS, HORIZON, size))
    mean, variance = np.zeros((AGENTS, size)), np.ones((AGENTS, size))
    queries = np.zeros((HORIZON, AGENTS), int)
    for t in range(HORIZON):
        queries[t] = np.argmax(mean + np.sqrt(np.maximum(variance, 0)), axis=1) if t else (coins[:, 0] * size)
        for n, a in enumerate(queries[t]):
            column = gram[a] - rows[n, :t, a] @ rows[n, :t]
            v = max(column[a], 0.0)
            rows[n, t] = column / np.sqrt(NOISE_VARIANCE + v)
            mean[n] += column * (rewards[t, n, a] - mean[n, a]) / (NOISE_VARIANCE + v)
            variance[n] -= rows[n, t] ** 2
    return queries
