"""Information gain: the largest, the gain of uniform draws, and the gain of algorithms.

1000 candidates of each of the four domains, kernels SE, Matern 5/2 and 3/2, noise variance .04, up to 2000
observations. Greedy selection reaches 1 - 1/e of the largest gain. Uniform draws: mean of 5. Algorithms: 10 agents, 50
rounds, beta 1, 5 runs, SE kernel. Slopes at the end are compared with the orders in theory.
"""

import itertools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.claims import between
from experiments.figures import COLORS, STYLES, legend_below, split
from experiments.kernel import common as kernels
from experiments.kernel.common import DIMENSIONS, NOISE_VARIANCE, PLAYERS
from experiments.report import Claim, Report
from experiments.settings import Settings
from jaxbandits import kernel
from jaxbandits.base import Array, Decision, Outcome, PyTree
from jaxbandits.kernel import Instance, paper_kernel
from jaxbandits.kernel._problem.instances import LENGTHSCALES
from jaxbandits.numerics import gp

SIZE = 1000
DRAWS = 5
KERNELS = {"SE": None, "Matern 5/2": 2.5, "Matern 3/2": 1.5}
ROUNDING = 1e-9


def run(options: Settings) -> Report:
    def extra(function: str, rule: str) -> dict[str, Any]:
        return {"metrics": partial(gain, function)}

    n = 300 if options.quick else 2000
    functions = kernels.functions(options)
    names = ("SE", "Matern 3/2") if options.quick else tuple(KERNELS)
    shared = {"options": options, "replicates": options.seeds or (2 if options.quick else 5)}
    gathered = kernels.compared(
        "kernel information gain", functions, extra=extra, betas=(1.0,), total=queries, **shared
    )
    reached = {key: np.mean(results.columns["gain"]) for key, results in gathered.items()}
    queried = kernels.AGENTS * kernels.HORIZON
    at = min(queried, n) - 1
    order = jax.random.randint(jax.random.key(1), (DRAWS, n), 0, SIZE)
    curves, above, steps, grid = {}, [], [], []
    for function, name in itertools.product(functions, names):
        candidates = getattr(kernel, function)(jax.random.key(0), size=SIZE).candidates
        matern = gp.Matern(LENGTHSCALES[function], nu=KERNELS[name])
        rule = matern if KERNELS[name] else paper_kernel(function)
        selection = partial(kernel.greedy_information_gain, kernel=rule, noise_variance=NOISE_VARIANCE, n=n)
        curves[function, name, "greedy"] = greedy = np.asarray(jax.jit(selection)(candidates))
        curves[function, name, "uniform"] = uniform = np.mean(jax.jit(partial(_along, rule))(candidates, order), 0)
        above.append(np.min(greedy - uniform))
        steps.append(np.diff(greedy, prepend=0))
        row = {"": f"{functions[function]}, {name}", "greedy": f"{greedy[at]:.1f}", "uniform": f"{uniform[at]:.1f}"}
        row |= {rule: f"{reached[function, rule]:.1f}" if name == "SE" else "" for rule in PLAYERS}
        grid.append(
            row | {"slope": f"{np.log2(greedy[-1] / greedy[n // 2 - 1]):.2f}", "theory": order_of(function, name)}
        )
    least = [min(above)]

    def draw(figure) -> None:
        panels = split(figure, (12, 3.8), 1, len(functions), squeeze=False)[0]
        for axes, (function, text) in zip(panels, functions.items(), strict=True):
            for color, name in zip(COLORS, names, strict=False):
                for selection, look in (("greedy", "-"), ("uniform", ":")):
                    values = curves[function, name, selection]
                    axes.plot(np.arange(1, len(values) + 1), values, color=color, ls=look, label=f"{name}, {selection}")
            for style, rule in zip(STYLES, PLAYERS, strict=False):
                mark = {"color": "k", "mfc": "w", "label": f"{rule} (SE)"}
                axes.plot(queried, reached[function, rule], style["marker"], **mark)
            axes.set(xscale="log", yscale="log", title=text, xlabel="observations", ylim=(1, None))
        panels[0].set_ylabel("information gain in nats")
        legend_below(figure, ncols=5, fontsize=8)

    return Report(
        f"Information gain in nats after {min(queried, n)} observations",
        [],
        [
            between(
                "greedy selection always gains at least as much as uniform draws (smallest excess)", least, -ROUNDING
            ),
            Claim(
                "along greedy selection the gain grows, by ever smaller steps",
                f"last step {min(s[-1] for s in steps):.2g} to {max(s[-1] for s in steps):.2g} nats",
                all(np.all(s > 0) and np.all(np.diff(s) <= ROUNDING) for s in steps),
            ),
        ],
        {key: np.repeat([names[i] for names in curves], n) for i, key in enumerate(("function", "kernel", "selection"))}
        | {"observations": np.tile(np.arange(1, n + 1), len(curves)), "gain": np.concatenate(list(curves.values()))},
        draw,
        notes=["The last columns: d log(gain) / d log(n) of the greedy curve at its end, and the order in theory."],
        grid=grid,
    )


def queries(state: PyTree, decision: Decision, rewards: Array) -> dict[str, Array]:
    """Counts the queries of each candidate."""
    del state, rewards
    return {"queries": jnp.zeros(SIZE, jnp.int32).at[decision.action].add(1, mode="drop")}


def gain(function: str, instance: Instance, outcome: Outcome) -> dict[str, Array]:
    candidates, counts = instance.candidates, outcome.curves["queries"][-1]
    sums = jnp.zeros_like(instance.values)
    settings = {"noise_variance": NOISE_VARIANCE, "counts": counts}
    return {"gain": gp.posterior(paper_kernel(function), candidates, sums, candidates[:1], **settings).log_det / 2}


def _along(rule: gp.Kernel, candidates: Array, orders: Array) -> Array:
    """Computes the gain after every observation, (draws, n), of candidates in the given orders (draws, n)."""
    gram = gp.cross(rule, candidates, candidates)

    def one(order: Array) -> Array:
        def step(covariance: Array, a: Array) -> tuple[Array, Array]:
            after, row = gp.condition(gp.prior(rule, candidates), covariance[a], a, jnp.zeros(()), NOISE_VARIANCE)
            return covariance - row[:, None] * row, after.log_det / 2

        return jnp.cumsum(jax.lax.scan(step, gram, order)[1])

    return jax.lax.map(one, orders)


def order_of(function: str, name: str) -> str:
    """Returns the order of the largest gain in the number of observations n."""
    d, nu = DIMENSIONS[function], KERNELS[name]
    return f"log^{d + 1} n" if nu is None else f"n^{d / (2 * nu + d):.2f}"
