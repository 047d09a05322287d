"""How wide the intervals must be: COCI's errors as its confidence radii shrink.

The best of five Bernoulli arms, delta = 0.1; all radii times 1 (the paper's, with the guarantee), 0.5, 0.35, 0.25,
0.18, 0.12. The proof has two steps: with probability 1 - delta the truth stays in the box in every round (xi), and then
the answer is right. With the paper's radii both always hold, so a share of errors within delta says nothing there.
"""

from argparse import Namespace
from functools import partial
from typing import Any

import numpy as np

from experiments import _cpe
from experiments._cpe import DELTA, cell, never_falls
from experiments.report import STANDARD_ERRORS, STYLES, Claim, Line, Report, answers_are_right, curve, line
from jaxbandits import Status, cpe

SCALES = (1.0, 0.5, 0.35, 0.25, 0.18, 0.12)
# By another program in NumPy, on 1000 runs.
OTHER_RUNS = 1000
OTHER_PULLS = (2590, 531, 223, 87, 36, 13)
OTHER_ERROR = ((0, 0.0005), (0, 0.0005), (0, 0.0005), (0.017, 0.0005), (0.13, 0.005), (0.32, 0.005))  # and its rounding
OTHER_XI = ((1, 0.0005), (0.89, 0.005), (0.26, 0.005), (0.01, 0.005), (0, 0.0005), (0, 0.0005))

Lines = dict[float, Line]  # scale -> Line


def run(options: Namespace) -> Report:
    replicates = options.seeds or (200 if options.quick else 1000)
    columns = _cpe.runs(
        "cpe radius",
        cpe.best5(),
        "COCI",
        settings={"radius_scale": SCALES},
        options=options,
        replicates=replicates,
        leap=1,
        adapt=partial(_cpe.watched, tau=1),
        metrics=_cpe.was_inside,
    ).columns
    stopped = columns["status"] == Status.STOPPED
    wrong = stopped & ~columns["right"]

    def of(values: np.ndarray) -> np.ndarray:
        return values.reshape(len(SCALES), replicates)

    def by_scale(what: str, values: np.ndarray) -> Lines:
        return {
            scale: line(f"{what}, radius x {scale}", row, status=status)
            for scale, row, status in zip(SCALES, of(values), of(columns["status"]), strict=True)
        }

    pulls, errors = by_scale("T", columns["pulls"]), by_scale("error", wrong)
    xi = by_scale("xi", columns["inside"])
    return Report(
        "Best of five arms: COCI with smaller radii, delta = 0.1",
        [*pulls.values(), *errors.values(), *xi.values()],
        [
            *share_claims(errors, xi),
            answers_are_right(int(of(wrong)[0].sum()), int(of(stopped)[0].sum()), DELTA),
            Claim(
                "where xi holds the answer is right, whatever the radius",
                f"{int(np.sum(columns['inside'] & wrong))} wrong answers in {int(np.sum(columns['inside']))} runs",
                not np.any(columns["inside"] & wrong),
            ),
            Claim("every run stops", f"{int(stopped.sum())} of {len(stopped)}", bool(stopped.all())),
            _cpe.same_as_the_other(
                pulls, {scale: (mean, OTHER_RUNS) for scale, mean in zip(SCALES, OTHER_PULLS, strict=True)}
            ),
            same_shares(errors, xi),
        ],
        columns,
        partial(draw, pulls=pulls, errors=errors, xi=xi),
        notes=(
            "xi: theta lies in the box, before it is cut to [0, 1], after every single pull from the first of each arm "
            "on. The radii are wider than these arms need: they cover all times and arms at once, and variances up to "
            "1/4.",
        ),
        grid=(
            ("radius x", "T", "wrong answers", "xi", "runs"),
            [(f"{s:g}", cell(pulls[s]), cell(errors[s], 4), cell(xi[s], 4), str(pulls[s].runs)) for s in SCALES],
        ),
    )


def share_claims(errors: Lines, xi: Lines) -> list[Claim]:
    """The test that can fail."""
    error, held = (np.array([lines[scale].ours for scale in SCALES]) for lines in (errors, xi))
    return [
        Claim("errors never fall as the radii shrink", _shown(error), never_falls(error)),
        Claim("xi never gains as the radii shrink", _shown(held), never_falls(-held)),
        Claim("no error with the paper's radii", f"{error[0]:.3f}", error[0] == 0),
        Claim(
            "with 0.18 of them more than 5 % of the answers are wrong",
            f"{errors[0.18].ours:.3f}",
            errors[0.18].ours > 0.05,
        ),
    ]


def same_shares(errors: Lines, xi: Lines) -> Claim:
    """Two shares agree within standard errors of their difference, and the rounding of the other program's."""
    apart = {}
    for what, lines, other in (("errors", errors, OTHER_ERROR), ("xi", xi, OTHER_XI)):
        for scale, (share, rounding) in zip(SCALES, other, strict=True):
            ours = lines[scale]
            pooled = (ours.ours * ours.runs + share * OTHER_RUNS) / (ours.runs + OTHER_RUNS)
            se = np.sqrt(pooled * (1 - pooled) * (1 / ours.runs + 1 / OTHER_RUNS))
            off = max(abs(ours.ours - share) - rounding, 0)
            apart[f"{what}, {scale}"] = off / se if off else 0.0
    worst = max(apart, key=apart.__getitem__)
    return Claim(
        f"another program has the same shares of errors and of xi, within {STANDARD_ERRORS} standard errors",
        f"at most {apart[worst]:.1f} apart ({worst})",
        bool(apart[worst] < STANDARD_ERRORS),
    )


def _shown(values: np.ndarray) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


def draw(figure: Any, *, pulls: Lines, errors: Lines, xi: Lines) -> None:
    figure.set_size_inches(9.6, 4.4)
    left, right = figure.subplots(1, 2)
    for lines, label, style in ((xi, "the truth stays in the box (xi)", 0), (errors, "the answer is wrong", 1)):
        y, bars = ([scale * getattr(lines[s], field) for s in SCALES] for field, scale in (("ours", 1), ("se", 2)))
        left.errorbar(SCALES, y, yerr=bars, mfc="w", label=label, **STYLES[style])
    left.axhline(DELTA, color="k", lw=1, ls=":", label="delta")
    left.set(ylabel="share of the runs", title="Errors appear once xi is lost")
    left.legend(fontsize=9, loc="upper right")
    curve(right, SCALES, [pulls[scale] for scale in SCALES], "COCI", 0)
    right.set(yscale="log", ylabel="pulls until the stop", title="What the guarantee costs")
    for axes in (left, right):
        axes.set(xscale="log", xlabel="radii / the paper's")
        axes.set_xticks(SCALES, [f"{scale:g}" for scale in SCALES])
        axes.minorticks_off()
        axes.invert_xaxis()
