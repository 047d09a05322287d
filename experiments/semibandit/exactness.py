"""The most confusing tree: by swaps, by all 20,736 trees, and by the game behind the published stops.

The smallest f_x over all trees is attained by a single swap, exactly. The public code instead lets Follow the Perturbed
Leader play against a linear oracle for 5000 calls. The smallest f_x of these calls is never below the minimum.
"""

from functools import partial
from typing import Any

import jax
import numpy as np

from experiments.figures import COLORS
from experiments.report import Claim, Report
from experiments.semibandit.trees import all_trees
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import cpe
from jaxbandits.base import Outcome

PUBLISHED = 1176  # mean plays of P-FWS on E20, as published
CALLS = 5000


def run(options: Settings) -> Report:
    points = 50 if options.quick else 1000
    evaluations = 3 if options.quick else 20
    calls = CALLS // 10 if options.quick else CALLS
    instance = cpe.spanning_trees_e20()
    problem, truth = instance.problem, np.asarray(instance.theta)
    trees = all_trees(problem)
    rng = np.random.default_rng(0)
    K = len(truth)
    means = truth + rng.normal(size=(points, K)) * rng.uniform(0, 1, (points, 1))
    omega = rng.dirichlet(np.ones(len(trees[:: len(trees) // 200])), points) @ trees[:: len(trees) // 200] + 1e-3
    swaps = np.asarray(jax.jit(jax.vmap(partial(value, problem)))(means, omega))
    listed = np.array([least(trees, m, w) for m, w in zip(means, omega, strict=True)])
    apart = float(np.max(np.abs(swaps / listed - 1)))
    shares = shares_of_plays(instance, options)
    ratios = {
        "at the mean shares of P-FWS": games(trees, truth, shares, evaluations, calls) / least(trees, truth, shares),
        "at random points": np.concatenate(
            [games(trees, means[n], omega[n], 1, calls // 5) / listed[n] for n in range(evaluations)]
        ),
    }
    there = next(iter(ratios.values()))
    lowest = min(values.min() for values in ratios.values())
    return Report(
        "The most confusing tree of E20",
        [],
        [
            Claim(
                f"swaps agree with all {len(trees):,} trees within 1e-10, at {points} points",
                f"{apart:.1e}",
                len(trees) == 20_736 and apart < 1e-10,
            ),
            Claim("the game is never below the minimum", f"{lowest:.6f} of it", lowest > 1 - 1e-9),
            Claim(
                "at the shares that P-FWS plays, the median of the game is more than 1.5 times the minimum",
                f"{np.median(there):.2f}, from {there.min():.2f} to {there.max():.2f}",
                np.median(there) > 1.5,
            ),
        ],
        {"swaps": swaps, "listed": listed},
        partial(draw, ratios=ratios),
        notes=(
            f"Games of {calls} calls at the mean shares of P-FWS after {PUBLISHED} plays, of {calls // 5} at random "
            "points. The published code's game is rebuilt from its description, with perturbations of the size of the "
            "losses.",
        ),
        grid=[
            {
                "the game's least f over the minimum": name,
                "least": f"{values.min():.3f}",
                "median": f"{np.median(values):.3f}",
                "largest": f"{values.max():.3f}",
                "evaluations": str(len(values)),
            }
            for name, values in ratios.items()
        ],
    )


def value(problem: cpe.Graphic, means: jax.Array, omega: jax.Array) -> jax.Array:
    return cpe.most_confusing(problem, means, omega).value


def rates(trees: np.ndarray, means: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """Computes f_x of every tree, inf for the best one."""
    best = trees[np.argmax(trees @ means)]
    differs = best.astype(float) - trees
    # The product with the difference: a difference of two sums would lose the digits of a small gap.
    gaps, variance = differs @ means, np.abs(differs) @ (1 / omega)
    return np.where(variance > 0, gaps**2 / np.where(variance > 0, 2 * variance, 1), np.inf)


def least(trees: np.ndarray, means: np.ndarray, omega: np.ndarray) -> float:
    return float(rates(trees, means, omega).min())


def games(trees: np.ndarray, means: np.ndarray, omega: np.ndarray, count: int, calls: int) -> np.ndarray:
    """Plays games by Follow the Perturbed Leader; returns the smallest f_x met in the calls of each game.

    f_x = max over alpha of alpha gap - alpha^2 / 2 (sum of 1 / omega where x differs): linear in x for each alpha. The
    leader takes the tree, other than the best one, that minimises the sum of these forms so far plus exponential
    numbers that grow like the root of the calls; alpha is the best response to it.
    """
    f, rng = rates(trees, means, omega), np.random.default_rng(1)
    best = np.argmax(trees @ means)
    tables = trees.T.astype(float)
    gap = means @ tables[:, best] - means @ tables
    variance = ((trees != trees[best]) @ (1 / omega)).clip(1e-12)
    total, size, met = np.zeros((count, len(means))), np.zeros((count, 1)), np.full(count, np.inf)
    for n in range(calls):
        noise = rng.exponential(size=total.shape) * size * np.sqrt(n)
        losses = (total - noise) @ tables
        losses[:, best] = np.inf
        x = np.argmin(losses, axis=1)
        met = np.minimum(met, f[x])
        alpha = (gap[x] / variance[x])[:, None]
        form = -alpha * means - alpha**2 / 2 * (1 - 2 * trees[best]) / omega
        total, size = total + form, np.maximum(size, np.max(np.abs(form), axis=1, keepdims=True))
    return met


def shares_of_plays(instance: cpe.Instance, options: Settings) -> np.ndarray:
    """Computes mean shares of plays that hold each arm, after as many plays of P-FWS as were published."""

    def build(task: Any, key: jax.Array) -> tuple:
        algorithm = cpe.pfws(instance.problem, delta=1e-300)
        return algorithm, cpe.environment(instance, algorithm)

    settings = {"seeds": 40, "max_rounds": PUBLISHED, "horizon": PUBLISHED}
    sweep = simulate("pfws exactness, E20", build, options=options, metrics=counts, **settings)
    return sweep.columns["counts"].mean(axis=0) / PUBLISHED


def counts(task: Any, outcome: Outcome) -> dict[str, Any]:
    return {"counts": outcome.state.counts}


def draw(figure: Any, *, ratios: dict[str, np.ndarray]) -> None:
    axes = figure.subplots()
    bins = np.geomspace(1, max(10.0, *(r.max() * 1.01 for r in ratios.values())), 25)
    for style, (name, values) in enumerate(ratios.items()):
        axes.hist(values, bins, label=name, color=COLORS[style], alpha=0.6)
    axes.set(xscale="log", xlabel="smallest f found by the game / its minimum over all trees", ylabel="evaluations")
    axes.legend()
