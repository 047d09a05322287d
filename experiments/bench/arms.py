"""Plain NumPy loops of the rules for independent arms, over one run on one core: pulls a second of each."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments.bench.reference import mab as plain

DELTA, ROUNDS = 1e-6, 200


def rate(rule: str, law: str, means: Sequence[float], seconds: float = 1.0) -> float:
    """Speed of a transcription, which makes one pull at a time."""
    of_law = plain.Law("gaussian", 1.0) if law == "Gaussian" else plain.Law("bernoulli", 0.5)
    rng, K = np.random.default_rng(0), len(means)
    play = player(rule, of_law, K, rng)
    pulls, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        if law == "Gaussian":
            tape = np.asarray(means)[:, None] + rng.normal(size=(K, ROUNDS + 2))
        else:
            tape = (rng.random((K, ROUNDS + 2)) < np.asarray(means)[:, None]).astype(float)
        pulls += play(tape)
    return pulls / (time.perf_counter() - started)


def player(rule: str, law: plain.Law, K: int, rng: np.random.Generator) -> Callable[[np.ndarray], int]:
    """Plays one run of some hundred rounds on a tape; returns its pulls."""

    def draw(N: np.ndarray, m: np.ndarray, size: tuple[int, ...] = ()) -> np.ndarray:
        if law.kind == "gaussian":
            return m + rng.normal(size=(*size, len(m))) * law.noise_scale / np.sqrt(N)
        return rng.beta(1 + m * N, 1 + N - m * N, size=(*size, len(m)))

    if rule in ("SR", "SH"):
        phases = plain.successive_rejects_phases if rule == "SR" else plain.sequential_halving_phases
        return lambda tape: len(plain.in_phases(tape, phases(K, ROUNDS), all_samples=rule == "SR")) - 1
    if rule == "CR":
        settings = {"conservative": True, "noise_scale": law.noise_scale}
        return lambda tape: len(plain.continuous_rejects(tape, ROUNDS, **settings)) - 1
    if rule in INDICES:
        index = plain.indices(law, T=ROUNDS, hardness=2e4)[INDICES[rule]]
        return lambda tape: len(plain.by_index(tape, index, ROUNDS))
    if rule in ("Thompson", "Bayes-UCB"):
        from scipy.stats import beta, norm

        def quantile(t: int, N: np.ndarray, m: np.ndarray) -> np.ndarray:
            if law.kind == "gaussian":
                return m + norm.isf(1 / t) * law.noise_scale / np.sqrt(N)
            return beta.isf(1 / t, 1 + m * N, 1 + N - m * N)

        index = quantile if rule == "Bayes-UCB" else lambda t, N, m: draw(N, m)
        return lambda tape: len(plain.by_index(tape, index, ROUNDS))

    def play(tape: np.ndarray) -> int:
        choose, stopping, *answer = rule_of(rule, law, K)
        numbers = GIVEN.get(
            "TTTS, Bernoulli" if rule == "TTTS" and law.kind == "bernoulli" else rule, lambda draw, rng: None
        )
        given = [numbers(draw, rng) for _ in range(ROUNDS)]
        seen = plain.run(
            law, tape, choose, stopping=stopping, numbers=given, rounds=ROUNDS, answer=next(iter(answer), None)
        )
        return sum(len(each.arms) for each in seen)

    return play


INDICES = {name: name.lower().replace("-", "_") for name in ("UCB1", "KL-UCB", "IMED", "MOSS", "UCB-E")}
INDICES |= {"MOSS, anytime": "moss_anytime"}
# The random numbers of a round, as the transcription wants them.
GIVEN: dict[str, Callable[..., Any]] = {
    "EB-TC": lambda draw, rng: rng.random(),
    "EB-TCI": lambda draw, rng: rng.random(),
    "T3C": lambda draw, rng: (draw, rng.random(), rng.random()),
    "TTTS": lambda draw, rng: (draw, rng.random(), rng.random()),
    "TTTS, Bernoulli": lambda draw, rng: (draw, rng.random(), lambda N, m: draw(N, m, (16,))),
}


def rule_of(rule: str, law: plain.Law, K: int) -> tuple[Any, ...]:
    """(rule, stopping) of a rule of fixed confidence, and its answer where that is not the best mean."""
    test = plain.likelihood_test(law, DELTA)
    if rule in ("LUCB", "KL-LUCB"):
        return plain.lucb(plain.bounds_of(law, DELTA, hoeffding=rule == "LUCB"))
    if rule == "UGapE":
        return plain.ugape(plain.bounds_of(law, DELTA))
    if rule == "elimination":
        return plain.successive_elimination(law.noise_scale, K, delta=DELTA)
    if rule == "lil'UCB":
        return plain.lil_ucb(law.noise_scale, K, e=0.0, b=0.5, ratio=1 + 10 / K, d=DELTA)
    made = {
        "uniform": lambda: lambda t, N, m, _: (t % K,),
        "TaS": lambda: plain.tas(law, K, tracking="D"),
        "TaS, C": lambda: plain.tas(law, K, tracking="C"),
        "TTTS": lambda: plain.ttts(law, share=0.5),
        "T3C": lambda: plain.t3c(law, share=0.5),
        "TTUCB": lambda: plain.ttucb(law, K, share=0.5),
        "EB-TC": lambda: plain.eb_tc(law, share=0.5),
        "EB-TCI": lambda: plain.eb_tc(law, share=0.5, improved=True),
    }
    return made[rule](), test
