"""Figure 1 under the settings of the authors' public code, which differ from the settings of the paper.

There the ridge is the standard deviation of the noise, epochs begin with 5 rounds and are rounded up, points are
thinned with probability 4 log(n)/n, candidates are eliminated one by one, h1 and h2 live on the sphere, all runs share
one cloud of 2000 candidates, and communication is what all agents send. Does any reading reproduce the paper's figure?
"""

import math
from typing import Any

import numpy as np

from experiments.figures import COLORS, split, ticks
from experiments.kernel import common as kernels
from experiments.kernel import figure1
from experiments.kernel.common import AGENTS, BETAS, PLAYERS, entry, mean_se
from experiments.report import Report, joined
from experiments.settings import Settings
from jaxbandits.kernel import log_rate

NOISE_VARIANCE = 0.2
EPOCHS = (5, 16, 29)  # 5, then ceil(sqrt(50 T_j)), the last cut
SIZE = 2000
RATE = 4.0
UNIT = math.sqrt(NOISE_VARIANCE)  # its beta over ours: its confidence bounds are beta sigma / UNIT wide


def run(options: Settings) -> Report:
    functions = kernels.functions(options)
    duets = {"epochs": EPOCHS, "inducing_probability": log_rate(RATE), "elimination": "point"}

    def extra(function: str, rule: str) -> dict[str, Any]:
        sphere = {"domain": "sphere"} if function in ("h1", "h2") else {}
        return {"instance": sphere, "fixed": duets if rule == "DUETS" else {}}

    settings = {"betas": [beta / UNIT for beta in BETAS], "size": SIZE, "noise_variance": NOISE_VARIANCE}
    replicates = figure1.TUNING + (options.seeds or (4 if options.quick else 20))
    shared = {"options": options, "replicates": replicates, "same_instance": True, **settings}
    all_runs = kernels.compared("kernel public code", functions, extra=extra, **shared)
    paper = {key: figure1.at_chosen(results) for key, results in figure1.sweeps(options).items()}
    public = {key: figure1.at_chosen(results) for key, results in all_runs.items()}

    def draw(figure) -> None:
        panels = split(figure, (11, 3.8), 1, len(functions), squeeze=False)[0]
        for axes, (function, name) in zip(panels, functions.items(), strict=True):
            for n, (color, rule) in enumerate(zip(COLORS, PLAYERS, strict=False)):
                for x, cells, alpha in ((n, paper, 1.0), (n + 0.38, public, 0.45)):
                    mean, se = mean_se(cells[function, rule]["regret"])
                    axes.bar(x, mean, yerr=2 * se, width=0.36, color=color, alpha=alpha)
            ticks(axes, np.arange(len(PLAYERS)) + 0.19, ["DUETS", "Dis", "Approx", "N"])
            axes.set_title(name)
        panels[0].set_ylabel("regret of all agents")
        figure.suptitle("Settings of the paper (dark) and of the authors' public code (light)", fontsize=11)

    return Report(
        "Figure 1 under the settings of the public code",
        [],
        [],
        joined(all_runs, "runs"),
        draw,
        notes=[
            f"Least mean regret under the public code's settings: {figure1.lowest_regret(public)}. "
            "beta is in the public code's units. ApproxDisKernelUCB is the published one in both columns: the public "
            "code's version adds a number to every entry of a matrix and never updates its sampling probabilities."
        ],
        grid=[
            {
                "": f"{functions[f]}, {rule}",
                "regret (paper)": entry(paper[f, rule]["regret"]),
                "sent (paper)": entry(paper[f, rule]["communication"]),
                "regret (code)": entry(cell["regret"]),
                "sent by all (code)": entry(AGENTS * cell["uplink"]),
                "beta (code)": f"{UNIT * cell['beta'][0]:g}",
            }
            for (f, rule), cell in public.items()
        ],
    )
