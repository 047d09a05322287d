"""Pulls against the lower bound T* kl(delta) from delta = 1e-1 to 1e-12: which rules come near it.

Soare's instance in six dimensions, omega = 0.1, theta = 2 e_1, gk16 for all rules that stop by likelihood ratios. The
practical time solves t = T* gk16(t, delta): at these values of delta it is still well above T* kl.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.figures import legend_below
from experiments.likelihood import common
from experiments.report import STANDARD_ERRORS, Claim, Line, Report, listed
from experiments.settings import Settings
from jaxbandits import Results, linear
from jaxbandits.numerics import thresholds

DELTAS = tuple(10.0**-n for n in (1, 2, 3, 4, 6, 8, 10, 12))
OPTIMAL = ("FWS", "LinGame", "Lazy TaS", "PEPS")
FIXED = ("uniform", "XY-static")
FEWER = {"PEPS": 5}  # rules with costly rounds, which get fewer runs


def run(options: Settings) -> Report:
    seeds = options.seeds or (60 if options.quick else 500)
    deltas = DELTAS[:6:2] if options.quick else DELTAS
    instance = linear.soare(6, 0.1)
    time = common.time_of(instance)
    allocation = linear.xy_allocation(instance.arms).allocation
    factories = {rule: common.by_ratios(rule, thresholds.gk16(arms=7)) for rule in ("LinGapE", *OPTIMAL, "uniform")}
    factories["XY-static"] = lambda arms, delta: linear.xy_static(arms, allocation, delta=delta)

    def sweep(rule: str) -> Results:
        shared = {"options": options, "seeds": max(seeds // FEWER.get(rule, 1), 30), "delta": deltas}
        return common.runs(f"linear2 scaling: {rule}", instance, factories[rule], **shared)

    cells = study.crossed(
        {"rule": factories, "delta": deltas},
        sweep,
        rows="delta",
        name="{rule}, {delta:g}",
        more=lambda rule, delta: {"bound": time * float(common.kl(delta))},
    )
    lines, wrong = study.by(cells, "rule"), study.errors(cells)
    practical = np.array([common.practical(time, delta) for delta in deltas])
    counts = common.counts_of(cells)
    return study.report(
        "Pulls until the stop on soare(6), as delta falls",
        cells,
        [
            *(falls(rule, lines[rule], practical, deltas) for rule in OPTIMAL),
            *(stays(rule, lines, deltas) for rule in FIXED),
            common.confident({name: each for name, each in counts.items() if each[2] >= 1e-3}),
        ],
        draw=partial(draw, cells=cells, practical=practical),
        notes=(
            f"T* = {time:.2f}. XY-static has a test of its own; gk16 is a heuristic. Below delta = 1e-3, the runs "
            "here are too few to show an excess of errors.",
        ),
        grid=[
            {"rule": rule, "delta": f"{delta:g}"}
            | common.cells_of(each, practical[deltas.index(delta)])
            | {"wrong": "{} of {}".format(*wrong[rule, delta])}
            for (rule, delta), each in cells.lines.items()
        ],
    )


def falls(rule: str, lines: list[Line], practical: np.ndarray, deltas: tuple[float, ...]) -> Claim:
    """Claims that pulls / (T* kl) fall and that pulls approach the practical time."""
    values = np.array([common.over_bound(each) for each in lines])
    errors = np.array([each.se / (each.bound or np.nan) for each in lines])
    never_rises = np.all(np.diff(values) <= STANDARD_ERRORS * np.hypot(errors[1:], errors[:-1]))
    ratios = listed({f"{delta:g}:": value for delta, value in zip(deltas, values, strict=True)}, ".2f")
    text = f"{ratios}; {lines[-1].ours / practical[-1]:.2f} of the practical time at the end"
    return Claim(f"{rule}: pulls / (T* kl) fall towards 1", text, never_rises and values[-1] < values[0])


def stays(rule: str, lines: dict[str, list[Line]], deltas: tuple[float, ...]) -> Claim:
    """Claims that a fixed allocation stays above adaptive rules."""
    last = common.over_bound(lines[rule][-1])
    best = max(common.over_bound(lines[other][-1]) for other in ("FWS", "Lazy TaS"))
    statement = f"{rule}: pulls / (T* kl) stay above twice the ratio of FWS and Lazy TaS"
    return Claim(statement, f"{last:.2f} against {best:.2f} at delta = {deltas[-1]:g}", last > 2 * best)


def draw(figure: Any, *, cells: study.Study, practical: np.ndarray) -> None:
    axes = figure.subplots()
    bounds = {at["delta"]: each.bound for key, each in cells.lines.items() for at in [study.at_of(cells, key)]}
    study.curves(axes, cells, "delta", scale=lambda rule, delta: 1 / bounds[delta])
    axes.plot(list(bounds), practical / list(bounds.values()), "k:", label="practical time")
    axes.axhline(1, color="k", lw=1)
    axes.set(xscale="log", yscale="log", xlabel="delta", ylabel="pulls / (T* kl)")
    axes.invert_xaxis()
    legend_below(figure, ncols=4)
