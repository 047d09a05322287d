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


def _with_interval(settings: dict[str, Any]) -> dict[str, Any]:
    """Moves the parameters of the interval into it, and drops the parameters of other intervals."""
    interval = settings.get("interval")
    names = {name for kind in (kcenter.Lil, kcenter.KL) for name in kind._fields}
    parameters = {name: value for name, value in settings.items() if name in getattr(interval, "_fields", ())}
    others = {name: value for name, value in settings.items() if name not in names}
    return others | {"interval": interval._replace(**parameters)} if parameters else others


def _sampled(factory: Callable[..., Algorithm], **defaults: Any) -> Callable[..., tuple[Algorithm, Environment]]:
    def make(dtype, **hyperparameters):
        settings = {"delta": 0.1, "dtype": dtype} | defaults | hyperparameters
        exact = jnp.asarray(kcenter.pairwise_sums(POINTS), dtype)
        instance = kcenter.dimension_instance(jnp.asarray(POINTS, dtype), k=3, exact=exact)
        algorithm = factory(instance.problem, **_with_interval(settings))
        return algorithm, kcenter.environment(instance, algorithm)

    return make


def _noisy(
    factory: Callable[..., Algorithm], noise: str = "gaussian", **defaults: Any
) -> Callable[..., tuple[Algorithm, Environment]]:
    def make(dtype, **hyperparameters):
        noise_scale = 0.1 if noise == "gaussian" else None
        instance = kcenter.distance_instance(jnp.asarray(DISTANCES, dtype), k=3, noise_scale=noise_scale, noise=noise)
        settings = {"delta": 0.1, "dtype": dtype, "noise_scale": noise_scale} | defaults | hyperparameters
        algorithm = factory(instance.problem, **_with_interval(settings))
        return algorithm, kcenter.environment(instance, algorithm)

    return make


DELTA = {"delta": (0.1, 0.01)}
KL = {"alpha": (1.1, 2.0), "k1": (12.0, 300.0)}

CASES = {
    "ds-ucb": Case(
        _sampled(kcenter.ds_ucb, interval=kcenter.Lil()),
        DELTA | {"radius_scale": (0.1, 0.05), "first_center": (0, 2)},
        {"scale": "root", "union": "pairs", "interval": kcenter.KL(), "cap": 5, "triangle": "squared", "leap": 4},
    ),
    "ds-ts": Case(
        _sampled(kcenter.ds_ts, interval=kcenter.KL(), leap=2),
        DELTA | KL | {"mix": (0.99, 0.5)},
        {"scale": "root", "union": "points", "cap": 5},
        dtypes=("float64",),
    ),
    "ds-random": Case(
        _sampled(kcenter.ds_random, interval=kcenter.Lil()),
        DELTA | {"radius_scale": (0.1, 0.05)},
        {"interval": kcenter.KL(), "cap": 5, "test_every": 4},
        dtypes=("float64",),
    ),
    "ns-ts": Case(
        _noisy(kcenter.ns_ts, interval=kcenter.KL()),
        DELTA | KL | {"mix": (0.9, 0.0), "noise_scale": (0.1, 0.14), "first_center": (0, 2)},
        {"posterior": "printed", "triangle": "metric"},
    ),
    "ns-ts-bernoulli": Case(
        _noisy(kcenter.ns_ts, "bernoulli"), {"mix": (0.9, 0.5)}, dtypes=("float64",), integers=True, is_variant=True
    ),
    "ns-random": Case(_noisy(kcenter.ns_random, test_every=8), DELTA, {"test_every": 4}, dtypes=("float64",)),
    "ns-tands": Case(
        _noisy(kcenter.ns_tands, weights_every=20),
        DELTA | {"forced_offset": (1.0, 0.0), "weights_every": (20, 50), "noise_scale": (0.1, 0.14)},
        {"rate": "gaussian", "tracking": "ratio", "reset": "printed", "mirror_steps": 1000},
    ),
    "track-and-stop": Case(_noisy(kcenter.track_and_stop, test_every=10), {"delta": (0.1, 1e-9)}, dtypes=("float64",)),
}
