"""Figure 1 of Pavlovic, Salgia, Zhao (2024): regret and communication of distributed kernel bandits.

10 agents, 50 rounds, noise of standard deviation 0.2, four functions, 1000 candidates drawn afresh in every run; beta
is chosen from .2, .5, 1, 2, 5 per algorithm and function, on separate runs. The paper averages 5 runs and prints no
number. All algorithms of a run get the same candidates, function and noise.
"""

import numpy as np

import jaxbandits
from experiments.figures import STYLES, band, legend_below, split
from experiments.kernel import common as kernels
from experiments.kernel.common import DIMENSIONS, PLAYERS, AllRuns, by_beta, entry, functions_of
from experiments.report import Claim, Report, joined, listed, mean_se, number
from experiments.settings import Settings

QUICK_FUNCTIONS = ("h2", "branin")
TUNING, EVALUATION, QUICK_EVALUATION = 5, 20, 6
GRID = (2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50)  # rounds; DUETS first synchronises after round 2
DISTINCT = 1000 * (1 - 0.999**20)  # candidates expected in 20 uniform draws of 1000
BASELINES = ("DisKernelUCB", "ApproxDisKernelUCB")  # rules that communicate

Cells = dict[tuple[str, str], dict[str, np.ndarray]]  # (function, rule) -> `at_chosen`


def run(options: Settings) -> Report:
    all_runs = sweeps(options)
    cells = {key: at_chosen(results) for key, results in all_runs.items()}
    functions = functions_of(cells)
    communication, regret = claims_of_the_paper(cells)
    again = {name: cells[f, "DUETS"]["communication_draws"].mean() for f, name in functions.items()}
    runs = len(cells["branin", "DUETS"]["regret"])
    repeated = "; ".join(f"{name} {number(round(sent))}" for name, sent in again.items())
    kinds = {
        "regret": lambda cell: entry(cell["regret"]),
        "communication": lambda cell: entry(cell["communication"]),
        "beta": lambda cell: f"{cell['beta'][0]:g}",
        "synchronisations": lambda cell: f"{cell['syncs'].mean():.1f}",
    }

    def draw(figure) -> None:
        panels = split(figure, (max(10.5, 3 * len(functions)), 5.8), 2, len(functions), sharex=True)
        rounds = np.array((0, *GRID))
        for (top, bottom), (function, name) in zip(panels.T, functions.items(), strict=True):
            for style, rule in enumerate(PLAYERS):
                curve = cells[function, rule]["curve"]
                for axes, values in zip((top, bottom), kernels.growth(curve), strict=True):
                    values = np.pad(values, ((0, 0), (1, 0)))
                    mean, sd = np.mean(values, axis=0), np.std(values, axis=0, ddof=1)
                    axes.plot(rounds, mean, label=rule, markevery=2, mfc="w", ms=5, **STYLES[style])
                    band(axes, rounds, mean - sd, mean + sd, style)
            top.set(title=name, ylim=(0, None))
            bottom.set(xlabel="round", ylim=(0, None))
        panels[0, 0].set_ylabel("regret of all agents")
        panels[1, 0].set_ylabel("numbers sent (an agent\nand in broadcasts)")
        words = ["reproduces" if claim.holds else "does not reproduce" for claim in (communication, regret)]
        figure.suptitle(
            f"Less communication than both distributed baselines: {words[0]}. Lower regret than all: {words[1]}.\n"
            "Means and standard deviations over runs, at the beta that separate runs chose.",
            fontsize=11,
        )
        legend_below(figure, ncols=4, fontsize=10)

    return Report(
        "Figure 1 of Pavlovic, Salgia, Zhao (2024): regret and communication",
        [],
        [communication, regret, first_synchronisation(all_runs), kernels.every_run_ends(all_runs)],
        joined(all_runs, "runs"),
        draw,
        notes=[
            f"beta chosen on {TUNING} runs, means over {runs} others, +- one standard error. "
            "The paper's first claim is on communication, its second on regret. It gives no number for either.",
            "Communication = numbers an agent sends, on average, and numbers broadcast. If DUETS sends a repeated "
            f"candidate again, as it must on a continuum of candidates: {repeated}.",
            *(
                f"{name}, DUETS' regret minus the regret of "
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
    """Makes all runs of the figure, tuning runs first: 4 functions x 4 algorithms x 5 beta."""
    evaluation = options.seeds or (QUICK_EVALUATION if options.quick else EVALUATION)
    functions = kernels.functions(options, QUICK_FUNCTIONS)
    return kernels.compared("kernel figure 1", functions, options=options, replicates=TUNING + evaluation, grid=GRID)


def at_chosen(results: jaxbandits.Results) -> dict[str, np.ndarray]:
    """Returns columns of the evaluation runs, at the beta of smallest mean regret on the tuning runs."""
    chosen = np.argmin(by_beta(results, "regret")[:, :TUNING].mean(axis=1))
    return {name: by_beta(results, name)[chosen, TUNING:] for name in results.columns}


def ahead(cells: Cells, function: str, rule: str) -> tuple[np.ndarray, np.ndarray]:
    """Computes DUETS' regret minus another algorithm's, with its standard error, run by run."""
    return mean_se(cells[function, "DUETS"]["regret"] - cells[function, rule]["regret"])


def claims_of_the_paper(cells: Cells) -> tuple[Claim, Claim]:
    """Claims both statements of the paper, from the runs of this experiment."""
    functions = functions_of(cells)
    sent = {key: cell["communication"].mean() for key, cell in cells.items()}
    ratios = {name: min(sent[f, rule] for rule in BASELINES) / sent[f, "DUETS"] for f, name in functions.items()}
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
            f"least mean regret: {lowest_regret(cells)}",
            all(mean + 2 * se < 0 for mean, se in differences),
        ),
    )


def lowest_regret(cells: Cells) -> str:
    """Names the algorithm of smallest mean regret on each function."""
    functions = functions_of(cells)
    best = {f: min(PLAYERS, key=lambda rule, f=f: cells[f, rule]["regret"].mean()) for f in functions}
    return ", ".join(f"{name} {best[f]}" for f, name in functions.items())


def first_synchronisation(all_runs: AllRuns) -> Claim:
    """Claims that all of the 20 draws become inducing points at the first synchronisation, at every beta."""
    rows = []
    for function, name in functions_of(all_runs).items():
        _, sent = kernels.growth(by_beta(all_runs[function, "DUETS"], "curve")[0, :, 0])
        rows.append((name, *mean_se(sent), DISTINCT * (DIMENSIONS[function] + 2) + 1))
    return Claim(
        "DUETS' first synchronisation costs 19.81 (d + 2) + 1 on average, within 4 standard errors",
        ", ".join(f"{name} {mean:.1f} ({expected:.1f})" for name, mean, _, expected in rows),
        all(abs(mean - expected) <= 4 * se for _, mean, se, expected in rows),
    )
