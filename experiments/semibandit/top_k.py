"""Sets of k arms: the gain of plays of k arms over pulls of one, and the distance of P-FWS from T*.

For k = 1 a play is a pull, and T* is the one of independent Gaussian arms. For k > 1 a play is worth at most k pulls.
The time with single pulls is at most k T*, with equality if no arm's share of k would have to exceed 1.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.claims import below, errors_of
from experiments.report import Claim, Report
from experiments.semibandit import common
from experiments.settings import Settings
from jaxbandits import Results, cpe, mab

FOUR = (1.0, 0.85, 0.8, 0.7)
EIGHT = (1.0, 0.9, 0.85, 0.6, 0.5, 0.45, 0.3, 0.1)
KNOWN = {(FOUR, 1): 449.870, (FOUR, 2): 1672.865, (FOUR, 3): 400.000, (EIGHT, 3): 75.3355}  # T*, by hand or by SLSQP
SINGLE = {(FOUR, 2): 3345.729, (FOUR, 3): 937.457}  # T* with pulls of one arm each


def run(options: Settings) -> Report:
    seeds = options.seeds or (40 if options.quick else 1000)
    times = {key: time(*key) for key in KNOWN}
    plain = float(np.asarray(mab.characteristic_time(mab.Gaussian(4), np.array(FOUR)).value))
    off = {f"{k} of {len(m)}:": abs(times[m, k] / value - 1) for (m, k), value in KNOWN.items()}
    worth = {k: SINGLE[FOUR, k] / (k * times[FOUR, k]) for _, k in SINGLE}
    instance = cpe.instance(cpe.top_k(8, 3), cpe.gaussian(EIGHT))
    sweep = common.runs("pfws top_k, 3 of 8", instance, "P-FWS", cpe.pfws, options=options, seeds=seeds)
    cells = study.collected({"rule": ["P-FWS, 3 of 8"]}, {"P-FWS, 3 of 8": sweep})
    laws = {key: common.law(line, times[EIGHT, 3]) for key, line in cells.lines.items()}
    (law,), (line,) = laws.values(), cells.lines.values()
    share = line.ours / law
    return study.report(
        "Sets of k Gaussian arms",
        cells,
        [
            below("T* is as known, within 1e-4", off, 1e-4, ".1e"),
            Claim(
                "k = 1: T* is as for independent arms, within 1e-4",
                f"{times[FOUR, 1]:.3f}, {plain:.3f}",
                abs(times[FOUR, 1] / plain - 1) < 1e-4,
            ),
            Claim(
                "a play is worth at most k pulls, k of them for k = 2 and fewer for k = 3",
                ", ".join(f"k = {k}: {x:.5f} k" for k, x in worth.items()),
                abs(worth[2] - 1) < 1e-4 and worth[3] < 1 - 1e-4,
            ),
            Claim("3 of 8: the mean of P-FWS is 1.0 to 1.6 T* threshold(mean)", f"{share:.3f}", 1.0 <= share <= 1.6),
            common.confident({"3 of 8": errors_of(sweep)}),
        ],
        draw=partial(draw, sweep=sweep, law=law),
        notes=("Threshold: gk16, a heuristic; delta = 0.1, noise_scale 1.",),
        grid=common.grid(cells, laws),
    )


def time(means: tuple[float, ...], k: int) -> float:
    return float(cpe.characteristic_time(cpe.top_k(len(means), k), np.array(means)).value)


def draw(figure: Any, *, sweep: Results, law: float) -> None:
    axes = figure.subplots()
    common.stops(axes, {"P-FWS": sweep.columns})
    axes.axvline(law, color="k", lw=1, ls=":", label=r"$T^\star$ threshold")
    axes.set(title="P-FWS, 3 of 8 arms")
    axes.legend()
