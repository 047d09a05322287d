"""Figure 1 once more under the settings of the authors' public code, which differ from those of the paper.

There the ridge is the standard deviation of the noise, epochs begin with 5 rounds and are rounded up, points are
thinned with probability 4 log(n)/n, candidates are eliminated one by one, h1 and h2 live on the sphere, all runs share
one cloud of 2000 candidates, and communication is what all agents send. Does any reading give the paper's picture?
"""

import math
from argparse import Namespace
from typing import Any

import numpy as np

from experiments import _kernel as kernels
from experiments import kernel_figure1 as figure1
from experiments._kernel import AGENTS, BETAS, PLAYERS, by_beta, mean_se
from experiments.report import STYLES, Report, joined
from jaxbandits.kernel import log_rate

NOISE_VARIANCE = 0.2
EPOCHS = (5, 16, 29)  # 5, then ceil(sqrt(50 T_j)), the last cut
SIZE = 2000
RATE = 4.0
# Its confidence bounds are sigma / sqrt(noise_variance) wide, so each beta of the grid means so much in our units.
SCALED = tuple(beta / math.sqrt(NOISE_VARIANCE) for beta in BETAS)
TUNING, EVALUATION, QUICK_EVALUATION = 5, 20, 4


def run(options: Namespace) -> Report:
    evaluation = options.seeds or (QUICK_EVALUATION if options.quick else EVALUATION)
    functions = kernels.functions(options)
    duets = {"epochs": EPOCHS, "inducing_probability": log_rate(RATE), "elimination": "point"}
    all_runs = {
        (function, rule): kernels.runs(
            "kernel public code",
            function,
            rule,
            options=options,
            replicates=TUNING + evaluation,
            betas=SCALED,
            size=SIZE,
            noise_variance=NOISE_VARIANCE,
            instance={"domain": "sphere"} if function in ("h1", "h2") else None,
            same_instance=True,
            fixed=duets if rule == "DUETS" else None,
        )
        for function in functions
        for rule in PLAYERS
    }
    paper = {key: figure1.cell(results) for key, results in figure1.sweeps(options).items()}
    rows, public = [], {}
    for function, name in functions.items():
        for rule in PLAYERS:
            regrets = by_beta(all_runs[function, rule], "regret", SCALED)
            row = int(np.argmin(np.mean(regrets[:, :TUNING], axis=1)))
            public[function, rule] = regrets[row, TUNING:]
            sent = AGENTS * by_beta(all_runs[function, rule], "uplink", SCALED)[row, TUNING:]
            cell = paper[function, rule]
            rows.append(
                (
                    f"{name}, {rule}",
                    figure1.entry(cell.regret),
                    figure1.entry(cell.communication),
                    figure1.entry(public[function, rule]),
                    figure1.entry(sent),
                    f"{BETAS[row]:g}",
                )
            )
    lowest = {name: min(PLAYERS, key=lambda rule, f=f: public[f, rule].mean()) for f, name in functions.items()}
    return Report(
        "Figure 1 under the settings of the public code",
        [],
        [],
        joined({f"{function}, {rule}": results.columns for (function, rule), results in all_runs.items()}, "runs"),
        lambda figure: draw(figure, functions, paper, public),
        notes=[
            "Least mean regret under the public code's settings: "
            + ", ".join(f"{name} {rule}" for name, rule in lowest.items())
            + ". beta in the public code's units. ApproxDisKernelUCB is the published one in both columns: the public "
            "code's adds a number to every entry of a matrix, and never renews its sampling probabilities.",
        ],
        grid=(
            ("", "regret (paper)", "sent (paper)", "regret (code)", "sent by all (code)", "beta (code)"),
            rows,
        ),
    )


def draw(
    figure: Any,
    functions: dict[str, str],
    paper: dict[tuple[str, str], figure1.Cell],
    public: dict[tuple[str, str], np.ndarray],
) -> None:
    figure.set_size_inches(11, 3.8)
    for axes, (function, name) in zip(
        figure.subplots(1, len(functions), squeeze=False)[0], functions.items(), strict=True
    ):
        for index, (style, rule) in enumerate(zip(STYLES, PLAYERS, strict=False)):
            for x, values in ((index, paper[function, rule].regret), (index + 0.38, public[function, rule])):
                mean, se = mean_se(values)
                faded = 0.45 if x > index else 1.0
                axes.bar(x, mean, yerr=2 * se, width=0.36, color=style["color"], alpha=faded)
        axes.set_xticks(np.arange(len(PLAYERS)) + 0.19, ["DUETS", "Dis", "Approx", "N"])
        axes.set_title(name)
    figure.axes[0].set_ylabel("regret of all agents")
    figure.suptitle("Settings of the paper (dark) and of the authors' public code (light)", fontsize=11)
