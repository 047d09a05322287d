"""Thousands of arms in the plane: pulls against their number, when only two of them matter.

The instance of Fiez et al. (2019) has the best arm, one arm that separates it from the rest, and n - 2 nearly equal
arms between them. An adaptive rule should not pay for arms that it need not pull. A start that pulls every arm once
does pay.
"""

from functools import partial
from typing import Any

from experiments.claims import every_run_stops
from experiments.figures import curve, legend_below
from experiments.likelihood import common
from experiments.report import STANDARD_ERRORS, Claim, Line, Report, joined, line_of, listed, plus_minus
from experiments.settings import Settings
from jaxbandits import Results, linear
from jaxbandits.numerics import thresholds

DELTA = 0.05
NUMBERS = (100, 300, 1000, 3000, 10_000)
CERTIFIED = 1000  # largest number of arms for T*, whose linear program is too large beyond it
FLAT = ("LinGapE", "Lazy TaS", "RAGE")  # rules that begin with two arms
MOST = {"FWS": 3000}  # largest number of arms for FWS, which begins with as many pulls
FEWER = {"FWS": 5, "Lazy TaS": 2}  # runs

Key = tuple[str, int]  # rule, number of arms


def run(options: Settings) -> Report:
    seeds = options.seeds or (10 if options.quick else 100)
    numbers = NUMBERS[:3] if options.quick else NUMBERS
    instances = {n: linear.many_arms(0, n) for n in numbers}
    times = {n: common.time_of(each) for n, each in instances.items() if n <= CERTIFIED}
    sweeps: dict[Key, Results] = {}
    for n, instance in instances.items():
        for rule, factory in factories(n).items():
            sweeps[rule, n] = common.runs(
                f"linear2 many arms, {n}: {rule}",
                instance,
                factory,
                options=options,
                seeds=max(seeds // FEWER.get(rule, 1), 2),
                delta=DELTA,
                longest=100_000,
            )
    bounds = {n: times[min(n, CERTIFIED)] * float(common.kl(DELTA)) for n in numbers}
    lines = {key: line_of(f"{key[0]}, {key[1]:,} arms", sweep, bound=bounds[key[1]]) for key, sweep in sweeps.items()}
    wrong = {key: common.errors(sweep.columns) for key, sweep in sweeps.items()}
    return Report(
        "Many arms: pulls until the stop against their number",
        list(lines.values()),
        [
            every_run_stops(sweeps.values()),
            common.confident({f"{rule}, {n} arms": (*each, DELTA) for (rule, n), each in wrong.items()}),
            *(stays(rule, lines, numbers) for rule in FLAT),
            pays(lines),
        ],
        joined(sweeps, label="rule, arms"),
        partial(draw, lines=lines, numbers=numbers, bounds=bounds),
        notes=(
            f"T* is {listed({f'{n:,} arms:': value for n, value in times.items()}, '.2f')}; for more arms the last "
            "one stands for it. LinGapE and Lazy Track-and-Stop begin with two arms that span the plane, FWS with all. "
            "RAGE designs for, and tests, one leader against the others. Its stop is proved; gk16 is a heuristic.",
            "Lazy Track-and-Stop computes its shares by 1000 steps of Frank and Wolfe from two arms that span the "
            "plane. From uniform shares, as published, a part n / (n + 1000) of the shares of n arms would stay "
            "uniform.",
        ),
        grid=[
            {
                "arms": f"{n:,}",
                "rule": rule,
                "pulls": plus_minus(each),
                "/ (T* kl)": f"{each.ours / bounds[n]:.1f}",
                "wrong": common.shown(*wrong[rule, n]),
                "ms a run": f"{1e3 * sweeps[rule, n].stats.seconds / each.runs:.3g}",
            }
            for (rule, n), each in lines.items()
        ],
    )


def factories(n: int) -> dict[str, Any]:
    """Returns the rules that are feasible with n arms, each (arms, *, delta) -> Algorithm."""
    gk16 = thresholds.gk16(arms=n)
    rules = {
        "LinGapE": common.by_ratios("LinGapE", gk16, start="spanner"),
        "Lazy TaS": common.by_ratios("Lazy TaS", gk16, start="spanner", support=True),
        "FWS": common.by_ratios("FWS", gk16),
        "RAGE": linear.rage_leader,
    }
    return {rule: factory for rule, factory in rules.items() if n <= MOST.get(rule, n)}


def stays(rule: str, lines: dict[Key, Line], numbers: tuple[int, ...]) -> Claim:
    """Claims that a hundred times as many arms cost less than twice the pulls."""
    first, last = lines[rule, numbers[0]], lines[rule, numbers[-1]]
    grown = {f"{n:,}:": lines[rule, n].ours for n in numbers}
    room = STANDARD_ERRORS * (first.se / first.ours + last.se / last.ours)
    statement = f"{rule}: {numbers[-1] // numbers[0]} times as many arms cost less than twice the pulls"
    return Claim(statement, listed(grown, ",.0f"), last.ours / first.ours < 2 + room)


def pays(lines: dict[Key, Line]) -> Claim:
    per_arm = {n: each.ours / n for (rule, n), each in lines.items() if rule == "FWS"}
    return Claim(
        "FWS needs more pulls than there are arms",
        "pulls an arm: " + listed({f"{n:,}:": value for n, value in per_arm.items()}, ".2f"),
        min(per_arm.values()) > 1,
    )


def draw(figure: Any, *, lines: dict[Key, Line], numbers: tuple[int, ...], bounds: dict[int, float]) -> None:
    axes = figure.subplots()
    labels = {"xlabel": "arms", "ylabel": "pulls until the stop", "xscale": "log", "yscale": "log"}
    for style, rule in enumerate((*FLAT, "FWS")):
        rows = {n: lines[rule, n] for n in numbers if (rule, n) in lines}
        curve(axes, list(rows), list(rows.values()), rule, style)
    axes.plot(list(bounds), list(bounds.values()), color="k", label="T* kl")
    axes.set(**labels)
    legend_below(figure, ncols=5)
