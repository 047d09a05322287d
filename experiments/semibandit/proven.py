"""P-FWS with a proved threshold, on the published graph of 20 edges: the cost of a guarantee. If the answer is wrong,
one of its swaps shows it. A swap has two arms, so the threshold of two arms with a union over the swaps is enough
(`cpe.proved_threshold`). These runs are delta-correct.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.report import Claim, Report
from experiments.semibandit import common
from experiments.settings import Settings
from jaxbandits import Results, cpe
from jaxbandits.base import Algorithm
from jaxbandits.numerics import thresholds


def proved(problem: cpe.Graphic, **settings: Any) -> Algorithm:
    return cpe.pfws(problem, threshold=cpe.proved_threshold(problem), **settings)


FACTORIES = {"proved": proved, "gk16": cpe.pfws}


def run(options: Settings) -> Report:
    seeds = options.seeds or (8 if options.quick else 100)
    instance = cpe.spanning_trees_e20()
    time, threshold = common.time_of(instance), cpe.proved_threshold(instance.problem)

    def sweep(threshold: str) -> Results:
        return common.runs("pfws proven, E20", instance, threshold, FACTORIES[threshold], options=options, seeds=seeds)

    def level(plays: float) -> float:
        return float(threshold(common.DELTA, thresholds.Evidence(pulls=np.int64(plays))))

    cells = study.crossed({"threshold": FACTORIES}, sweep)
    ours, heuristic = cells.lines.values()
    laws = dict(zip(cells.lines, (common.law(ours, time, level), common.law(heuristic, time)), strict=True))
    share = ours.ours / laws["proved",]
    return study.report(
        "P-FWS on E20 with a proved threshold, delta = 0.1",
        cells,
        [
            Claim(
                "with the proved threshold the mean is 1.0 to 1.4 T* threshold(mean)",
                f"{share:.3f}, threshold {level(ours.ours):.2f}",
                1.0 <= share <= 1.4,
            ),
            common.confident(study.named(cells, study.errors(cells))),
        ],
        draw=partial(draw, cells=cells),
        notes=(
            f"T* = {time:.2f}. The guarantee takes {ours.ours / heuristic.ours:.1f} times the plays of "
            "gk16, a heuristic, on the same samples.",
        ),
        grid=common.grid(cells, laws),
    )


def draw(figure: Any, *, cells: study.Study) -> None:
    axes = figure.subplots()
    common.stops(axes, {threshold: columns for (threshold,), columns in cells.cells.items()})
    axes.set(title="The cost of a guarantee")
    axes.legend()
