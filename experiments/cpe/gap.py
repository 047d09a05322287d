"""Pulls against the gap: COCI, uniform sampling and CLUCB on a best arm that is ever harder to identify.

theta = 0.48 + g (0.4, 0.12, 0.05, -0.15, -0.4) for g = 1, 0.7, 0.5, 0.35, 0.25; five Bernoulli arms, delta = 0.1. The
hardness H = sum 1/Lambda_i^2 grows as 1/g^2, and the pulls as H ln(H / delta): the order of the paper's Theorem 1.
"""

import numpy as np

from experiments import study
from experiments.claims import in_range
from experiments.cpe import common
from experiments.cpe.common import DELTA, RULES
from experiments.figures import ticks
from experiments.report import Claim, Columns, Report, listed, means
from experiments.settings import Settings

SHAPE = np.array([0.4, 0.12, 0.05, -0.15, -0.4])
GAPS = (1.0, 0.7, 0.5, 0.35, 0.25)


def run(options: Settings, *, gaps: tuple[float, ...] = GAPS) -> Report:
    gaps = GAPS[:3] if options.quick and gaps is GAPS else gaps
    names = [f"g = {gap}" for gap in gaps]
    cases = [common.best_arm_instance(0.48 + gap * SHAPE) for gap in gaps]
    shared = {"options": options, "replicates": options.seeds or (100 if options.quick else 200)}

    def sweep(rule: str) -> Columns:
        columns = common.runs("cpe gap", cases, rule, **shared).columns
        return columns | {"gap": np.array(gaps)[columns["instance"]]}

    cells = study.crossed({"rule": RULES, "gap": gaps}, sweep, split="gap", name="{rule}, g = {gap}")
    pulls = {rule: means(row) for rule, row in study.by(cells, "rule").items()}
    coci, uniform, clucb = pulls.values()
    laws = common.laws(cases)
    H = laws["COCI"].H
    scale = H * np.log(H / DELTA)
    slopes = {rule: np.polyfit(np.log(scale), np.log(mean), 1)[0] for rule, mean in pulls.items()}

    def in_all(what: str, values: np.ndarray, least: float, most: float) -> Claim:
        return in_range(what, dict(zip(names, values, strict=True)), least, most)

    def draw(figure) -> None:
        axes = figure.subplots()
        fine = np.geomspace(H.min() / 1.3, H.max() * 1.3, 100)
        along = {rule: common.law(fine * law.H[0] / H[0], len(SHAPE)) for rule, law in laws.items()}
        axes.plot(fine, along["COCI"].bound, "k:", lw=1.2, label="Theorem 1, bound of COCI")
        common.draw_laws(axes, fine, along, H, cells)
        for x, gap, y in zip(H, gaps, clucb, strict=True):
            axes.annotate(f"g = {gap:g}", (x, y), (7, -9), textcoords="offset points", fontsize=9)
        axes.set(xscale="log", yscale="log", xlabel=r"hardness $H = \sum_i 1/\Lambda_i^2$")
        axes.set(ylabel="pulls until the stop", title="Best of five arms, ever closer")
        ticks(axes, [x for x in (200, 500, 1000, 2000) if fine[0] < x < fine[-1]])
        axes.legend(fontsize=9)

    return study.report(
        "Best of five arms: pulls against the gap, delta = 0.1",
        cells,
        [
            Claim(
                "the slope of log T on log(H ln(H / delta)) lies in [0.97, 1.03] for COCI",
                listed(slopes, ".3f"),
                0.97 <= slopes["COCI"] <= 1.03,
            ),
            in_all("T of COCI / (H ln(H / delta))", coci / scale, 1.65, 1.85),
            in_all("T of COCI / its law", coci / laws["COCI"].root, 0.90, 1.06),
            in_all("T of uniform / its law", uniform / laws["uniform"].root, 0.93, 1.10),
            in_all("uniform / COCI does not depend on g: it", uniform / coci, 1.7, 1.9),
            in_all("CLUCB / COCI does not depend on g: it", clucb / coci, 0.8, 0.95),
            common.all_right(cells.sweeps.values()),
        ],
        draw=draw,
        notes=(
            "The law is the root of T = m + (H/2) ln(4 T^3 / delta), and for uniform sampling the root with H_U = "
            "m / min Lambda^2.",
        ),
        grid=common.grid(cells, "gap", laws, lambda n: {"g": str(gaps[n]), "H": f"{H[n]:.1f}"}),
    )
