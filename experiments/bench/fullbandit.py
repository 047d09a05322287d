"""Top-k identification on the crowdsourced quizzes of Table 2, whole runs, with both samplers of sums.

One design of twice as many random super-arms as workers, delta = 0.05, epsilon = 0.5, sigma = 10. A run takes 10^7 to
10^9 pulls and some tens of tests of its rule; the plain NumPy loop makes one pull and one test at a time.
"""

from functools import partial

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
    "SA-FOA, eps/2": partial(fullbandit.sa_foa, design_matrix="limit", **COMMON),
}
QUIZZES = ("it", "science")


def cases(quizzes: tuple[str, ...] = QUIZZES[:1], samplers: tuple[str, ...] = ("normal",)) -> list[Case]:
    """Whole runs; the exact sampler is left out where tests take the time, whatever the sampler."""
    found = []
    for quiz in quizzes:
        crowd = fullbandit.crowdsourcing(quiz)
        n = crowd.theta.size
        design = fullbandit.make_design(fullbandit.random_support(0, n, crowd.k, size=2 * n), crowd.k)
        for rule, factory in RULES.items():
            is_slow = rule.startswith("SA-FOA")
            for sampler in samplers[:1] if is_slow else samplers:
                environment = fullbandit.environment(crowd, design, noise="bernoulli", sampler=sampler)
                build = always(partial(factory, design), environment)
                where = f"{quiz}, n = {n}" + (f", {sampler}" if len(samplers) > 1 else "")
                plain, (lanes, runs) = partial(loops.top_k, rule, design, crowd), (8, 2) if is_slow else (64, 16)
                found.append(Case("fullbandit", rule, where, build, plain, 100_000, lanes, runs, chunk=8))
    return found


def more_cases(options: Settings) -> list[Case]:
    """Two quizzes, two samplers."""
    del options
    return cases(QUIZZES, ("normal", "exact"))
