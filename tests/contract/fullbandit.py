"""Cases of the conformance suite: full-bandit rules."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from contract.case import Case

from jaxbandits import fullbandit
from jaxbandits.base import Algorithm


def _sums(factory: Callable[..., Algorithm], *, means: list[float], k: int, size: int, seed: int, **pace: Any):
    """Makes a case with a design of random super-arms of k arms."""
    support = fullbandit.random_support(seed, len(means), k, size=size)

    def make(dtype, shown=None, **hyperparameters):
        design = fullbandit.make_design(support, k, dtype=dtype)
        instance = fullbandit.Instance(jnp.asarray(means, dtype), k)
        settings = {"delta": 0.1, "epsilon": 0.2} | pace | hyperparameters
        growth = fullbandit.Growth(settings.pop("growth"))
        growth = growth._replace(**{name: settings.pop(name) for name in ("z", "pull_variance") if name in settings})
        paced = {name: settings.pop(name) for name in ("first_test", "design_matrix") if name in settings}
        settings["pace"] = fullbandit.Pace(growth=None if growth.share is None else growth, **paced)
        algorithm = factory(design if shown is None else shown(design), **settings)
        # The environment keeps the true design if the learner is shown another one.
        return algorithm, fullbandit.environment(instance, algorithm if shown is None else design)

    return make


def _leaps(factory):
    # The peeling of this support has no ties: rounding would break them, in every program in another way.
    return _sums(factory, means=[1.0, 0.8, 0.6, 0.3, 0.1, 0.0], k=3, size=12, seed=0, growth=0.02)


SUMS = {"delta": (0.1, 0.01), "epsilon": (0.2, 0.4), "noise_scale": (1.0, 0.3), "first_test": (12, 2_000_000)}
LEAPS = SUMS | {"growth": (0.02, 0.3), "z": (8.0, 1.0), "pull_variance": (3.0, 0.1)}
LIMIT = {"design_matrix": "limit"}

CASES = {
    "saqm": Case(_leaps(fullbandit.saqm), LEAPS | {"alpha": (0.9, 0.5)}, LIMIT | {"reduction": "exact"}),
    "icb": Case(_leaps(fullbandit.icb), LEAPS, LIMIT | {"radius": "ellipsoid"}),
    "exhaustive": Case(_leaps(fullbandit.exhaustive), LEAPS, LIMIT),
    "spectral": Case(_leaps(fullbandit.spectral), LEAPS, LIMIT),
    "sa-foa": Case(
        _sums(fullbandit.sa_foa, means=[1.0, 0.9, 0.6, 0.5, 0.2, 0.0], k=3, size=12, seed=0, growth=0.01),
        SUMS | {"threshold": (0.5, 1.0), "growth": (0.01, 0.2), "pull_variance": (3.0, 0.1)},
        LIMIT | {"sampling": None, "reduction": "exact"},
    ),
}
