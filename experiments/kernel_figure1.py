"""Figure 1 of Pavlovic, Salgia, Zhao (2024): regret and communication of distributed kernel bandits.

10 agents, 50 rounds, noise of standard deviation 0.2, four functions, 1000 candidates drawn afresh in every run; beta
is chosen per algorithm and function on 5 runs of their own, out of .2, .5, 1, 2, 5. The paper averages 5 runs and
prints no number: the figure's two claims are that DUETS communicates less than both distributed baselines, and that its
regret is significantly lower, consistently. All algorithms of a run see the same candidates, function and noise.
"""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

import jaxbandits
from experiments import _kernel as kernels
from experiments._kernel import BETAS, DIMENSIONS, FUNCTIONS, PLAYERS, by_beta, mean_se
from experiments.report import STYLES, Claim, Report, joined, number
from jaxbandits import Status

QUICK_FUNCTIONS = ("h2", "branin")
TUNING, EVALUATION, QUICK_EVALUATION = 5, 20, 6
GRID = (2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50)  # 2: DUETS' first synchronisation
DISTINCT = 1000 * (1 - 0.999**20)  # candidates expected in 20 uniform draws of 1000
OTHER_RUNS = 20
# Another program's means and standard errors over 20 runs, at a beta: regret, communication.
OTHER = {
    ("h1", "DUETS"): (0.2, 45.9, 4.2, 915, 57),
    ("h1", "DisKernelUCB"): (0.2, 26.5, 1.9, 4828, 195),
    ("h1", "ApproxDisKernelUCB"): (0.2, 43.3, 4.5, 6578, 923),
    ("h1", "N-KernelUCB"): (0.5, 52.9, 0.9, 0, 0),
    ("h2", "DUETS"): (0.2, 56.8, 5.3, 318, 13),
    ("h2", "DisKernelUCB"): (0.5, 54.3, 3.9, 4193, 235),
    ("h2", "ApproxDisKernelUCB"): (0.5, 70.6, 6.1, 3585, 362),
    ("h2", "N-KernelUCB"): (2.0, 122.1, 2.2, 0, 0),
    ("branin", "DUETS"): (0.2, 61.9, 4.8, 260, 24),
    ("branin", "DisKernelUCB"): (0.5, 48.2, 4.1, 1211, 55),
    ("branin", "ApproxDisKernelUCB"): (0.2, 36.4, 4.0, 1395, 240),
    ("branin", "N-KernelUCB"): (0.5, 66.1, 3.4, 0, 0),
    ("hartmann4", "DUETS"): (1.0, 440.7, 34.0, 267, 17),
    ("hartmann4", "DisKernelUCB"): (2.0, 460.1, 49.1, 1895, 117),
    ("hartmann4", "ApproxDisKernelUCB"): (0.5, 673.2, 51.1, 933, 67),
    ("hartmann4", "N-KernelUCB"): (2.0, 916.5, 31.1, 0, 0),
}


class Cell(NamedTuple):
    """One algorithm on one function, at the beta that its tuning runs chose."""

    beta: float
    regret: np.ndarray  # (runs,)
    communication: np.ndarray  # (runs,)
    curve: np.ndarray  # (runs, G, 3)
    syncs: np.ndarray  # (runs,)


def run(options: Namespace) -> Report:
    all_runs = sweeps(options)
    cells = {key: cell(results) for key, results in all_runs.items()}
    communication, regret = claims_of_the_paper(cells)
    repeated = {
        f: float(np.mean(at_chosen(all_runs[f, "DUETS"], "communication_draws"))) for f in functions_of(all_runs)
    }
    return Report(
        "Figure 1 of Pavlovic, Salgia, Zhao (2024): regret and communication",
        [],
        [
            communication,
            regret,
            same_as_the_other(all_runs),
            first_synchronisation(all_runs),
            healthy(all_runs),
        ],
        joined({f"{function}, {rule}": results.columns for (function, rule), results in all_runs.items()}, "runs"),
        lambda figure: draw(figure, cells, (communication.holds, regret.holds)),
        notes=[
            f"beta chosen on {TUNING} runs, means over {len(cells['branin', 'DUETS'].regret)} others, +- one standard "
            "error. The paper's first claim is on communication, its second on regret; it gives no number for either.",
            "Communication = numbers an agent sends, on average, and numbers broadcast. Where DUETS sends a repeated "
            "candidate again, as it must where candidates are a continuum: "
            + "; ".join(f"{FUNCTIONS[f]} {number(round(repeated[f]))}" for f in functions_of(cells))
            + ".",
            *paired_differences(cells),
        ],
        grid=table(cells),
    )


