"""The power of five runs: how often DUETS has the lowest regret under the protocol of the paper's Figure 1.

The runs of kernel_figure1 (with --store they are not run again). 4000 times, 5 of the 25 runs are drawn with
replacement. Every algorithm gets the beta of smallest mean regret on the same 5 runs, as far as the paper describes it.
"""

import numpy as np

from experiments.claims import above
from experiments.figures import COLORS
from experiments.kernel import figure1
from experiments.kernel.common import PLAYERS, by_beta, functions_of
from experiments.report import Report
from experiments.settings import Settings

RESAMPLES, RUNS = 4000, 5
BOOTSTRAPS = 200  # resamples of all runs


def run(options: Settings) -> Report:
    all_runs = figure1.sweeps(options)
    functions = functions_of(all_runs)
    rng = np.random.default_rng(0)
    shares, grid = {}, []
    for function, name in functions.items():
        regret = np.stack([by_beta(all_runs[function, rule], "regret") for rule in PLAYERS])  # (rules, betas, runs)
        total = regret.shape[-1]
        shares[name] = wins(regret, rng, RESAMPLES)
        again = [wins(regret[..., rng.integers(total, size=total)], rng, RESAMPLES // 10) for _ in range(BOOTSTRAPS)]
        errors = np.std(again, axis=0, ddof=1)
        cells = [f"{100 * share:.0f} +- {100 * se:.0f} %" for share, se in zip(shares[name], errors, strict=True)]
        grid.append({"": name} | dict(zip(PLAYERS, cells, strict=True)))
    most = "DUETS has the lowest regret in most draws of five runs, on all functions, as the paper's figure shows"

    def draw(figure) -> None:
        axes = figure.subplots()
        heights = 100 * np.array(list(shares.values())).T
        for rule, height, below, color in zip(
            PLAYERS, heights, np.cumsum(heights, axis=0) - heights, COLORS, strict=False
        ):
            axes.bar(list(shares), height, bottom=below, label=rule, color=color, width=0.6)
        axes.set(
            ylabel="% of draws with the smallest mean regret", title="The best algorithm in five runs", ylim=(0, 100)
        )
        figure.legend(loc="outside lower center", ncols=2)

    return Report(
        f"Share of {RESAMPLES} resamples of {RUNS} of {total} runs in which an algorithm has the smallest mean regret",
        [],
        [above(most, {name: share[0] for name, share in shares.items()}, 0.5, ".0%")],
        {
            "function": np.repeat(list(functions), len(PLAYERS)),
            "algorithm": np.tile(PLAYERS, len(functions)),
            "share": np.concatenate(list(shares.values())),
        },
        draw,
        notes=[f"+- is the spread of a share between sets of {total} runs (bootstrap of the runs)."],
        grid=grid,
    )


def wins(regret: np.ndarray, rng: np.random.Generator, resamples: int) -> np.ndarray:
    """Computes the share (algorithms,) of draws of five runs in which each has the smallest mean regret, at its best
    beta.

    `regret` is (algorithms, betas, runs).
    """
    draws = rng.integers(regret.shape[-1], size=(resamples, RUNS))
    best = np.min(np.mean(regret[..., draws], axis=-1), axis=1)
    return np.bincount(np.argmin(best, axis=0), minlength=len(regret)) / resamples
