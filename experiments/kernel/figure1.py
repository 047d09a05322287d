"""Figure 1 of Pavlovic, Salgia, Zhao (2024): regret and communication of distributed kernel bandits.

10 agents, 50 rounds, noise of standard deviation 0.2, four functions, 1000 candidates drawn afresh in every run; beta
is chosen per algorithm and function on runs of their own, out of .2, .5, 1, 2, 5. The paper averages 5 runs and prints
no number. All algorithms of a run see the same candidates, function and noise.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import jaxbandits
from experiments.figures import STYLES, band, legend_below, split
from experiments.kernel import common as kernels
from experiments.kernel.common import BETAS, DIMENSIONS, FUNCTIONS, PLAYERS, AllRuns, by_beta, entry
from experiments.report import Claim, Report, joined, listed, mean_se, number
from experiments.settings import Settings

QUICK_FUNCTIONS = ("h2", "branin")
TUNING, EVALUATION, QUICK_EVALUATION = 5, 20, 6
GRID = (2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50)  # 2: DUETS' first synchronisation
DISTINCT = 1000 * (1 - 0.999**20)  # candidates expected in 20 uniform draws of 1000
BASELINES = ("DisKernelUCB", "ApproxDisKernelUCB")  # that communicate


class Cell(NamedTuple):
    """One algorithm on one function, at the beta that its tuning runs chose."""

    beta: float
    regret: np.ndarray  # (runs,)
    communication: np.ndarray  # (runs,)
    curve: np.ndarray  # (runs, G, 3)
    syncs: np.ndarray  # (runs,)


Cells = dict[tuple[str, str], Cell]


def run(options: Settings) -> Report:
    all_runs = sweeps(options)
    cells = {key: cell(results) for key, results in all_runs.items()}
    functions = functions_of(cells)
    communication, regret = claims_of_the_paper(cells)
    repeated = {f: np.mean(at_chosen(all_runs[f, "DUETS"], "communication_draws")) for f in functions}
    kinds = {
        "regret": lambda cell: entry(cell.regret),
        "communication": lambda cell: entry(cell.communication),
        "beta": lambda cell: f"{cell.beta:g}",
        "synchronisations": lambda cell: f"{np.mean(cell.syncs):.1f}",
    }
    return Report(
        "Figure 1 of Pavlovic, Salgia, Zhao (2024): regret and communication",
        [],
        [communication, regret, first_synchronisation(all_runs), kernels.every_run_ends(all_runs)],
        joined(all_runs, "runs"),
        partial(draw, cells=cells, holds=(communication.holds, regret.holds)),
        notes=[
            f"beta chosen on {TUNING} runs, means over {len(cells['branin', 'DUETS'].regret)} others, +- one standard "
            "error. The paper's first claim is on communication, its second on regret; it gives no number for either.",
            "Communication = numbers an agent sends, on average, and numbers broadcast. Where DUETS sends a repeated "
            "candidate again, as it must where candidates are a continuum: "
            + "; ".join(f"{FUNCTIONS[f]} {number(round(float(repeated[f])))}" for f in functions)
            + ".",
            *(
                f"{name}, DUETS' regret minus that of "
                + ", ".join("{} {:+.1f} +- {:.1f}".format(rule, *ahead(cells, f, rule)) for rule in PLAYERS[1:])
                + " (paired)."
                for f, name in functions.items()
            ),
        ],
        grid=[
            {"": f"{name}, {kind}"} | {rule: shown(cells[f, rule]) for rule in PLAYERS}
            for f, name in functions.items()
            for kind, shown in kinds.items()
        ],
    )


def sweeps(options: Settings) -> AllRuns:
    """All runs of the figure, tuning runs first: 4 functions x 4 algorithms x 5 beta."""
    evaluation = options.seeds or (QUICK_EVALUATION if options.quick else EVALUATION)
    functions = kernels.functions(options, QUICK_FUNCTIONS)
    return kernels.compared("kernel figure 1", functions, options=options, replicates=TUNING + evaluation, grid=GRID)


def functions_of(all_runs: Mapping[tuple[str, str], Any]) -> dict[str, str]:
    """Those of which there are runs, and their names."""
    return {function: FUNCTIONS[function] for function, _ in all_runs}


def chosen_beta(results: jaxbandits.Results, betas: Any = BETAS) -> int:
    """Index of the beta of least mean regret on the tuning runs."""
    return int(np.argmin(np.mean(by_beta(results, "regret", betas)[:, :TUNING], axis=1)))


def at_chosen(results: jaxbandits.Results, column: str, betas: Any = BETAS) -> np.ndarray:
    """A column of the evaluation runs at the chosen beta."""
    return by_beta(results, column, betas)[chosen_beta(results, betas), TUNING:]


def cell(results: jaxbandits.Results) -> Cell:
    columns = (at_chosen(results, name) for name in ("regret", "communication", "curve", "syncs"))
    return Cell(BETAS[chosen_beta(results)], *columns)


def ahead(cells: Cells, function: str, rule: str) -> tuple[np.ndarray, np.ndarray]:
    """DUETS' regret minus another's, and its standard error, run by run."""
    return mean_se(cells[function, "DUETS"].regret - cells[function, rule].regret)


def claims_of_the_paper(cells: Cells) -> tuple[Claim, Claim]:
    """Both, as this experiment's own runs have them."""
    functions = functions_of(cells)
    sent = {key: np.mean(cell.communication) for key, cell in cells.items()}
    ratios = {name: min(sent[f, rule] for rule in BASELINES) / sent[f, "DUETS"] for f, name in functions.items()}
    lowest = {name: min(PLAYERS, key=lambda rule, f=f: np.mean(cells[f, rule].regret)) for f, name in functions.items()}
    differences = [ahead(cells, f, rule) for f in functions for rule in PLAYERS[1:]]
    return (
        Claim(
            "claim 1 of the paper: DUETS communicates less than both distributed baselines, on all functions",
            f"the better of the two over DUETS: {listed(ratios, '.1f')}",
            min(ratios.values()) > 1,
        ),
        Claim(
            "claim 2 of the paper: DUETS' regret is significantly lower (by 2 s.e. of the paired difference) than all "
            "others', on all functions",
            "least mean regret: " + ", ".join(f"{name} {rule}" for name, rule in lowest.items()),
            all(mean + 2 * se < 0 for mean, se in differences),
        ),
    )


