"""Pulls against the probability of error, from 1e-1 to 1e-8, on four Gaussian arms: do rules reach their constants?

Track-and-Stop pulls T* log(1/delta) in the limit, a top-two rule of share 1/2 T_half log(1/delta). T_half is the
smallest time with half of the pulls for the best arm. With the information-directed share ("ids") a top-two rule has T*
too.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.mab import common
from experiments.report import STANDARD_ERRORS, Claim, Line, Report, means
from experiments.settings import Settings
from jaxbandits import Results, mab

DELTAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
RULES = {  # label: rule, its settings, whether its constant is T_half
    "TaS, D": ("TaS, D", {}, False),
    "T3C": ("T3C", {}, True),
    "TTUCB": ("TTUCB", {}, True),
    "EB-TCI": ("EB-TCI", {}, True),
    "TTUCB, ids": ("TTUCB", {"leader_share": "ids"}, False),
    "EB-TCI, ids": ("EB-TCI", {"leader_share": "ids"}, False),
}
FROM = 1e-3  # largest delta that slopes include


def run(options: Settings) -> Report:
    deltas = DELTAS[::3] if options.quick else DELTAS
    seeds = options.seeds or (60 if options.quick else 1000)
    instance = mab.gauss4()
    best = float(common.time_of(instance))
    half = float(common.time_of(instance, leader_share=0.5))

    def sweep(rule: str) -> Results:
        name, settings, _ = RULES[rule]
        shared = {"options": options, "seeds": seeds, "delta": deltas, "paired": False}
        return common.runs("mab delta", instance, name, **shared, **settings)

    axes = {"rule": RULES, "delta": deltas}
    cells = study.crossed(axes, sweep, rows="delta", name="{rule}, delta = {delta:g}")
    lines = study.by(cells, "rule")
    times = {label: half if is_half else best for label, (_, _, is_half) in RULES.items()}
    slopes = {label: slope(deltas, lines[label]) / times[label] for label in RULES}  # slope and its standard error
    last = {label: row[-1].ours / (best * common.gk16(row[-1].ours, deltas[-1])) for label, row in lines.items()}
    wrong = study.errors(cells)
    return study.report(
        "Four Gaussian arms: pulls against delta",
        cells,
        [
            *(slope_claim(label, *slopes[label], "T_half" if RULES[label][2] else "T*") for label in RULES),
            Claim(
                "at the smallest delta every rule is within a tenth of its constant: tau / (T* gk16(tau)), T_half / T* "
                f"= {half / best:.3f}",
                ", ".join(f"{label} {ratio:.3f}" for label, ratio in last.items()),
                all(abs(ratio * best / times[label] - 1) < 0.1 for label, ratio in last.items()),
            ),
            common.confident({label: wrong[label, deltas[0]] for label in RULES}),
        ],
        draw=partial(draw, cells=cells, best=best, half=half),
        notes=(
            f"T* = {best:.1f}, T_half = {half:.1f}. Threshold: gk16, a heuristic. gk16 itself grows faster than "
            "log(1/delta), by its log log of the pulls, so slopes should lie one percent above their constants.",
        ),
        grid=study.across(cells, "rule", more=lambda delta: {"runs": str(seeds)}),
    )


def slope(deltas: tuple[float, ...], lines: list[Line]) -> np.ndarray:
    """Fits the slope of mean pulls in log(1/delta), with its standard error."""
    small = np.asarray(deltas) <= FROM
    x = -np.log(deltas)[small]
    weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    se = np.nan_to_num([line.se for line in lines])[small]
    return np.array([weights @ means(lines)[small], np.sqrt(weights**2 @ se**2)])


def slope_claim(label: str, share: float, se: float, name: str) -> Claim:
    room = STANDARD_ERRORS * se
    return Claim(
        f"{label}: the slope of the mean in log(1/delta), from {FROM:g} on, is .97 to 1.12 {name}, within "
        f"{STANDARD_ERRORS} standard errors",
        f"{share:.3f} +- {se:.3f}",
        0.97 - room <= share <= 1.12 + room,
    )


def draw(figure: Any, *, cells: study.Study, best: float, half: float) -> None:
    axes = figure.subplots()

    def over_asymptote(rule: str, delta: float) -> float:
        return 1 / (best * common.gk16(cells.lines[rule, delta].ours, delta))

    def aside(rule: str, delta: float) -> float:  # so that bars do not hide each other
        return 1.1 ** (list(RULES).index(rule) - (len(RULES) - 1) / 2) / delta

    study.curves(axes, cells, aside, scale=over_asymptote)
    for level, name in ((1, r"$T^\star$"), (half / best, r"$T_{1/2}$")):
        axes.axhline(level, color="k", lw=1, ls=":")
        axes.annotate(name, (1, level), (4, 0), xycoords=("axes fraction", "data"), textcoords="offset points")
    axes.set(xscale="log", xlabel=r"$1/\delta$", ylabel=r"pulls / ($T^\star$ threshold)", title="Four Gaussian arms")
    axes.legend(ncols=2)
