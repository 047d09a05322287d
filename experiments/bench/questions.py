"""Questions about independent arms: the rules that answer several of them, round by round, beside the best arm.

Five Gaussian arms, of which the best leads by so little that no rule stops.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from experiments.bench.case import Case, always
from experiments.bench.loops import per_second
from experiments.bench.reference import good_arms, tracked
from experiments.bench.reference import mab as plain
from experiments.bench.reference import questions as reference
from jaxbandits import mab

MEANS = (0.5, 0.49, 0.49, 0.49, 0.49)
DELTA, ROUNDS, LANES = 1e-6, 16_384, 256
BEST = "best arm"
QUESTIONS: dict[str, tuple[Any, tuple[str, float]]] = {  # name: the question, and its form in the reference
    BEST: (mab.BestArm(), ("top", 1)),
    "top 2": (mab.TopM(2), ("top", 2)),
    "above": (mab.Above(0.495), ("above", 0.495)),
    "good arm": (mab.GoodArm(0.495), ("good", 0.495)),
    "all good": (mab.AllGood(0.005), ("all good", 0.005)),
}
RULES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {  # name: factory, and its questions
    "EB-TC, ids": (partial(mab.eb_tc, leader_share="ids"), tuple(QUESTIONS)),
    "EB-TCI, ids": (partial(mab.eb_tci, leader_share="ids"), (BEST, "top 2")),
    "TaS": (mab.tas, tuple(QUESTIONS)),
    "TaS, sticky": (partial(mab.tas, sticky=True), ("good arm",)),
    "LUCB": (mab.lucb, (BEST, "top 2")),
    "uniform": (mab.uniform, tuple(QUESTIONS)),
}


def cases() -> list[Case]:
    """Returns a case of every rule with each of its questions."""
    return [case_of(rule, question) for rule, (_, questions) in RULES.items() for question in questions]


def case_of(rule: str, question: str) -> Case:
    """Returns the case of one rule with one question, in float64."""
    instance, asked = mab.gaussian(MEANS), QUESTIONS[question][0]
    build = partial(RULES[rule][0], instance.problem, question=asked, delta=DELTA)
    environment = mab.environment(instance, build())
    return Case(
        "mab",
        f"{rule}, {question}",
        f"Gaussian, K = {len(MEANS)}",
        build=always(build, environment),
        plain=partial(rate, rule, question),
        lanes=LANES,
        max_rounds=ROUNDS,
    )


def rate(rule: str, question: str, seconds: float = 1.0, rounds: int = 200) -> float:
    """Measures the pulls per second of a plain NumPy loop over one run."""
    law, rng, form = plain.Law("gaussian", 1.0), np.random.default_rng(0), QUESTIONS[question][1]
    choosers = {
        "EB-TC, ids": reference.eb_tc,
        "EB-TCI, ids": partial(reference.eb_tc, penalty=0.5),
        "TaS": {BEST: _tas_best, "above": reference.tas_above, "good arm": good_arms.tas}.get(question, tracked.tas),
        "TaS, sticky": partial(good_arms.tas, sticky=True),
        "uniform": reference.in_turn,
    }

    def play() -> int:
        tape = np.asarray(MEANS)[:, None] + rng.normal(size=(len(MEANS), rounds + 2))
        if rule == "LUCB":
            made = reference.by_bounds(tape, reference.lucb(law, int(form[1]), DELTA), rounds)
        else:
            settings = {"delta": DELTA, "rounds": rounds, "numbers": lambda t: rng.random()}
            made = reference.run(law, tape, form, choosers[rule](law, form), **settings)
        return sum(len(each.arms) for each in made)

    return per_second(play, seconds)


def _tas_best(law: plain.Law, form: tuple[str, float]) -> Callable[..., int]:
    del form
    rule, lot = plain.tas(law, len(MEANS), tracking="D"), np.arange(len(MEANS))
    return lambda t, N, m, coin: rule(t, N, m, lot, coin)[0]
