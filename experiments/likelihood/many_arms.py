"""Thousands of arms in the plane: pulls against their number, when only two of them matter.

The instance of Fiez et al. (2019) has the best arm, one arm that separates it from the rest, and n - 2 nearly equal
arms between them. An adaptive rule should not pay for arms that it need not pull. A start that pulls every arm once
does pay.
"""

from collections.abc import Callable
from functools import partial

from experiments import study
from experiments.claims import above
from experiments.likelihood import common
from experiments.report import STANDARD_ERRORS, Claim, Line, Report, listed
from experiments.settings import Settings
from jaxbandits import Results, linear
from jaxbandits.numerics import thresholds

DELTA = 0.05
NUMBERS = (100, 300, 1000, 3000, 10_000)
CERTIFIED = 1000  # largest number of arms for T*, whose linear program is too large beyond it
FLAT = ("LinGapE", "Lazy TaS", "RAGE")  # rules that begin with two arms
MOST = {"FWS": 3000}  # largest number of arms for FWS, which begins with as many pulls
FEWER = {"FWS": 5, "Lazy TaS": 2}  # runs
RULES: dict[str, Callable] = {  # the rule of a threshold
    "LinGapE": partial(common.by_ratios, "LinGapE", start="spanner"),
    "Lazy TaS": partial(common.by_ratios, "Lazy TaS", start="spanner", support=True),
    "FWS": partial(common.by_ratios, "FWS"),
    "RAGE": lambda threshold: linear.rage_leader,
}


def run(options: Settings, *, delta: float = DELTA) -> Report:
    seeds = options.seeds or (10 if options.quick else 100)
    numbers = NUMBERS[:3] if options.quick else NUMBERS
    instances = {n: linear.many_arms(0, n) for n in numbers}
    times = {n: common.time_of(each) for n, each in instances.items() if n <= CERTIFIED}
    bounds = {n: times[min(n, CERTIFIED)] * float(common.kl(delta)) for n in numbers}

    def sweep(arms: int, rule: str) -> Results | None:
        if arms > MOST.get(rule, arms):
            return None
        shared = {"options": options, "seeds": max(seeds // FEWER.get(rule, 1), 2), "delta": delta}
        name = f"linear2 many arms, {arms}: {rule}"
        return common.runs(name, instances[arms], RULES[rule](thresholds.gk16(arms=arms)), longest=100_000, **shared)

    axes = {"arms": numbers, "rule": RULES}
    cells = study.crossed(axes, sweep, name="{rule}, {arms:,} arms", more=lambda arms, rule: {"bound": bounds[arms]})
    lines, wrong = study.by(cells, "rule"), study.errors(cells)
    return study.report(
        "Many arms: pulls until the stop against their number",
        cells,
        [
            study.stops(cells),
            common.confident(common.counts_of(cells, delta)),
            *(stays(rule, lines[rule], numbers) for rule in FLAT),
            above("FWS needs more pulls than there are arms (pulls per arm)", per_arm(lines["FWS"], numbers), 1, ".2f"),
        ],
        draw=study.figure(
            cells, "arms", references={"T* kl": list(bounds.values())}, legend=5, xscale="log", yscale="log"
        ),
        notes=(
            f"T* is {listed({f'{n:,} arms:': value for n, value in times.items()}, '.2f')}; for more arms the last "
            "one stands for it. LinGapE and Lazy Track-and-Stop begin with two arms that span the plane, FWS with all. "
            "RAGE designs for, and tests, one leader against the others. Its stop is proved; gk16 is a heuristic.",
            "Lazy Track-and-Stop computes its shares by 1000 steps of Frank and Wolfe from two arms that span the "
            "plane. From uniform shares, as published, a part n / (n + 1000) of the shares of n arms would stay "
            "uniform.",
        ),
        grid=[
            {"arms": f"{n:,}", "rule": rule}
            | common.cells_of(each, digits=1)
            | {
                "wrong": common.shown(*wrong[n, rule]),
                "ms a run": f"{1e3 * cells.sweeps[n, rule].stats.seconds / each.runs:.3g}",
            }
            for (n, rule), each in cells.lines.items()
        ],
    )


def stays(rule: str, lines: list[Line], numbers: tuple[int, ...]) -> Claim:
    """Claims that a hundred times as many arms cost less than twice the pulls."""
    first, last = lines[0], lines[-1]
    grown = {f"{n:,}:": each.ours for n, each in zip(numbers, lines, strict=True)}
    room = STANDARD_ERRORS * (first.se / first.ours + last.se / last.ours)
    statement = f"{rule}: {numbers[-1] // numbers[0]} times as many arms cost less than twice the pulls"
    return Claim(statement, listed(grown, ",.0f"), last.ours / first.ours < 2 + room)


def per_arm(lines: list[Line], numbers: tuple[int, ...]) -> dict[str, float]:
    """Divides pulls by the number of arms, as far as there are runs."""
    return {f"{n:,}:": each.ours / n for n, each in zip(numbers, lines, strict=False)}
