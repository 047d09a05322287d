"""Linear bandits that stop by likelihood ratios: rounds that do not stop, on soare(6) and on the published instance.

On the latter (K = 50, d = 20) Tirinzoni and Degenne (2022, Table 1) print the time of a round of their Julia code.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from experiments.bench.case import Case, always
from experiments.bench.loops import per_second
from experiments.bench.reference import linear_glr as plain
from experiments.bench.reference import linear_peps, linear_questions
from jaxbandits import linear
from jaxbandits.base import Algorithm
from jaxbandits.linear._shared.fixed_confidence import first_spanner
from jaxbandits.numerics import thresholds

DELTA, RIDGE = 1e-30, 1.0  # no stop within these rounds
PUBLISHED = {"LinGapE": 0.23, "LinGame": 0.23, "FWS": 0.73, "Lazy TaS": 0.15}  # ms per round
TIRINZONI = {"LinGame": {"shared_learner": True, "optimism": False, "clip": False}, "LinGapE": {"width": "log"}}
DRAWS = 128  # posterior draws of LinTTTS for its challenger
POSTERIOR_DRAWS = 20  # posterior draws of PEPS per round
SMALL, LARGE = "soare(6)", "K=50, d=20"
MAKE: dict[str, Callable[[], linear.Instance]] = {
    SMALL: partial(linear.soare, 6),
    LARGE: linear.random_tirinzoni_published,
}
SHAPE = {SMALL: (4096, 256, 4), LARGE: (2048, 64, 1)}  # rounds, lanes, and runs per lane
BARS = {  # rounds per second that two CPU cores should make
    SMALL: {"LinGapE": 5e6, "L-T3C": 5e6, "FWS": 1e6, "LinGame": 1e6, "Lazy TaS": 1e6},
    LARGE: {"LinGapE": 2e5, "L-T3C": 2e5, "FWS": 5e4, "LinGame": 5e4, "Lazy TaS": 2e5},
}
FACTORIES: dict[str, Callable[..., Algorithm]] = {
    "uniform": linear.uniform,
    "LinGapE": linear.lingape_glr,
    "FWS": linear.fws,
    "LinGame": linear.lingame,
    "LinGame-C": linear.lingame_c,
    "Lazy TaS": linear.lazy_tas,
    "L-T3C": linear.l_t3c,
    "LinTTTS": partial(linear.lin_ttts, draws=DRAWS),
    "PEPS": linear.peps,
}
# Rules with another question: the rule, the question, and its transcription. On soare(6) neither has a unique answer.
ASKED: dict[str, tuple[str, Any, plain.Question]] = {
    "LinGapE, top 3": ("LinGapE", linear.TopM(3), linear_questions.top_m(3)),
    "FWS, top 3": ("FWS", linear.TopM(3), linear_questions.top_m(3)),
    "LinGapE, above": ("LinGapE", linear.Above(0.0), linear_questions.above(0.0)),
}
LONGER = {"Lazy TaS": 8}  # factor of the rounds on K = 50, d = 20: its plans get rarer as a run gets longer
DEAR = {"LinGame-C": 4, "LinTTTS": 16, "PEPS": 16}  # divisors of the number of rounds


def cases() -> list[Case]:
    """Returns the cases of every rule on both instances."""
    return [case_of(rule, where) for where in MAKE for rule in (*FACTORIES, *ASKED)]


def case_of(rule: str, where: str) -> Case:
    """Returns the case of one rule on one instance, in float64."""
    instance, (rounds, lanes, runs) = MAKE[where](), SHAPE[where]
    rounds = rounds * (LONGER.get(rule, 1) if where == LARGE else 1) // DEAR.get(rule, 1)
    published = 1e3 / PUBLISHED[rule] if where == LARGE and rule in PUBLISHED else None
    stop = linear.likelihood_ratio(thresholds.log_t(arms=len(instance.arms)), delta=DELTA)
    settings: dict[str, Any] = {"stop": stop, "ridge": RIDGE}
    settings |= TIRINZONI.get(rule, {}) if where == LARGE else {}  # as printed
    factory, question, _ = ASKED.get(rule, (rule, None, None))
    if question is not None:
        settings["question"] = question
    make = partial(FACTORIES[factory], instance.arms, **settings)
    build, plain = always(make, linear.environment(instance, make())), partial(rate, rule, instance)
    name, bar = f"{rule}, ratios", BARS[where].get(rule)
    shape = {"max_rounds": rounds, "lanes": lanes, "runs": runs}
    return Case("linear", name, where, build=build, plain=plain, bar=bar, published=published, **shape)


def rate(rule: str, instance: linear.Instance, rounds: int = 200) -> float:
    """Measures the pulls per second of the transcription, over one run on one core."""
    arms, theta, rng = np.asarray(instance.arms), np.asarray(instance.theta), np.random.default_rng(0)
    name, _, question = ASKED.get(rule, (rule, None, None))
    sampler, d = samplers(arms)[name], arms.shape[1]

    def numbers(t: int) -> Any:
        if rule == "PEPS":
            items, tails = rng.random((2, POSTERIOR_DRAWS))
            return linear_peps.Numbers(rng.random(), items, tails, rng.normal(size=(d, POSTERIOR_DRAWS)))
        return Drawn(rng.normal(size=(DRAWS + 1, d)), rng.random())

    def play() -> int:
        tape = (arms @ theta)[:, None] + rng.normal(size=(len(arms), rounds))
        return len(plain.run(arms, tape, sampler, level, numbers=numbers, question=question, rounds=rounds))

    return per_second(play)


class Drawn(NamedTuple):
    """Random numbers of a round."""

    normals: np.ndarray  # (draws + 1, d)
    tie: float


def level(t: int, counts: np.ndarray) -> float:
    """Returns the threshold `log_t`."""
    return float(np.log(t + 1) - np.log(DELTA))


def samplers(arms: np.ndarray) -> dict[str, plain.Sampler]:
    """Returns the transcriptions of the rules."""
    spanner = [int(k) for k in first_spanner(jnp.asarray(arms))]
    return {
        "uniform": plain.uniform,
        "LinGapE": plain.lingape(level, DELTA),
        "FWS": plain.fws,
        "LinGame": plain.lingame(),
        "LinGame-C": plain.lingame_c(),
        "Lazy TaS": plain.lazy_tas(spanner=spanner, initial=len(arms), ridge=RIDGE),
        "L-T3C": plain.top_two(leader=partial(best, n=0), challenger=nearest),
        "LinTTTS": plain.top_two(leader=partial(best, n=0), challenger=first_other),
        "PEPS": linear_peps.peps(),
    }


def best(stats: plain.Statistics, items: np.ndarray, n: int) -> int:
    """Returns the best item of the n-th posterior draw."""
    return int(np.argmax(items @ (stats.theta + stats.root.T @ stats.number.normals[n])))


def nearest(stats: plain.Statistics, items: np.ndarray, leader: int, costs: np.ndarray) -> int:
    """Returns an item with the smallest ratio."""
    tied = np.flatnonzero(costs == costs.min())
    return int(tied[int(stats.number.tie * len(tied))])


def first_other(stats: plain.Statistics, items: np.ndarray, leader: int, costs: np.ndarray) -> int:
    """Returns the best item of the first draw whose best item is not the leader."""
    tops = np.argmax((stats.theta + stats.number.normals[1:] @ stats.root) @ items.T, axis=1)
    others = np.flatnonzero(tops != leader)
    return int(tops[others[0]]) if len(others) else nearest(stats, items, leader, costs)
