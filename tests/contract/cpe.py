"""The combinatorial algorithms of the conformance suite."""

import functools
from collections.abc import Callable
from typing import Any

from contract.case import Case

from jaxbandits import cpe
from jaxbandits.base import Algorithm
from jaxbandits.numerics import thresholds


def _levels(factory: Callable[..., Algorithm], problem: Callable[..., Any], arms: Callable[..., cpe.Arms]):
    """Returns the maker of an algorithm for the best decision on a few arms, and its environment."""

    def make(dtype, shown=None, **hyperparameters):
        learners = problem(dtype=dtype) if shown is None else shown(problem(dtype=dtype))
        algorithm = factory(learners, **({"delta": 0.1} | hyperparameters))
        instance = cpe.instance(problem(dtype=dtype), arms(dtype=dtype))
        return algorithm, cpe.environment(instance, algorithm)

    return make


def _leaps(factory: Callable[..., Algorithm]):
    make = _levels(factory, *THREE)
    return lambda dtype, **hyperparameters: make(dtype, leap=8, **hyperparameters)


def _variance(factory: Callable[..., Algorithm]):
    return functools.partial(factory, estimator="variance")


def _chen(problem, *, noise_scale=0.5, **hyperparameters):
    return cpe.clucb(problem, **({"radius": cpe.Chen(noise_scale)} | hyperparameters))


THREE = functools.partial(cpe.best_arm, 3), functools.partial(cpe.bernoulli, [0.9, 0.4, 0.2])
# Groups of 1 and 2, one with variance .05 and one with .25, and one interview to allocate.
GROUPS = functools.partial(cpe.opinion_sampling, [1, 2], 3), functools.partial(cpe.bernoulli, [0.05, 0.5])


DELTA = {"delta": (0.1, 0.01)}
LEVELS = DELTA | {"radius_scale": (1.0, 0.7)}


def _plays(factory: Callable[..., Algorithm], **defaults: Any):
    """Returns the maker of an algorithm for the best spanning tree of a triangle of Gaussian arms."""
    problem = cpe.graphic(3, [(0, 1), (1, 2), (0, 2)])

    def make(dtype, shown=None, **hyperparameters):
        instance = cpe.instance(problem, cpe.gaussian([2.0, 1.5, 0.0], dtype=dtype))
        algorithm = factory(problem if shown is None else shown(problem), **(defaults | hyperparameters))
        return algorithm, cpe.environment(instance, algorithm)

    return make


def _ended(factory: Callable[..., Algorithm], plays: int = 60):
    """Makes a rule that never stops end after `plays` plays."""

    def ended(problem, **hyperparameters):
        algorithm = factory(problem, **hyperparameters)

        def decide(key, state):
            return algorithm.decide(key, state)._replace(stop=state.pulls >= plays)

        return algorithm._replace(decide=decide)

    return ended


def _rows(problem, **hyperparameters):
    return cpe.round_robin(problem, **({"rows": [[1, 1, 0], [0, 1, 1]], "delta": 0.1} | hyperparameters))


# `graphic` has no dtype: a run is in JAX's default precision.
PLAYS = {"delta": (0.1, 0.001), "noise_scale": (1.0, 1.5)}
OTHER = {"cover": ((1, 0, 1), (0, 1, 1))}
REGRET = {"noise_scale": (1.0, 3.0)}
ONE = ("float64",)

CASES = {
    "coci": Case(_levels(cpe.coci, *THREE), LEVELS, {"observations": "binary", "leap": 8}),
    "coci-block": Case(_leaps(cpe.coci), DELTA, dtypes=("float64",)),
    "coci-variance": Case(
        _levels(_variance(cpe.coci), *GROUPS), LEVELS, {"observations": "binary"}, dtypes=("float64",), is_variant=True
    ),
    "uniform": Case(_levels(cpe.uniform, *THREE), LEVELS, {"observations": "binary", "leap": 8}),
    "clucb": Case(_levels(_chen, *THREE), DELTA | {"noise_scale": (0.5, 0.8)}, {"radius": cpe.Coci()}),
    "pfws": Case(_plays(cpe.pfws, delta=0.1), PLAYS, OTHER, dtypes=ONE),
    "combgame": Case(_plays(cpe.combgame, delta=0.1, capacity=8), PLAYS, OTHER, dtypes=ONE),
    "semi-clucb": Case(
        _plays(cpe.semi_clucb, delta=0.1), PLAYS, OTHER | {"threshold": thresholds.gk16(arms=3)}, dtypes=ONE
    ),
    "round-robin": Case(_plays(_rows), PLAYS, OTHER | {"rows": ((0, 1, 1), (1, 0, 1))}, dtypes=ONE),
    "cucb": Case(_plays(_ended(cpe.cucb)), REGRET, OTHER, dtypes=ONE),
    "cts": Case(_plays(_ended(cpe.cts)), REGRET, OTHER, dtypes=ONE),
}
