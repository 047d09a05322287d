"""Questions about the arms: pulls against T* log(1/delta), from delta = 1e-1 to 1e-12.

Every question has a characteristic time T*, and no rule can stay below T* kl(delta, 1 - delta) pulls in the mean.
Rules that pull in the optimal proportions tend to T* log(1/delta). A top-two rule of share 1/2, LUCB and uniform
sampling have larger limits. So has APGAI, which is EB-TC for one good arm, if several arms are good: it may stay with a
worse one. Gaussian arms; the threshold of all is gk16, a heuristic, for one comparison, and for good arms for K. (ST)^2
has intervals instead.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.claims import above_bound, below
from experiments.figures import curve, split
from experiments.mab import common, questions
from experiments.mab.questions import Asked
from experiments.report import STANDARD_ERRORS, Claim, Line, Report
from experiments.settings import Settings
from jaxbandits import Results, mab
from jaxbandits.base import Algorithm
from jaxbandits.numerics import thresholds

DELTAS = tuple(10.0**-n for n in (1, 2, 3, 4, 6, 8, 10, 12))


def directed(rule: Callable[..., Algorithm], question: Any) -> Callable[..., Algorithm]:
    """Returns a top-two rule with the information-directed share."""
    return partial(rule, question=question, leader_share="ids")


def good(asked: Asked) -> dict[str, Callable[..., Algorithm]]:
    """Returns the rules for one good arm, with a threshold for as many comparisons as arms."""
    question, threshold = asked.question, thresholds.gk16(comparisons=len(asked.means))
    return {
        "EB-TC": partial(mab.eb_tc, question=question, threshold=threshold),
        "APGAI": partial(mab.apgai, level=question.level, threshold=threshold),
        "TaS, C": partial(mab.tas, question=question, threshold=threshold),
        "TaS, sticky": partial(mab.tas, question=question, sticky=True, threshold=threshold),
    }


TOP, ABOVE, ALL_GOOD = questions.TOP.question, questions.ABOVE.question, questions.ALL_GOOD.question
ASKED: dict[str, tuple[Asked, dict[str, Callable[..., Algorithm]]]] = {
    "two best arms": (
        questions.TOP,
        {
            "EB-TCI, ids": directed(mab.eb_tci, TOP),
            "EB-TCI, 1/2": partial(mab.eb_tci, question=TOP),
            "T3C, ids": directed(mab.t3c, TOP),
            "LUCB": partial(mab.lucb, question=TOP),
            "uniform": partial(mab.uniform, question=TOP),
        },
    ),
    "all arms above 0": (
        questions.ABOVE,
        {
            "TaS, D": partial(mab.tas, question=ABOVE),
            "EB-TC": partial(mab.eb_tc, question=ABOVE),
            "uniform": partial(mab.uniform, question=ABOVE),
        },
    ),
    "an arm above 0, two are": (questions.SEVERAL, good(questions.SEVERAL)),
    "an arm above 0, none is": (questions.NONE, good(questions.NONE)),
    "all arms within .2 of the best": (
        questions.ALL_GOOD,
        {
            "EB-TC, ids": directed(mab.eb_tc, ALL_GOOD),
            "(ST)^2": partial(mab.st2, epsilon=ALL_GOOD.epsilon),
            "uniform": partial(mab.uniform, question=ALL_GOOD),
        },
    ),
}
OPTIMAL = (  # rules that tend to T*, fast enough to be within .15 of it at delta = 1e-12
    ("two best arms", "EB-TCI, ids"),
    ("two best arms", "T3C, ids"),
    ("all arms above 0", "TaS, D"),
    ("all arms above 0", "EB-TC"),
    ("all arms within .2 of the best", "EB-TC, ids"),
)
EXAMPLE_DELTAS = (1e-3, 1e-6, 1e-12)
EXAMPLES = {  # pulls / (T* log(1/delta)) of NumPy programs at these deltas, and their runs
    ("two best arms", "EB-TCI, ids"): ((1.23, 1.11, 1.06), 300),
    ("two best arms", "EB-TCI, 1/2"): ((1.27, 1.14, 1.09), 300),
    ("two best arms", "T3C, ids"): ((1.22, 1.11, 1.06), 300),
    ("two best arms", "LUCB"): ((2.37, 2.18, 2.04), 300),
    ("two best arms", "uniform"): ((2.30, 2.09, 1.99), 300),
    ("all arms above 0", "TaS, D"): ((1.30, 1.16, 1.08), 300),
    ("all arms above 0", "EB-TC"): ((1.28, 1.15, 1.07), 300),
    ("an arm above 0, two are", "EB-TC"): ((2.70, 2.31, 2.09), 300),
    ("an arm above 0, two are", "APGAI"): ((2.70, 2.31, 2.09), 300),
    ("an arm above 0, two are", "TaS, C"): ((2.70, 2.11, 1.70), 300),
    ("an arm above 0, two are", "TaS, sticky"): ((2.39, 1.87, 1.57), 300),
    ("an arm above 0, none is", "EB-TC"): ((1.43, 1.24, 1.11), 300),
    ("an arm above 0, none is", "APGAI"): ((1.43, 1.24, 1.11), 300),
    ("an arm above 0, none is", "TaS, C"): ((1.73, 1.46, 1.28), 300),
    ("all arms within .2 of the best", "EB-TC, ids"): ((1.31, 1.17, 1.09), 100),
}
ROUNDING = 0.005  # half a unit of the last digit of these ratios


def run(options: Settings) -> Report:
    seeds = options.seeds or (60 if options.quick else 1000)
    deltas = (DELTAS[0], *EXAMPLE_DELTAS) if options.quick else DELTAS
    rules = sorted({rule: None for _, rules in ASKED.values() for rule in rules}, key="uniform".__eq__)
    times = {name: questions.time_of(asked) for name, (asked, _) in ASKED.items()}

    def sweep(question: str, rule: str) -> Results | None:
        asked, rules = ASKED[question]
        if rule not in rules:
            return None
        heading = f"mab questions, {question}: {rule}"
        return questions.runs(heading, asked, rules[rule], delta=deltas, options=options, seeds=seeds)

    cells = study.crossed(
        {"question": ASKED, "rule": rules, "delta": deltas},
        sweep,
        rows="delta",
        name="{question}, {rule}, delta = {delta:g}",
        more=lambda question, rule, delta: {"bound": times[question] * questions.kl(delta)},
    )
    ratios = {key: questions.over_time(each, times[key[0]], key[2]) for key, each in cells.lines.items()}
    wrong = study.errors(cells)
    last = {", ".join(key): ratios[*key, deltas[-1]].ours for key in OPTIMAL}
    return study.report(
        "Questions about the arms: pulls against delta",
        cells,
        [
            above_bound(cells.lines.values()),
            falls(ratios, deltas),
            below(f"pulls / (T* log(1/delta)) at delta = {deltas[-1]:g} are below 1.15", last, 1.15, ".3f"),
            questions.near(ratios, examples(ratios)),
            common.confident({cells.lines[key].quantity: each for key, each in wrong.items() if key[2] == DELTAS[0]}),
        ],
        draw=partial(draw, ratios=ratios, deltas=deltas),
        notes=(
            "The table has mean pulls / (T* log(1/delta)), with standard errors. T* is "
            + "; ".join(f"{time:.2f} ({name})" for name, time in times.items())
            + ". The lower bound, T* kl(delta, 1 - delta), is .76 of T* log(1/delta) at delta = .1, and 1.00 at 1e-12. "
            "Where two arms are good, two answers are right, and T* is the smaller time of the two.",
        ),
        grid=study.across(cells._replace(lines=ratios), "delta", cell=lambda each: f"{each.ours:.3f} +- {each.se:.3f}"),
    )


def examples(ratios: dict[study.Key, Line]) -> dict[study.Key, tuple[float, float]]:
    """Returns the ratios of the NumPy programs, with standard errors from the spread of our runs and the rounding."""
    made = {}
    for key, (values, runs) in EXAMPLES.items():
        for delta, value in zip(EXAMPLE_DELTAS, values, strict=True):
            each = ratios[*key, delta]
            spread = each.se * np.sqrt(each.runs / runs)
            made[*key, delta] = value, float(np.hypot(spread, ROUNDING / np.sqrt(3)))
    return made


def falls(ratios: dict[study.Key, Line], deltas: tuple[float, ...]) -> Claim:
    """Claims that pulls / (T* log(1/delta)) never rise as delta falls, and that the last is below the first."""
    steps = {}
    for question, (_, rules) in ASKED.items():
        for rule in rules:
            row = [ratios[question, rule, delta] for delta in deltas]
            values, se = np.array([(each.ours, each.se) for each in row]).T
            rise = np.diff(values) / np.hypot(se[1:], se[:-1])
            steps[f"{question}, {rule}"] = max(rise) if values[-1] < values[0] else np.inf
    worst = max(steps, key=steps.__getitem__)
    return Claim(
        f"pulls / (T* log(1/delta)) never rise by {STANDARD_ERRORS} standard errors as delta falls, and the last is "
        "below the first",
        f"largest step {steps[worst]:+.1f} standard errors ({worst}), {len(steps)} rules",
        steps[worst] <= STANDARD_ERRORS,
    )


def draw(figure: Any, *, ratios: dict[study.Key, Line], deltas: tuple[float, ...]) -> None:
    panels = np.ravel(split(figure, (10.5, 6.6), 2, 3, sharex=True))
    for axes, (question, (_, rules)) in zip(panels, ASKED.items(), strict=False):
        for style, rule in enumerate(rules):
            curve(axes, deltas, [ratios[question, rule, delta] for delta in deltas], rule, style, ms=5)
        axes.plot(deltas, [-questions.kl(delta) / np.log(delta) for delta in deltas], "k:", lw=1, label="lower bound")
        axes.set(xscale="log", title=question, xlabel="delta")
        axes.tick_params(labelbottom=True)
        axes.legend(fontsize=8)
    panels[0].invert_xaxis()  # shared by all panels
    panels[0].set_ylabel(questions.OVER_TIME)
    panels[3].set_ylabel(questions.OVER_TIME)
    for axes in panels[len(ASKED) :]:
        axes.remove()
