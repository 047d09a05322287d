"""Plain NumPy loops of the rules for independent arms, over one run on one core, in pulls per second."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from experiments.bench import switching
from experiments.bench.loops import per_second
from experiments.bench.reference import good_arms, questions
from experiments.bench.reference import mab as plain

DELTA, ROUNDS = 1e-6, 200
GOOD = {"HDoC": "hdoc", "LUCB-G": "lucb_g", "APT-G": "apt_g"}
LEVEL = 0.495  # lies between the best mean and the others
MARGIN = 0.005  # half as wide as the lead of the best mean
INDICES = {name: name.lower().replace("-", "_") for name in ("UCB1", "KL-UCB", "IMED", "MOSS", "UCB-E")}
INDICES |= {"MOSS, anytime": "moss_anytime"}


def rate(rule: str, law: str, means: Sequence[float], seconds: float = 1.0) -> float:
    """Measures the pulls per second of a transcription, which makes one pull at a time."""
    is_gaussian, rng, shape = law == "Gaussian", np.random.default_rng(0), (len(means), ROUNDS + 2)
    of_law = plain.Law("gaussian", 1.0) if is_gaussian else plain.Law("bernoulli", 0.5)
    play, level = player(rule, of_law, len(means), rng), np.asarray(means)[:, None]

    def tape() -> np.ndarray:
        return level + rng.normal(size=shape) if is_gaussian else (rng.random(shape) < level).astype(float)

    return per_second(lambda: play(tape()), seconds)


def player(rule: str, law: plain.Law, K: int, rng: np.random.Generator) -> Callable[[np.ndarray], int]:
    """Returns a function that plays one run of a few hundred rounds on a tape and returns its number of pulls."""
    is_gaussian = law.kind == "gaussian"

    def draw(N: np.ndarray, m: np.ndarray, size: tuple[int, ...] = ()) -> np.ndarray:
        if is_gaussian:
            return m + rng.normal(size=(*size, len(m))) * law.noise_scale / np.sqrt(N)
        return rng.beta(1 + m * N, 1 + N - m * N, size=(*size, len(m)))

    def quantile(t: int, N: np.ndarray, m: np.ndarray) -> np.ndarray:
        if is_gaussian:
            return m + stats.norm.isf(1 / t) * law.noise_scale / np.sqrt(N)
        return stats.beta.isf(1 / t, 1 + m * N, 1 + N - m * N)

    changing = {
        "D-UCB": lambda: switching.discounted_ucb(law.noise_scale),
        "SW-UCB": lambda: switching.sliding_window_ucb(law.noise_scale),
        "M-UCB": lambda: switching.m_ucb(law.noise_scale),
        "Exp3": lambda: switching.exp3(rng),
        "Exp3-IX": lambda: switching.exp3_ix(rng),
        "elimination, batches": lambda: switching.batched_elimination(law.noise_scale, DELTA),
    }
    if rule in changing:
        return changing[rule]()
    if rule in ("SR", "SH"):
        phases = plain.successive_rejects_phases if rule == "SR" else plain.sequential_halving_phases
        return lambda tape: len(plain.in_phases(tape, phases(K, ROUNDS), all_samples=rule == "SR")) - 1
    if rule in GOOD:
        # An arm near the level would be pulled far beyond the end of the tape.
        settings = {"every": True, "most": ROUNDS}
        return lambda tape: len(questions.good_arms(law, tape, GOOD[rule], LEVEL, DELTA, **settings)[0])
    if rule == "APGAI":
        question = ("good", LEVEL)
        settings = {"delta": DELTA, "rounds": ROUNDS, "comparisons": K}
        return lambda tape: len(questions.run(law, tape, question, good_arms.apgai(law, question), **settings))
    if rule == "(ST)^2":
        return lambda tape: sum(len(each.arms) for each in good_arms.st2(law, tape, MARGIN, DELTA, rounds=ROUNDS // 3))
    if rule == "SH, top m":
        phases = plain.sequential_halving_phases(K, ROUNDS, 2)
        return lambda tape: len(plain.in_phases(tape, phases, all_samples=False)) - 1
    if rule == "SAR":
        return lambda tape: len(questions.sar(tape, 2, ROUNDS)[0])
    if rule in ("APT", "LSA"):
        index = questions.apt(LEVEL, 0.0) if rule == "APT" else questions.lsa(law, LEVEL, 1.35)
        return lambda tape: len(plain.by_index(tape, index, ROUNDS))
    if rule == "CR":
        settings = {"conservative": True, "noise_scale": law.noise_scale}
        return lambda tape: len(plain.continuous_rejects(tape, ROUNDS, **settings)) - 1
    if rule in INDICES:
        index = plain.indices(law, T=ROUNDS, hardness=2e4)[INDICES[rule]]
        return lambda tape: len(plain.by_index(tape, index, ROUNDS))
    if rule in ("Thompson", "Bayes-UCB"):
        index = quantile if rule == "Bayes-UCB" else lambda t, N, m: draw(N, m)
        return lambda tape: len(plain.by_index(tape, index, ROUNDS))

    def numbers() -> Any:
        """Draws the random numbers of a round in the form that the transcription takes."""
        if rule not in ("T3C", "TTTS"):
            return rng.random()
        has_draws = rule == "TTTS" and not is_gaussian  # the challenger comes from further posterior draws
        return draw, rng.random(), partial(draw, size=(16,)) if has_draws else rng.random()

    def play(tape: np.ndarray) -> int:
        choose, stopping, *answer = rule_of(rule, law, K)
        drawn = [numbers() for _ in range(ROUNDS)]
        answer = answer[0] if answer else None
        trace = plain.run(law, tape, choose, stopping=stopping, numbers=drawn, rounds=ROUNDS, answer=answer)
        return sum(len(each.arms) for each in trace)

    return play


def rule_of(rule: str, law: plain.Law, K: int) -> tuple[Any, ...]:
    """Builds (rule, stopping) of a rule of fixed confidence, and its answer if that is not the best mean."""
    test = plain.likelihood_test(law, DELTA)
    made = {
        "LUCB": lambda: plain.lucb(plain.bounds_of(law, DELTA, hoeffding=True)),
        "KL-LUCB": lambda: plain.lucb(plain.bounds_of(law, DELTA, hoeffding=False)),
        "UGapE": lambda: plain.ugape(plain.bounds_of(law, DELTA)),
        "elimination": lambda: plain.successive_elimination(law.noise_scale, K, delta=DELTA),
        "lil'UCB": lambda: plain.lil_ucb(law.noise_scale, K, e=0.0, b=0.5, ratio=1 + 10 / K, d=DELTA),
        "uniform": lambda: (lambda t, *_: (t % K,), test),
        "TaS": lambda: (plain.tas(law, K, tracking="D"), test),
        "TaS, C": lambda: (plain.tas(law, K, tracking="C"), test),
        "TTTS": lambda: (plain.ttts(law, share=0.5), test),
        "T3C": lambda: (plain.t3c(law, share=0.5), test),
        "TTUCB": lambda: (plain.ttucb(law, K, share=0.5), test),
        "EB-TC": lambda: (plain.eb_tc(law, share=0.5), test),
        "EB-TCI": lambda: (plain.eb_tc(law, share=0.5, improved=True), test),
    }
    return made[rule]()
