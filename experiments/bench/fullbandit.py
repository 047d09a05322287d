"""Top-k identification on the crowdsourced quizzes of Table 2, whole runs, with both samplers of sums.

One design of twice as many random super-arms as workers, delta = 0.05, epsilon = 0.5, sigma = 10. A run takes 10^7 to
10^9 pulls and some tens of tests of its rule. The plain NumPy loop makes one pull and one test at a time.
"""

from functools import partial
from typing import Any

from experiments.bench import loops
from experiments.bench.case import Case, always
from experiments.settings import Settings
from jaxbandits import fullbandit

COMMON = {"delta": 0.05, "epsilon": 0.5}
PACED = COMMON | {"pace": fullbandit.Pace(design_matrix="limit")}
RULES = {
    "SAQM": partial(fullbandit.saqm, **PACED),
    "ICB, ellipsoid": partial(fullbandit.icb, radius="ellipsoid", **PACED),
    "spectral": partial(fullbandit.spectral, **PACED),
    "SA-FOA, eps/2": partial(fullbandit.sa_foa, pace=fullbandit.Pace(growth=0.005, design_matrix="limit"), **COMMON),
}
QUIZZES = ("it", "science")
SAMPLERS: dict[str, Any] = {"normal": "bernoulli_normal", "exact": "bernoulli"}  # sampler -> noise


def cases(quizzes: tuple[str, ...] = QUIZZES[:1], samplers: tuple[str, ...] = ("normal",)) -> list[Case]:
    """Returns cases of whole runs; rules whose tests take most of the time have no exact sampler."""
    listed = []
    for quiz in quizzes:
        crowd = fullbandit.crowdsourcing(quiz)
        n = crowd.theta.size
        design = fullbandit.make_design(fullbandit.random_support(0, n, crowd.k, size=2 * n), crowd.k)
        for rule, factory in RULES.items():
            is_slow = rule.startswith("SA-FOA")
            for sampler in samplers[:1] if is_slow else samplers:
                make = partial(factory, design)
                build = always(make, fullbandit.environment(crowd, make(), noise=SAMPLERS[sampler]))
                label = f"{quiz}, n = {n}" + (f", {sampler}" if len(samplers) > 1 else "")
                plain, (lanes, runs) = partial(loops.top_k, rule, design, crowd), (8, 2) if is_slow else (64, 16)
                shape: dict[str, Any] = {"max_rounds": 100_000, "lanes": lanes, "runs": runs, "chunk": 8}
                listed.append(Case("fullbandit", rule, label, build=build, plain=plain, **shape))
    return listed


def more_cases(options: Settings) -> list[Case]:
    """Returns cases on two quizzes with two samplers."""
    del options
    return cases(QUIZZES, tuple(SAMPLERS))
