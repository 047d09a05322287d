"""Shared parts of the experiments on distributed kernel bandits: algorithms on the same instances and noise."""

import dataclasses
import itertools
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments.claims import every_run_stops
from experiments.report import Claim, mean_se
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import kernel
from jaxbandits.base import Algorithm, Array, Decision, Environment, Key, Outcome, PyTree
from jaxbandits.kernel import Instance

AGENTS, HORIZON, SIZE = 10, 50, 1000
NOISE_SCALE = 0.2
NOISE_VARIANCE = NOISE_SCALE**2
BETAS = (0.2, 0.5, 1.0, 2.0, 5.0)
FUNCTIONS = {"h1": "h1", "h2": "h2", "branin": "Branin", "hartmann4": "Hartmann"}
QUICK_FUNCTIONS = ("branin",)  # one, since each needs a program, and compiling dominates a quick run
DIMENSIONS = {"h1": 10, "h2": 10, "branin": 2, "hartmann4": 4}
RULES: dict[str, Callable[..., Algorithm]] = {
    "DUETS": kernel.duets,
    "DisKernelUCB": kernel.dis_kernel_ucb,
    "ApproxDisKernelUCB": kernel.approx_dis_kernel_ucb,
    "N-KernelUCB": kernel.n_kernel_ucb,
    "GP-UCB": kernel.gp_ucb,
    "BPE": kernel.bpe,
}
ALONE = ("GP-UCB", "BPE")  # single learners, which query one point at a time
PLAYERS = ("DUETS", "DisKernelUCB", "ApproxDisKernelUCB", "N-KernelUCB")  # rules of the paper's Figure 1
APPROXIMATE = "ApproxDisKernelUCB"
MAX_INDUCING = 64  # capacity of its dictionaries, which held 38 points at most in Figure 1

AllRuns = dict[tuple[str, str], jaxbandits.Results]  # (function, rule)


def environment(instance: Instance, algorithm: Algorithm, stream: Key) -> Environment:
    """Answers queries with noise that is a function of the stream, the round and the agent alone.

    Two algorithms with the same stream get the same noise, in any rows of any sweeps. One draw serves all agents of a
    round, whereas `kernel.environment` makes one for each.
    """
    n_agents = algorithm.idle.size

    def respond(t: Array, action: Array, noise: tuple[()]) -> tuple[Array, Array]:
        del noise
        normal = jax.random.normal(jax.random.fold_in(stream, t), (n_agents,), instance.values.dtype)
        rewards = instance.values.at[action].get(mode="clip") + instance.noise_scale * normal
        is_query = jnp.any(action < instance.values.size)
        return rewards, t + is_query.astype(t.dtype)

    return Environment(lambda key: jnp.zeros((), jnp.int32), lambda key: (), respond, stream)


def functions(options: Settings, quick: Sequence[str] = QUICK_FUNCTIONS) -> dict[str, str]:
    """Returns the functions of an experiment and their names; a quick run has only `quick`."""
    return {function: FUNCTIONS[function] for function in quick} if options.quick else FUNCTIONS


