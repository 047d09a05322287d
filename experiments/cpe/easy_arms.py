"""What adaptivity is worth: uniform sampling pays for every easy arm as if it were the hardest, COCI does not.

The best of m arms, theta = (0.75, 0.55, 0.15, ..., 0.15), m = 4, 8, 16, 32, 64; Bernoulli arms, delta = 0.1. The
separation of the paper's appendix A.5: H = sum 1/Lambda_i^2 grows by 11 for every easy arm, H_U = m / min Lambda^2 by
100.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments.claims import in_range, never_falls
from experiments.cpe import common
from experiments.cpe.common import RULES, Law
from experiments.figures import STYLES, split, ticks
from experiments.report import Claim, Line, Report, joined, line_of, listed, means
from experiments.settings import Settings

SIZES = (4, 8, 16, 32, 64)
QUICK = (4, 16)

Lines = dict[str, list[Line]]  # rule -> for each m


def run(options: Settings) -> Report:
    sizes = QUICK if options.quick else SIZES
    replicates = {m: options.seeds or (16 if m == 64 else 60) for m in sizes}
    cases = {m: common.best_arm_instance([0.75, 0.55] + [0.15] * (m - 2)) for m in sizes}
    laws = {m: common.laws(case)[0] for m, case in cases.items()}
    sweeps = {
        (rule, m): common.runs(f"cpe easy arms: {m}", case, rule, options=options, replicates=replicates[m])
        for m, case in cases.items()
        for rule in RULES
    }
    lines: Lines = {rule: [line_of(f"{rule}, m = {m}", sweeps[rule, m]) for m in sizes] for rule in RULES}
    over = means(lines["COCI"]) / [law.coci for law in laws.values()]
    return Report(
        "Two close arms among easy ones: pulls against the number of arms, delta = 0.1",
        [line for row in lines.values() for line in row],
        [*separation_claims(lines, laws), common.all_right(list(sweeps.values()))],
        joined(sweeps),
        partial(draw, lines=lines, laws=laws),
        notes=(
            "The law is the root of T = m + (H/2) ln(4 T^3 / delta), that of uniform sampling the root with H_U. COCI "
            f"takes {listed(over, '.2f')} times its law. What uniform sampling takes beyond H_U/H is its greater ln T.",
        ),
        grid=[
            {
                "m": str(m),
                "H": f"{law.H:.1f}",
                "H_U/H": f"{law.H_U / law.H:.2f}",
                "uniform/COCI": f"{lines['uniform'][row].ours / lines['COCI'][row].ours:.2f}",
                **common.cells(law, {rule: lines[rule][row] for rule in RULES}),
            }
            for row, (m, law) in enumerate(laws.items())
        ],
    )


def separation_claims(lines: Lines, laws: dict[int, Law]) -> list[Claim]:
    coci, uniform, clucb = (means(lines[rule]) for rule in RULES)
    found, ahead = uniform / coci, coci / clucb
    relative = {f"m = {m}": x / (law.H_U / law.H) for x, (m, law) in zip(found, laws.items(), strict=True)}
    return [
        Claim("uniform / COCI grows with the number of easy arms", listed(found, ".2f"), never_falls(found)),
        in_range("uniform / COCI over H_U/H", relative, 1.05, 1.30),
        Claim(
            "COCI / CLUCB is above 1 and grows with the number of easy arms",
            listed(ahead, ".2f"),
            ahead[0] > 1 and never_falls(ahead),
        ),
    ]


def draw(figure: Any, *, lines: Lines, laws: dict[int, Law]) -> None:
    left, right = split(figure, (10, 4.6), 1, 2)
    sizes = np.array(list(laws))
    coci, uniform, clucb = (means(lines[rule]) for rule in RULES)
    coci_law, uniform_law = ([getattr(law, name) for law in laws.values()] for name in ("coci", "uniform"))
    common.draw_laws(left, sizes, coci_law, uniform_law, sizes, lines)
    left.set(ylabel="pulls until the stop", title="Pulls")
    right.plot(sizes, [law.H_U / law.H for law in laws.values()], "k-", lw=1.2, label="$H_U / H$")
    right.plot(sizes, uniform / coci, mfc="w", label="uniform / COCI", **STYLES[1])
    right.plot(sizes, coci / clucb, mfc="w", label="COCI / CLUCB", **STYLES[2])
    right.set(title="Who needs how many times more", ylabel="ratio of mean pulls")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlabel="arms: 2 close ones, m - 2 easy ones")
        ticks(axes, sizes)
        axes.legend(fontsize=9)
    ticks(right, [1, 2, 4, 8], axis="y")
