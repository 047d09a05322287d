"""Pulls against the gap: COCI, uniform sampling and CLUCB on a best arm that is ever harder to tell.

theta = 0.48 + g (0.4, 0.12, 0.05, -0.15, -0.4) for g = 1, 0.7, 0.5, 0.35, 0.25; five Bernoulli arms, delta = 0.1. The
hardness H = sum 1/Lambda_i^2 grows as 1/g^2, and the pulls as H ln(H / delta): the order of the paper's Theorem 1.
"""

from argparse import Namespace
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments import _cpe
from experiments._cpe import DELTA, RULES, Law, cell, in_range, points
from experiments.report import Claim, Line, Report, joined, line, number

SHAPE = np.array([0.4, 0.12, 0.05, -0.15, -0.4])
GAPS = (1.0, 0.7, 0.5, 0.35, 0.25)
QUICK = GAPS[:3]
# Mean pulls by another program in NumPy, on 200 runs.
OTHER_RUNS = 200
OTHER = {
    "COCI": (1983, 4320, 9259, 20516, 43078),
    "uniform": (3590, 7723, 16491, 36282, 75998),
    "CLUCB": (1732, 3754, 8001, 17705, 37265),
}

Lines = dict[tuple[str, float], Line]  # (rule, gap) -> Line


def run(options: Namespace) -> Report:
    gaps = QUICK if options.quick else GAPS
    replicates = options.seeds or (100 if options.quick else 200)
    cases = [_cpe.best_arm_instance(0.48 + gap * SHAPE) for gap in gaps]
    laws = dict(zip(gaps, _cpe.laws(cases), strict=True))
    sweeps = {rule: _cpe.runs("cpe gap", cases, rule, options=options, replicates=replicates) for rule in RULES}
    lines: Lines = {
        (rule, gap): line(
            f"{rule}, g = {gap}",
            sweep.columns["pulls"][sweep.columns["instance"] == row],
            status=sweep.columns["status"][sweep.columns["instance"] == row],
        )
        for rule, sweep in sweeps.items()
        for row, gap in enumerate(gaps)
    }
    other = {
        (rule, gap): (mean, OTHER_RUNS) for rule, means in OTHER.items() for gap, mean in zip(GAPS, means, strict=True)
    }
    return Report(
        "Best of five arms: pulls against the gap, delta = 0.1",
        list(lines.values()),
        [
            *growth_claims(lines, laws),
            _cpe.all_right(list(sweeps.values())),
            _cpe.same_as_the_other(lines, other),
        ],
        joined(
            {
                rule: sweep.columns | {"gap": np.asarray(gaps)[sweep.columns["instance"]]}
                for rule, sweep in sweeps.items()
            }
        ),
        partial(draw, lines=lines, laws=laws),
        notes=(
            "The law is the root of T = m + (H/2) ln(4 T^3 / delta), that of uniform sampling the root with H_U = "
            "m / min Lambda^2.",
        ),
        grid=(
            ("g", "H", "Theorem 1", "law", "COCI", "law, uniform", "uniform", "CLUCB", "runs"),
            [
                (
                    str(gap),
                    f"{law.H:.1f}",
                    number(round(law.bound)),
                    number(round(law.coci)),
                    cell(lines["COCI", gap]),
                    number(round(law.uniform)),
                    cell(lines["uniform", gap]),
                    cell(lines["CLUCB", gap]),
                    str(replicates),
                )
                for gap, law in laws.items()
            ],
        ),
    )


def growth_claims(lines: Lines, laws: dict[float, Law]) -> list[Claim]:
    """T grows as H ln(H / delta), for all rules alike."""
    scale = np.array([law.H * np.log(law.H / DELTA) for law in laws.values()])
    means = {rule: np.array([lines[rule, gap].ours for gap in laws]) for rule in RULES}
    slopes = {rule: float(np.polyfit(np.log(scale), np.log(values), 1)[0]) for rule, values in means.items()}
    names = [f"g = {gap}" for gap in laws]

    def named(values: np.ndarray) -> dict[str, float]:
        return dict(zip(names, values.tolist(), strict=True))

    return [
        Claim(
            "the slope of log T on log(H ln(H / delta)) lies in [0.97, 1.03] for COCI",
            ", ".join(f"{rule} {slope:.3f}" for rule, slope in slopes.items()),
            0.97 <= slopes["COCI"] <= 1.03,
        ),
        in_range("T of COCI / (H ln(H / delta))", named(means["COCI"] / scale), 1.65, 1.85),
        in_range("T of COCI / its law", named(means["COCI"] / [law.coci for law in laws.values()]), 0.90, 1.06),
        in_range(
            "T of uniform / its law", named(means["uniform"] / [law.uniform for law in laws.values()]), 0.93, 1.10
        ),
        in_range("uniform / COCI does not depend on g: it", named(means["uniform"] / means["COCI"]), 1.7, 1.9),
        in_range("CLUCB / COCI does not depend on g: it", named(means["CLUCB"] / means["COCI"]), 0.8, 0.95),
    ]


def draw(figure: Any, *, lines: Lines, laws: dict[float, Law]) -> None:
    axes = figure.subplots()
    H = np.array([law.H for law in laws.values()])
    fine = np.geomspace(H.min() / 1.3, H.max() * 1.3, 100)
    ratio = laws[1.0].H_U / laws[1.0].H
    m = len(SHAPE)
    axes.plot(fine, _cpe.bounds_at(jnp.asarray(fine), m, 1, DELTA), "k:", lw=1.2, label="Theorem 1, the bound of COCI")
    axes.plot(
        fine,
        _cpe.laws_at(jnp.asarray(ratio * fine), m, 1, DELTA, 0.5),
        color="#888888",
        lw=1.2,
        label="law of uniform: with $H_U$",
    )
    axes.plot(
        fine,
        _cpe.laws_at(jnp.asarray(fine), m, 1, DELTA, 0.5),
        "k-",
        lw=1.2,
        label=r"law of COCI: $T = m + \frac{H}{2}\,\ln(4 T^3/\delta)$",
    )
    for style, rule in enumerate(RULES):
        points(axes, H, [lines[rule, gap] for gap in laws], rule, style)
    for gap, law in laws.items():
        axes.annotate(
            f"g = {gap:g}", (law.H, lines["CLUCB", gap].ours), xytext=(7, -9), textcoords="offset points", fontsize=9
        )
    axes.set(xscale="log", yscale="log", xlabel=r"hardness $H = \sum_i 1/\Lambda_i^2$", ylabel="pulls until the stop")
    ticks = [x for x in (200, 500, 1000, 2000) if fine[0] < x < fine[-1]]
    axes.set_xticks(ticks, map(str, ticks))
    axes.set_xticks([], minor=True)
    axes.set_title("Best of five arms, ever closer")
    axes.legend(fontsize=9)
