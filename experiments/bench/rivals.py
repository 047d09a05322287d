"""Rules of this library and the same in NumPy over the seeds, as its user would write them, for the bench `baseline`.

The instances have so small a lead, or delta is so small, that no run stops: the figures are costs of a round.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.bench.case import always
from experiments.bench.reference.mab import Law
from experiments.bench.reference.over_lanes import linear as over_lanes_linear
from experiments.bench.reference.over_lanes import mab as over_lanes
from experiments.bench.reference.over_lanes.loop import Rule, run
from jaxbandits import linear, mab
from jaxbandits.base import Algorithm

MEANS = np.array([0.5, 0.49, 0.49, 0.49])
DELTA = 1e-30
FASTER, WITH_BETAS = 3.0, 2.0  # times NumPy over the seeds that a rule should be, and one that draws beta variables


class Rival(NamedTuple):
    """A rule of ours, and the same rule as a user writes it."""

    family: str
    rule: str
    instance: str
    build: Callable[..., Any]  # argument of a sweep
    over_lanes: Callable[[int, int], Any]  # (lanes, rounds): plays them in NumPy
    target: float = FASTER
    reason: str = ""  # why the target is missed, as measured


def rivals() -> list[Rival]:
    """Returns all of them."""
    return [*of_mab(), *of_linear()]


def drawn(law: str, means: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Returns the function that draws a reward of every pulled arm."""
    if law == "gaussian":
        return lambda lanes, arms: means[arms] + rng.standard_normal(arms.shape)
    return lambda lanes, arms: rng.random(arms.shape) < means[arms]


def play(rule: Callable[[np.random.Generator], Rule], law: str, means: np.ndarray, lanes: int, rounds: int) -> None:
    rng = np.random.default_rng(0)
    run(rule(rng), drawn(law, means, rng), lanes=lanes, rounds=rounds)


def of_mab() -> Iterator[Rival]:
    """Yields rules for four independent arms."""
    K = len(MEANS)
    for kind in ("gaussian", "bernoulli"):
        law = Law(kind, 1.0 if kind == "gaussian" else 0.5)
        instance = mab.gaussian(MEANS) if kind == "gaussian" else mab.bernoulli(MEANS)

        def rival(
            name: str,
            factory: Callable[..., Algorithm],
            plain: Callable[[np.random.Generator], Rule],
            instance: mab.Instance = instance,
            kind: str = kind,
            **more: Any,
        ) -> Rival:
            build = always(partial(factory, instance.problem), mab.environment(instance, factory(instance.problem)))
            return Rival("mab", name, f"{kind.title()}, K = {K}", build, partial(play, plain, kind, MEANS), **more)

        def index(of: Callable[..., over_lanes.Index], *known: Any) -> Callable[[np.random.Generator], Rule]:
            return lambda rng: over_lanes.by_index(of(*known), K)

        def sure(of: Callable[..., Rule], law: Law = law) -> Callable[[np.random.Generator], Rule]:
            return lambda rng: of(law, K, delta=DELTA)

        yield rival("UCB1", mab.ucb1, index(over_lanes.ucb1, law))
        yield rival(
            "Thompson",
            mab.thompson,
            lambda rng, law=law: over_lanes.by_index(over_lanes.thompson(law, rng), K),
            target=FASTER if kind == "gaussian" else WITH_BETAS,
        )
        yield rival("KL-UCB", mab.kl_ucb, index(over_lanes.kl_ucb, law))
        yield rival("IMED", mab.imed, index(over_lanes.imed, law))
        yield rival("MOSS", partial(mab.moss, horizon=10**6), index(over_lanes.moss, law, 10**6))
        yield rival("TTUCB", partial(mab.ttucb, delta=DELTA), sure(over_lanes.ttucb))
        if kind == "gaussian":
            yield rival("LUCB", partial(mab.lucb, delta=DELTA), sure(over_lanes.lucb))
            yield rival("UGapE", partial(mab.ugape, delta=DELTA), sure(over_lanes.ugape))


def of_linear() -> Iterator[Rival]:
    """Yields rules for linear bandits."""
    instance = linear.soare(5)
    arms, means = np.asarray(instance.arms), np.asarray(instance.arms @ instance.theta)
    factory = partial(linear.lingape, instance.arms, delta=DELTA)
    build = always(factory, linear.environment(instance, factory()))
    plain = partial(play, lambda rng: over_lanes_linear.lingape(arms, delta=DELTA), "gaussian", means)
    yield Rival("linear", "LinGapE", "soare(5)", build, plain)
