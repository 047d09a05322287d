"""Water planning from quality tests: the amount to take from each of ten sources, and the four sites to build at.

There are no public data for this: sources, costs, qualities and the demand are made up. A test of a source's raw water
gives one of five grades, 0 to 1; theta is the mean grade. A step is 10 ML a day, and the city needs 20 steps. Step l of
a source costs `first` + `rise` (l - 1/2), l = 1, 2, .., and is worth theta. The unit of both is the worth of a step of
perfect water. Every step costs at least 1, so no plan takes more than needed. The answer is the plan with the largest
worth net of cost, the paper's problem of water resource planning. The net cost of a step is its cost less theta.

The second question has binary decisions: four plants of one size at the same sources, each at a known cost. CLUCB
applies there as well. delta = 0.1; all rules get the same tests.
"""

from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from experiments import study
from experiments.claims import all_of, below, errors_are_rare, in_range
from experiments.cpe import common
from experiments.cpe.common import DELTA, RULES, Task
from experiments.figures import COLORS, legend_under, split
from experiments.report import Claim, Report, number, plus_minus
from experiments.settings import Settings
from jaxbandits import Outcome, Results, cpe
from jaxbandits.base import Array
from jaxbandits.cpe import Instance, solve

GRADES = (0.0, 0.25, 0.5, 0.75, 1.0)
DEMAND = 20  # steps of 10 ML a day
PLANTS = 4
SOURCES = np.rec.array(
    [
        ("mountain reservoir", 5, 1.00, 0.15, 0.45, (0.00, 0.02, 0.06, 0.22, 0.70)),
        ("karst spring", 2, 1.05, 0.50, 0.58, (0.02, 0.04, 0.10, 0.24, 0.60)),
        ("well field north", 4, 1.05, 0.40, 0.37, (0.02, 0.06, 0.16, 0.36, 0.40)),
        ("well field south", 3, 1.10, 0.60, 0.38, (0.05, 0.15, 0.30, 0.30, 0.20)),
        ("bank filtration", 4, 1.05, 0.35, 0.44, (0.02, 0.08, 0.26, 0.40, 0.24)),
        ("lake", 5, 1.20, 0.35, 0.30, (0.03, 0.09, 0.22, 0.36, 0.30)),
        ("upper river", 4, 1.00, 0.35, 0.28, (0.04, 0.12, 0.24, 0.34, 0.26)),
        ("lower river", 5, 1.25, 0.50, 0.35, (0.25, 0.30, 0.25, 0.15, 0.05)),
        ("reuse plant", 3, 1.30, 0.30, 0.60, (0.02, 0.05, 0.13, 0.40, 0.40)),
        ("desalination", 4, 1.65, 0.20, 0.82, (0.00, 0.00, 0.01, 0.04, 0.95)),
    ],
    dtype=[
        ("name", "U20"),
        ("most", int),  # steps
        ("first", float),  # cost of the first step, less half a rise
        ("rise", float),  # increase of the cost per step
        ("site", float),  # cost of a plant there
        ("grades", float, len(GRADES)),  # probability of each grade, the truth
    ],
)

Places = Mapping[Any, Any]  # (question, rule) -> summary of its runs


