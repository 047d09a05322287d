"""Plays against delta on the published graph of 20 edges: how far are they from the asymptote T* threshold? The closest
swap has both its edges in every tree of the optimal plays. A learner that must also sample all other edges plays them
less often, at delta = 0.1 in three of four plays. It approaches the asymptote only slowly.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.figures import curve
from experiments.report import STANDARD_ERRORS, Claim, Report
from experiments.semibandit import common
from experiments.settings import Settings
from jaxbandits import Results, cpe

DELTAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def run(options: Settings, *, deltas: tuple[float, ...] = DELTAS) -> Report:
    seeds = options.seeds or (30 if options.quick else 300)
    deltas = DELTAS[::5] if options.quick and deltas is DELTAS else deltas
    instance = cpe.spanning_trees_e20()
    time = common.time_of(instance)

    # One sweep per delta, because the rows of one sweep would have samples of their own.
    def sweep(delta: float) -> Results:
        settings = {"options": options, "seeds": seeds, "delta": delta}
        return common.runs("pfws delta, E20", instance, f"P-FWS, delta = {delta:g}", cpe.pfws, **settings)

    cells = study.crossed({"delta": deltas}, sweep, name="delta = {delta:g}")
    laws = {key: common.law(line, time, partial(common.gk16, delta=key[0])) for key, line in cells.lines.items()}
    share, se = slope(np.stack([columns["pulls"] for columns in cells.cells.values()]), np.array(deltas), time)
    return study.report(
        "P-FWS on E20: plays against delta",
        cells,
        [
            Claim(
                f"the slope of the mean against the threshold at it, from {deltas[0]:g} to {deltas[-1]:g}, is 1.0 to "
                f"1.4 T*, within {STANDARD_ERRORS} standard errors",
                f"{share:.3f} +- {se:.3f}",
                1.0 - STANDARD_ERRORS * se <= share <= 1.4 + STANDARD_ERRORS * se,
            ),
            *(common.confident({f"{delta:g}": each}, delta) for (delta,), each in study.errors(cells).items()),
        ],
        draw=partial(draw, cells=cells, laws=list(laws.values())),
        notes=(f"T* = {time:.2f}. Threshold: gk16, a heuristic. The same samples for every delta.",),
        grid=common.grid(cells, laws),
    )


def slope(plays: np.ndarray, deltas: np.ndarray, time: float) -> tuple[float, float]:
    """Computes the slope of mean plays over the threshold at the mean, divided by T*, from the two ends.

    `plays` (deltas, seeds) are in pairs.
    """
    mean = plays.mean(axis=1)
    rise = common.gk16(mean[-1], deltas[-1]) - common.gk16(mean[0], deltas[0])
    more = plays[-1] - plays[0]
    return float(more.mean() / rise / time), float(more.std(ddof=1) / np.sqrt(len(more)) / rise / time)


def draw(figure: Any, *, cells: study.Study, laws: list[float]) -> None:
    axes = figure.subplots()
    x = [1 / delta for delta in cells.axes["delta"]]
    curve(axes, x, list(cells.lines.values()), "P-FWS", 0)
    axes.plot(x, laws, color="k", lw=1, ls=":", label=r"$T^\star$ threshold")
    axes.set(xscale="log", xlabel=r"$1/\delta$", ylabel="plays", title="Spanning trees of 20 edges", ylim=(0, None))
    axes.legend()