def sweeps(options: Namespace) -> dict[tuple[str, str], jaxbandits.Results]:
    """All runs of the figure, tuning runs first: 4 functions x 4 algorithms x 5 beta."""
    evaluation = options.seeds or (QUICK_EVALUATION if options.quick else EVALUATION)
    # Other experiments look at the same runs: with --store they find them here.
    folder = options.store and options.store / "kernel_figure1"
    options = Namespace(**vars(options) | {"folder": folder if options.folder else None})
    return {
        (function, rule): kernels.runs(
            "kernel figure 1", function, rule, options=options, replicates=TUNING + evaluation, grid=GRID
        )
        for function in kernels.functions(options, QUICK_FUNCTIONS)
        for rule in PLAYERS
    }


def functions_of(all_runs: Mapping[tuple[str, str], Any]) -> dict[str, str]:
    """Those of which there are runs, and their names."""
    return {function: FUNCTIONS[function] for function, _ in all_runs}


def chosen_beta(results: jaxbandits.Results) -> int:
    """Index of the beta of least mean regret on the tuning runs."""
    return int(np.argmin(np.mean(by_beta(results, "regret")[:, :TUNING], axis=1)))


def at_chosen(results: jaxbandits.Results, column: str) -> np.ndarray:
    """A column of the evaluation runs at the chosen beta."""
    return by_beta(results, column)[chosen_beta(results), TUNING:]


def cell(results: jaxbandits.Results) -> Cell:
    columns = (at_chosen(results, name) for name in ("regret", "communication", "curve", "syncs"))
    return Cell(BETAS[chosen_beta(results)], *columns)


