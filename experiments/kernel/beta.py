"""Dependence of the regret of distributed kernel bandits on beta, which the paper tunes.

Means over all runs of kernel_figure1 (with --store they are not run again), at every beta. Theory's beta at a fixed
point is B + R sqrt((2/variance) log(2/delta)), with norm bound B = 1, noise R, delta = 0.1.
"""

import numpy as np

from experiments.figures import errorbars, legend_below, split, ticks
from experiments.kernel import figure1
from experiments.kernel.common import BETAS, FUNCTIONS, NOISE_SCALE, NOISE_VARIANCE, PLAYERS, by_beta, functions_of
from experiments.report import Claim, Report, joined, listed, mean_se, number
from experiments.settings import Settings
from jaxbandits.kernel import confidence_width

DELTA, NORM_BOUND = 0.1, 1.0
TICKS = (20, 50, 100, 200, 500, 1000, 2000)
FLATTEST_ELSEWHERE = (
    "h2",
    "hartmann4",
)  # functions on which DUETS depends on beta more than the other three algorithms


def run(options: Settings) -> Report:
    all_runs = figure1.sweeps(options)
    functions = functions_of(all_runs)
    compared = [function for function in FLATTEST_ELSEWHERE if function in functions]
    regret = {key: mean_se(by_beta(results, "regret"), axis=1) for key, results in all_runs.items()}
    spread = {key: mean.max() / mean.min() for key, (mean, _) in regret.items()}
    width = float(confidence_width(NORM_BOUND, NOISE_SCALE, NOISE_VARIANCE, DELTA))

    def draw(figure) -> None:
        panels = split(figure, (max(8, 2.75 * len(functions)), 3.6), 1, len(functions))
        for axes, (function, name) in zip(panels, functions.items(), strict=True):
            for style, rule in enumerate(PLAYERS):
                mean, se = regret[function, rule]
                errorbars(axes, BETAS, mean, se, label=rule, style=style)
            axes.axvline(width, color="k", lw=1, ls=":", label="beta of theory, B = 1")
            axes.set(xscale="log", yscale="log", title=name, xlabel="beta")
            ticks(axes, BETAS)
            shown = np.array([regret[function, rule][0] for rule in PLAYERS])
            ticks(axes, [t for t in TICKS if shown.min() / 1.3 < t < shown.max() * 1.3], axis="y")
        figure.axes[0].set_ylabel("regret of all agents")
        legend_below(figure, ncols=5)

    return Report(
        "Regret against beta",
        [],
        [
            Claim(
                f"DUETS depends on beta more than the other three on {' and '.join(functions[f] for f in compared)} "
                "(largest over least mean regret)",
                "; ".join(f"{FUNCTIONS[f]} {listed((spread[f, rule] for rule in PLAYERS), '.1f')}" for f in compared),
                all(spread[f, "DUETS"] == max(spread[f, rule] for rule in PLAYERS) for f in compared),
            )
        ],
        joined(all_runs, "runs"),
        draw,
        notes=[
            f"Theory asks for beta = {width:.3f} where the norm is bounded by {number(NORM_BOUND)}: beyond the best of "
            "most rows. Too small a beta drops the optimum for good, too large a one is uniform sampling."
        ],
        grid=[
            {"": f"{name}, {rule}"}
            | {f"beta {b:g}": f"{x:.0f} +- {se:.0f}" for b, x, se in zip(BETAS, *regret[f, rule], strict=True)}
            | {"max / min": f"{spread[f, rule]:.1f}"}
            for f, name in functions.items()
            for rule in PLAYERS
        ],
    )
