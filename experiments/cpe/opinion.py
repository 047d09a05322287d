"""Opinion sampling on a real poll: how many interviewers for each group of voters, learned from pilot interviews.

The American National Election Study of 1996, as statsmodels ships it (`anes96`, public domain): 944 people who expected
to vote for Clinton or Dole, in five groups by party identification. The counts of expected votes for Dole are below, so
nothing needs to be installed or loaded. It is a survey, a pollster would take its groups, and their variances differ 16
times. The data that scikit-learn ships hold no opinions.

A panel has k interviewers. Each works in one group and interviews 100 of its members. The best allocation of the
interviewers minimises the variance of the estimated share of Dole's voters, sum n_i^2 theta_i / y_i, n_i the
sizes of the groups (as in the poll) and theta_i the variances of their answers. Pilot interviews replay the answers of
the real respondents, drawn with replacement: 0 or 1. COCI and uniform sampling estimate variances, delta = 0.1, on the
same answers.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.claims import above, between, errors_are_rare, in_range
from experiments.cpe import common
from experiments.cpe.common import DELTA, Task
from experiments.figures import COLORS, STYLES, errorbars, legend_under, side_by_side, split, ticks
from experiments.report import STANDARD_ERRORS, Claim, Report, listed, mean_se, number, plus_minus
from experiments.settings import Settings
from jaxbandits import Record, cpe, record
from jaxbandits.cpe import Instance, solve
from jaxbandits.cpe._shared.estimate import estimate

# Respondents by party identification, and the number who expected to vote for Dole. Those who lean to a party count as
# independents: 108, 37 and 94 people, 7, 11 and 70 for Dole.
GROUPS = {
    "strong Democrats": (200, 3),
    "weak Democrats": (180, 11),
    "independents": (239, 88),
    "weak Republicans": (150, 124),
    "strong Republicans": (175, 167),
}
SIZES, DOLE = np.array(list(GROUPS.values())).T
SHARES = DOLE / SIZES  # share of Dole in each group
THETA = SHARES * (1 - SHARES)
BUDGETS = (6, 7, 8, 10)  # interviewers
INTERVIEWS = 100  # interviews per interviewer
PILOT = 500  # number of interviews after which a plan is judged
NEAR = 0.05  # allowed mean excess of its variance over the smallest
TIMES = tuple(digit * 10**power for power in range(1, 7) for digit in (1, 2, 5))[
    1:
]  # interviews at which plans are recorded
SURVEYS = 20_000  # number of surveys with each allocation
RULES = ("COCI", "uniform")


def run(options: Settings) -> Report:
    budgets = (6, 8) if options.quick else BUDGETS
    cases = {k: instance(k) for k in budgets}
    shared = {"options": options, "replicates": options.seeds or (10 if options.quick else 100)}
    sweeps = common.compared("cpe opinion: {} interviewers", cases, curves=plans_on_the_way, **shared)
    cells = study.collected({"k": cases, "rule": RULES}, sweeps, name="{k}: {rule}")
    lines = cells.lines
    ahead = {f"k = {k}:": lines[k, "uniform"].ours / lines[k, "COCI"].ours for k in budgets}
    laws = common.laws(cases.values())
    over = {f"{r}, k = {k}": lines[k, r].ours / laws[r].root[n] for n, k in enumerate(budgets) for r in RULES}
    best = {k: 1 + np.asarray(solve(case.problem, case.theta)) for k, case in cases.items()}
    # Excess variance of every recorded plan over the smallest, (runs, times).
    plans = {key: 1 + sweep.columns["curve.plans"] for key, sweep in sweeps.items()}
    excess = {(k, rule): variance(noted) / variance(best[k]) - 1 for (k, rule), noted in plans.items()}
    early = {key: values[:, TIMES.index(PILOT)].mean() for key, values in excess.items()}
    most = max(budgets)
    allocations = allocations_of(most, best[most])
    more = {name: variance(allocations[name]) / variance(best[most]) - 1 for name in [*allocations][1:]}
    exact = {time: np.mean(excess[most, "COCI"][:, TIMES.index(time)] == 0) for time in (PILOT, 10 * PILOT)}
    then = [f"in {share:.0%} of the runs after {number(time)} pilot interviews" for time, share in exact.items()]
    groups = [f"{name} {size}, {dole}" for name, (size, dole) in GROUPS.items()]

    grid = []
    for k in budgets:
        (_, plan), *others = [(name, points(each)) for name, each in allocations_of(k, best[k]).items()]
        row = {"k": str(k), "best plan": " ".join(map(str, best[k]))}
        row |= {rule: plus_minus(lines[k, rule]) for rule in RULES}
        row |= {"plan": f"{plan:.3f}", f"after {PILOT}": f"{plan * np.sqrt(1 + early[k, 'COCI']):.3f}"}
        grid.append(row | {name: f"{error:.3f}" for name, error in others})
    return study.report(
        "Opinion sampling in the American National Election Study of 1996: interviewers for five groups of voters",
        cells,
        [
            errors_are_rare(sweeps.values(), DELTA),
            above("COCI needs fewer pilot interviews than uniform sampling (uniform over COCI)", ahead),
            in_range("T over the law", over, 0.9, 1.1),
            between(
                f"after {PILOT} pilot interviews the plan for {most} has at most {NEAR:.0%} more variance than the "
                "best, on average",
                {rule: early[most, rule] for rule in RULES},
                most=NEAR,
                form=".1%",
            ),
            surveys_vary_as_planned(allocations),
            Claim(
                "the plan varies less than equal and proportional allocations, by a tenth at least",
                listed(more, "+.1%"),
                min(more["equal"], more["proportional"]) > 0.1,
            ),
        ],
        draw=partial(draw, allocations=allocations, excess=excess, lines=lines),
        notes=(
            "COCI and uniform: pilot interviews until the best plan is certain. The other columns: standard error of "
            f"the estimated share of Dole's voters in points, with {INTERVIEWS} interviews of each interviewer; with "
            f"the plan, as expected after {PILOT} pilot interviews of COCI, and with other allocations. Neyman's has "
            "the smallest variance of all but is no plan for whole interviewers. Proportional and equal allocations "
            "are also taken with fractions.",
            f"The plan was the best one {' and '.join(then)}, and certainly so after "
            f"{number(round(lines[most, 'COCI'].ours))}. The radii assume only that answers are in [0, 1], and the "
            f"second-best plan has only {second_best(best[most]):.1%} more variance. A useful plan is available much "
            "earlier.",
            "While every group is a candidate, COCI samples all in turn, so both rules have the same plans.",
            f"Groups, respondents and expected votes for Dole: {', '.join(groups)}.",
        ),
        grid=grid,
    )


def instance(budget: int) -> Instance:
    """Builds the poll as an instance: an interview draws one of the group's respondents."""
    arms = cpe.discrete(np.broadcast_to([0.0, 1.0], (len(GROUPS), 2)), np.stack([1 - SHARES, SHARES], axis=1))
    return cpe.instance(cpe.opinion_sampling(SIZES, budget), arms, estimator="variance")


