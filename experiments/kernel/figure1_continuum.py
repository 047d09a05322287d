"""DUETS on a continuum: how much communication does a finite set of candidates hide? On 1000 candidates the active set
becomes small, so draws repeat and are sent once. On the ball and the cubes themselves no draw repeats. The active set
is the intersection of all past eliminations; its points are found by rejection. 10 agents, 50 rounds, beta of
kernel_figure1, 10 runs; regret against the maximum of the continuum.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.spatial.distance import cdist
from tqdm import tqdm

from experiments.claims import column
from experiments.figures import errorbars, ticks
from experiments.kernel import common as kernels
from experiments.kernel import figure1
from experiments.kernel.common import AGENTS, DIMENSIONS, FUNCTIONS, HORIZON, NOISE_SCALE, NOISE_VARIANCE, entry
from experiments.report import Claim, Report, mean_se, number
from experiments.settings import Settings
from jaxbandits.kernel import epoch_lengths
from jaxbandits.kernel._problem.instances import LENGTHSCALES, branin_value, hartmann4_value

BETA = {"h1": 0.2, "h2": 0.2, "branin": 0.2, "hartmann4": 1.0}
BEST = {"h1": 1.0, "h2": 4.0, "branin": 1.0473938911, "hartmann4": 3.1344941}
P0, FIRST_EPOCH, JITTER = 10.0, 2, 1e-10
BLOCK, PROPOSALS, FRESH = 4000, 300_000, 2000

Draw = Callable[[int], np.ndarray]  # (count) -> uniform points of the domain (count, d)


class Elimination(NamedTuple):
    """An elimination, which keeps the points where k_S(x)'alpha reaches the threshold."""

    points: np.ndarray  # (m, d)
    alpha: np.ndarray  # (m,)
    threshold: float


def run(options: Settings) -> Report:
    count = options.seeds or (3 if options.quick else 10)
    functions = kernels.functions(options, figure1.QUICK_FUNCTIONS)
    finite = {key: figure1.at_chosen(runs)["communication"] for key, runs in figure1.sweeps(options).items()}
    ours, sent, grid = {}, {}, []
    for function, name in functions.items():
        rngs = [np.random.default_rng((seed, list(FUNCTIONS).index(function))) for seed in range(count)]
        results = [duets(function, rng) for rng in tqdm(rngs, desc=name)]
        ours[function] = runs = {kind: np.array([one[kind] for one in results]) for kind in results[0]}
        rivals = min(finite[function, rule].mean() for rule in figure1.BASELINES)
        sent[name] = runs["communication"].mean(), rivals
        row = {"": name, "sent, 1000 candidates": entry(finite[function, "DUETS"])}
        row |= {"sent, continuum": entry(runs["communication"]), "regret, continuum": entry(runs["regret"])}
        grid.append(row | {"short of points": f"{runs['is_short'].sum()} of {count}"})
    less = "claim 1 of the paper holds with this count too: DUETS communicates less than both baselines"
    numbers = ", ".join(f"{name} {mine:,.0f} against {theirs:,.0f}" for name, (mine, theirs) in sent.items())

    def draw(figure) -> None:
        axes = figure.subplots()
        kinds = {"DUETS, 1000 candidates": [finite[f, "DUETS"] for f in ours]}
        kinds |= {"DUETS, continuum": [runs["communication"] for runs in ours.values()]}
        kinds |= {rule: [finite[f, rule] for f in ours] for rule in figure1.BASELINES}
        for style, (label, values) in enumerate(kinds.items()):
            x = np.arange(len(ours)) + 0.12 * (style - 1.5)
            errorbars(
                axes, x, *np.transpose([mean_se(each) for each in values]), label=label, style=style, linestyle=""
            )
        ticks(axes, range(len(ours)), [FUNCTIONS[f] for f in ours])
        axes.set(yscale="log", ylabel="numbers sent (an agent and in broadcasts)")
        axes.set_title("Communication with and without repeated draws")
        figure.legend(loc="outside lower center", ncols=2)

    return Report(
        "DUETS on the continuum",
        [],
        [Claim(less, numbers, all(mine < theirs for mine, theirs in sent.values()))],
        {"function": np.repeat(list(ours), count)}
        | {kind: column(ours.values(), kind) for kind in ("regret", "communication", "is_short")},
        draw,
        notes=[
            f"The baselines run on {number(1000)} candidates. Where {PROPOSALS:,} proposals give too few points of the "
            "active set (last column), those found are drawn again."
        ],
        grid=grid,
    )


