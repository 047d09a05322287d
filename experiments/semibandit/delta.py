"""Plays against delta on the published graph of 20 edges: how far are they from the asymptote T* threshold? The closest
swap has both its edges in every tree of the optimal plays. A learner that must also sample all other edges plays them
less often, at delta = 0.1 in three of four plays. It approaches the asymptote only slowly.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments.figures import curve
from experiments.report import STANDARD_ERRORS, Claim, Line, Report, joined, line_of, means
from experiments.semibandit import common
from experiments.settings import Settings
from jaxbandits import cpe

DELTAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def run(options: Settings) -> Report:
    seeds = options.seeds or (30 if options.quick else 300)
    deltas = DELTAS[::5] if options.quick else DELTAS
    instance = cpe.spanning_trees_e20()
    time = common.time_of(instance)
    # One sweep per delta, because the rows of one sweep would have samples of their own.
    sweeps = {
        delta: common.runs(
            "pfws delta, E20",
            instance,
            f"P-FWS, delta = {delta:g}",
            cpe.pfws,
            options=options,
            seeds=seeds,
            delta=delta,
        )
        for delta in deltas
    }
    lines = [line_of(f"delta = {delta:g}", sweep) for delta, sweep in sweeps.items()]
    share, se = slope(np.stack([sweep.columns["pulls"] for sweep in sweeps.values()]), np.array(deltas), time)
    return Report(
        "P-FWS on E20: plays against delta",
        lines,
        [
            Claim(
                f"the slope of the mean against the threshold at it, from {deltas[0]:g} to {deltas[-1]:g}, is 1.0 to "
                f"1.4 T*, within {STANDARD_ERRORS} standard errors",
                f"{share:.3f} +- {se:.3f}",
                1.0 - STANDARD_ERRORS * se <= share <= 1.4 + STANDARD_ERRORS * se,
            ),
            *(common.confident({f"{delta:g}": common.errors(sweep)}, delta) for delta, sweep in sweeps.items()),
        ],
        joined(sweeps, label="delta"),
        partial(draw, deltas=deltas, lines=lines, time=time),
        notes=(f"T* = {time:.2f}. Threshold: gk16, a heuristic. The same samples for every delta.",),
        grid=[
            common.cells(line, sweep, time, threshold=partial(common.gk16, delta=delta))
            for line, (delta, sweep) in zip(lines, sweeps.items(), strict=True)
        ],
    )


def slope(plays: np.ndarray, deltas: np.ndarray, time: float) -> tuple[float, float]:
    """Computes the slope of mean plays over the threshold at the mean, divided by T*, from the two ends.

    `plays` (deltas, seeds) are in pairs.
    """
    mean = plays.mean(axis=1)
    rise = common.gk16(mean[-1], deltas[-1]) - common.gk16(mean[0], deltas[0])
    more = plays[-1] - plays[0]
    return float(more.mean() / rise / time), float(more.std(ddof=1) / np.sqrt(len(more)) / rise / time)


def draw(figure: Any, *, deltas: tuple[float, ...], lines: list[Line], time: float) -> None:
    axes = figure.subplots()
    asymptote = time * common.gk16(means(lines), np.array(deltas))
    curve(axes, [1 / delta for delta in deltas], lines, "P-FWS", 0)
    axes.plot([1 / delta for delta in deltas], asymptote, color="k", lw=1, ls=":", label=r"$T^\star$ threshold")
    axes.set(xscale="log", xlabel=r"$1/\delta$", ylabel="plays", title="Spanning trees of 20 edges", ylim=(0, None))
    axes.legend()
