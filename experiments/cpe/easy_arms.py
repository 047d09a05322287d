"""The value of adaptivity: uniform sampling pays for every easy arm as if it were the hardest; COCI does not.

The best of m arms, theta = (0.75, 0.55, 0.15, ..., 0.15), m = 4, 8, 16, 32, 64; Bernoulli arms, delta = 0.1. The
separation of the paper's appendix A.5: H = sum 1/Lambda_i^2 grows by 11 for every easy arm, H_U = m / min Lambda^2 by
100.
"""

from experiments import study
from experiments.claims import in_range, never_falls
from experiments.cpe import common
from experiments.cpe.common import RULES
from experiments.figures import STYLES, split, ticks
from experiments.report import Claim, Report, listed, means
from experiments.settings import Settings

SIZES = (4, 8, 16, 32, 64)


def run(options: Settings, *, sizes: tuple[int, ...] = SIZES) -> Report:
    sizes = SIZES[:3:2] if options.quick and sizes is SIZES else sizes

    def extra(m: int, rule: str) -> dict[str, int]:
        return {"replicates": options.seeds or (16 if m == 64 else 60)}

    cases = {m: common.best_arm_instance([0.75, 0.55] + [0.15] * (m - 2)) for m in sizes}
    sweeps = common.compared("cpe easy arms: {}", cases, extra=extra, options=options)
    swapped = {(rule, m): sweep for (m, rule), sweep in sweeps.items()}
    cells = study.collected({"rule": RULES, "m": sizes}, swapped, name="{rule}, m = {m}")
    coci, uniform, clucb = map(means, study.by(cells, "rule").values())
    laws = common.laws(cases.values())
    slower = {"$H_U / H$": laws["uniform"].H / laws["COCI"].H}
    slower |= {"uniform / COCI": uniform / coci, "COCI / CLUCB": coci / clucb}
    in_theory, worse, saved = slower.values()
    relative = {f"m = {m}": ratio for m, ratio in zip(sizes, worse / in_theory, strict=True)}

    def draw(figure) -> None:
        left, right = split(figure, (10, 4.6), 1, 2)
        common.draw_laws(left, sizes, laws, sizes, cells)
        left.set(ylabel="pulls until the stop", title="Pulls")
        looks = ({"color": "k", "lw": 1.2}, STYLES[1] | {"mfc": "w"}, STYLES[2] | {"mfc": "w"})
        for (label, ratio), look in zip(slower.items(), looks, strict=True):
            right.plot(sizes, ratio, label=label, **look)
        right.set(title="Ratios of the rules' pulls", ylabel="ratio of mean pulls")
        for axes in (left, right):
            axes.set(xscale="log", yscale="log", xlabel="arms: 2 close ones, m - 2 easy ones")
            ticks(axes, sizes)
            axes.legend(fontsize=9)
        ticks(right, [1, 2, 4, 8], axis="y")

    def row(n: int) -> dict[str, str]:
        shown = {"m": str(sizes[n]), "H": f"{laws['COCI'].H[n]:.1f}", "H_U/H": f"{in_theory[n]:.2f}"}
        return shown | {"uniform/COCI": f"{worse[n]:.2f}"}

    return study.report(
        "Two close arms among easy ones: pulls against the number of arms, delta = 0.1",
        cells,
        [
            Claim("uniform / COCI grows with the number of easy arms", listed(worse, ".2f"), never_falls(worse)),
            in_range("uniform / COCI over H_U/H", relative, 1.05, 1.30),
            Claim(
                "COCI / CLUCB is above 1 and grows with the number of easy arms",
                listed(saved, ".2f"),
                saved[0] > 1 and never_falls(saved),
            ),
            common.all_right(sweeps.values()),
        ],
        draw=draw,
        notes=(
            "The law is the root of T = m + (H/2) ln(4 T^3 / delta), and for uniform sampling the root with H_U. COCI "
            f"takes {listed(coci / laws['COCI'].root, '.2f')} times its law. Uniform sampling exceeds H_U/H by "
            "its larger ln T.",
        ),
        grid=common.grid(cells, "m", laws, row),
    )
