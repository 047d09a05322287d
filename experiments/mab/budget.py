"""The error at a given budget: successive rejects, sequential halving, continuous rejects and UCB-E on six instances.

Bernoulli arms after Audibert, Bubeck and Munos (2010), five budgets each. SR and SH run by leaps, one phase per round,
with the law of single pulls. The other rules pull one by one, in fewer runs.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.claims import errors_of
from experiments.figures import STYLES
from experiments.report import STANDARD_ERRORS, Claim, Columns, Report, joined, number, row_of
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import mab
from jaxbandits.engine.results.intervals import clopper_pearson

INSTANCES = {  # means, and the middle budget
    "one of 20": ((0.5, *[0.4] * 19), 2000),
    "two groups": ((0.5, *[0.42] * 5, *[0.38] * 14), 2000),
    "geometric 4": (tuple(0.5 - 0.37**i * (i > 0) for i in range(4)), 2000),
    "three groups": ((0.5, 0.42, 0.4, 0.4, 0.35, 0.35), 600),
    "arithmetic 15": (tuple(0.5 - 0.025 * i for i in range(15)), 4000),
    "two close": ((0.5, 0.48, *[0.37] * 18), 6000),
}
SCALES = (0.5, 0.75, 1.0, 1.5, 2.0)  # multiples of the middle budget
RULES = {
    "SR": mab.successive_rejects,
    "SH": mab.sequential_halving,
    "SH, reuse": partial(mab.sequential_halving, reuse=True),
    "CR-C": mab.continuous_rejects,
    "CR-A": partial(mab.continuous_rejects, conservative=False),
    "UCB-E": mab.ucb_e,
}
IN_LEAPS = ("SR", "SH", "SH, reuse")
FEWER = 50  # ratio of runs in leaps to runs one by one


class Cell(NamedTuple):
    """One rule with one budget on one instance."""

    name: str
    budget: int
    rule: str
    step: bool = False  # True if a rule of leaps runs pull by pull


def run(options: Settings) -> Report:
    names = ("one of 20",) if options.quick else tuple(INSTANCES)
    scales = SCALES[:3:2] if options.quick else SCALES
    seeds = options.seeds or (20_000 if options.quick else 100_000)
    cells = [Cell(n, int(s * INSTANCES[n][1]), rule) for n in names for s in scales for rule in RULES]
    cells += [Cell(names[0], INSTANCES[names[0]][1], rule, step=True) for rule in IN_LEAPS]
    groups: dict[tuple, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(program(cell), []).append(cell)
    sweeps = {cell: each for group in groups.values() for cell, each in sweep(group, options, seeds).items()}
    wrong = {cell: errors_of(each) for cell, each in sweeps.items()}
    rates = {cell: count / ended for cell, (count, ended) in wrong.items()}
    return Report(
        "A given budget: the share of wrong answers",
        [],
        [agree(wrong), *slope_claims(names[0], rates), reuse_helps(names[0], wrong)],
        joined(sweeps, label="instance, budget, rule, step"),
        partial(draw, names=names, rates=rates, wrong=wrong),
        notes=(
            "H1 counts the best arm with the smallest gap. SR's bound is K (K - 1) / 2 exp(-(T - K) / (L H2)), L = 1/2 "
            "+ 1/2 + 1/3 + ... + 1/K; above 1 it says nothing. A rate from fewer than 20 wrong answers is only an "
            "order of magnitude.",
            "UCB-E receives the hardness H1 (exploration 2), which no learner knows.",
        ),
        grid=[row(name, int(s * INSTANCES[name][1]), rates, wrong) for name in names for s in scales],
    )


def program(cell: Cell) -> tuple:
    """Returns the properties shared by cells of one sweep: number of arms, and for successive rejects the budget."""
    return len(INSTANCES[cell.name][0]), cell.rule, cell.step, cell.budget if cell.rule == "SR" else None


def sweep(cells: Sequence[Cell], options: Settings, seeds: int) -> dict[Cell, Columns]:
    """Runs the cells of one program. Returns the runs of each."""
    K, rule, step, _ = program(cells[0])
    budgets = [cell.budget for cell in cells]
    leaps = rule in IN_LEAPS and not step
    leap = max(budgets) if leaps else 1

    def instance_of(task: Any) -> mab.Instance:
        return mab.bernoulli(task["means"])

    def build(task: Any, key: Any) -> tuple:
        instance = instance_of(task)
        extra = {"leap": leap} if rule in IN_LEAPS else {}
        extra |= {"hardness": mab.hardness(instance).H1} if rule == "UCB-E" else {}
        horizon = budgets[0] if rule == "SR" else task["budget"]
        algorithm = RULES[rule](instance.problem, horizon=horizon, **extra)
        return algorithm, mab.environment(instance, algorithm)

    results = simulate(
        f"mab budget, {K} arms, {', '.join(map(str, budgets))}: {rule}{', step by step' * step}",
        build,
        {"means": np.array([INSTANCES[cell.name][0] for cell in cells]), "budget": np.array(budgets)},
        options=options,
        seeds=seeds if leaps else max(seeds // FEWER, 2),
        max_rounds=4 * max(budgets),
        metrics=lambda task, outcome: {"wrong": ~mab.is_right(instance_of(task), outcome.answer)},
        # The phases, and spare rounds for pulls that the binomial sampler left over.
        chunk=(K if rule == "SR" else (K - 1).bit_length() + 1) if leaps else None,
    )
    return {cell: row_of(results, i) for i, cell in enumerate(cells)}


def row(name: str, budget: int, rates: dict[Cell, float], wrong: dict[Cell, tuple[int, int]]) -> dict[str, str]:
    instance = mab.bernoulli(INSTANCES[name][0])
    hard = mab.hardness(instance)

    def shown(rule: str) -> str:
        cell = Cell(name, budget, rule)
        few = "" if wrong[cell][0] >= 20 else f" ({wrong[cell][0]} of {wrong[cell][1]})"
        return f"{rates[cell]:.4f}{few}"

    return {
        "instance": name,
        "H1": number(float(hard.H1)),
        "H2": number(float(hard.H2)),
        "T": str(budget),
        "SR's bound": f"{float(mab.successive_rejects_bound(instance, horizon=budget)):.3g}",
    } | {rule: shown(rule) for rule in RULES}


def agree(wrong: dict[Cell, tuple[int, int]]) -> Claim:
    """Claims that errors are the same pull by pull and in leaps."""
    differences = {}
    for cell in (cell for cell in wrong if cell.step):
        (a, n), (b, m) = wrong[cell], wrong[cell._replace(step=False)]
        p = (a + b) / (n + m)
        differences[cell.rule] = (a / n - b / m) / np.sqrt(p * (1 - p) * (1 / n + 1 / m))
    return Claim(
        f"pull by pull and in leaps the error rates agree within {STANDARD_ERRORS} standard errors",
        ", ".join(f"{rule} {z:+.1f}" for rule, z in differences.items()),
        max(map(abs, differences.values())) <= STANDARD_ERRORS,
    )


def slope_claims(name: str, rates: dict[Cell, float]) -> list[Claim]:
    """Claims that log(error) falls with T as predicted."""
    slopes = {}
    for rule in IN_LEAPS:
        cells = sorted(
            (cell for cell in rates if cell[::2] == (name, rule) and not cell.step), key=lambda cell: cell.budget
        )
        slopes[rule] = -1000 * float(np.polyfit([c.budget for c in cells], np.log([rates[c] for c in cells]), 1)[0])
    told = ", ".join(f"{rule} {slope:.2f}" for rule, slope in slopes.items())
    is_ordered = slopes["SR"] > slopes["SH, reuse"] > slopes["SH"] > 0
    return [
        Claim(
            f"{name}: log(error) falls fastest with SR, then SH with reuse, then SH, per 1000 pulls", told, is_ordered
        )
    ]


def reuse_helps(name: str, wrong: dict[Cell, tuple[int, int]]) -> Claim:
    pairs = {c.budget: (c, c._replace(rule="SH, reuse")) for c in wrong if c[::2] == (name, "SH") and not c.step}
    rates = {T: [wrong[c][0] / wrong[c][1] for c in pair] for T, pair in pairs.items()}
    return Claim(
        f"{name}: samples of all phases (reuse) err less than samples of the last phase, at every budget",
        ", ".join(f"T = {T}: {old:.4f} to {new:.4f}" for T, (old, new) in rates.items()),
        all(new < old for old, new in rates.values()),
    )


def draw(figure: Any, *, names: tuple[str, ...], rates: dict[Cell, float], wrong: dict[Cell, tuple[int, int]]) -> None:
    figure.set_size_inches(3.4 * min(len(names), 3) + 0.6, 3.2 * -(-len(names) // 3) + 0.9)
    panels = np.ravel(figure.subplots(-(-len(names) // 3), min(len(names), 3)))
    for name, axes in zip(names, panels, strict=True):
        for style, rule in enumerate(RULES):
            cells = [c for c in rates if c[::2] == (name, rule) and not c.step and rates[c] > 0]
            x, y = [c.budget for c in cells], np.array([rates[c] for c in cells])
            low, high = clopper_pearson(*np.array([wrong[c] for c in cells]).reshape(-1, 2).T)
            bars = [np.maximum(y - low, 0), np.maximum(high - y, 0)]
            axes.errorbar(x, y, bars, label=rule, mfc="w", **STYLES[style])
        axes.set(yscale="log", title=name, xlabel="budget T")
    for axes in panels[::3]:
        axes.set_ylabel("share of wrong answers")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=min(6, 3 * len(names)), fontsize=9
    )