def table(cells: dict[tuple[str, str], Cell]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    rows = []
    for function, name in functions_of(cells).items():
        for kind in ("regret", "communication"):
            rows.append((f"{name}, {kind}", *(entry(getattr(cells[function, rule], kind)) for rule in PLAYERS)))
        rows.append((f"{name}, beta", *(f"{cells[function, rule].beta:g}" for rule in PLAYERS)))
        rows.append((f"{name}, synchronisations", *(f"{np.mean(cells[function, r].syncs):.1f}" for r in PLAYERS)))
    return ("", *PLAYERS), rows


def entry(values: np.ndarray) -> str:
    mean, se = mean_se(values)
    return f"{mean:.1f} +- {se:.1f}" if mean < 100 else f"{mean:.0f} +- {se:.0f}"


def claims_of_the_paper(cells: dict[tuple[str, str], Cell]) -> tuple[Claim, Claim]:
    """Both, as this experiment's own runs have them."""
    ratios = {
        FUNCTIONS[function]: min(
            np.mean(cells[function, rule].communication) for rule in ("DisKernelUCB", "ApproxDisKernelUCB")
        )
        / np.mean(cells[function, "DUETS"].communication)
        for function in functions_of(cells)
    }
    lowest = {
        name: min(PLAYERS, key=lambda rule, f=function: np.mean(cells[f, rule].regret))
        for function, name in functions_of(cells).items()
    }
    significant = all(
        mean + 2 * se < 0
        for function in functions_of(cells)
        for mean, se in (
            mean_se(cells[function, "DUETS"].regret - cells[function, rule].regret) for rule in PLAYERS[1:]
        )
    )
    return (
        Claim(
            "claim 1 of the paper: DUETS communicates less than both distributed baselines, on all functions",
            "the better of the two over DUETS: " + ", ".join(f"{name} {r:.1f}" for name, r in ratios.items()),
            min(ratios.values()) > 1,
        ),
        Claim(
            "claim 2 of the paper: DUETS' regret is significantly lower (by 2 s.e. of the paired difference) than all "
            "others', on all functions",
            "least mean regret: " + ", ".join(f"{name} {rule}" for name, rule in lowest.items()),
            significant,
        ),
    )


def paired_differences(cells: dict[tuple[str, str], Cell]) -> list[str]:
    texts = []
    for function, name in functions_of(cells).items():
        parts = []
        for rule in PLAYERS[1:]:
            mean, se = mean_se(cells[function, "DUETS"].regret - cells[function, rule].regret)
            parts.append(f"{rule} {mean:+.1f} +- {se:.1f}")
        texts.append(f"{name}, DUETS' regret minus that of " + ", ".join(parts) + " (paired).")
    return texts


def same_as_the_other(all_runs: dict[tuple[str, str], jaxbandits.Results]) -> Claim:
    """Against another program's table, each mean at its beta: all within 3 standard errors, but for one within 4."""
    apart = {}
    for function, rule in all_runs:
        beta, regret, regret_se, communication, communication_se = OTHER[function, rule]
        row = BETAS.index(beta)
        for kind, mean, se in (
            ("regret", regret, regret_se),
            ("communication", communication, communication_se),
        ):
            values = by_beta(all_runs[function, rule], kind)[row, TUNING:]
            if se > 0:
                room = se * np.sqrt(1 + OTHER_RUNS / len(values))
                apart[f"{FUNCTIONS[function]}, {rule}, {kind}"] = (np.mean(values) - mean) / room
    worst = sorted(apart, key=lambda key: -abs(apart[key]))
    return Claim(
        f"another program has the same {len(apart)} means, within 3 standard errors, one of them within 4",
        ", ".join(f"{apart[key]:+.1f} ({key})" for key in worst[:2])
        + f", median {np.median(np.abs(list(apart.values()))):.1f}",
        bool(abs(apart[worst[0]]) < 4 and abs(apart[worst[1]]) < 3),
    )


def first_synchronisation(all_runs: dict[tuple[str, str], jaxbandits.Results]) -> Claim:
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


def healthy(all_runs: dict[tuple[str, str], jaxbandits.Results]) -> Claim:
    status = np.concatenate([results.columns["status"] for results in all_runs.values()])
    ended = int(np.sum(status == Status.STOPPED))
    return Claim(
        "every run ends after its last round, without a NaN", f"{ended} of {len(status)}", ended == len(status)
    )


def draw(figure: Any, cells: dict[tuple[str, str], Cell], holds: tuple[bool, bool]) -> None:
    functions = functions_of(cells)
    figure.set_size_inches(max(10.5, 3 * len(functions)), 5.8)
    axes = figure.subplots(2, len(functions), sharex=True)
    rounds = np.array((0, *GRID))
    for column, (function, name) in enumerate(functions.items()):
        for style, rule in zip(STYLES, PLAYERS, strict=False):
            curve = cells[function, rule].curve
            for row, values in enumerate((curve[..., kernels.REGRET], curve[..., 1:].sum(axis=-1))):
                values = np.concatenate([np.zeros((len(values), 1)), values], axis=1)
                mean, sd = np.mean(values, axis=0), np.std(values, axis=0, ddof=1)
                axes[row, column].plot(rounds, mean, label=rule, markevery=2, mfc="w", ms=5, **_line(style))
                axes[row, column].fill_between(rounds, mean - sd, mean + sd, color=style["color"], alpha=0.12, lw=0)
        axes[0, column].set(title=name, ylim=(0, None))
        axes[1, column].set(xlabel="round", ylim=(0, None))
    axes[0, 0].set_ylabel("regret of all agents")
    axes[1, 0].set_ylabel("numbers sent (an agent\nand in broadcasts)")
    words = ["reproduces" if claim_holds else "does not reproduce" for claim_holds in holds]
    figure.suptitle(
        f"Less communication than both distributed baselines: {words[0]}. Lower regret than all: {words[1]}.\n"
        "Means and standard deviations over runs, at the beta that separate runs chose.",
        fontsize=11,
    )
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)


def _line(style: dict[str, Any]) -> dict[str, Any]:
    return {"marker": style["marker"], "linestyle": style["linestyle"], "color": style["color"]}
