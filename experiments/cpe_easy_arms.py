"""What adaptivity is worth: uniform sampling pays for every easy arm as if it were the hardest, COCI does not.

The best of m arms, theta = (0.75, 0.55, 0.15, ..., 0.15), m = 4, 8, 16, 32, 64; Bernoulli arms, delta = 0.1. The
separation of the paper's appendix A.5: H = sum 1/Lambda_i^2 grows by 11 for every easy arm, H_U = m / min Lambda^2 by
100.
"""

from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments import _cpe
from experiments._cpe import RULES, Law, cell, in_range, never_falls, points
from experiments.report import STYLES, Claim, Line, Report, joined, line, number

SIZES = (4, 8, 16, 32, 64)
QUICK = (4, 16)
# Mean pulls by another program in NumPy, on 60 runs, 16 with 64 arms.
OTHER = {
    "COCI": (2916, 3537, 4904, 7795, 13809),
    "uniform": (5762, 12365, 26626, 56807, 116702),
    "CLUCB": (2762, 3014, 3512, 4558, 6561),
}
OTHER_RUNS = (60, 60, 60, 60, 16)

Lines = dict[tuple[str, int], Line]  # (rule, m) -> Line


def run(options: Namespace) -> Report:
    sizes = QUICK if options.quick else SIZES
    replicates = {m: options.seeds or (16 if m == 64 else 60) for m in sizes}
    cases = {m: _cpe.best_arm_instance([0.75, 0.55] + [0.15] * (m - 2)) for m in sizes}
    laws = {m: _cpe.laws(case)[0] for m, case in cases.items()}
    sweeps = {
        (rule, m): _cpe.runs(f"cpe easy arms: {m}", case, rule, options=options, replicates=replicates[m])
        for m, case in cases.items()
        for rule in RULES
    }
    lines: Lines = {
        (rule, m): line(f"{rule}, m = {m}", sweep.columns["pulls"], status=sweep.columns["status"])
        for (rule, m), sweep in sweeps.items()
    }
    other = {
        (rule, m): (mean, count)
        for rule, means in OTHER.items()
        for m, mean, count in zip(SIZES, means, OTHER_RUNS, strict=True)
    }
    return Report(
        "Two close arms among easy ones: pulls against the number of arms, delta = 0.1",
        list(lines.values()),
        [
            *separation_claims(lines, laws),
            _cpe.all_right(list(sweeps.values())),
            _cpe.same_as_the_other(lines, other),
        ],
        joined({rule: joined({m: sweeps[rule, m].columns for m in sizes}, "m") for rule in RULES}),
        partial(draw, lines=lines, laws=laws),
        notes=(
            "The law is the root of T = m + (H/2) ln(4 T^3 / delta), that of uniform sampling the root with H_U. COCI "
            f"takes {_shown([lines['COCI', m].ours / law.coci for m, law in laws.items()])} times its law. What "
            "uniform sampling takes beyond H_U/H is its greater ln T.",
        ),
        grid=(
            ("m", "H", "H_U/H", "uniform/COCI", "law", "COCI", "law, uniform", "uniform", "CLUCB", "runs"),
            [
                (
                    str(m),
                    f"{law.H:.1f}",
                    f"{law.H_U / law.H:.2f}",
                    f"{lines['uniform', m].ours / lines['COCI', m].ours:.2f}",
                    number(round(law.coci)),
                    cell(lines["COCI", m]),
                    number(round(law.uniform)),
                    cell(lines["uniform", m]),
                    cell(lines["CLUCB", m]),
                    str(replicates[m]),
                )
                for m, law in laws.items()
            ],
        ),
    )


def ratios(lines: Lines, sizes: Any, above: str, below: str) -> np.ndarray:
    """Mean pulls of one rule over those of another."""
    return np.array([lines[above, m].ours / lines[below, m].ours for m in sizes])


def separation_claims(lines: Lines, laws: dict[int, Law]) -> list[Claim]:
    """Appendix A.5, and CLUCB."""
    found = ratios(lines, laws, "uniform", "COCI")
    relative = {f"m = {m}": float(x / (law.H_U / law.H)) for x, (m, law) in zip(found, laws.items(), strict=True)}
    ahead = ratios(lines, laws, "COCI", "CLUCB")
    return [
        Claim("uniform / COCI grows with the number of easy arms", _shown(found), never_falls(found)),
        in_range("uniform / COCI over H_U/H", relative, 1.05, 1.30),
        Claim(
            "COCI / CLUCB is above 1 and grows with the number of easy arms",
            _shown(ahead),
            bool(ahead[0] > 1) and never_falls(ahead),
        ),
    ]


def _shown(values: Sequence[float] | np.ndarray) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def draw(figure: Any, *, lines: Lines, laws: dict[int, Law]) -> None:
    figure.set_size_inches(10, 4.6)
    left, right = figure.subplots(1, 2)
    sizes = np.array(list(laws))
    left.plot(
        sizes, [law.uniform for law in laws.values()], color="#888888", lw=1.2, label="law of uniform: with $H_U$"
    )
    formula = r"law of COCI: $T = m + \frac{H}{2}\,\ln(4 T^3/\delta)$"
    left.plot(sizes, [law.coci for law in laws.values()], "k-", lw=1.2, label=formula)
    for style, rule in enumerate(RULES):
        points(left, sizes, [lines[rule, m] for m in laws], rule, style)
    left.set(ylabel="pulls until the stop", title="Pulls")
    left.legend(fontsize=9)
    right.plot(sizes, [law.H_U / law.H for law in laws.values()], "k-", lw=1.2, label="$H_U / H$")
    right.plot(sizes, ratios(lines, laws, "uniform", "COCI"), mfc="w", label="uniform / COCI", **STYLES[1])
    right.plot(sizes, ratios(lines, laws, "COCI", "CLUCB"), mfc="w", label="COCI / CLUCB", **STYLES[2])
    right.set(title="Who needs how many times more", ylabel="ratio of mean pulls")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlabel="arms: 2 close ones, m - 2 easy ones")
        axes.set_xticks(sizes, map(str, sizes))
        axes.set_xticks([], minor=True)
    right.set_yticks([], minor=True)
    right.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    right.legend(fontsize=9)