def plans_on_the_way(task: Task, case: Instance) -> Record:
    """Records the best plan at the estimates, as levels, before each of `TIMES`, and then the answer."""
    del task
    plan = partial(solve, case.problem)
    return record(at=TIMES, value=lambda state, _: {"plans": plan(estimate(state.statistics, "variance"))})


# Variances


def variance(allocation: np.ndarray) -> np.ndarray:
    """Computes the variance of the estimated share of Dole, for `INTERVIEWS` answers per interviewer.

    The allocation has shape (..., m).
    """
    return np.sum((SIZES / SIZES.sum()) ** 2 * THETA / (INTERVIEWS * allocation), axis=-1)


def points(allocation: np.ndarray) -> float:
    return 100 * float(np.sqrt(variance(allocation)))


def neyman(budget: int) -> np.ndarray:
    """Computes the best allocation in fractions of interviewers, proportional to n_i sqrt(theta_i)."""
    return budget * SIZES * np.sqrt(THETA) / np.sum(SIZES * np.sqrt(THETA))


def allocations_of(budget: int, best: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "the plan": best,
        "Neyman": neyman(budget),
        "proportional": budget * SIZES / SIZES.sum(),
        "equal": np.full(len(GROUPS), budget / len(GROUPS)),
    }


def second_best(best: np.ndarray) -> float:
    """Computes the excess variance of the second-best plan, which moves one or two interviewers of the best plan."""
    moves = np.eye(len(GROUPS), dtype=int)
    plans = {tuple(best)}
    for _ in range(2):
        plans |= {tuple(plan + up - down) for plan in plans for up in moves for down in moves}
    others = np.array([plan for plan in plans - {tuple(best)} if min(plan) >= 1])
    return float(variance(others).min() / variance(best) - 1)


