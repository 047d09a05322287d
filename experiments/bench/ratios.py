"""Linear bandits that stop by likelihood ratios: rounds that do not stop, on soare(6) and on the published instance.

On the latter (K = 50, d = 20) Tirinzoni and Degenne (2022, Table 1) print how long a round of theirs takes (Julia).
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.bench.case import Case
from experiments.bench.reference import linear_glr as plain
from experiments.bench.reference import linear_peps
from jaxbandits import linear
from jaxbandits.base import Algorithm, Environment
from jaxbandits.linear._fixed_confidence import first_spanner
from jaxbandits.numerics import thresholds

DELTA, RIDGE = 1e-30, 1.0  # no stop within these rounds
PUBLISHED = {"LinGapE": 0.23, "LinGame": 0.23, "FWS": 0.73, "Lazy TaS": 0.15}  # ms a round
TIRINZONI = {"LinGame": {"shared_learner": True, "optimism": False, "clip": False}, "LinGapE": {"width": "log"}}
DRAWS = 128  # of LinTTTS for its challenger
POSTERIOR_DRAWS = 20  # of PEPS in a round


class Size(NamedTuple):
    """An instance, and how much of it is measured."""

    name: str
    make: Callable[..., linear.Instance]
    lanes: int
    rounds: int
    runs: int
    bars: dict[str, float]  # rounds a second that two CPU cores should make


SIZES = (
    Size(
        "soare(6)",
        partial(linear.soare, 6),
        lanes=256,
        rounds=4096,
        runs=4,
        bars={"LinGapE": 5e6, "L-T3C": 5e6, "FWS": 1e6, "LinGame": 1e6, "Lazy TaS": 1e6},
    ),
    Size(
        "K=50, d=20",
        linear.random_tirinzoni_published,
        lanes=64,
        rounds=2048,
        runs=1,
        bars={"LinGapE": 2e5, "L-T3C": 2e5, "FWS": 5e4, "LinGame": 5e4, "Lazy TaS": 2e5},
    ),
)
FACTORIES: dict[str, Callable[..., Algorithm]] = {
    "uniform": linear.uniform,
    "LinGapE": linear.lingape,
    "FWS": linear.fws,
    "LinGame": linear.lingame,
    "LinGame-C": linear.lingame_c,
    "Lazy TaS": linear.lazy_tas,
    "L-T3C": linear.l_t3c,
    "LinTTTS": partial(linear.lin_ttts, draws=DRAWS),
    "PEPS": linear.peps,
}
LONGER = {"Lazy TaS": 8}  # times as many rounds on K = 50, d = 20: its plans are rarer the longer a run is
DEAR = {"LinGame-C": 4, "LinTTTS": 16, "PEPS": 16}  # fewer by as much


def cases() -> list[Case]:
    """Every rule on both instances."""
    return [case_of(rule, size) for size in SIZES for rule in FACTORIES]


def case_of(rule: str, size: Size) -> Case:
    """One rule on one instance, float64."""
    instance = size.make()
    threshold = thresholds.log_t(arms=len(instance.arms))
    is_large = size is SIZES[1]
    options = TIRINZONI.get(rule, {}) if is_large else {}  # as they were printed

    def build(task: None, key: jax.Array) -> tuple[Algorithm, Environment]:
        algorithm = FACTORIES[rule](instance.arms, delta=DELTA, threshold=threshold, ridge=RIDGE, **options)
        action = linear.Step if isinstance(algorithm.idle, linear.Step) else linear.Pull
        return algorithm, linear.environment(instance, action)

    return Case(
        "linear",
        f"{rule}, ratios",
        size.name,
        build,
        partial(rate, rule, instance),
        size.rounds * (LONGER.get(rule, 1) if is_large else 1) // DEAR.get(rule, 1),
        size.lanes,
        runs=size.runs,
        bar=size.bars.get(rule),
        published=1e3 / PUBLISHED[rule] if is_large and rule in PUBLISHED else None,
    )


def rate(rule: str, instance: linear.Instance, seconds: float = 1.0, rounds: int = 200) -> float:
    """Pulls a second of the transcription, over one run on one core."""
    arms, theta, rng = np.asarray(instance.arms), np.asarray(instance.theta), np.random.default_rng(0)
    sampler = samplers(arms)[rule]
    d = arms.shape[1]

    def numbers(t: int) -> Any:
        if rule == "PEPS":
            items, tails = rng.random((2, POSTERIOR_DRAWS))
            return linear_peps.Numbers(rng.random(), items, tails, rng.normal(size=(d, POSTERIOR_DRAWS)))
        return Drawn(rng.normal(size=(DRAWS + 1, d)), rng.random())

    pulls, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        tape = (arms @ theta)[:, None] + rng.normal(size=(len(arms), rounds))
        pulls += len(plain.run(arms, tape, sampler, level, numbers=numbers, rounds=rounds))
    return pulls / (time.perf_counter() - started)


class Drawn(NamedTuple):
    """The random numbers of a round."""

    normals: np.ndarray  # (draws + 1, d)
    tie: float


def level(t: int, counts: np.ndarray) -> float:
    """The threshold `log_t`."""
    return float(np.log(t + 1) - np.log(DELTA))


def samplers(arms: np.ndarray) -> dict[str, plain.Sampler]:
    """The transcriptions of the rules."""
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


def best(seen: plain.Seen, items: np.ndarray, n: int) -> int:
    """The best item of the n-th posterior draw."""
    return int(np.argmax(items @ (seen.theta + seen.root.T @ seen.number.normals[n])))


def nearest(seen: plain.Seen, items: np.ndarray, leader: int, costs: np.ndarray) -> int:
    """An item of the least ratio."""
    tied = np.flatnonzero(costs == costs.min())
    return int(tied[int(seen.number.tie * len(tied))])


def first_other(seen: plain.Seen, items: np.ndarray, leader: int, costs: np.ndarray) -> int:
    """The best item of the first draw in which that is another."""
    tops = np.argmax((seen.theta + seen.number.normals[1:] @ seen.root) @ items.T, axis=1)
    others = np.flatnonzero(tops != leader)
    return int(tops[others[0]]) if len(others) else nearest(seen, items, leader, costs)
