"""The k-center algorithms of the conformance suite."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from contract.case import Case

from jaxbandits import kcenter
from jaxbandits.base import Algorithm, Environment

# Three centers of five points, by sampled dimensions and by noisy distances: gaps of .05 and more, and no ties.
POINTS = np.random.default_rng(4).random((5, 400)) * np.array([0.1, 1.0, 0.5, 0.8, 0.3])[:, None]
DISTANCES = np.abs(np.subtract.outer(*[[0.0, 0.9, 0.15, 0.5, 0.3]] * 2))


def _sampled(factory: Callable[..., Algorithm], **defaults: Any) -> Callable[..., tuple[Algorithm, Environment]]:
    def make(dtype, **hyperparameters):
        settings = {"delta": 0.1, "dtype": dtype} | defaults | hyperparameters
        points = jnp.asarray(POINTS, dtype)
        exact = jnp.asarray(kcenter.pairwise_sums(POINTS), dtype)
        environment = kcenter.dimension_sampling(points, exact=exact, burst=settings.get("burst", 1))
        if "block" in settings:
            environment = kcenter.in_blocks(environment, settings["block"])
        return factory(*POINTS.shape, 3, **settings), environment

    return make


def _noisy(factory: Callable[..., Algorithm], **defaults: Any) -> Callable[..., tuple[Algorithm, Environment]]:
    def make(dtype, **hyperparameters):
        settings = {"delta": 0.1, "dtype": dtype, "variance": 0.01} | defaults | hyperparameters
        algorithm = factory(5, 3, **settings)
        law = {"variance": 0.01, "noise": settings.get("noise", "gaussian"), "action": type(algorithm.idle)}
        return algorithm, kcenter.noisy_distances(jnp.asarray(DISTANCES, dtype), **law)

    return make


CASES = {
    "ds-ucb": Case(
        _sampled(kcenter.ds_ucb),
        {"delta": 0.01, "radius_scale": 0.05, "scale": "root", "union": "pairs", "interval": "kl", "cap": 5}
        | {"first_center": 2, "triangle": "squared", "burst": 4},
        ("delta", "radius_scale"),
    ),
    "ds-ts": Case(
        _sampled(kcenter.ds_ts, burst=2),
        {"delta": 0.01, "mix": 0.5, "alpha": 2.0, "k1": 300.0, "scale": "root", "union": "points", "cap": 5},
        ("delta", "mix"),
        dtypes=("float64",),
    ),
    "ds-random": Case(
        _sampled(kcenter.ds_random),
        {"delta": 0.01, "radius_scale": 0.05, "interval": "kl", "cap": 5, "block": 4},
        dtypes=("float64",),
    ),
    "ns-ts": Case(
        _noisy(kcenter.ns_ts),
        {"delta": 0.01, "mix": 0.0, "alpha": 2.0, "k1": 300.0, "variance": 0.02, "posterior": "printed"}
        | {"first_center": 2, "triangle": "metric"},
        ("delta", "mix"),
    ),
    "ns-ts-bernoulli": Case(
        _noisy(kcenter.ns_ts, noise="bernoulli", variance=None), {"mix": 0.5}, dtypes=("float64",), integers=True
    ),
    "ns-random": Case(_noisy(kcenter.ns_random, block=8), {"delta": 0.01, "block": 4}, dtypes=("float64",)),
    "ns-tands": Case(
        _noisy(kcenter.ns_tands, every=20),
        {"delta": 0.01, "beta": "gaussian", "tracking": "ratio", "reset": "printed", "forced_offset": 0.0}
        | {"every": 50, "solver": "mirror", "variance": 0.02},
    ),
    "track-and-stop": Case(_noisy(kcenter.track_and_stop, batch=10), {"delta": 0.01}, dtypes=("float64",)),
}
