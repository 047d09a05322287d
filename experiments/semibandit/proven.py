"""P-FWS with a proved threshold, on the published graph of 20 edges: the cost of a guarantee. If the answer is wrong,
one of its swaps shows it. A swap has two arms, so the threshold of two arms with a union over the swaps is enough
(`cpe.proved_threshold`). These runs are delta-correct.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments.report import Claim, Report, joined, line_of
from experiments.semibandit import common
from experiments.settings import Settings
from jaxbandits import Results, cpe
from jaxbandits.base import Algorithm
from jaxbandits.numerics import thresholds


def proved(problem: cpe.Graphic, **settings: Any) -> Algorithm:
    return cpe.pfws(problem, threshold=cpe.proved_threshold(problem), **settings)


def run(options: Settings) -> Report:
    seeds = options.seeds or (8 if options.quick else 100)
    instance = cpe.spanning_trees_e20()
    time, threshold = common.time_of(instance), cpe.proved_threshold(instance.problem)
    shared = {"options": options, "seeds": seeds}
    sweeps = {
        "proved": common.runs("pfws proven, E20", instance, "proved", proved, **shared),
        "gk16": common.runs("pfws proven, E20", instance, "gk16", cpe.pfws, **shared),
    }
    lines = {name: line_of(name, sweep) for name, sweep in sweeps.items()}

    def level(plays: float) -> float:
        return float(threshold(common.DELTA, thresholds.Evidence(pulls=np.int64(plays))))

    share = lines["proved"].ours / (time * level(lines["proved"].ours))
    return Report(
        "P-FWS on E20 with a proved threshold, delta = 0.1",
        list(lines.values()),
        [
            Claim(
                "with the proved threshold the mean is 1.0 to 1.4 T* threshold(mean)",
                f"{share:.3f}, threshold {level(lines['proved'].ours):.2f}",
                1.0 <= share <= 1.4,
            ),
            common.confident({name: common.errors(sweep) for name, sweep in sweeps.items()}),
        ],
        joined(sweeps, label="threshold"),
        partial(draw, sweeps=sweeps),
        notes=(
            f"T* = {time:.2f}. The guarantee takes {lines['proved'].ours / lines['gk16'].ours:.1f} times the plays of "
            "gk16, a heuristic, on the same samples.",
        ),
        grid=[
            common.cells(lines["proved"], sweeps["proved"], time, threshold=level),
            common.cells(lines["gk16"], sweeps["gk16"], time),
        ],
    )


def draw(figure: Any, *, sweeps: dict[str, Results]) -> None:
    axes = figure.subplots()
    common.draw_stops(axes, sweeps)
    axes.set(ylabel="share of runs that have stopped", title="The cost of a guarantee")
    axes.legend()
