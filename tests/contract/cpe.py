"""The combinatorial algorithms of the conformance suite."""

import functools
from collections.abc import Callable
from typing import Any

from contract.case import Case

from jaxbandits import cpe
from jaxbandits.base import Algorithm


def _levels(factory: Callable[..., Algorithm], problem: Callable[..., Any], arms: Callable[..., cpe.Arms]):
    """The best decision on a few arms."""

    def make(dtype, **hyperparameters):
        algorithm = factory(problem(dtype=dtype), **({"delta": 0.1} | hyperparameters))
        instance = cpe.instance(problem(dtype=dtype), arms(dtype=dtype))
        return algorithm, cpe.environment(instance, leap=hyperparameters.get("leap", 1))

    return make


def _leaps(factory: Callable[..., Algorithm]):
    make = _levels(factory, *THREE)
    return lambda dtype, **hyperparameters: make(dtype, leap=8, **hyperparameters)


def _variance(factory: Callable[..., Algorithm]):
    return functools.partial(factory, estimator="variance")


def _chen(problem, **hyperparameters):
    return cpe.clucb(problem, **({"radius": "chen"} | hyperparameters))


THREE = functools.partial(cpe.best_arm, 3), functools.partial(cpe.bernoulli, [0.9, 0.4, 0.2])
# Groups of 1 and 2, one with variance .05 and one with .25, and one interview to be given away.
GROUPS = functools.partial(cpe.opinion_sampling, [1, 2], 3), functools.partial(cpe.bernoulli, [0.05, 0.5])


DELTA = {"delta": (0.1, 0.01)}
LEVELS = DELTA | {"radius_scale": (1.0, 0.7)}

CASES = {
    "coci": Case(_levels(cpe.coci, *THREE), LEVELS, {"observations": "binary", "leap": 8}),
    "coci-block": Case(_leaps(cpe.coci), DELTA, dtypes=("float64",)),
    "coci-variance": Case(
        _levels(_variance(cpe.coci), *GROUPS), LEVELS, {"observations": "binary"}, dtypes=("float64",), is_variant=True
    ),
    "uniform": Case(_levels(cpe.uniform, *THREE), LEVELS, {"observations": "binary", "leap": 8}),
    "clucb": Case(_levels(_chen, *THREE), DELTA | {"noise_scale": (0.5, 0.8)}, {"radius": "coci"}),
}
