"""How much the regret of distributed kernel bandits depends on beta, which the paper tunes.

The runs of kernel_figure1 (with --store they are not run again): means over all of them, at every beta; and the beta
that theory asks of a fixed point, B + R sqrt((2/variance) log(2/delta)), with norm bound B = 1, noise R, delta = 0.1.
"""

from argparse import Namespace
from typing import Any

from experiments import kernel_figure1 as figure1
from experiments._kernel import BETAS, FUNCTIONS, NOISE_SCALE, NOISE_VARIANCE, PLAYERS, by_beta
from experiments.report import Claim, Line, Report, curve, joined, line, number
from jaxbandits.kernel import confidence_width

DELTA, NORM_BOUND = 0.1, 1.0
FLATTEST_ELSEWHERE = ("h2", "hartmann4")  # where DUETS depends on beta more than the other three


def run(options: Namespace) -> Report:
    all_runs = figure1.sweeps(options)
    functions = figure1.functions_of(all_runs)
    compared = [function for function in FLATTEST_ELSEWHERE if function in functions]
    lines: dict[tuple[str, str], list[Line]] = {
        (function, rule): [
            line(f"{FUNCTIONS[function]}, {rule}, beta {beta:g}", values)
            for beta, values in zip(BETAS, by_beta(results, "regret"), strict=True)
        ]
        for (function, rule), results in all_runs.items()
    }
    spread = {key: max(x.ours for x in cells) / min(x.ours for x in cells) for key, cells in lines.items()}
    width = float(confidence_width(NORM_BOUND, NOISE_SCALE, NOISE_VARIANCE, DELTA))
    rows = [
        (
            f"{name}, {rule}",
            *(f"{x.ours:.0f} +- {x.se:.0f}" for x in lines[function, rule]),
            f"{spread[function, rule]:.1f}",
        )
        for function, name in functions.items()
        for rule in PLAYERS
    ]
    return Report(
        "Regret against beta",
        [],
        [
            Claim(
                f"DUETS depends on beta more than the other three on {' and '.join(functions[f] for f in compared)} "
                "(largest over least mean regret)",
                "; ".join(
                    f"{FUNCTIONS[f]} " + ", ".join(f"{spread[f, rule]:.1f}" for rule in PLAYERS) for f in compared
                ),
                all(spread[f, "DUETS"] == max(spread[f, rule] for rule in PLAYERS) for f in compared),
            )
        ],
        joined({f"{function}, {rule}": results.columns for (function, rule), results in all_runs.items()}, "runs"),
        lambda figure: draw(figure, functions, lines, width),
        notes=[
            f"Theory asks for beta = {width:.3f} where the norm is bounded by {number(NORM_BOUND)}: beyond the best of "
            "most rows. Too small a beta drops the optimum for good, too large a one is uniform sampling."
        ],
        grid=(("", *(f"beta {beta:g}" for beta in BETAS), "max / min"), rows),
    )


def draw(figure: Any, functions: dict[str, str], lines: dict[tuple[str, str], list[Line]], width: float) -> None:
    figure.set_size_inches(max(8, 2.75 * len(functions)), 3.6)
    for axes, (function, name) in zip(figure.subplots(1, len(functions)), functions.items(), strict=True):
        for style, rule in enumerate(PLAYERS):
            curve(axes, BETAS, lines[function, rule], rule, style)
        axes.axvline(width, color="k", lw=1, ls=":", label="beta of theory, B = 1")
        axes.set(xscale="log", yscale="log", title=name, xlabel="beta")
        axes.set_xticks(BETAS, [f"{beta:g}" for beta in BETAS])
        axes.minorticks_off()
        least = min(x.ours for rule in PLAYERS for x in lines[function, rule])
        most = max(x.ours for rule in PLAYERS for x in lines[function, rule])
        ticks = [t for t in (20, 50, 100, 200, 500, 1000, 2000) if least / 1.3 < t < most * 1.3]
        axes.set_yticks(ticks, [str(t) for t in ticks])
    figure.axes[0].set_ylabel("regret of all agents")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=9)