def surveys_vary_as_planned(allocations: dict[str, np.ndarray]) -> Claim:
    """Simulates the surveys with fresh answers of real respondents, drawn with replacement."""
    rng = np.random.default_rng(1996)
    ratios = {}
    for name, allocation in allocations.items():
        asked = np.round(INTERVIEWS * allocation).astype(int)
        estimates = rng.binomial(asked, SHARES, (SURVEYS, len(GROUPS))) / asked @ SIZES / SIZES.sum()
        ratios[name] = float(np.var(estimates, ddof=1) / variance(asked / INTERVIEWS))
    # Estimates are nearly normal, so the relative standard error of their variance is the root of 2 / runs.
    room = STANDARD_ERRORS * np.sqrt(2 / SURVEYS)
    what = f"{number(SURVEYS)} surveys with each allocation vary as the formula says, within {STANDARD_ERRORS} standard"
    return between(f"{what} errors (variance over the formula's)", ratios, 1 - room, 1 + room, ".3f")


def draw(figure: Any, *, allocations: dict[str, np.ndarray], excess: dict, lines: dict) -> None:
    who, when, price = split(figure, (13, 4.9), 1, 3, width_ratios=(1.25, 1.35, 1))
    budgets = sorted({k for k, _ in lines})
    most = budgets[-1]
    y = np.arange(len(GROUPS))[::-1]
    colors = {"the plan": COLORS[0], "Neyman": "#8fb3d9", "equal": "#bbbbbb"}
    for position, (name, color) in enumerate(colors.items()):
        label = f"{name} (s.e. {points(allocations[name]):.2f} points)"
        who.barh(y + 0.26 * (1 - position), allocations[name], 0.24, color=color, label=label)
    who.set(xlabel=f"interviewers of {most}", title="Who is asked")
    names = [f"{name}\n{size} people, {dole / size:.0%} Dole" for name, (size, dole) in GROUPS.items()]
    who.set_yticks(y, names, fontsize=9)
    who.grid(axis="y", visible=False)

    floor = 3e-5
    for style, rule in enumerate(RULES):
        mean, se = mean_se(excess[most, rule])
        at = mean > floor
        errorbars(when, np.array(TIMES)[at], mean[at], se[at], label=f"plan of {rule}", style=style)
        when.axvline(lines[most, rule].ours, color=COLORS[style], ls=STYLES[style]["linestyle"], lw=1)
        side, shift = ("right", -3) if rule == "COCI" else ("left", 3)
        where = {"xytext": (shift, 0), "textcoords": "offset points", "ha": side, "va": "center"}
        when.annotate(f"{rule} stops", (lines[most, rule].ours, 0.002), rotation=90, fontsize=8, **where)
    none = [time for t, time in enumerate(TIMES) if not any(excess[most, rule][:, t:].any() for rule in RULES)]
    if none:
        when.annotate(f"0 in all runs\nfrom {number(none[0])} on", (none[0], 1.2 * floor), va="bottom", fontsize=8)
    for name in ("equal", "proportional"):
        value = variance(allocations[name]) / variance(allocations["the plan"]) - 1
        when.axhline(value, color="k", lw=1, ls=(0, (4, 2)) if name == "equal" else (0, (1, 1)), label=name)
    when.set(xscale="log", yscale="log", xlabel="pilot interviews", ylim=(floor, 1))
    when.set(title=f"Quality of the plan ({most} interviewers)", ylabel="excess variance, mean")
    ticks(when, [1e-4, 1e-3, 1e-2, 1e-1, 1], ["0.01 %", "0.1 %", "1 %", "10 %", "100 %"], axis="y")

    for style, rule in enumerate(RULES):
        x = np.arange(len(budgets)) + 0.38 * (style - 0.5)
        bars = price.bar(x, [lines[k, rule].ours for k in budgets], 0.36, color=COLORS[style], label=rule)
        price.bar_label(bars, [short(lines[k, rule].ours) for k in budgets], fontsize=7.5)
    side_by_side(price, [str(k) for k in budgets], yscale="log", xlabel="interviewers")
    price.set(title="What certainty costs", ylim=(1000, None), ylabel="pilot interviews until the stop")
    for axes, columns in ((who, 1), (when, 2), (price, 2)):
        legend_under(axes, columns, depth=0.16)
    figure.suptitle("Clinton or Dole? A stratified poll of 944 voters of 1996, replayed")


def short(value: float) -> str:
    """Formats a number briefly: 4181 as 4.2k, 1656388 as 1.7M."""
    scaled, unit = (value / 1e6, "M") if value >= 1e6 else (value / 1e3, "k")
    return f"{scaled:.1f}{unit}" if scaled < 10 else f"{scaled:.0f}{unit}"
