"""Pulls against the probability of error: COCI, uniform sampling and CLUCB on the best two of six arms.

delta = 0.3, 0.1, 10^-2, 10^-3, 10^-4, 10^-6, on the same samples for every delta. The implicit law
T = m + (H/2) ln(4 T^3 / delta) is linear in ln(1/delta), but for its own logarithm, with the slope
(H/2) / (1 - 3 H/(2 T)).
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments.claims import in_range
from experiments.cpe import common
from experiments.cpe.common import RULES, Law
from experiments.report import Claim, Line, Report, joined, line, means, number
from experiments.settings import Settings
from jaxbandits import cpe

DELTAS = (0.3, 0.1, 1e-2, 1e-3, 1e-4, 1e-6)

Lines = dict[str, list[Line]]  # rule -> for each delta


def run(options: Settings) -> Report:
    replicates = options.seeds or (40 if options.quick else 200)
    case = cpe.top2of6()
    law = common.laws(case)[0]
    settings = {"settings": {"delta": DELTAS}, "options": options, "replicates": replicates}
    sweeps = {rule: common.runs("cpe delta", case, rule, **settings) for rule in RULES}
    pulls, status = (
        {rule: sweep.columns[name].reshape(len(DELTAS), replicates) for rule, sweep in sweeps.items()}
        for name in ("pulls", "status")
    )
    lines: Lines = {
        rule: [
            line(f"{rule}, delta = {delta:g}", taken, status=ends)
            for delta, taken, ends in zip(DELTAS, pulls[rule], status[rule], strict=True)
        ]
        for rule in RULES
    }
    m, H, H_U, deltas = len(case.theta), law.H, law.H_U, jnp.asarray(DELTAS)
    theory = (*(common.laws_at(h, m, 1, deltas, 0.5) for h in (H, H_U)), common.bounds_at(H, m, 1, deltas))
    laws = [law._replace(coci=c, uniform=u, bound=b) for c, u, b in zip(*theory, strict=True)]
    return Report(
        "The best two of six arms: pulls against delta",
        [line for rule in RULES for line in lines[rule]],
        [*slope_claims(lines, law), grows(pulls), common.all_right(list(sweeps.values()))],
        joined(sweeps),
        partial(draw, lines=lines, law=law, m=m),
        notes=(
            f"H = {H:.2f}, H_U = {H_U:.2f}. The slope of the law is (H/2) / (1 - 3 H/(2 T)), at the mean T of the "
            "deltas. Samples are the same for every delta, so that differences are sharper than the standard errors.",
        ),
        grid=[
            {"delta": f"{delta:g}"} | common.cells(laws[row], {rule: lines[rule][row] for rule in RULES})
            for row, delta in enumerate(DELTAS)
        ],
    )


def slope_claims(lines: Lines, law: Law) -> list[Claim]:
    x = -np.log(DELTAS)
    found = {rule: means(row) for rule, row in lines.items()}
    fits = {rule: np.polyfit(x, values, 1) for rule, values in found.items()}
    bends = {rule: np.max(np.abs(np.polyval(fits[rule], x) / values - 1)) for rule, values in found.items()}

    def predicted(rule: str, H: float) -> float:
        return H / 2 / (1 - 3 * H / (2 * found[rule].mean()))

    slope = predicted("COCI", law.H)
    uniform = fits["uniform"][0] / predicted("uniform", law.H_U)
    share = fits["COCI"][0] / slope
    return [
        in_range("T is linear in ln(1/delta): the largest residual / T", bends, 0, 0.01, digits=4),
        Claim(
            "the slope of COCI is 0.93 to 1.03 times that of its law",
            f"{fits['COCI'][0]:.1f} / {slope:.1f} = {share:.3f}; uniform {fits['uniform'][0]:.1f}, {uniform:.3f} of "
            f"its law's; CLUCB {fits['CLUCB'][0]:.1f}",
            0.93 <= share <= 1.03,
        ),
    ]


def grows(pulls: dict[str, np.ndarray]) -> Claim:
    """Run by run, on the same samples. `pulls`: (deltas, replicates)."""
    steps = {rule: np.diff(values, axis=0) > 0 for rule, values in pulls.items()}
    return Claim(
        "T grows as delta falls, run by run",
        ", ".join(f"{rule} {number(int(up.sum()))} of {number(up.size)} steps" for rule, up in steps.items()),
        np.all(steps["COCI"]),
    )


def draw(figure: Any, *, lines: Lines, law: Law, m: int) -> None:
    axes = figure.subplots()
    fine = np.geomspace(0.4, 5e-7, 100)
    laws = (common.laws_at(jnp.asarray(H), m, 1, jnp.asarray(fine), 0.5) for H in (law.H, law.H_U))
    common.draw_laws(axes, 1 / fine, *laws, 1 / np.array(DELTAS), lines)
    axes.set(xscale="log", xlabel=r"$1/\delta$", ylabel="pulls until the stop", ylim=(0, None))
    axes.set_title("The best two of six arms: pulls against confidence")
    axes.legend(fontsize=9, loc="lower right", ncols=2)
