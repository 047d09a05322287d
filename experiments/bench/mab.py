"""Independent arms, K = 5: all rules, round by round, a fixed number of rounds each.

Gaussian arms, Bernoulli ones where the rule is dearer there (KL-LUCB, Track-and-Stop, the Bayesian ones); float64. The
best arm leads by so little that no rule stops: what is measured is a round. Rules of a given budget go to its end.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from experiments.bench import arms
from experiments.bench.case import Case, always
from experiments.settings import Settings
from jaxbandits import mab
from jaxbandits.base import Algorithm

MEANS = (0.5, 0.49, 0.49, 0.49, 0.49)
DELTA = 1e-6  # no stop within these rounds
ROUNDS = 4096
LANES = (64, 256, 1024)
LONGER = 16  # times as many rounds: a second or so of the cheapest rules
DEAR = {"TaS": 64, "TaS, C": 64, "TTTS": 256, "KL-LUCB": 8, "UGapE": 8, "T3C": 4, "Bayes-UCB": 2}  # fewer by as much
BARS = {"UCB1": 3e7, "EB-TCI": 2e7, "TTUCB": 2e7, "T3C": 8e6, "KL-LUCB": 5e6, "TaS": 5e5}  # rounds a second, two cores
SURE: dict[str, Callable[..., Algorithm]] = {
    "uniform": mab.uniform,
    "TaS": mab.tas,
    "TaS, C": partial(mab.tas, tracking="C"),
    "TTTS": mab.ttts,
    "T3C": mab.t3c,
    "TTUCB": mab.ttucb,
    "EB-TC": mab.eb_tc,
    "EB-TCI": mab.eb_tci,
    "LUCB": mab.lucb,
    "KL-LUCB": mab.kl_lucb,
    "UGapE": mab.ugape,
    "elimination": mab.successive_elimination,
    "lil'UCB": mab.lil_ucb,
}
SLOTS = {"LUCB": 2, "KL-LUCB": 2}
BUDGET: dict[str, Callable[..., Algorithm]] = {
    "SR": mab.successive_rejects,
    "SR, leap": partial(mab.successive_rejects, leap=ROUNDS),
    "SH": mab.sequential_halving,
    "SH, leap": partial(mab.sequential_halving, leap=ROUNDS),
    "CR": mab.continuous_rejects,
    "UCB-E": partial(mab.ucb_e, hardness=2e4),
}
REGRET: dict[str, Callable[..., Algorithm]] = {
    "UCB1": mab.ucb1,
    "KL-UCB": mab.kl_ucb,
    "IMED": mab.imed,
    "Bayes-UCB": mab.bayes_ucb,
    "Thompson": mab.thompson,
    "MOSS": partial(mab.moss, horizon=ROUNDS),
    "MOSS, anytime": mab.moss_anytime,
}
LAW = {"TaS": "Bernoulli", "KL-LUCB": "Bernoulli", "KL-UCB": "Bernoulli"}  # where they are commonly used


def factories() -> dict[str, Callable[[mab.Gaussian | mab.Bernoulli], Algorithm]]:
    """All rules, from the problem alone."""
    sure = {name: partial(rule, delta=DELTA) for name, rule in SURE.items()}
    return sure | {name: partial(rule, horizon=ROUNDS) for name, rule in BUDGET.items()} | REGRET


def cases(lanes: int = LANES[1]) -> list[Case]:
    """Every rule once, in so many lanes."""
    return [case_of(rule, factory, lanes) for rule, factory in factories().items()]


def case_of(rule: str, factory: Callable[[mab.Gaussian | mab.Bernoulli], Algorithm], lanes: int) -> Case:
    """One rule on arms of its law."""
    law = LAW.get(rule, "Gaussian")
    instance = mab.gaussian(MEANS) if law == "Gaussian" else mab.bernoulli(MEANS)
    leap = ROUNDS if rule.endswith(", leap") else 1
    environment = mab.environment(instance, slots=SLOTS.get(rule, 1), leap=leap)
    shape: dict[str, Any] = {"max_rounds": LONGER * ROUNDS // DEAR.get(rule, 1)}
    if rule in BUDGET:  # ends by itself: many runs a lane, a million in all where a round is a phase
        shape = {"max_rounds": ROUNDS, "runs": 2000 if leap > 1 else LONGER, "chunk": 16 if leap > 1 else None}
    build = always(partial(factory, instance.problem), environment)
    plain = partial(arms.rate, rule.removesuffix(", leap"), law, MEANS)
    bar = BARS.get(rule) if lanes == LANES[1] else None
    return Case("mab", rule, f"{law}, K = 5", build, plain, lanes=lanes, bar=bar, **shape)


def more_cases(options: Settings) -> list[Case]:
    """Three cheap rules in other widths too."""
    widths = () if options.quick else (LANES[0], LANES[2])
    return cases() + [case for width in widths for case in cases(width) if case.rule in ("UCB1", "EB-TCI", "TTUCB")]