def run(options: Settings) -> Report:
    cases = instances()
    shared = {"options": options, "replicates": options.seeds or (10 if options.quick else 200)}
    sweeps = common.compared("cpe water: {}", cases, metrics=box_at_the_end, **shared)
    cells = study.collected({"question": cases, "rule": RULES}, sweeps, name="{question}: {rule}")
    lines = cells.lines
    took = {key: line.ours for key, line in lines.items()}
    laws = common.laws(cases.values())
    over, shares = {}, {}
    for (n, question), rule in product(enumerate(cases), laws):
        over[f"{question}: {rule}"] = took[question, rule] / laws[rule].root[n]
        shares[f"{question}: {rule}"] = sweeps[question, rule].columns["pulls"].max() / laws[rule].bound[n]
    named = {"water": "the plan", "sites": "the plants"}
    ahead = {name: took[question, "COCI"] / took[question, "uniform"] for question, name in named.items()}
    clucb = {"the plants": took["sites", "CLUCB"] / took["sites", "COCI"]}

    theta = np.asarray(cases["water"].theta)
    counts = {key: sweep.columns["counts"].mean(axis=0) for key, sweep in sweeps.items()}  # tests of every source
    best = {question: np.asarray(solve(case.problem, case.theta)) for question, case in cases.items()}
    return study.report(
        "Water planning: tests until the plan is certain, delta = 0.1",
        cells,
        [
            errors_are_rare(sweeps.values(), DELTA),
            boxes_settle(sweeps["water", "COCI"], "COCI"),
            boxes_settle(sweeps["water", "uniform"], "uniform sampling"),
            below("COCI needs fewer tests than uniform sampling (COCI over uniform)", ahead, form=".2f"),
            below("CLUCB needs fewer than COCI where it applies (CLUCB over COCI)", clucb, form=".2f"),
            in_range("T of COCI and of uniform sampling over the law", over, 0.88, 1.1),
            below("every T is below Theorem 1's bound (uniform sampling: Theorem 4's)", shares, form=".3f"),
        ],
        draw=partial(draw, theta=theta, sweeps=sweeps, took=took, counts=counts, best=best),
        notes=(
            "All numbers of the sources are made up. Left half: steps of 10 ML a day, at most and in the best plan; "
            "right half: the plants. COCI, uniform and CLUCB: mean tests of each source until the stop.",
            "COCI tests those sources most whose next or last step is near the net cost at which the demand is met. "
            "Uniform sampling tests all as often as the hardest.",
        ),
        grid=grid(theta, lines, counts, best),
    )


def instances() -> dict[str, Instance]:
    steps = (np.arange(most + 1) for most in SOURCES.most)
    costs = [source.first * y + source.rise * y**2 / 2 for source, y in zip(SOURCES, steps, strict=True)]
    problems = {"water": cpe.water(costs, DEMAND), "sites": cpe.sites(SOURCES.site, PLANTS)}
    arms = cpe.discrete(np.broadcast_to(GRADES, SOURCES.grades.shape), SOURCES.grades)
    return {question: cpe.instance(problem, arms) for question, problem in problems.items()}


def box_at_the_end(task: Task, outcome: Outcome) -> dict[str, Array]:
    box = cpe.confidence(outcome.state, **task["settings"])
    return {"lo": box.lo, "hi": box.hi}


