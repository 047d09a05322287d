"""Independent arms, K = 5: all rules, round by round, a fixed number of rounds each.

The arms are Gaussian, or Bernoulli for rules that are mostly used there (Track-and-Stop, KL-LUCB, KL-UCB), in float64.
The lead of the best arm is so small that no rule stops, so the figure is the cost of a round. Rules of a given budget
run to its end.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from experiments.bench import arms, questions, switching, variances
from experiments.bench.case import Case, always
from experiments.settings import Settings
from jaxbandits import mab
from jaxbandits.base import Algorithm

MEANS = (0.5, 0.49, 0.49, 0.49, 0.49)
DELTA = 1e-6  # no stop within these rounds
ROUNDS = 4096
LANES = (64, 256, 1024)
LONGER = 16  # factor of the number of rounds: about a second of the cheapest rules
DEAR = {
    "TaS": 64,
    "TaS, C": 64,
    "TTTS": 256,
    "KL-LUCB": 8,
    "UGapE": 8,
    "T3C": 4,
    "Bayes-UCB": 2,
}  # divisors of the number of rounds
BARS = {
    "UCB1": 3e7,
    "EB-TCI": 2e7,
    "TTUCB": 2e7,
    "T3C": 8e6,
    "KL-LUCB": 5e6,
    "TaS": 5e5,
}  # rounds per second, two cores
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
    "elimination, batches": mab.batched_elimination,
    "lil'UCB": mab.lil_ucb,
    "HDoC": partial(mab.hdoc, level=arms.LEVEL),
    "LUCB-G": partial(mab.lucb_g, level=arms.LEVEL),
    "APT-G": partial(mab.apt_g, level=arms.LEVEL),
    "APGAI": partial(mab.apgai, level=arms.LEVEL),
    "(ST)^2": partial(mab.st2, epsilon=arms.MARGIN),
}
BUDGET: dict[str, Callable[..., Algorithm]] = {
    "SR": mab.successive_rejects,
    "SR, leap": partial(mab.successive_rejects, leap=ROUNDS),
    "SH": mab.sequential_halving,
    "SH, leap": partial(mab.sequential_halving, leap=ROUNDS),
    "CR": mab.continuous_rejects,
    "UCB-E": partial(mab.ucb_e, hardness=2e4),
    "SAR": partial(mab.sar, m=2),
    "SH, top m": partial(mab.sh_top_m, m=2),
    "APT": partial(mab.apt, level=arms.LEVEL),
    "LSA": partial(mab.lsa, level=arms.LEVEL),
}
REGRET: dict[str, Callable[..., Algorithm]] = {
    "UCB1": mab.ucb1,
    "KL-UCB": mab.kl_ucb,
    "IMED": mab.imed,
    "Bayes-UCB": mab.bayes_ucb,
    "Thompson": mab.thompson,
    "MOSS": partial(mab.moss, horizon=ROUNDS),
    "MOSS, anytime": mab.moss_anytime,
    "D-UCB": partial(mab.discounted_ucb, discount=switching.DISCOUNT),
    "SW-UCB": partial(mab.sliding_window_ucb, window=switching.WINDOW),
    "M-UCB": partial(mab.m_ucb, window=switching.SPAN, threshold=switching.DRIFT, gamma=switching.SHARE),
    "Exp3": partial(mab.exp3, gamma=switching.GAMMA),
    "Exp3-IX": partial(mab.exp3_ix, eta=switching.ETA, gamma=switching.BIAS),
}
LAW = {
    "TaS": "Bernoulli",
    "KL-LUCB": "Bernoulli",
    "KL-UCB": "Bernoulli",
    "Exp3": "Bernoulli",
    "Exp3-IX": "Bernoulli",
}  # the law of the arms that each is mostly used for


def factories() -> dict[str, Callable[..., Algorithm]]:
    """Returns the factories of all rules, which take the problem alone."""
    sure = {name: partial(rule, delta=DELTA) for name, rule in SURE.items()}
    return sure | {name: partial(rule, horizon=ROUNDS) for name, rule in BUDGET.items()} | REGRET


def cases(lanes: int = LANES[1]) -> list[Case]:
    """Returns a case of every rule with `lanes` lanes."""
    return [case_of(rule, factory, lanes) for rule, factory in factories().items()]


def case_of(rule: str, factory: Callable[..., Algorithm], lanes: int) -> Case:
    """Returns the case of one rule on arms of its law."""
    law = LAW.get(rule, "Gaussian")
    instance = mab.gaussian(MEANS) if law == "Gaussian" else mab.bernoulli(MEANS)
    leap = ROUNDS if rule.endswith(", leap") else 1
    shape: dict[str, Any] = {"max_rounds": LONGER * ROUNDS // DEAR.get(rule, 1)}
    # A budget ends by itself: many runs per lane, a million in all if a round is a phase.
    if rule in BUDGET:
        shape = {"max_rounds": ROUNDS, "runs": 2000 if leap > 1 else LONGER, "chunk": 16 if leap > 1 else None}
    environment = mab.environment(instance, factory(instance.problem))
    build = always(partial(factory, instance.problem), environment)
    plain = partial(arms.rate, rule.removesuffix(", leap"), law, MEANS)
    bar = BARS.get(rule) if lanes == LANES[1] else None
    return Case("mab", rule, f"{law}, K = 5", build=build, plain=plain, lanes=lanes, bar=bar, **shape)


def more_cases(options: Settings) -> list[Case]:
    """Returns all cases, other questions, unknown variances, and three cheap rules in other widths."""
    widths = () if options.quick else (LANES[0], LANES[2])
    return (
        cases()
        + questions.cases()
        + variances.cases()
        + [case for width in widths for case in cases(width) if case.rule in ("UCB1", "EB-TCI", "TTUCB")]
    )
