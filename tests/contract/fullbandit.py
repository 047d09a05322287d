"""The full-bandit rules of the conformance suite."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from contract.case import Case

from jaxbandits import fullbandit
from jaxbandits.base import Algorithm


def _sums(factory: Callable[..., Algorithm], *, means: list[float], k: int, size: int, seed: int, **defaults: Any):
    """The best k arms, from the sums of random sets of k."""
    support = fullbandit.random_support(seed, len(means), k, size=size)

    def make(dtype, **hyperparameters):
        design = fullbandit.make_design(support, k, dtype=dtype)
        instance = fullbandit.Instance(jnp.asarray(means, dtype), k)
        settings = {"delta": 0.1, "epsilon": 0.2} | defaults | hyperparameters
        return factory(design, k, **settings), fullbandit.gaussian(instance, design)

    return make


def _strides(factory):
    # No ties in the peeling of this support: they would be broken by rounding, in each program in its own way.
    return _sums(factory, means=[1.0, 0.8, 0.6, 0.3, 0.1, 0.0], k=3, size=12, seed=0, resolution=0.02)


SUMS = {"delta": 0.01, "epsilon": 0.4, "sigma": 1.0, "first_test": 2_000_000, "gram": "limit"}
STRIDES = SUMS | {"resolution": 0.3, "stride_z": 1.0, "stride_variance": 0.1}

CASES = {
    "saqm": Case(_strides(fullbandit.saqm), STRIDES | {"alpha": 0.5, "reduction": "exact"}, ("delta", "epsilon")),
    "icb": Case(_strides(fullbandit.icb), STRIDES | {"width": "ellipsoid"}, ("delta", "sigma")),
    "exhaustive": Case(_strides(fullbandit.exhaustive), STRIDES, ("delta", "epsilon")),
    "spectral": Case(_strides(fullbandit.spectral), STRIDES, ("delta", "stride_variance")),
    "sa-foa": Case(
        _sums(fullbandit.sa_foa, means=[1.0, 0.9, 0.6, 0.5, 0.2, 0.0], k=3, size=12, seed=0),
        SUMS | {"draws": 3, "threshold": 1.0, "mode": "all", "reduction": "exact", "growth": 1.2},
        ("delta", "epsilon"),
    ),
}