def domain(function: str, rng: np.random.Generator) -> tuple[Draw, Callable[[np.ndarray], np.ndarray]]:
    """Returns a sampler of uniform points of a function's domain, and its values, (n, d) -> (n,)."""
    d = DIMENSIONS[function]
    if function in ("branin", "hartmann4"):
        table = jax.jit(jax.vmap(branin_value if function == "branin" else hartmann4_value))
        return lambda count: rng.random((count, d)), lambda x: np.asarray(table(jnp.asarray(x)))
    theta = _directions(rng, 1, d)[0]

    def ball(count: int) -> np.ndarray:
        return _directions(rng, count, d) * rng.random((count, 1)) ** (1 / d)

    def value(x: np.ndarray) -> np.ndarray:
        u = x @ theta
        return np.cos(3 * u) if function == "h1" else u**3 - 3 * u**2 + 3 * u + 3

    return ball, value


def duets(function: str, rng: np.random.Generator) -> dict[str, Any]:
    """Runs the paper's Algorithms 1 and 2 with their real active sets.

    `is_short` is True if rejection sampling found too few points, so that some were drawn again.
    """
    (draw, value), lengthscale, beta = domain(function, rng), LENGTHSCALES[function], BETA[function]
    epochs = epoch_lengths(HORIZON, FIRST_EPOCH)
    past: list[Elimination] = []
    regret, communication, is_short = 0.0, 0.0, False
    for epoch, rounds in enumerate(epochs):
        points, short = active(draw, past, AGENTS * rounds, lengthscale, rng)
        is_short |= short
        values = value(points)
        regret += float(np.sum(BEST[function] - values))
        if epoch == len(epochs) - 1:
            break
        rewards = values + NOISE_SCALE * rng.standard_normal(len(points))
        fresh, short = active(draw, past, FRESH, lengthscale, rng)
        is_short |= short
        everywhere = np.concatenate([points, fresh])
        width = np.sqrt(np.max(variance(points, everywhere, lengthscale)))
        chosen = points[rng.random(len(points)) < min(1.0, P0 * width**2)]
        if len(chosen) == 0:
            continue
        root = cholesky(covariance(chosen, chosen, lengthscale) + JITTER * np.eye(len(chosen)), lower=True)
        z = solve_triangular(root, covariance(chosen, points, lengthscale), lower=True)
        bar = np.linalg.solve(NOISE_VARIANCE * np.eye(len(chosen)) + z @ z.T, z @ rewards)
        alpha = solve_triangular(root.T, bar, lower=False)
        peak = np.max(covariance(everywhere, chosen, lengthscale) @ alpha)
        past.append(Elimination(chosen, alpha, float(peak - 2 * beta * width)))
        communication += len(chosen) * (chosen.shape[1] + 2) + 1
    return {"regret": regret, "communication": communication, "is_short": is_short}


def active(
    draw: Draw, past: list[Elimination], count: int, lengthscale: float, rng: np.random.Generator
) -> tuple[np.ndarray, bool]:
    """Draws uniform points of the active set; also returns True if rejection sampling found too few."""

    def kept(x: np.ndarray, by: Elimination) -> np.ndarray:
        return x[covariance(x, by.points, lengthscale) @ by.alpha >= by.threshold]

    survivors, have = [], 0
    for _ in range(0, PROPOSALS, BLOCK):
        survivors.append(functools.reduce(kept, past, draw(BLOCK)))
        have += len(survivors[-1])
        if have >= count:
            return np.concatenate(survivors)[:count], False
    if past:  # the last survivors: points of an epoch that its own elimination kept
        survivors.append(kept(past[-1].points, past[-1]))
    points = np.concatenate(survivors)
    return points[rng.integers(len(points), size=count)], True


def variance(points: np.ndarray, at: np.ndarray, lengthscale: float) -> np.ndarray:
    """Computes the exact posterior variance at `at` after observations at `points`."""
    factor = cholesky(NOISE_VARIANCE * np.eye(len(points)) + covariance(points, points, lengthscale), lower=True), True
    cross = covariance(points, at, lengthscale)
    return 1 - np.sum(cross * cho_solve(factor, cross), axis=0)


def covariance(a: np.ndarray, b: np.ndarray, lengthscale: float) -> np.ndarray:
    return np.exp(-cdist(a, b, "sqeuclidean") / (2 * lengthscale**2))


def _directions(rng: np.random.Generator, count: int, d: int) -> np.ndarray:
    normal = rng.standard_normal((count, d))
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)
