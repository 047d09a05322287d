"""The gaps at which a heuristic is least safe: the error of TTUCB with gk16 over delta, for three Gaussian arms."""

from functools import partial
from typing import Any

import numpy as np

from experiments.mab import weighted
from experiments.report import Claim, Report
from experiments.settings import Settings
from jaxbandits import mab
from jaxbandits.numerics import thresholds
from jaxbandits.rare import RareResult

GAPS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
DELTAS = (0.1, 1e-4)

Cell = tuple[float, float, float]  # delta, smaller gap, larger gap


def run(options: Settings) -> Report:
    gaps = GAPS[2::2] if options.quick else GAPS
    deltas = DELTAS[:1] if options.quick else DELTAS
    build = weighted.building("TTUCB", thresholds.gk16)
    cases = {
        (delta, small, large): weighted.Case(
            f"mab rare worst, {delta:g}, {small:g}, {large:g}", build, mab.gaussian((0.0, -small, -large)), delta
        )
        for delta in deltas
        for n, small in enumerate(gaps)
        for large in gaps[n:]
    }
    results = weighted.estimates(cases, options)
    return Report(
        "The error of TTUCB with gk16, over delta, for three Gaussian arms",
        [],
        claims(results),
        weighted.columns_of(results, ("delta", "small", "large")),
        partial(draw, results=results),
        notes=("Rows: gap of the second arm; columns: gap of the third.", *weighted.warnings_of(results)),
        grid=[
            {"delta": f"{delta:g}", "gap": f"{small:g}"}
            | {f"{large:g}": weighted.shown(results[delta, small, large]) if large >= small else "" for large in gaps}
            for delta in deltas
            for small in gaps
        ],
    )


def claims(results: dict[Cell, RareResult]) -> list[Claim]:
    worst = max(results, key=lambda key: results[key].estimate / key[0])
    ratio = results[worst].estimate / worst[0]
    return [
        Claim(
            "gk16 keeps delta everywhere in the box; the largest error over delta",
            f"{ratio:.3g} at delta {worst[0]:g}, gaps {worst[1]:g} and {worst[2]:g}",
            ratio < 1,
        )
    ]


def draw(figure: Any, *, results: dict[Cell, RareResult]) -> None:
    deltas = tuple(dict.fromkeys(key[0] for key in results))
    gaps = sorted({key[1] for key in results} | {key[2] for key in results})
    figure.set_size_inches(5.2 * len(deltas), 4.4)
    for delta, axes in zip(deltas, figure.subplots(1, len(deltas), squeeze=False)[0], strict=True):
        values = np.full((len(gaps), len(gaps)), np.nan)
        for (_, small, large), each in ((key, each) for key, each in results.items() if key[0] == delta):
            i, j = gaps.index(small), gaps.index(large)
            values[i, j] = values[j, i] = np.log10(each.estimate / delta)
        image = axes.imshow(values, origin="lower", cmap="viridis")
        for i in range(len(gaps)):
            for j in range(len(gaps)):
                is_dark = values[i, j] < np.nanmean(values)
                color = "w" if is_dark else "k"
                axes.text(j, i, f"{values[i, j]:.1f}", ha="center", va="center", color=color, fontsize=8)
        labels = [f"{gap:g}" for gap in gaps]
        axes.set_xticks(range(len(gaps)), labels)
        axes.set_yticks(range(len(gaps)), labels)
        axes.grid(visible=False)
        axes.set(xlabel="gap of one arm", ylabel="gap of the other", title=f"delta = {delta:g}")
        figure.colorbar(image, ax=axes, label="log10 (error / delta)")
