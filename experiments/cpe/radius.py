"""The necessary width of intervals: COCI's errors as its confidence radii shrink.

The best of five Bernoulli arms, delta = 0.1; all radii times 1 (the paper's, with the guarantee), 0.5, 0.35, 0.25,
0.18, 0.12. The proof has two steps. With probability 1 - delta the truth stays in the box in every round (xi), and then
the answer is right. With the paper's radii both always hold, so an error rate within delta says nothing there.
"""

from experiments.claims import above, all_of, errors_are_rare, every_run_stops, never_falls
from experiments.cpe import common
from experiments.cpe.common import DELTA
from experiments.figures import curve, split, ticks
from experiments.report import Claim, Report, chosen, lines_by, listed, means, plus_minus
from experiments.settings import Settings
from jaxbandits import Status, cpe

SCALES = (1.0, 0.5, 0.35, 0.25, 0.18, 0.12)


def run(options: Settings) -> Report:
    shared = {"options": options, "replicates": options.seeds or (200 if options.quick else 1000)}
    shared |= {"settings": {"radius_scale": SCALES}, **common.WATCHED}
    columns = common.runs("cpe radius", cpe.best5(), "COCI", **shared).columns
    wrong = (columns["status"] == Status.STOPPED) & ~columns["right"]
    T, errors, xi = (
        lines_by([f"{what}, radius x {scale}" for scale in SCALES], columns | {what: values}, by="setting", values=what)
        for what, values in {"T": columns["pulls"], "error": wrong, "xi": columns["inside"]}.items()
    )
    share, at = means(errors), SCALES.index(0.18)

    def draw(figure) -> None:
        left, right = split(figure, (9.6, 4.4), 1, 2)
        curve(left, SCALES, xi, "the truth stays in the box (xi)", 0)
        curve(left, SCALES, errors, "the answer is wrong", 1)
        left.axhline(DELTA, color="k", lw=1, ls=":", label="delta")
        left.set(ylabel="share of the runs", title="Errors appear once xi is lost")
        left.legend(fontsize=9, loc="upper right")
        curve(right, SCALES, T, "COCI", 0)
        right.set(yscale="log", ylabel="pulls until the stop", title="The cost of the guarantee")
        for axes in (left, right):
            axes.set(xscale="log", xlabel="radii / the paper's")
            ticks(axes, SCALES)
            axes.invert_xaxis()

    return Report(
        "Best of five arms: COCI with smaller radii, delta = 0.1",
        [*T, *errors, *xi],
        [
            Claim("errors never fall as the radii shrink", listed(share, ".3f"), never_falls(share)),
            Claim(
                "xi never becomes more frequent as the radii shrink", listed(means(xi), ".3f"), never_falls(-means(xi))
            ),
            Claim("no error with the paper's radii", f"{share[0]:.3f}", share[0] == 0),
            above("with 0.18 of them more than 5 % of the answers are wrong", share[[at]], 0.05, ".3f"),
            errors_are_rare([chosen(columns, columns["setting"] == 0)], DELTA),
            all_of("where xi holds the answer is right, whatever the radius", ~wrong[columns["inside"]]),
            every_run_stops([columns]),
        ],
        columns,
        draw,
        notes=(
            "xi: theta lies in the box, before it is cut to [0, 1], after every single pull from the first of each arm "
            "on. The radii are wider than these arms need: they cover all times and arms at once, and variances up to "
            "1/4.",
        ),
        grid=[
            {"radius x": f"{scale:g}", "T": plus_minus(T[n]), "wrong answers": plus_minus(errors[n], 4)}
            | {"xi": plus_minus(xi[n], 4), "runs": str(T[n].runs)}
            for n, scale in enumerate(SCALES)
        ],
    )