def step_costs(levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the cost of the last step taken of every source (-inf if none is), and of the next one (inf if none)."""
    last = np.where(levels > 0, SOURCES.first + SOURCES.rise * (levels - 0.5), -np.inf)
    return last, np.where(levels < SOURCES.most, SOURCES.first + SOURCES.rise * (levels + 0.5), np.inf)


def boxes_settle(sweep: Results, name: str) -> Claim:
    """Recomputes the stop: the most expensive step taken of a source against the cheapest one left of any other."""
    columns, others = sweep.columns, ~np.eye(len(SOURCES), dtype=bool)
    last, following = step_costs(columns["answer"])
    dearest, cheapest = last - columns["lo"], following - columns["hi"]
    return all_of(
        f"when {name} stops, every step of its plan is cheaper than any left elsewhere, all over the confidence box",
        np.all((dearest[:, :, None] <= cheapest[:, None]) | ~others, axis=(1, 2)),
    )


def grid(theta: np.ndarray, lines: Places, counts: Places, best: dict[str, np.ndarray]) -> list[dict[str, str]]:
    def tests(question: str, i: int) -> dict[str, str]:
        asked = {rule: counts[question, rule] for rule in RULES if (question, rule) in counts}
        return {f"{rule}, {question}": number(round(mean[i])) for rule, mean in asked.items()}

    rows = [
        {
            "source": source.name,
            "quality": f"{theta[i]:.4f}",
            "step 1": f"{source.first + source.rise / 2:.3f}",
            "rise": f"{source.rise:.2f}",
            "most": str(source.most),
            "plan": str(best["water"][i]),
            **tests("water", i),
            "site": f"{source.site:.2f}",
            "plant": "yes" if best["sites"][i] else "-",
            **tests("sites", i),
        }
        for i, source in enumerate(SOURCES)
    ]
    totals = {f"{rule}, {question}": plus_minus(line) for (question, rule), line in lines.items()}
    totals |= {"source": "all", "most": str(SOURCES.most.sum()), "plan": str(DEMAND), "plant": str(PLANTS)}
    return [*rows, dict.fromkeys(rows[0], "") | totals]


def draw(figure: Any, *, theta: np.ndarray, sweeps: Places, took: Places, counts: Places, best: dict) -> None:
    panels = split(figure, (12.5, 8.6), 2, 3, sharey=True, width_ratios=(1, 1.5, 1.4))
    y = np.arange(len(SOURCES))[::-1]
    (plan, net, _), (build, worth, _) = panels
    taken, untaken = COLORS[:2]
    wide = {"height": 0.6, "color": "w", "ec": "#888888"}

    plan.barh(y, SOURCES.most, label="can give", **wide)
    plan.barh(y, best["water"], 0.6, color=taken, label="in the plan")
    for height, most, level in zip(y, SOURCES.most, best["water"], strict=True):
        plan.vlines(range(1, most), height - 0.3, height + 0.3, color="#888888", lw=0.8)
        plan.text(most + 0.12, height, str(level), va="center", fontsize=9)
    plan.set(xlabel="steps of 10 ML a day", title=f"The plan: {DEMAND} steps", xlim=(0, 6.4))
    plan.set_yticks(y, SOURCES.name)
    built, costs = best["sites"] > 0, SOURCES.site
    build.barh(y, costs, label="cost of a plant", **wide)
    build.barh(y[built], costs[built], 0.6, color=taken, label="built")
    build.set(xlabel="cost of a plant", title=f"The plants: {PLANTS} sites", xlim=(0, 1.02))

    ending = median_run(sweeps["water", "COCI"])
    last, following = step_costs(best["water"])
    for step, color, label, shift in (
        (last, taken, "last step of the plan", 0.14),
        (following, untaken, "next step, not in it", -0.14),
    ):
        box = step - ending["hi"], step - ending["lo"]
        intervals(net, y + shift, box, truth=step - theta, color=color, label=label)
    net.axvline((np.max(last - ending["lo"]) + np.min(following - ending["hi"])) / 2, color="k", lw=1, ls="--")
    net.set(xlabel="cost of the step less its quality", title=f"Why COCI stops ({number(ending['pulls'])} tests)")
    ending = median_run(sweeps["sites", "COCI"])
    low, high = ending["lo"] - costs, ending["hi"] - costs
    for chosen, color, label in ((built, taken, "site of the plan"), (~built, untaken, "other site")):
        truth = (theta - costs)[chosen]
        intervals(worth, y[chosen] + 0.14, (low[chosen], high[chosen]), truth=truth, color=color, label=label)
    worth.axvline((low[built].min() + high[~built].max()) / 2, color="k", lw=1, ls="--")
    worth.set(xlabel="quality less cost", title=f"Why COCI stops ({number(ending['pulls'])} tests)")

    for (*_, tests), question in zip(panels, best, strict=True):
        rules = [rule for rule in RULES if (question, rule) in counts]
        height = 0.78 / len(rules)
        for r, rule in enumerate(rules):
            bottom, label = (
                y + height * ((len(rules) - 1) / 2 - r),
                f"{rule}: {number(round(took[question, rule], -2))}",
            )
            tests.barh(bottom, counts[question, rule], 0.9 * height, color=COLORS[r], label=label)
        tests.set(xlabel="tests until the stop (mean)", title="The cost of certainty (total tests below)")
    for axes in panels.flat:
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        legend_under(axes)
    figure.suptitle(
        "Water from ten sources (made up), planned from tests of its quality. "
        "Bars in the middle: confidence intervals, with the truth marked"
    )


def median_run(sweep: Results) -> dict[str, Any]:
    order = np.argsort(sweep.columns["pulls"], kind="stable")
    return {name: values[order[len(order) // 2]] for name, values in sweep.columns.items()}


def intervals(axes: Any, y: Any, box: tuple[Any, Any], *, truth: Any, color: str, label: str) -> None:
    """Draws the confidence box, and a mark at the truth."""
    low, high = box
    there = np.isfinite(low) & np.isfinite(high)
    axes.hlines(y[there], low[there], high[there], color=color, lw=5, alpha=0.45, label=label)
    axes.plot(truth[there], y[there], "|", color=color, ms=9, mew=2)
