"""Items other than the arms: pulls against the dimension, when the pulled arms are not the compared items.

Arms e_1..e_2d, items e_1..e_d and cos(omega) e_i + sin(omega) e_(d+i), omega = 0.1, theta = e_1, as in Fiez et al.
(2019): item d is nearly the best, and only the arms 1 and d + 1 tell the two apart.
"""

import numpy as np

from experiments import study
from experiments.claims import above, above_bound
from experiments.likelihood import common
from experiments.report import STANDARD_ERRORS, Claim, Line, Report, listed, means
from experiments.settings import Settings
from jaxbandits import Results, linear
from jaxbandits.numerics import thresholds

DELTA, OMEGA = 0.05, 0.1
DIMENSIONS = (2, 3, 4, 6, 8, 10)
ADAPTIVE = ("LinGapE", "FWS", "Lazy TaS")
RULES = (*ADAPTIVE, "RAGE", "uniform")


def run(options: Settings, *, delta: float = DELTA, omega: float = OMEGA) -> Report:
    seeds = options.seeds or (20 if options.quick else 500)
    dimensions = DIMENSIONS[:3] if options.quick else DIMENSIONS
    instances = {d: linear.transductive(d, omega) for d in dimensions}
    times = {d: common.time_of(instance) for d, instance in instances.items()}
    bounds = {d: time * float(common.kl(delta)) for d, time in times.items()}
    practical = {d: common.practical(time, delta) for d, time in times.items()}

    def sweep(d: int, rule: str) -> Results:
        factory = linear.rage if rule == "RAGE" else common.by_ratios(rule, thresholds.gk16(arms=2 * d))
        shared = {"options": options, "seeds": seeds, "delta": delta, "longest": 10**6}
        return common.runs(f"linear2 transductive, d = {d}: {rule}", instances[d], factory, **shared)

    axes = {"d": dimensions, "rule": RULES}
    cells = study.crossed(axes, sweep, name="{rule}, d = {d}", more=lambda d, rule: {"bound": bounds[d]})
    lines, wrong = study.by(cells, "rule"), study.errors(cells)
    return study.report(
        "Transductive: pulls until the stop against the dimension",
        cells,
        [
            study.stops(cells),
            common.confident(common.counts_of(cells, delta)),
            above_bound(cells.lines.values()),
            *(fewer_than_rage(rule, lines, dimensions) for rule in ADAPTIVE),
            grows(lines, dimensions),
        ],
        draw=study.figure(
            cells,
            "d",
            references={"T* kl": list(bounds.values()), "practical time": list(practical.values())},
            legend=4,
            yscale="log",
            xticks=dimensions,
            xlabel="d, half of the dimension",
        ),
        notes=(
            f"T* is {listed({f'd = {d}:': time for d, time in times.items()}, ',.0f')}. RAGE's stop is proved, gk16 of "
            "the others is a heuristic.",
        ),
        grid=[
            {"d": str(d), "rule": rule} | common.cells_of(each, practical[d]) | {"wrong": common.shown(*wrong[d, rule])}
            for (d, rule), each in cells.lines.items()
        ],
    )


def fewer_than_rage(rule: str, lines: dict[str, list[Line]], dimensions: tuple[int, ...]) -> Claim:
    """Claims that rules which decide after every pull need fewer pulls than phases, in every dimension."""
    ratios = means(lines["RAGE"]) / means(lines[rule])
    shown = {f"d = {d}:": ratio for d, ratio in zip(dimensions, ratios, strict=True)}
    return above(f"{rule} needs fewer pulls than RAGE", shown, 1, ".1f")


def grows(lines: dict[str, list[Line]], dimensions: tuple[int, ...]) -> Claim:
    """Claims that pulls of uniform sampling grow most with the dimension; adaptive rules skip uninformative arms."""
    grown = {rule: row[-1].ours / row[0].ours for rule, row in lines.items()}
    room = STANDARD_ERRORS * max(
        np.hypot(*(lines[rule][n].se / lines[rule][n].ours for n in (0, -1))) for rule in ADAPTIVE
    )
    return Claim(
        f"from d = {dimensions[0]} to {dimensions[-1]}, pulls of uniform sampling grow more than pulls of the adaptive "
        "rules",
        listed(grown, ".2f"),
        all(grown["uniform"] > grown[rule] * (1 - room) for rule in ADAPTIVE) and grown["uniform"] > 1,
    )