def first_synchronisation(all_runs: AllRuns) -> Claim:
    """All of the 20 draws become inducing points then, at every beta."""
    numbers, expected = {}, {}
    for function, name in functions_of(all_runs).items():
        curve = by_beta(all_runs[function, "DUETS"], "curve")[0, :, 0]
        numbers[name] = mean_se(curve[:, kernels.UPLINK] + curve[:, kernels.DOWNLINK])
        expected[name] = DISTINCT * (DIMENSIONS[function] + 2) + 1
    return Claim(
        "DUETS' first synchronisation costs 19.81 (d + 2) + 1 on average, within 4 standard errors",
        ", ".join(f"{name} {mean:.1f} ({expected[name]:.1f})" for name, (mean, _) in numbers.items()),
        all(abs(mean - expected[name]) <= 4 * se for name, (mean, se) in numbers.items()),
    )


def draw(figure: Any, *, cells: Cells, holds: tuple[bool, bool]) -> None:
    functions = functions_of(cells)
    panels = split(figure, (max(10.5, 3 * len(functions)), 5.8), 2, len(functions), sharex=True)
    rounds = np.array((0, *GRID))
    for (top, bottom), (function, name) in zip(panels.T, functions.items(), strict=True):
        for style, rule in enumerate(PLAYERS):
            curve = cells[function, rule].curve
            for axes, values in ((top, curve[..., kernels.REGRET]), (bottom, curve[..., 1:].sum(axis=-1))):
                values = np.pad(values, ((0, 0), (1, 0)))
                mean, sd = np.mean(values, axis=0), np.std(values, axis=0, ddof=1)
                axes.plot(rounds, mean, label=rule, markevery=2, mfc="w", ms=5, **STYLES[style])
                band(axes, rounds, mean - sd, mean + sd, style)
        top.set(title=name, ylim=(0, None))
        bottom.set(xlabel="round", ylim=(0, None))
    panels[0, 0].set_ylabel("regret of all agents")
    panels[1, 0].set_ylabel("numbers sent (an agent\nand in broadcasts)")
    words = ["reproduces" if claim_holds else "does not reproduce" for claim_holds in holds]
    figure.suptitle(
        f"Less communication than both distributed baselines: {words[0]}. Lower regret than all: {words[1]}.\n"
        "Means and standard deviations over runs, at the beta that separate runs chose.",
        fontsize=11,
    )
    legend_below(figure, ncols=4, fontsize=10)
