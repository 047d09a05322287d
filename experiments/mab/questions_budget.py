"""Questions with a fixed budget: the share of wrong answers, for all arms above a level and for the three best arms.

Bernoulli arms. All arms above .5: ten arms from .2 to .8, of which .45 and .55 are so near to the level that it does
not count where they are put (a band of .1). The three best arms: .6, .55, .5 among seven arms of .4. SAR and
sequential halving that ends with three arms run by leaps, a phase per round, with the law of single pulls.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments import study
from experiments.figures import STYLES, split, ticks
from experiments.report import STANDARD_ERRORS, Claim, Report, listed
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, mab
from jaxbandits.base import Algorithm, Array, Decision, Key, Outcome, PyTree
from jaxbandits.engine.results.intervals import clopper_pearson

LEVEL, BAND = 0.5, 0.1
QUESTIONS = {"all above .5": mab.Above(LEVEL), "three best": mab.TopM(3)}
MEANS = {
    "all above .5": (0.2, 0.25, 0.3, 0.35, 0.45, 0.55, 0.65, 0.7, 0.75, 0.8),
    "three best": (0.6, 0.55, 0.5, *[0.4] * 7),
}
BUDGETS = (200, 300, 500, 700, 1000, 1400, 2000)
QUICK = (300, 500, 1000, 2000)
EXAMPLE_BUDGETS = (500, 2000)
ENOUGH = 500  # at 200 pulls SAR errs more than sequential halving: .733 and .715, 12,000 runs
TICKS = (500, 1000, 1500, 2000)
FEW = 20  # wrong answers, below which a share is only an order of magnitude


def uniform(problem: Any, *, question: Any, horizon: Array | int) -> Algorithm:
    """Builds uniform sampling until a horizon, with the answer of the empirical means."""
    algorithm = mab.uniform(problem, question=question, delta=0.5)

    def decide(key: Key, state: PyTree) -> Decision:
        return algorithm.decide(key, state)._replace(stop=state.pulls >= horizon)

    return algorithm._replace(decide=decide)


RULES: dict[str, dict[str, Callable[..., Algorithm]]] = {  # (problem, *, horizon) -> Algorithm
    "all above .5": {
        "APT, epsilon .1": partial(mab.apt, level=LEVEL, epsilon=BAND),
        "APT, epsilon 0": partial(mab.apt, level=LEVEL),
        "LSA, alpha 1": partial(mab.lsa, level=LEVEL, alpha=1.0),
        "LSA, alpha 1.35": partial(mab.lsa, level=LEVEL, alpha=1.35),
        "LSA, alpha 20": partial(mab.lsa, level=LEVEL, alpha=20.0),
        "uniform": partial(uniform, question=QUESTIONS["all above .5"]),
    },
    "three best": {
        "SAR": partial(mab.sar, m=3, leap=max(BUDGETS)),
        "halving": partial(mab.sh_top_m, m=3, leap=max(BUDGETS)),
        "halving, reuse": partial(mab.sh_top_m, m=3, reuse=True, leap=max(BUDGETS)),
        "uniform": partial(uniform, question=QUESTIONS["three best"]),
    },
}
IN_LEAPS = {"SAR": 10, "halving": 3, "halving, reuse": 3}  # rounds of a run
EXAMPLES = {  # shares of wrong answers of NumPy programs at these budgets, and their runs
    ("all above .5", "APT, epsilon .1"): ((0.0014, 0.0), 5000),
    ("all above .5", "APT, epsilon 0"): ((0.11, 0.0032), 5000),
    ("all above .5", "LSA, alpha 1.35"): ((0.0046, 0.0), 5000),
    ("all above .5", "LSA, alpha 20"): ((0.0896, 0.002), 5000),
    ("all above .5", "uniform"): ((0.0316, 0.0), 5000),
    ("three best", "SAR"): ((0.44085, 0.03005), 20_000),
    ("three best", "halving"): ((0.50475, 0.09765), 20_000),
    ("three best", "halving, reuse"): ((0.4814, 0.0807), 20_000),
}

Rates = Mapping[study.Key, tuple[int, int]]  # wrong answers and runs, by question, rule, budget


def run(options: Settings) -> Report:
    budgets = QUICK if options.quick else BUDGETS
    seeds = options.seeds or (2000 if options.quick else 30_000)
    rules = sorted({rule: None for rules in RULES.values() for rule in rules}, key="uniform".__eq__)

    def sweep(question: str, rule: str) -> Results | None:
        return runs(question, rule, budgets, options, seeds) if rule in RULES[question] else None

    cells = study.crossed(
        {"question": RULES, "rule": rules, "T": budgets},
        sweep,
        rows="T",
        values=lambda columns: columns["wrong"],
        name="{question}, {rule}, T = {T}",
    )
    wrong = study.errors(cells)
    return study.report(
        "Questions with a fixed budget: the share of wrong answers",
        cells,
        [
            beats("all arms above .5", wrong, ("all above .5", "APT, epsilon .1"), ("all above .5", "APT, epsilon 0")),
            beats("all arms above .5", wrong, ("all above .5", "LSA, alpha 1.35"), ("all above .5", "LSA, alpha 20")),
            beats("three best arms", wrong, ("three best", "SAR"), ("three best", "halving"), least=ENOUGH),
            beats("three best arms", wrong, ("three best", "SAR"), ("three best", "halving, reuse"), least=ENOUGH),
            near(wrong),
        ],
        draw=partial(draw, wrong=wrong, budgets=budgets),
        notes=(
            f"In brackets the number of wrong answers where it is below {FEW}. An arm that lies in the band counts as "
            "right in either place. Arms wrong: the mean number of arms that are wrongly in the set or out of it, "
            f"which LSA aims at; T = {EXAMPLE_BUDGETS[0]}.",
        ),
        grid=[
            {"question": question, "rule": rule}
            | {f"T = {T}": share(*wrong[question, rule, T]) for T in budgets}
            | {"arms wrong": f"{np.mean(cells.cells[question, rule, EXAMPLE_BUDGETS[0]]['arms_wrong']):.4f}"}
            for question, those in RULES.items()
            for rule in those
        ],
    )


def runs(question: str, rule: str, budgets: tuple[int, ...], options: Settings, seeds: int) -> Results:
    """Runs a rule with a row for every budget. Columns: `wrong`, and `arms_wrong`, the number of such arms."""
    instance, asked = mab.bernoulli(MEANS[question]), QUESTIONS[question]
    band = {"epsilon": BAND} if question == "all above .5" else {}
    truth = instance.means > LEVEL if band else jnp.arange(len(MEANS[question])) < asked.m
    counts = jnp.abs(instance.means - LEVEL) >= BAND if band else True

    def build(task: Any, key: Any) -> tuple:
        algorithm = RULES[question][rule](instance.problem, horizon=task["T"])
        return algorithm, mab.environment(instance, algorithm)

    def metrics(task: Any, outcome: Outcome) -> dict[str, Any]:
        is_right = mab.is_right(instance, outcome.answer, question=asked, **band)
        return {"wrong": ~is_right, "arms_wrong": jnp.sum((outcome.answer != truth) & counts)}

    return simulate(
        f"mab questions budget, {question}: {rule}",
        build,
        jaxbandits.grid(T=np.array(budgets)),
        options=options,
        seeds=seeds,
        max_rounds=4 * max(budgets),
        metrics=metrics,
        # The phases, and spare rounds for pulls that the binomial sampler left over.
        chunk=IN_LEAPS[rule] + 2 if rule in IN_LEAPS else None,
    )


def share(wrong: int, runs: int) -> str:
    return f"{wrong / runs:.4f}" + f" ({wrong})" * (wrong < FEW)


def beats(what: str, wrong: Rates, better: tuple[str, str], worse: tuple[str, str], *, least: int = 0) -> Claim:
    """Claims that a rule errs less than another one at every budget of at least `least` at which either errs."""
    budgets = [T for question, rule, T in wrong if (question, rule) == better and least <= T]
    pairs = {T: (wrong[*better, T], wrong[*worse, T]) for T in budgets}
    rates = {f"T = {T}:": [k / n for k, n in pair] for T, pair in pairs.items() if pair[0][0] + pair[1][0] > 0}
    return Claim(
        f"{what}: {better[1]} errs less than {worse[1]}, at every budget {f'from {least} on ' * (least > 0)}at which "
        "either errs",
        ", ".join(f"{T} {low:.4f} and {high:.4f}" for T, (low, high) in rates.items()),
        len(rates) > 0 and all(low < high for low, high in rates.values()),
    )


def near(wrong: Rates) -> Claim:
    """Claims that shares agree with NumPy programs."""
    off = {}
    for key, (shares, runs) in EXAMPLES.items():
        for T, other in zip(EXAMPLE_BUDGETS, shares, strict=True):
            errors, n = wrong[*key, T]
            pooled = (errors + other * runs) / (n + runs)
            se = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / runs))
            off[f"{key[1]}, T = {T}"] = (errors / n - other) / se if se else 0.0
    return Claim(
        f"shares are within {STANDARD_ERRORS} standard errors of the shares of NumPy programs",
        listed(off, "+.1f"),
        max(map(abs, off.values())) <= STANDARD_ERRORS,
    )


def draw(figure: Any, *, wrong: Rates, budgets: tuple[int, ...]) -> None:
    panels = split(figure, (9.6, 4.6), 1, 2)
    for axes, (question, rules) in zip(panels, RULES.items(), strict=True):
        for style, rule in enumerate(rules):
            pairs = {T: wrong[question, rule, T] for T in budgets if wrong[question, rule, T][0] > 0}
            rates = np.array([k / n for k, n in pairs.values()])
            low, high = clopper_pearson(*np.array(list(pairs.values())).reshape(-1, 2).T)
            bars = [np.maximum(rates - low, 0), np.maximum(high - rates, 0)]
            axes.errorbar(list(pairs), rates, bars, label=rule, mfc="w", **STYLES[style])
        axes.set(yscale="log", title=question, xlabel="budget T")
        ticks(axes, TICKS)
        axes.legend(fontsize=9)
    panels[0].set_ylabel("share of wrong answers")
