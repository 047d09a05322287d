"""Pulls against the probability of error: COCI, uniform sampling and CLUCB on the best two of six arms.

delta = 0.3, 0.1, 10^-2, 10^-3, 10^-4, 10^-6, on the same samples for every delta. The implicit law
T = m + (H/2) ln(4 T^3 / delta) is linear in ln(1/delta), except for its own logarithm.
"""

import numpy as np

from experiments import study
from experiments.claims import in_range
from experiments.cpe import common
from experiments.cpe.common import RULES
from experiments.report import Claim, Report, means, number
from experiments.settings import Settings
from jaxbandits import cpe

DELTAS = (0.3, 0.1, 1e-2, 1e-3, 1e-4, 1e-6)


def run(options: Settings, *, deltas: tuple[float, ...] = DELTAS) -> Report:
    case = cpe.top2of6()
    shared = {"options": options, "replicates": options.seeds or (40 if options.quick else 200)}
    sweeps = {rule: common.runs("cpe delta", case, rule, settings={"delta": deltas}, **shared) for rule in RULES}
    axes = {"rule": RULES, "delta": deltas}
    cells = study.collected(axes, sweeps, split="delta", name="{rule}, delta = {delta:g}")
    hardness = {rule: law.H[0] for rule, law in common.laws([case]).items()}
    laws = {rule: common.law(H, len(case.theta), delta=deltas) for rule, H in hardness.items()}

    x = -np.log(deltas)
    measured = {rule: means(row) for rule, row in study.by(cells, "rule").items()}
    fits = {rule: np.polyfit(x, values, 1) for rule, values in measured.items()}
    bends = {rule: np.max(np.abs(np.polyval(fits[rule], x) / values - 1)) for rule, values in measured.items()}
    slopes = {rule: fit[0] for rule, fit in fits.items()}
    predicted = {rule: H / 2 / (1 - 3 * H / (2 * measured[rule].mean())) for rule, H in hardness.items()}
    share = {rule: slopes[rule] / slope for rule, slope in predicted.items()}
    # Run by run, on the same samples.
    grows = {rule: np.diff(s.columns["pulls"].reshape(len(deltas), -1), axis=0) > 0 for rule, s in sweeps.items()}

    def draw(figure) -> None:
        axes = figure.subplots()
        fine = np.geomspace(0.4, 5e-7, 100)
        along = {rule: common.law(H, len(case.theta), delta=fine) for rule, H in hardness.items()}
        common.draw_laws(axes, 1 / fine, along, 1 / np.array(deltas), cells)
        axes.set(xscale="log", xlabel=r"$1/\delta$", ylabel="pulls until the stop", ylim=(0, None))
        axes.set_title("The best two of six arms: pulls against confidence")
        axes.legend(fontsize=9, loc="lower right", ncols=2)

    return study.report(
        "The best two of six arms: pulls against delta",
        cells,
        [
            in_range("T is linear in ln(1/delta): the largest residual / T", bends, 0, 0.01, digits=4),
            Claim(
                "the slope of COCI is 0.93 to 1.03 times the slope of its law",
                f"{slopes['COCI']:.1f} / {predicted['COCI']:.1f} = {share['COCI']:.3f}; uniform "
                f"{slopes['uniform']:.1f}, {share['uniform']:.3f} of its law's; CLUCB {slopes['CLUCB']:.1f}",
                0.93 <= share["COCI"] <= 1.03,
            ),
            Claim(
                "T grows as delta falls, run by run",
                ", ".join(f"{rule} {number(int(up.sum()))} of {number(up.size)} steps" for rule, up in grows.items()),
                np.all(grows["COCI"]),
            ),
            common.all_right(sweeps.values()),
        ],
        draw=draw,
        notes=(
            f"H = {hardness['COCI']:.2f}, H_U = {hardness['uniform']:.2f}. The slope of the law is (H/2) / (1 - 3 H/(2 "
            "T)), at the mean T of the deltas. Samples are the same for every delta, so differences are more precise "
            "than the standard errors.",
        ),
        grid=common.grid(cells, "delta", laws, lambda n: {"delta": f"{deltas[n]:g}"}),
    )
