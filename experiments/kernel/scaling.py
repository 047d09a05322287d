"""Growth of communication and regret with the number of agents and with the horizon.

h1 and Branin, 1000 candidates, 10 runs, the beta that kernel_figure1 chose: 5 to 40 agents at 50 rounds, 50 to 400
rounds with 10 agents. Slopes on log axes with bootstrap intervals.
"""

import itertools

import numpy as np

from experiments.figures import errorbars, legend_below, split, ticks
from experiments.kernel import common as kernels
from experiments.kernel.common import AGENTS, FUNCTIONS, HORIZON, PLAYERS, entry, mean_se
from experiments.report import Claim, Report, joined
from experiments.settings import Settings

BETA = {
    "h1": {"DUETS": 0.2, "DisKernelUCB": 0.2, "ApproxDisKernelUCB": 0.2, "N-KernelUCB": 0.5},
    "branin": {"DUETS": 0.2, "DisKernelUCB": 0.5, "ApproxDisKernelUCB": 0.2, "N-KernelUCB": 0.5},
}
BOOTSTRAPS = 2000
LEVEL = 0.95


def run(options: Settings) -> Report:
    count = options.seeds or (4 if options.quick else 10)
    agents, horizons = ((10, 30), (25, 50)) if options.quick else ((5, 10, 20, 40), (50, 100, 200, 400))
    names = ("branin",) if options.quick else ("h1", "branin")
    sizes = {"N": {n: (n, HORIZON) for n in agents}, "T": {t: (AGENTS, t) for t in horizons}}
    shared = {"options": options, "replicates": count, "max_inducing": 256}
    all_runs = {
        (function, rule, n, t): kernels.runs(
            f"kernel scaling, N={n}, T={t}",
            function,
            rule,
            betas=(BETA[function][rule],),
            n_agents=n,
            horizon=t,
            **shared,
        )
        for function, rule in itertools.product(names, PLAYERS)
        for n, t in dict.fromkeys([*sizes["N"].values(), *sizes["T"].values()])
    }
    sent = {key: results.columns["communication"] for key, results in all_runs.items()}
    regret = {key: results.columns["regret"] / (key[2] * key[3]) for key, results in all_runs.items()}
    kinds = {"communication": sent, "regret a query": regret}
    samples, slopes, rows = {}, {}, []
    for key in itertools.product(names, PLAYERS, sizes, kinds):
        function, rule, axis, kind = key
        samples[key] = [kinds[kind][function, rule, *size] for size in sizes[axis].values()]
        if kind == "regret a query" or rule != "N-KernelUCB":  # N-KernelUCB sends nothing
            slopes[key], low, high = slope_of(list(sizes[axis]), samples[key])
            row = {"": f"{FUNCTIONS[function]}, {rule}, {kind} in {axis}", "slope": f"{slopes[key]:.2f}"}
            rows.append(row | {"interval": f"{low:.2f} to {high:.2f}", "means": ", ".join(map(entry, samples[key]))})

    def below(other: str, axis: str) -> Claim:
        pairs = {f: [slopes[f, rule, axis, "communication"] for rule in ("DUETS", other)] for f in names}
        return Claim(
            f"DUETS' communication grows more slowly in {axis} than {other}'s (slope on log axes)",
            ", ".join(f"{FUNCTIONS[f]} {ours:.2f} against {theirs:.2f}" for f, (ours, theirs) in pairs.items()),
            all(ours < theirs for ours, theirs in pairs.values()),
        )

    def draw(figure) -> None:
        columns = list(itertools.product(names, sizes))
        panels = split(figure, (11, 6.4), 2, len(columns))
        for (function, axis), pair in zip(columns, panels.T, strict=True):
            for axes, kind in zip(pair, kinds, strict=True):
                for style, rule in enumerate(PLAYERS):
                    mean, se = mean_se(np.stack(samples[function, rule, axis, kind]), axis=1)
                    if mean.any():
                        errorbars(axes, list(sizes[axis]), mean, se, label=rule, style=style)
                axes.set(xscale="log", yscale="log")
                ticks(axes, sizes[axis])
                axes.minorticks_off()
            pair[0].set_title(f"{FUNCTIONS[function]}, growing {axis}")
            pair[1].set_xlabel("agents" if axis == "N" else "rounds")
        panels[0, 0].set_ylabel("numbers sent")
        panels[1, 0].set_ylabel("regret a query")
        legend_below(figure, panels[1, 0], ncols=4, fontsize=10)

    return Report(
        "Growth of communication and regret with agents (N) and rounds (T)",
        [],
        [below("DisKernelUCB", "N"), below("DisKernelUCB", "T"), below("ApproxDisKernelUCB", "N")],
        joined(all_runs, "runs"),
        draw,
        notes=[
            f"Means over {count} runs; intervals: {100 * LEVEL:.0f} % bootstrap. Theory does not compare DUETS with "
            "ApproxDisKernelUCB in T, whose dictionary is bounded too. For few agents every point of DUETS' first "
            "epoch is sent, so its communication begins linear in N."
        ],
        grid=rows,
    )


def slope_of(x: list[int], samples: list[np.ndarray]) -> tuple[float, float, float]:
    """Fits log mean against log x by least squares; returns the slope and its bootstrap interval."""
    log_x = np.log(x)
    rng = np.random.default_rng(0)

    def fit(means: np.ndarray) -> np.ndarray:
        return np.polyfit(log_x, np.log(means), 1)[0]

    resampled = np.stack([s[rng.integers(len(s), size=(BOOTSTRAPS, len(s)))].mean(axis=1) for s in samples])
    low, high = np.quantile(fit(resampled), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(fit(np.array([s.mean() for s in samples]))), float(low), float(high)
