"""Four independent arms, Gaussian and Bernoulli."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from experiments.bench.case import always
from experiments.bench.reference import scalar as plain
from experiments.bench.reference.mab import Law
from experiments.bench.reference.over_lanes import mab as lanes
from experiments.bench.reference.over_lanes.loop import Rule
from experiments.bench.rivals import rival as common
from experiments.bench.rivals.rival import DELTA, FASTER, WITH_BETAS, Rival
from jaxbandits import mab
from jaxbandits.base import Algorithm

MEANS = np.array([0.5, 0.49, 0.49, 0.49])
K = len(MEANS)
HORIZON = 10**6  # as MOSS is told
DRAWS = {"gaussian": (common.normal, common.one_normal), "bernoulli": (common.bernoulli, common.one_bernoulli)}


def rivals() -> Iterator[Rival]:
    """Yields the rules on both kinds of arms; LUCB and UGapE on Gaussian ones."""
    for kind in DRAWS:
        law = Law(kind, 1.0 if kind == "gaussian" else 0.5)
        yield rival(kind, "UCB1", mab.ucb1, lambda _, law=law: lanes.ucb1(law), numba=ucb1(kind, law))
        target = FASTER if kind == "gaussian" else WITH_BETAS
        yield rival(kind, "Thompson", mab.thompson, partial(lanes.thompson, law), target=target)
        yield rival(kind, "KL-UCB", mab.kl_ucb, lambda _, law=law: lanes.kl_ucb(law))
        yield rival(kind, "IMED", mab.imed, lambda _, law=law: lanes.imed(law))
        moss = partial(mab.moss, horizon=HORIZON)
        yield rival(kind, "MOSS", moss, lambda _, law=law: lanes.moss(law, HORIZON))
        yield confident(kind, "TTUCB", mab.ttucb, partial(lanes.ttucb, law))
    law = Law("gaussian", 1.0)
    yield confident("gaussian", "LUCB", mab.lucb, partial(lanes.lucb, law))
    yield confident("gaussian", "UGapE", mab.ugape, partial(lanes.ugape, law))


def rival(
    kind: str,
    name: str,
    factory: Callable[..., Algorithm],
    index: Callable[[np.random.Generator], lanes.Index],
    **more: Any,
) -> Rival:
    """Returns a rule that pulls the arm with the largest index."""
    return played(kind, name, factory, lambda rng: lanes.by_index(index(rng), K), **more)


def confident(kind: str, name: str, factory: Callable[..., Algorithm], rule: Callable[..., Rule]) -> Rival:
    """Returns a rule of fixed confidence."""
    return played(kind, name, partial(factory, delta=DELTA), lambda _: rule(K, delta=DELTA))


def played(
    kind: str,
    name: str,
    factory: Callable[..., Algorithm],
    rule: Callable[[np.random.Generator], Rule],
    **more: Any,
) -> Rival:
    instance = mab.gaussian(MEANS) if kind == "gaussian" else mab.bernoulli(MEANS)
    build = always(partial(factory, instance.problem), mab.environment(instance, factory(instance.problem)))
    numpy = partial(common.over_lanes, rule, DRAWS[kind][0](MEANS))
    return Rival("mab", name, f"{kind.title()}, K = {K}", numpy=numpy, **common.ours(build), **more)


def ucb1(kind: str, law: Law) -> Callable[[int], int]:
    """Returns the scalar player of UCB1."""
    return common.scalar(plain.ucb1, DRAWS[kind][1](MEANS), K, 2 * (2 * law.noise_scale) ** 2)
