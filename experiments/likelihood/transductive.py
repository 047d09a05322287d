"""Items other than the arms: pulls against the dimension, when the pulled arms are not the compared items.

Arms e_1..e_2d, items e_1..e_d and cos(omega) e_i + sin(omega) e_(d+i), omega = 0.1, theta = e_1, as in Fiez et al.
(2019): item d is nearly the best, and only the arms 1 and d + 1 tell the two apart.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments.claims import every_run_stops
from experiments.figures import curves, legend_below
from experiments.likelihood import common
from experiments.report import STANDARD_ERRORS, Claim, Line, Report, joined, line_of, listed, plus_minus
from experiments.settings import Settings
from jaxbandits import linear
from jaxbandits.numerics import thresholds

DELTA, OMEGA = 0.05, 0.1
DIMENSIONS = (2, 3, 4, 6, 8, 10)
ADAPTIVE = ("LinGapE", "FWS", "Lazy TaS")
RULES = (*ADAPTIVE, "RAGE", "uniform")

Key = tuple[str, int]  # rule, dimension


def run(options: Settings) -> Report:
    seeds = options.seeds or (20 if options.quick else 500)
    dimensions = DIMENSIONS[:3] if options.quick else DIMENSIONS
    instances = {d: linear.transductive(d, OMEGA) for d in dimensions}
    times = {d: common.time_of(instance) for d, instance in instances.items()}
    sweeps = {
        (rule, d): common.runs(
            f"linear2 transductive, d = {d}: {rule}",
            instance,
            linear.rage if rule == "RAGE" else common.by_ratios(rule, thresholds.gk16(arms=2 * d)),
            options=options,
            seeds=seeds,
            delta=DELTA,
            longest=10**6,
        )
        for d, instance in instances.items()
        for rule in RULES
    }
    bounds = {d: time * float(common.kl(DELTA)) for d, time in times.items()}
    lines = {key: line_of(f"{key[0]}, d = {key[1]}", sweep, bound=bounds[key[1]]) for key, sweep in sweeps.items()}
    wrong = {key: common.errors(sweep.columns) for key, sweep in sweeps.items()}
    return Report(
        "Transductive: pulls until the stop against the dimension",
        list(lines.values()),
        [
            every_run_stops(sweeps.values()),
            common.confident({f"{rule}, d = {d}": (*each, DELTA) for (rule, d), each in wrong.items()}),
            above_bound(lines),
            *(fewer_than_rage(rule, lines) for rule in ADAPTIVE),
            grows(lines, dimensions),
        ],
        joined(sweeps, label="rule, d"),
        partial(draw, lines=lines, bounds=bounds, times=times),
        notes=(
            f"T* is {listed({f'd = {d}:': time for d, time in times.items()}, ',.0f')}. RAGE's stop is proved, gk16 of "
            "the others is a heuristic.",
        ),
        grid=[
            {
                "d": str(d),
                "rule": rule,
                "pulls": plus_minus(each),
                "/ (T* kl)": f"{each.ours / bounds[d]:.2f}",
                "/ practical": f"{each.ours / common.practical(times[d], DELTA):.2f}",
                "wrong": common.shown(*wrong[rule, d]),
            }
            for (rule, d), each in lines.items()
        ],
    )


def above_bound(lines: dict[Key, Line]) -> Claim:
    ratios = {each.quantity: each.ours / (each.bound or np.nan) for each in lines.values()}
    least = min(ratios, key=ratios.__getitem__)
    return Claim(
        "no mean is below T* kl(delta, 1 - delta)", f"at least {ratios[least]:.2f} ({least})", ratios[least] >= 1
    )


def fewer_than_rage(rule: str, lines: dict[Key, Line]) -> Claim:
    """Claims that rules which decide after every pull need fewer pulls than phases, in every dimension."""
    ratios = {f"d = {d}:": lines["RAGE", d].ours / each.ours for (name, d), each in lines.items() if name == rule}
    return Claim(f"{rule} needs fewer pulls than RAGE", listed(ratios, ".1f"), min(ratios.values()) > 1)


def grows(lines: dict[Key, Line], dimensions: tuple[int, ...]) -> Claim:
    """Claims that pulls of uniform sampling grow most with the dimension; adaptive rules skip uninformative arms."""
    first, last = dimensions[0], dimensions[-1]
    grown = {rule: lines[rule, last].ours / lines[rule, first].ours for rule in RULES}
    se = {rule: np.hypot(*(lines[rule, d].se / lines[rule, d].ours for d in (first, last))) for rule in RULES}
    room = STANDARD_ERRORS * max(se[rule] for rule in ADAPTIVE)
    return Claim(
        f"from d = {first} to {last}, pulls of uniform sampling grow more than pulls of the adaptive rules",
        listed(grown, ".2f"),
        all(grown["uniform"] > grown[rule] * (1 - room) for rule in ADAPTIVE) and grown["uniform"] > 1,
    )


def draw(figure: Any, *, lines: dict[Key, Line], bounds: dict[int, float], times: dict[int, float]) -> None:
    axes = figure.subplots()
    rows = {rule: [lines[rule, d] for d in bounds] for rule in RULES}
    labels = {"xticks": list(bounds), "xlabel": "d, half of the dimension", "ylabel": "pulls until the stop"}
    curves(axes, list(bounds), rows, yscale="log", **labels)
    practical = [common.practical(time, DELTA) for time in times.values()]
    axes.plot(list(times), practical, "k:", label="practical time")
    axes.plot(list(bounds), list(bounds.values()), color="k", label="T* kl")
    legend_below(figure, ncols=4)
