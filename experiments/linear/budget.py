"""The error of a given budget: G-BAI, OD-LinBAI, Peace and P1-RAGE beside the published rates.

Soare's instance in ten dimensions, omega = 0.1, theta = 2 e_1, after Xiong, Camilleri, Fazel, Jain and Jamieson (2024).
All pulls under one design are one round.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.claims import all_of, below, between, column
from experiments.figures import COLORS, STYLES, legend_below
from experiments.papers import printed
from experiments.report import STANDARD_ERRORS, Claim, Line, Report
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, linear
from jaxbandits.engine.results.intervals import clopper_pearson

D, OMEGA = 10, 0.1
BUDGETS = (10, 1010, 2010, 3010, 4010, 5010)
PRINTED_RUNS = 21_000
ROUNDING = 0.02  # largest change from rounding a design differently, for Peace and P1-RAGE
RULES = {
    "G-BAI": linear.g_bai,
    "Peace": linear.peace,
    "P1-RAGE": linear.p1_rage,
    "OD-LinBAI": linear.od_linbai,
}

Lines = dict[str, dict[int, Line]]  # rule -> budget -> share of right answers


def run(options: Settings) -> Report:
    seeds = options.seeds or (1000 if options.quick else 20_000)
    budgets = BUDGETS[:3] if options.quick else BUDGETS
    instance = linear.soare(D, OMEGA, scale=2.0)
    cells = study.crossed(
        {"rule": RULES, "budget": budgets},
        lambda rule: sweep(rule, instance, budgets, options, seeds),
        rows="budget",
        name="{rule}, T = {budget}",
        values=lambda columns: columns["right"],
        more=in_print,
    )
    lines = {rule: dict(zip(budgets, row, strict=True)) for rule, row in study.by(cells, "rule").items()}
    sweeps = cells.sweeps.values()
    spent, allowed = column(sweeps, "pulls"), np.array(budgets)[column(sweeps, "row")]
    return study.report(
        f"A given budget on soare({D}): the share of right answers",
        cells,
        [study.stops(cells), all_of("no run spends more than its budget", spent <= allowed), *claims(lines)],
        draw=partial(draw, lines=lines),
        notes=(
            f"Published on about {PRINTED_RUNS:,} trials, with designs of Frank and Wolfe; ours are certified. Where "
            "the optimum is not unique (the G-optimal design here), another one errs a little more or less.",
            "If both e_1 and the tilted arm remain, OD-LinBAI's last phase pulls these two alone, m times in all. The "
            "share of right answers is then Phi(gap sqrt(m) / 2), gap = 2 (1 - cos omega).",
            "At T = 10 OD-LinBAI has no phase and guesses. The other rules have fewer pulls per design than arms.",
        ),
    )


def sweep(rule: str, instance: linear.Instance, budgets: tuple[int, ...], options: Settings, seeds: int) -> Results:
    """Runs a rule, with a row for every budget."""

    def build(task: Any, key: Any) -> tuple:
        algorithm = RULES[rule](instance.arms, horizon=task["budget"])
        return algorithm, linear.environment(instance, algorithm)

    return simulate(
        f"linear budget, {', '.join(map(str, budgets))}: {rule}",
        build,
        {"budget": np.array(budgets)},
        options=options,
        seeds=seeds,
        max_rounds=1000,  # one round per design, and spare ones for pulls that the binomial sampler left over
        metrics=lambda task, outcome: {"right": linear.is_right(instance, outcome.answer)},
        chunk=4,
    )


def in_print(rule: str, budget: int) -> dict[str, Any]:
    """Returns the published share of right answers, if there is one, as fields of a line."""
    rates = {row[0]: row[1 + list(RULES).index(rule)] for row in printed("linear", "budget, shares of right answers")}
    is_by_law = rule == "OD-LinBAI" and phase_length(budget) > 0
    fields: dict[str, Any] = {"note": f"law of the last phase {law(budget):.3f}" if is_by_law else ""}
    fields |= {"tolerance": ROUNDING if rule in ("Peace", "P1-RAGE") else 0.0}
    if rate := rates.get(budget):
        fields |= {"printed": rate, "printed_se": (rate * (1 - rate) / PRINTED_RUNS) ** 0.5}
    return fields


def phase_length(T: int) -> float:
    """Computes m, the pulls of a phase of OD-LinBAI before rounding."""
    phases = (D - 1).bit_length()
    return (T - (D + 1) - sum(-(-D // 2**r) for r in range(1, phases))) / phases


def law(T: int) -> float:
    """Computes the probability of a right answer in the last phase, between the two closest arms."""
    from scipy.stats import norm  # half a second

    return float(norm.cdf(2 * (1 - np.cos(OMEGA)) * np.sqrt(phase_length(T)) / 2))


def claims(lines: Lines) -> list[Claim]:
    """Compares with the published rates and with the law of the last phase."""
    given = {rule: {f"T = {T}": x for T, x in row.items() if x.printed is not None} for rule, row in lines.items()}
    exact = {T: (x.ours - x.printed) / np.hypot(x.se, x.printed_se) for T, x in given["G-BAI"].items()}
    near = {rule: {T: abs(x.ours - x.printed) for T, x in given[rule].items()} for rule in ("Peace", "P1-RAGE")}
    of_law = {f"T = {T}": (x.ours - law(T)) / x.se for T, x in lines["OD-LinBAI"].items() if phase_length(T) > 0}
    room, errors = (-STANDARD_ERRORS, STANDARD_ERRORS, "+.1f"), f"is within {STANDARD_ERRORS} standard errors"
    return [
        between(f"G-BAI {errors} of the published rates", exact, *room),
        *(below(f"{rule} is within {ROUNDING} of the published rates", off, ROUNDING) for rule, off in near.items()),
        between(f"OD-LinBAI {errors} of the law of its last phase", of_law, *room),
    ]


def draw(figure: Any, *, lines: Lines) -> None:
    axes = figure.subplots()
    for style, (rule, row) in enumerate(lines.items()):
        budgets, ours = np.array(list(row)), list(row.values())
        wrong = np.array([round((1 - each.ours) * each.runs) for each in ours])
        runs = np.array([each.runs for each in ours])
        errors, (low, high) = wrong / runs, clopper_pearson(wrong, runs)
        shown = wrong > 0
        bars = [np.maximum(errors - low, 0)[shown], np.maximum(high - errors, 0)[shown]]
        axes.errorbar(budgets[shown], errors[shown], bars, label=rule, mfc="w", **STYLES[style])
        theirs = {T: 1 - each.printed for T, each in row.items() if each.printed is not None}
        axes.plot(theirs.keys(), theirs.values(), ls="", marker="x", ms=9, color=COLORS[style])
    longest = [T for T in lines["OD-LinBAI"] if phase_length(T) > 0]
    axes.plot(longest, [1 - law(T) for T in longest], color="k", lw=1.2, ls=(0, (6, 2)), label="law of OD-LinBAI")
    axes.plot([], [], ls="", marker="x", ms=9, color="k", label="published")
    axes.set(yscale="log", xlabel="budget T", ylabel="share of wrong answers")
    legend_below(figure, ncols=3)
