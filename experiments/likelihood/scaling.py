"""Pulls against the lower bound T* kl(delta) from delta = 1e-1 to 1e-12: which rules come near it.

Soare's instance in six dimensions, omega = 0.1, theta = 2 e_1, gk16 for all rules that stop by likelihood ratios. The
practical time solves t = T* gk16(t, delta): at these values of delta it is still well above T* kl.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments.figures import STYLES, legend_below
from experiments.likelihood import common
from experiments.report import STANDARD_ERRORS, Claim, Line, Report, joined, line_of, listed, plus_minus
from experiments.settings import Settings
from jaxbandits import linear
from jaxbandits.numerics import thresholds

DELTAS = tuple(10.0**-n for n in (1, 2, 3, 4, 6, 8, 10, 12))
OPTIMAL = ("FWS", "LinGame", "Lazy TaS", "PEPS")
FIXED = ("uniform", "XY-static")
FEWER = {"PEPS": 5}  # rules with costly rounds, which get fewer runs

Key = tuple[str, float]  # rule, delta


def run(options: Settings) -> Report:
    seeds = options.seeds or (60 if options.quick else 500)
    deltas = DELTAS[:6:2] if options.quick else DELTAS
    instance = linear.soare(6, 0.1)
    time = common.time_of(instance)
    allocation = linear.xy_allocation(instance.arms).allocation
    factories = {rule: common.by_ratios(rule, thresholds.gk16(arms=7)) for rule in ("LinGapE", *OPTIMAL, "uniform")}
    factories["XY-static"] = lambda arms, delta: linear.xy_static(arms, allocation, delta=delta)
    sweeps = {
        rule: common.runs(
            f"linear2 scaling: {rule}",
            instance,
            factory,
            options=options,
            seeds=max(seeds // FEWER.get(rule, 1), 30),
            delta=deltas,
        )
        for rule, factory in factories.items()
    }
    lines = {
        (rule, delta): line_of(f"{rule}, {delta:g}", common.row_of(sweep, n), bound=time * float(common.kl(delta)))
        for rule, sweep in sweeps.items()
        for n, delta in enumerate(deltas)
    }
    wrong = {
        key: common.errors(common.row_of(sweeps[key[0]], n))
        for n, d in enumerate(deltas)
        for key in lines
        if key[1] == d
    }
    practical = {delta: common.practical(time, delta) for delta in deltas}
    return Report(
        "Pulls until the stop on soare(6), as delta falls",
        list(lines.values()),
        [
            *(falls(rule, lines, practical, deltas) for rule in OPTIMAL),
            *(stays(rule, lines, deltas) for rule in FIXED),
            common.confident({f"{rule}, {d:g}": (*wrong[rule, d], d) for rule, d in lines if d >= 1e-3}),
        ],
        joined(sweeps, label="rule"),
        partial(draw, lines=lines, practical=practical, deltas=deltas),
        notes=(
            f"T* = {time:.2f}. XY-static has a test of its own; gk16 is a heuristic. Below delta = 1e-3, the runs "
            "here are too few to show an excess of errors.",
        ),
        grid=[
            {
                "rule": rule,
                "delta": f"{delta:g}",
                "pulls": plus_minus(each),
                "/ (T* kl)": f"{ratio(each):.2f}",
                "/ practical": f"{each.ours / practical[delta]:.2f}",
                "wrong": "{} of {}".format(*wrong[rule, delta]),
            }
            for (rule, delta), each in lines.items()
        ],
    )


def ratio(each: Line) -> float:
    """Computes pulls / (T* kl)."""
    return each.ours / (each.bound or np.nan)


def falls(rule: str, lines: dict[Key, Line], practical: dict[float, float], deltas: tuple[float, ...]) -> Claim:
    """Claims that pulls / (T* kl) fall and that pulls approach the practical time."""
    ratios = {delta: ratio(lines[rule, delta]) for delta in deltas}
    values = np.array(list(ratios.values()))
    errors = np.array([lines[rule, delta].se / (lines[rule, delta].bound or np.nan) for delta in deltas])
    never_rises = np.all(np.diff(values) <= STANDARD_ERRORS * np.hypot(errors[1:], errors[:-1]))
    last = deltas[-1]
    near = lines[rule, last].ours / practical[last]
    text = f"{listed({f'{d:g}:': v for d, v in ratios.items()}, '.2f')}; {near:.2f} of the practical time at the end"
    return Claim(f"{rule}: pulls / (T* kl) fall towards 1", text, never_rises and values[-1] < values[0])


def stays(rule: str, lines: dict[Key, Line], deltas: tuple[float, ...]) -> Claim:
    """Claims that a fixed allocation stays above adaptive rules."""
    last = ratio(lines[rule, deltas[-1]])
    best = max(ratio(lines[other, deltas[-1]]) for other in ("FWS", "Lazy TaS"))
    statement = f"{rule}: pulls / (T* kl) stay above twice the ratio of FWS and Lazy TaS"
    return Claim(statement, f"{last:.2f} against {best:.2f} at delta = {deltas[-1]:g}", last > 2 * best)


def draw(figure: Any, *, lines: dict[Key, Line], practical: dict[float, float], deltas: tuple[float, ...]) -> None:
    axes = figure.subplots()
    for rule, style in zip(dict.fromkeys(rule for rule, _ in lines), STYLES, strict=False):
        rows = [lines[rule, delta] for delta in deltas]
        se = [2 * each.se / (each.bound or np.nan) for each in rows]
        axes.errorbar(deltas, [ratio(each) for each in rows], se, label=rule, mfc="w", ms=4, **style)
    bounds = [lines["FWS", delta].bound or np.nan for delta in deltas]
    axes.plot(deltas, np.array([practical[d] for d in deltas]) / bounds, "k:", label="practical time")
    axes.axhline(1, color="k", lw=1)
    axes.set(xscale="log", yscale="log", xlabel="delta", ylabel="pulls / (T* kl)")
    axes.invert_xaxis()
    legend_below(figure, ncols=4)
