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
Laws = dict[int, dict[str, Law]]  # m -> of every rule


def run(options: Settings) -> Report:
    cases = {m: common.best_arm_instance([0.75, 0.55] + [0.15] * (m - 2)) for m in (QUICK if options.quick else SIZES)}
    laws = common.laws(cases)
    sweeps = {
        (rule, m): common.runs(
            f"cpe easy arms: {m}", case, rule, options=options, replicates=options.seeds or (16 if m == 64 else 60)
        )
        for m, case in cases.items()
        for rule in RULES
    }
    lines: Lines = {rule: [line_of(f"{rule}, m = {m}", sweeps[rule, m]) for m in cases] for rule in RULES}
    coci, uniform, clucb = (means(lines[rule]) for rule in RULES)
    over = coci / [law["COCI"].root for law in laws.values()]
    slower = {"$H_U / H$": np.array([law["uniform"].H / law["COCI"].H for law in laws.values()])}
    slower |= {"uniform / COCI": uniform / coci, "COCI / CLUCB": coci / clucb}
    return Report(
        "Two close arms among easy ones: pulls against the number of arms, delta = 0.1",
        [line for row in lines.values() for line in row],
        [*separation_claims(list(cases), *slower.values()), common.all_right(sweeps.values())],
        joined(sweeps),
        partial(draw, lines=lines, laws=laws, slower=slower),
        notes=(
            "The law is the root of T = m + (H/2) ln(4 T^3 / delta), that of uniform sampling the root with H_U. COCI "
            f"takes {listed(over, '.2f')} times its law. What uniform sampling takes beyond H_U/H is its greater ln T.",
        ),
        grid=[
            {
                "m": str(m),
                "H": f"{law['COCI'].H:.1f}",
                "H_U/H": f"{slower['$H_U / H$'][row]:.2f}",
                "uniform/COCI": f"{slower['uniform / COCI'][row]:.2f}",
                **common.cells(law, {rule: lines[rule][row] for rule in RULES}),
            }
            for row, (m, law) in enumerate(laws.items())
        ],
    )


def separation_claims(sizes: list[int], theory: np.ndarray, uniform: np.ndarray, coci: np.ndarray) -> list[Claim]:
    """How many times slower uniform sampling is than COCI, in theory and in pulls, and COCI than CLUCB."""
    relative = {f"m = {m}": ratio for m, ratio in zip(sizes, uniform / theory, strict=True)}
    return [
        Claim("uniform / COCI grows with the number of easy arms", listed(uniform, ".2f"), never_falls(uniform)),
        in_range("uniform / COCI over H_U/H", relative, 1.05, 1.30),
        Claim(
            "COCI / CLUCB is above 1 and grows with the number of easy arms",
            listed(coci, ".2f"),
            coci[0] > 1 and never_falls(coci),
        ),
    ]


def draw(figure: Any, *, lines: Lines, laws: Laws, slower: dict[str, np.ndarray]) -> None:
    left, right = split(figure, (10, 4.6), 1, 2)
    sizes = list(laws)
    roots = ([law[rule].root for law in laws.values()] for rule in ("COCI", "uniform"))
    common.draw_laws(left, sizes, *roots, sizes, lines)
    left.set(ylabel="pulls until the stop", title="Pulls")
    looks = ({"color": "k", "lw": 1.2}, STYLES[1] | {"mfc": "w"}, STYLES[2] | {"mfc": "w"})
    for (label, ratio), look in zip(slower.items(), looks, strict=True):
        right.plot(sizes, ratio, label=label, **look)
    right.set(title="Who needs how many times more", ylabel="ratio of mean pulls")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlabel="arms: 2 close ones, m - 2 easy ones")
        ticks(axes, sizes)
        axes.legend(fontsize=9)
    ticks(right, [1, 2, 4, 8], axis="y")
