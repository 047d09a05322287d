"""Arms of unknown variance: rules that estimate it, round by round, with both costs.

Five Gaussian arms, of which the best leads by so little that no rule stops.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from experiments.bench.case import Case, always
from experiments.bench.loops import per_second
from experiments.bench.reference import variances as reference
from jaxbandits import mab

MEANS, SD = (0.5, 0.49, 0.49, 0.49, 0.49), (1.0, 0.5, 1.0, 2.0, 1.0)
LEVEL, START = 0.495, 3
DELTA, ROUNDS, LANES = 1e-6, 16_384, 256
COSTS = ("adaptive", "plug-in")
RULES: dict[str, tuple[Callable[..., Any], Any]] = {  # name: factory, and its question
    "EB-TCI": (mab.eb_tci, mab.BestArm()),
    "T3C": (mab.t3c, mab.BestArm()),
    "EB-TC, above": (mab.eb_tc, mab.Above(LEVEL)),
    "uniform": (mab.uniform, mab.BestArm()),
}


def cases() -> list[Case]:
    """Returns a case of every rule with each cost."""
    return [case_of(rule, cost) for rule in RULES for cost in COSTS]


def case_of(rule: str, cost: str) -> Case:
    """Returns the case of one rule with one cost, in float64."""
    instance, (factory, question) = mab.gaussian(MEANS, sd=SD, cost=cost), RULES[rule]
    build = partial(factory, instance.problem, question=question, delta=DELTA, start=START)
    return Case(
        "mab",
        f"{rule}, {cost}",
        f"Gaussian, unknown variances, K = {len(MEANS)}",
        build=always(build, mab.environment(instance, build())),
        plain=partial(rate, rule, cost),
        lanes=LANES,
        max_rounds=ROUNDS,
    )


def rate(rule: str, cost: str, seconds: float = 1.0, rounds: int = 200) -> float:
    """Measures the pulls per second of a plain NumPy loop over one run."""
    rng = np.random.default_rng(0)
    chosen = {
        "EB-TCI": lambda: reference.eb_tci(cost),
        "T3C": lambda: t3c(cost, rng),
        "EB-TC, above": lambda: reference.above(cost, LEVEL),
        "uniform": lambda: lambda t, N, m, v, coin: t % len(N),
    }[rule]()
    settings = {"cost": cost, "start": START, "delta": DELTA, "rounds": rounds}
    level = LEVEL if rule == "EB-TC, above" else None

    def play() -> int:
        tape = np.array(MEANS)[:, None] + np.array(SD)[:, None] * rng.normal(size=(len(MEANS), rounds + 1))
        return len(reference.run(tape, chosen, coins=iter(rng.random(rounds)), level=level, **settings))

    return per_second(play, seconds)


def t3c(cost: str, rng: np.random.Generator) -> Callable[..., int]:
    """Builds T3C with share 1/2: (t, N, m, v, coin) -> arm."""

    def rule(t: int, N: np.ndarray, m: np.ndarray, v: np.ndarray, coin: float) -> int:
        del t
        leader = int(np.argmax(m + np.sqrt(v / N) * rng.normal(size=len(N))))
        others = [j for j in range(len(N)) if j != leader]
        return leader if coin < 0.5 else min(others, key=lambda j: (reference.swap(cost, N, m, v, (leader, j)), j))

    return rule
