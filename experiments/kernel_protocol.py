"""What five runs can show: how often DUETS has the lowest regret under the protocol of the paper's Figure 1.

The runs of kernel_figure1 (with --store they are not run again). 4000 times, 5 of the 25 runs are drawn with
replacement, and every algorithm's beta is that of least mean regret on the same 5 runs, as far as the paper tells.
"""

from argparse import Namespace
from typing import Any

import numpy as np

from experiments import kernel_figure1 as figure1
from experiments._kernel import PLAYERS, by_beta
from experiments.report import STANDARD_ERRORS, STYLES, Claim, Report

RESAMPLES, RUNS = 4000, 5
BOOTSTRAPS = 200  # of the runs themselves
OTHER = {"h1": 0.0, "h2": 0.31, "branin": 0.0, "hartmann4": 0.15}  # DUETS' shares in another program's 25 runs


def run(options: Namespace) -> Report:
    all_runs = figure1.sweeps(options)
    regret = {key: by_beta(results, "regret") for key, results in all_runs.items()}  # (betas, runs)
    functions = figure1.functions_of(all_runs)
    total = regret["branin", "DUETS"].shape[1]
    rng = np.random.default_rng(0)
    shares, errors = {}, {}
    for function in functions:
        ours = np.stack([regret[function, rule] for rule in PLAYERS])
        shares[function] = wins(ours, rng, RESAMPLES)
        again = [wins(ours[..., rng.integers(total, size=total)], rng, RESAMPLES // 10) for _ in range(BOOTSTRAPS)]
        errors[function] = np.std(again, axis=0, ddof=1)
    rows = [
        (
            name,
            *(f"{100 * mean:.0f} +- {100 * se:.0f} %" for mean, se in zip(shares[f], errors[f], strict=True)),
            f"{100 * OTHER[f]:.0f} %",
        )
        for f, name in functions.items()
    ]
    return Report(
        f"Share of {RESAMPLES} resamples of {RUNS} out of {total} runs in which an algorithm has the least mean regret",
        [],
        [
            Claim(
                "DUETS has the lowest regret in most draws of five runs, on all functions, as the paper's figure shows",
                ", ".join(f"{name} {100 * shares[function][0]:.0f} %" for function, name in functions.items()),
                min(share[0] for share in shares.values()) > 0.5,
            ),
            Claim(
                f"DUETS' shares are those of another program, within {STANDARD_ERRORS} standard errors",
                ", ".join(f"{name} {100 * OTHER[function]:.0f} %" for function, name in functions.items()),
                all(
                    abs(shares[f][0] - OTHER[f]) <= STANDARD_ERRORS * np.sqrt(2) * errors[f][0] + 1 / RESAMPLES
                    for f in functions
                ),
            ),
        ],
        {
            "function": np.repeat(list(functions), len(PLAYERS)),
            "algorithm": np.tile(PLAYERS, len(functions)),
            "share": np.concatenate(list(shares.values())),
        },
        lambda figure: draw(figure, functions, shares),
        notes=[f"+- how far a share moves from one set of {total} runs to another (bootstrap of the runs)."],
        grid=(("", *PLAYERS, "DUETS, another program"), rows),
    )


def wins(regret: np.ndarray, rng: np.random.Generator, resamples: int) -> np.ndarray:
    """Share of draws of five runs in which each algorithm has the least mean regret, at the beta that suits these runs.

    Args:
        regret: (algorithms, betas, runs).
        rng: draws the runs.
        resamples: how often.

    Returns:
        (algorithms,)
    """
    draws = rng.integers(regret.shape[-1], size=(resamples, RUNS))
    best = np.min(np.mean(regret[..., draws], axis=-1), axis=1)
    return np.bincount(np.argmin(best, axis=0), minlength=len(regret)) / resamples


def draw(figure: Any, functions: dict[str, str], shares: dict[str, np.ndarray]) -> None:
    axes = figure.subplots()
    bottom = np.zeros(len(functions))
    for index, (style, rule) in enumerate(zip(STYLES, PLAYERS, strict=False)):
        heights = 100 * np.array([shares[function][index] for function in functions])
        axes.bar(list(functions.values()), heights, bottom=bottom, label=rule, color=style["color"], width=0.6)
        bottom += heights
    axes.set(ylabel="% of draws with the least mean regret", title="Who wins with five runs?", ylim=(0, 100))
    figure.legend(loc="outside lower center", ncols=2)
