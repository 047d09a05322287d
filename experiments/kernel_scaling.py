"""How communication and regret grow with the number of agents and with the horizon.

h1 and Branin, 1000 candidates, 10 runs, the beta that kernel_figure1 chose: 5 to 40 agents at 50 rounds, 50 to 400
rounds with 10 agents. Slopes on log axes with bootstrap intervals.
"""

from argparse import Namespace
from typing import Any

import numpy as np

import jaxbandits
from experiments import _kernel as kernels
from experiments._kernel import AGENTS, FUNCTIONS, HORIZON, PLAYERS, by_beta, mean_se
from experiments.report import STYLES, Claim, Report, joined

NAMES, QUICK_NAMES = ("h1", "branin"), ("branin",)
BETA = {
    "h1": {"DUETS": 0.2, "DisKernelUCB": 0.2, "ApproxDisKernelUCB": 0.2, "N-KernelUCB": 0.5},
    "branin": {"DUETS": 0.2, "DisKernelUCB": 0.5, "ApproxDisKernelUCB": 0.2, "N-KernelUCB": 0.5},
}
MANY_AGENTS, QUICK_AGENTS = (5, 10, 20, 40), (10, 30)
HORIZONS, QUICK_HORIZONS = (50, 100, 200, 400), (25, 50)
RUNS, QUICK_RUNS = 10, 4
MAX_INDUCING = 256
BOOTSTRAPS = 2000
LEVEL = 0.95


def run(options: Namespace) -> Report:
    count = options.seeds or (QUICK_RUNS if options.quick else RUNS)
    agents = QUICK_AGENTS if options.quick else MANY_AGENTS
    names = QUICK_NAMES if options.quick else NAMES
    horizons = QUICK_HORIZONS if options.quick else HORIZONS
    axes = {"N": [(n, HORIZON) for n in agents], "T": [(AGENTS, t) for t in horizons]}
    all_runs = {
        (function, rule, n, t): kernels.runs(
            f"kernel scaling, N={n}, T={t}",
            function,
            rule,
            options=options,
            replicates=count,
            betas=(BETA[function][rule],),
            n_agents=n,
            horizon=t,
            fixed={"max_inducing": MAX_INDUCING} if rule == "ApproxDisKernelUCB" else None,
        )
        for function in names
        for rule in PLAYERS
        for n, t in dict.fromkeys(axes["N"] + axes["T"])
    }
    sent = {key: _column(results, "communication", BETA[key[0]][key[1]]) for key, results in all_runs.items()}
    per_query = {
        key: _column(results, "regret", BETA[key[0]][key[1]]) / (key[2] * key[3]) for key, results in all_runs.items()
    }
    slopes, rows = {}, []
    for function in names:
        for rule in PLAYERS:
            for axis, points in axes.items():
                for kind, values in (("communication", sent), ("regret a query", per_query)):
                    if kind == "communication" and rule == "N-KernelUCB":
                        continue
                    samples = [values[function, rule, *point] for point in points]
                    slope = slope_of([point[axis == "T"] for point in points], samples)
                    slopes[function, rule, axis, kind] = slope
                    name = f"{FUNCTIONS[function]}, {rule}, {kind} in {axis}"
                    means = ", ".join(_entry(sample) for sample in samples)
                    rows.append((name, f"{slope[0]:.2f}", f"{slope[1]:.2f} to {slope[2]:.2f}", means))

    def below(other: str, axis: str) -> Claim:
        pairs = {
            function: tuple(slopes[function, rule, axis, "communication"][0] for rule in ("DUETS", other))
            for function in names
        }
        return Claim(
            f"DUETS' communication grows more slowly in {axis} than {other}'s (slope on log axes)",
            ", ".join(f"{FUNCTIONS[f]} {ours:.2f} against {theirs:.2f}" for f, (ours, theirs) in pairs.items()),
            all(ours < theirs for ours, theirs in pairs.values()),
        )

    return Report(
        "Growth of communication and regret with agents (N) and rounds (T)",
        [],
        [below("DisKernelUCB", "N"), below("DisKernelUCB", "T"), below("ApproxDisKernelUCB", "N")],
        joined({", ".join(map(str, key)): results.columns for key, results in all_runs.items()}, "runs"),
        lambda figure: draw(figure, names, axes, sent, per_query),
        notes=[
            f"Means over {count} runs; intervals: {100 * LEVEL:.0f} % bootstrap. Theory has no word on DUETS against "
            "ApproxDisKernelUCB in T, whose dictionary is bounded too, and for few agents every point of DUETS' first "
            "epoch is sent, so its communication begins linear in N."
        ],
        grid=(("", "slope", "interval", "means"), rows),
    )


def slope_of(x: list[int], samples: list[np.ndarray]) -> tuple[float, float, float]:
    """Least-squares slope of log mean against log x, and its bootstrap interval."""
    log_x = np.log(x)
    rng = np.random.default_rng(0)

    def fit(means: np.ndarray) -> np.ndarray:
        return np.polyfit(log_x, np.log(means), 1)[0]

    resampled = np.stack([s[rng.integers(len(s), size=(BOOTSTRAPS, len(s)))].mean(axis=1) for s in samples])
    low, high = np.quantile(fit(resampled), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(fit(np.array([s.mean() for s in samples]))), float(low), float(high)


def _column(results: jaxbandits.Results, name: str, beta: float) -> np.ndarray:
    return by_beta(results, name, (beta,))[0]


def _entry(values: np.ndarray) -> str:
    mean, se = mean_se(values)
    return f"{mean:,.0f} +- {se:,.0f}" if mean >= 10 else f"{mean:.3f} +- {se:.3f}"


def draw(
    figure: Any, names: tuple[str, ...], points: dict[str, list[tuple[int, int]]], sent: dict, per_query: dict
) -> None:
    figure.set_size_inches(11, 6.4)
    panels = figure.subplots(2, 2 * len(names))
    for column, (function, axis) in enumerate((f, a) for f in names for a in points):
        for row, values in enumerate((sent, per_query)):
            axes = panels[row, column]
            for style, rule in zip(STYLES, PLAYERS, strict=False):
                samples = [values[function, rule, *point] for point in points[axis]]
                mean, se = mean_se(np.stack(samples), axis=1)
                if mean.any():
                    x = [point[axis == "T"] for point in points[axis]]
                    axes.errorbar(x, mean, yerr=2 * se, label=rule, mfc="w", **style)
            axes.set(xscale="log", yscale="log")
            axes.set_xticks(x, map(str, x))
            axes.minorticks_off()
        panels[0, column].set_title(f"{FUNCTIONS[function]}, growing {axis}")
        panels[1, column].set_xlabel("agents" if axis == "N" else "rounds")
    panels[0, 0].set_ylabel("numbers sent")
    panels[1, 0].set_ylabel("regret a query")
    handles, labels = panels[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
