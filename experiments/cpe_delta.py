"""Pulls against the probability of error: COCI, uniform sampling and CLUCB on the best two of six arms.

delta = 0.3, 0.1, 10^-2, 10^-3, 10^-4, 10^-6, on the same samples for every delta. The implicit law
T = m + (H/2) ln(4 T^3 / delta) is linear in ln(1/delta), but for its own logarithm, with the slope
(H/2) / (1 - 3 H/(2 T)).
"""

from argparse import Namespace
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments import _cpe
from experiments._cpe import RULES, Law, cell, in_range, points
from experiments.report import Claim, Line, Report, joined, line, number
from jaxbandits import cpe

DELTAS = (0.3, 0.1, 1e-2, 1e-3, 1e-4, 1e-6)
# Mean pulls by another program in NumPy, on 200 runs.
OTHER_RUNS = 200
OTHER = {
    "COCI": dict(zip(DELTAS, (2556, 2690, 2942, 3198, 3459, 3965), strict=True)),
    "uniform": {0.3: 4862, 1e-6: 7259},
    "CLUCB": {0.3: 2140, 1e-6: 3320},
}

Lines = dict[tuple[str, float], Line]  # (rule, delta) -> Line


def run(options: Namespace) -> Report:
    replicates = options.seeds or (40 if options.quick else 200)
    case = cpe.top2of6()
    law = _cpe.laws(case)[0]
    sweeps = {
        rule: _cpe.runs("cpe delta", case, rule, settings={"delta": DELTAS}, options=options, replicates=replicates)
        for rule in RULES
    }
    pulls = {rule: sweep.columns["pulls"].reshape(len(DELTAS), replicates) for rule, sweep in sweeps.items()}
    status = {rule: sweep.columns["status"].reshape(len(DELTAS), replicates) for rule, sweep in sweeps.items()}
    lines: Lines = {
        (rule, delta): line(f"{rule}, delta = {delta:g}", pulls[rule][row], status=status[rule][row])
        for rule in RULES
        for row, delta in enumerate(DELTAS)
    }
    other = {(rule, delta): (mean, OTHER_RUNS) for rule, means in OTHER.items() for delta, mean in means.items()}
    m, H, H_U = len(case.theta), law.H, law.H_U
    deltas = jnp.asarray(DELTAS)
    bounds, roots, uniform_roots = (
        np.round(values).tolist()
        for values in (
            _cpe.bounds_at(H, m, 1, deltas),
            _cpe.laws_at(H, m, 1, deltas, 0.5),
            _cpe.laws_at(H_U, m, 1, deltas, 0.5),
        )
    )
    return Report(
        "The best two of six arms: pulls against delta",
        list(lines.values()),
        [
            *slope_claims(lines, law),
            grows(pulls),
            _cpe.all_right(list(sweeps.values())),
            _cpe.same_as_the_other(lines, other),
        ],
        joined({rule: sweep.columns for rule, sweep in sweeps.items()}),
        partial(draw, lines=lines, law=law, m=m),
        notes=(
            f"H = {H:.2f}, H_U = {H_U:.2f}. The slope of the law is (H/2) / (1 - 3 H/(2 T)), at the mean T of the "
            "deltas. Samples are the same for every delta, so that differences are sharper than the standard errors.",
        ),
        grid=(
            ("delta", "Theorem 1", "law", "COCI", "law, uniform", "uniform", "CLUCB", "runs"),
            [
                (
                    f"{delta:g}",
                    number(bound),
                    number(root),
                    cell(lines["COCI", delta]),
                    number(uniform_root),
                    cell(lines["uniform", delta]),
                    cell(lines["CLUCB", delta]),
                    str(replicates),
                )
                for delta, bound, root, uniform_root in zip(DELTAS, bounds, roots, uniform_roots, strict=True)
            ],
        ),
    )


def slope_claims(lines: Lines, law: Law) -> list[Claim]:
    """T is linear in ln(1/delta), with the slope of the law."""
    x = -np.log(DELTAS)
    means = {rule: np.array([lines[rule, delta].ours for delta in DELTAS]) for rule in RULES}
    fits = {rule: np.polyfit(x, values, 1) for rule, values in means.items()}
    bends = {rule: float(np.max(np.abs(np.polyval(fits[rule], x) / means[rule] - 1))) for rule in RULES}

    def predicted(rule: str, H: float) -> float:
        return H / 2 / (1 - 3 * H / (2 * means[rule].mean()))

    slope = predicted("COCI", law.H)
    uniform = fits["uniform"][0] / predicted("uniform", law.H_U)
    share = float(fits["COCI"][0] / slope)
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
    steps = {rule: np.diff(values, axis=0) for rule, values in pulls.items()}
    return Claim(
        "T grows as delta falls, run by run",
        ", ".join(
            f"{rule} {number(int(np.sum(step > 0)))} of {number(step.size)} steps" for rule, step in steps.items()
        ),
        bool(np.all(steps["COCI"] > 0)),
    )


def draw(figure: Any, *, lines: Lines, law: Law, m: int) -> None:
    axes = figure.subplots()
    fine = np.geomspace(0.4, 5e-7, 100)
    for H, color, label in (
        (law.H_U, "#888888", "law of uniform: with $H_U$"),
        (law.H, "k", r"law of COCI: $T = m + \frac{H}{2}\,\ln(4 T^3/\delta)$"),
    ):
        axes.plot(
            1 / fine, _cpe.laws_at(jnp.asarray(H), m, 1, jnp.asarray(fine), 0.5), color=color, lw=1.2, label=label
        )
    for style, rule in enumerate(RULES):
        points(axes, 1 / np.array(DELTAS), [lines[rule, delta] for delta in DELTAS], rule, style)
    axes.set(xscale="log", xlabel=r"$1/\delta$", ylabel="pulls until the stop", ylim=(0, None))
    axes.set_title("The best two of six arms: pulls against confidence")
    axes.legend(fontsize=9, loc="lower right", ncols=2)