def runs(
    heading: str,  # name of the instances and the noise; with function and rule, unique to these runs
    function: str,  # one of `FUNCTIONS`
    rule: str,  # one of `RULES`; a single learner queries n_agents horizon points
    *,
    options: Settings,
    replicates: int,  # instances, each with every beta
    betas: Sequence[float] = BETAS,
    n_agents: int = AGENTS,
    horizon: int = HORIZON,
    size: int = SIZE,  # candidates
    grid: tuple[int, ...] | None = None,  # rounds of the curve, of one learner or of all agents; if None, ten of them
    instance: Mapping[str, Any] = {},  # further arguments of the factory of the function
    fixed: Mapping[str, Any] = {},  # further arguments of the algorithm
    max_inducing: int = MAX_INDUCING,
    noise_variance: float = NOISE_VARIANCE,  # noise variance of the posteriors
    same_instance: bool = False,  # True if all replicates share the instance of the first
    dtype: Any = jnp.float64,
    total: Callable[[PyTree, Decision, Array], dict[str, Array]] = lambda *asked: {},  # columns summed over the rounds
    metrics: Callable[[Instance, Outcome], dict[str, Array]] = lambda *ended: {},  # further columns
    **simulated: Any,
) -> jaxbandits.Results:
    """Runs an algorithm at several beta, on the same instances and noise as all others under the same heading.

    Every run has `beta`, `replicate`, `regret`, the messages (`uplink` per agent, `downlink`, their sum
    `communication`, and `syncs`, the number of rounds with a message), the `curve` (G, 3), and for DUETS the sum if
    repeats are sent again (`communication_draws`).
    """
    table = jaxbandits.grid(beta=np.asarray(betas, dtype), replicate=np.arange(replicates, dtype=np.int32))
    rounds, common = (n_agents * horizon, {}) if rule in ALONE else (horizon, {"n_agents": n_agents})
    common |= {"horizon": rounds, "kernel": kernel.paper_kernel(function), "noise_variance": noise_variance}
    common |= ({"max_inducing": max_inducing} if rule == APPROXIMATE else {}) | dict(fixed)
    samples = zlib.crc32(f"{heading}, {function}".encode())
    make = partial(getattr(kernel, function), size=size, noise_scale=NOISE_SCALE, dtype=dtype, **instance)
    agents = common.get("n_agents", 1)

    def drawn(task: dict[str, Array]) -> tuple[Instance, Key]:
        root = jax.random.key(samples)
        for_instance, for_noise = jax.random.split(jax.random.fold_in(root, task["replicate"]))
        return make(root if same_instance else for_instance), for_noise

    grid = grid or kernel.every_tenth(rounds)
    # Every round where the agents synchronise, as the steps of the downlink show.
    marks = sorted({*grid, rounds} if rule in ALONE else {*grid, *range(1, rounds + 1)})
    at_grid = np.searchsorted(marks, grid)

    def build(task: dict[str, Array], key: Key) -> tuple[Algorithm, Environment, jaxbandits.Record]:
        del key  # the run's own key; the algorithms must share instances and noise
        truth, for_noise = drawn(task)
        algorithm = RULES[rule](truth.candidates, beta=task["beta"], **common)
        of_round = kernel.round_regret(truth)
        curves = jaxbandits.record(
            at=marks, by="rounds", value=kernel.messages, total=lambda *asked: of_round(*asked) | total(*asked)
        )
        return algorithm, environment(truth, algorithm, for_noise), curves

    def measured(task: dict[str, Array], outcome: Outcome) -> dict[str, Array]:
        curves, state = outcome.curves, outcome.state
        regret, dtype = curves["regret"], curves["regret"].dtype
        uplink, downlink = curves["uplink"].astype(dtype) / agents, curves["downlink"].astype(dtype)
        syncs = (curves["downlink"][0] > 0).astype(int) + jnp.sum(jnp.diff(curves["downlink"]) > 0)
        measures = {"regret": regret[-1], "uplink": uplink[-1], "downlink": downlink[-1], "syncs": syncs}
        measures |= {"communication": uplink[-1] + downlink[-1]}
        measures |= {"curve": jnp.stack([regret, uplink, downlink], axis=-1)[at_grid]}
        if hasattr(state, "traffic_draws"):
            draws = state.traffic_draws
            measures["communication_draws"] = draws.uplink.astype(dtype) / agents + draws.downlink.astype(dtype)
        return measures | metrics(drawn(task)[0], outcome)

    settings = {"seeds": 1, "max_rounds": rounds + 1, "chunk": rounds, "metrics": measured} | simulated
    results = simulate(f"{heading}, {function}: {rule}", build, table, options=options, **settings)
    return dataclasses.replace(results, columns=results.columns | table)


def compared(
    heading: str,
    functions: Iterable[str],
    rules: Iterable[str] = PLAYERS,
    extra: Callable[[str, str], dict[str, Any]] = lambda function, rule: {},
    **shared: Any,
) -> AllRuns:
    """Runs every rule on every function; `extra` (function, rule) -> settings beside the `shared` ones."""
    return {key: runs(heading, *key, **shared, **extra(*key)) for key in itertools.product(functions, rules)}


def by_beta(results: jaxbandits.Results, column: str) -> np.ndarray:
    """Reshapes a column to (betas, replicates, ...), the order of the runs."""
    values, betas = results.columns[column], len(np.unique(results.columns["beta"]))
    return values.reshape(betas, -1, *values.shape[1:])


def growth(curve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the regret and the messages, uplink and downlink together, of a curve (..., G, 3)."""
    return curve[..., 0], curve[..., 1:].sum(axis=-1)


def entry(values: np.ndarray) -> str:
    """Formats a mean with its standard error."""
    mean, se = mean_se(values)
    digits = 3 if 0 < mean < 10 else 1 if 0 < mean < 100 else 0
    return f"{mean:,.{digits}f} +- {se:,.{digits}f}"


def every_run_ends(all_runs: AllRuns) -> Claim:
    """Claims that no run met a NaN."""
    return every_run_stops(all_runs.values(), "every run ends after its last round, without a NaN")


def functions_of(all_runs: Mapping[tuple[str, str], Any]) -> dict[str, str]:
    """Returns the functions with runs, and their names."""
    return {function: FUNCTIONS[function] for function, _ in all_runs}
