"""Distributed kernel bandits on Branin, 2000 candidates, 10 agents, 50 rounds, beta .2 to 5: queries per second.

The floor is the time in which this machine reads the memory that a round needs (the rows observed so far, or the
features of the inducing points). For DUETS it multiplies the matrices of the three synchronisations at full size, as
if no draw repeats and nothing is trimmed. Both rates are measured in the same run, on as many cores as the sweep uses.
DUETS often needs less: repeats and trimming make its matrices smaller.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments.bench import loops
from experiments.bench.case import Case
from experiments.bench.loops import AGENTS, HORIZON, NOISE_VARIANCE, SIZE
from experiments.settings import Settings
from jaxbandits import kernel
from jaxbandits.base import Algorithm
from jaxbandits.engine.sweep.layout import cores
from jaxbandits.kernel import branin, epoch_lengths, paper_kernel

MAX_INDUCING = 64
BETAS = (0.2, 0.5, 1.0, 2.0, 5.0)
LANES = (1, 2, 4, 16)
RULES: dict[str, Callable[..., Algorithm]] = {
    "DUETS": kernel.duets,
    "DisKernelUCB": kernel.dis_kernel_ucb,
    "ApproxDisKernelUCB": partial(kernel.approx_dis_kernel_ucb, max_inducing=MAX_INDUCING),
    "N-KernelUCB": kernel.n_kernel_ucb,
}
# Mean count of numbers that a round must read: the rows so far, T / 2 per agent, or W.
READ = {
    "DisKernelUCB": AGENTS * HORIZON * SIZE / 2,
    "ApproxDisKernelUCB": MAX_INDUCING * SIZE,
    "N-KernelUCB": AGENTS * HORIZON * SIZE / 2,
}


def cases(lanes: tuple[int, ...] = (1,), dtypes: tuple[str, ...] = ()) -> list[Case]:
    """Returns cases on Branin. If `dtypes` is empty, they are in JAX's precision."""
    dtypes = dtypes or (jnp.result_type(float).name,)
    return [
        Case(
            "kernel",
            rule,
            "Branin" if len(dtypes) == 1 else f"Branin, {dtype}",
            build=partial(build, rule, dtype),
            plain=partial(loops.kernel_run, rule),
            max_rounds=HORIZON + 1,
            lanes=width,
            runs=5 * len(BETAS),
            chunk=HORIZON + 1,
            tasks=jnp.asarray(BETAS, dtype),
            floor=partial(floor, rule, dtype),
        )
        for rule in RULES
        for dtype in dtypes
        for width in lanes
    ]


def more_cases(options: Settings) -> list[Case]:
    """Returns cases in both precisions."""
    return cases(LANES[:1] if options.quick else LANES, ("float64", "float32"))


def build(rule: str, dtype: str, beta: jax.Array, key: jax.Array) -> tuple[Algorithm, jaxbandits.Environment]:
    """Builds a run with candidates of its own."""
    instance = branin(key, size=SIZE, dtype=dtype)
    settings = {"kernel": paper_kernel("branin"), "n_agents": AGENTS, "horizon": HORIZON, "beta": beta}
    algorithm = RULES[rule](instance.candidates, noise_variance=NOISE_VARIANCE, **settings)
    return algorithm, kernel.environment(instance, algorithm)


@cache
def floor(rule: str, dtype: str) -> tuple[float, str]:
    """Returns queries per second of a program that only reads a row per observation, or only solves for all of them.

    The library may exceed it, since it merges the observations of one candidate.
    """
    if rule == "DUETS":
        sizes = [AGENTS * rounds for rounds in epoch_lengths(HORIZON)[:-1]]
        work = sum(n**2 * (SIZE + n) for n in sizes)  # a triangular solve and a factor, additions and products
        return AGENTS * HORIZON * flops(dtype) / work, "products"
    return AGENTS * bandwidth(dtype) / (READ[rule] * np.dtype(dtype).itemsize), "memory"


def bandwidth(dtype: str) -> float:
    """Measures the bytes per second that all cores together read from a buffer of N-KernelUCB's size."""
    rows = jnp.ones((AGENTS, HORIZON, SIZE), dtype)
    product = jax.jit(lambda c, rows: jnp.einsum("nt,ntm->nm", c, rows, precision="highest"))
    return _rate(lambda: product(rows[..., 0], rows)) * rows.nbytes


def flops(dtype: str, n: int = 512) -> float:
    """Measures the operations per second of matrix products on all cores."""
    a = jnp.ones((n, n), dtype)
    product = jax.jit(lambda a: jnp.matmul(a, a, precision="highest"))
    return _rate(lambda: product(a)) * 2 * n**3


def _rate(call: Callable[[], jax.Array]) -> float:
    """Measures the calls per second, with one thread per core."""

    def play() -> int:
        jax.block_until_ready(call())
        return 1

    play()  # compiles
    with ThreadPoolExecutor(cores()) as pool:
        return sum(pool.map(lambda core: loops.per_second(play, 0.5), range(cores())))
