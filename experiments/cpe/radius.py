"""How wide the intervals must be: COCI's errors as its confidence radii shrink.

The best of five Bernoulli arms, delta = 0.1; all radii times 1 (the paper's, with the guarantee), 0.5, 0.35, 0.25,
0.18, 0.12. The proof has two steps: with probability 1 - delta the truth stays in the box in every round (xi), and then
the answer is right. With the paper's radii both always hold, so a share of errors within delta says nothing there.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments.claims import above, all_of, answers_are_right, every_run_stops, never_falls
from experiments.cpe import common
from experiments.cpe.common import DELTA
from experiments.figures import curve, split, ticks
from experiments.report import Claim, Line, Report, line, listed, means, plus_minus
from experiments.settings import Settings
from jaxbandits import Status, cpe

SCALES = (1.0, 0.5, 0.35, 0.25, 0.18, 0.12)


def run(options: Settings) -> Report:
    replicates = options.seeds or (200 if options.quick else 1000)
    columns = common.runs(
        "cpe radius",
        cpe.best5(),
        "COCI",
        settings={"radius_scale": SCALES},
        options=options,
        replicates=replicates,
        leap=1,
        curves=partial(common.xi, tau=1),
        metrics=common.was_inside,
    ).columns
    stopped = columns["status"] == Status.STOPPED
    wrong = stopped & ~columns["right"]

    def by_scale(what: str, values: np.ndarray) -> list[Line]:
        rows = zip(SCALES, *(x.reshape(-1, replicates) for x in (values, columns["status"])), strict=True)
        return [line(f"{what}, radius x {scale}", row, status=status) for scale, row, status in rows]

    pulls, errors, xi = by_scale("T", columns["pulls"]), by_scale("error", wrong), by_scale("xi", columns["inside"])
    wrong_share, at = means(errors), SCALES.index(0.18)
    return Report(
        "Best of five arms: COCI with smaller radii, delta = 0.1",
        [*pulls, *errors, *xi],
        [
            Claim("errors never fall as the radii shrink", listed(wrong_share, ".3f"), never_falls(wrong_share)),
            Claim("xi never gains as the radii shrink", listed(means(xi), ".3f"), never_falls(-means(xi))),
            Claim("no error with the paper's radii", f"{wrong_share[0]:.3f}", wrong_share[0] == 0),
            above("with 0.18 of them more than 5 % of the answers are wrong", wrong_share[[at]], 0.05, ".3f"),
            answers_are_right(int(wrong[:replicates].sum()), int(stopped[:replicates].sum()), DELTA),
            all_of("where xi holds the answer is right, whatever the radius", ~wrong[columns["inside"]]),
            every_run_stops([columns]),
        ],
        columns,
        partial(draw, pulls=pulls, errors=errors, xi=xi),
        notes=(
            "xi: theta lies in the box, before it is cut to [0, 1], after every single pull from the first of each arm "
            "on. The radii are wider than these arms need: they cover all times and arms at once, and variances up to "
            "1/4.",
        ),
        grid=[
            {
                "radius x": f"{scale:g}",
                "T": plus_minus(pulls[row]),
                "wrong answers": plus_minus(errors[row], 4),
                "xi": plus_minus(xi[row], 4),
                "runs": str(pulls[row].runs),
            }
            for row, scale in enumerate(SCALES)
        ],
    )


def draw(figure: Any, *, pulls: list[Line], errors: list[Line], xi: list[Line]) -> None:
    left, right = split(figure, (9.6, 4.4), 1, 2)
    for style, (lines, label) in enumerate(((xi, "the truth stays in the box (xi)"), (errors, "the answer is wrong"))):
        curve(left, SCALES, lines, label, style)
    left.axhline(DELTA, color="k", lw=1, ls=":", label="delta")
    left.set(ylabel="share of the runs", title="Errors appear once xi is lost")
    left.legend(fontsize=9, loc="upper right")
    curve(right, SCALES, pulls, "COCI", 0)
    right.set(yscale="log", ylabel="pulls until the stop", title="What the guarantee costs")
    for axes in (left, right):
        axes.set(xscale="log", xlabel="radii / the paper's")
        ticks(axes, SCALES)
        axes.invert_xaxis()
