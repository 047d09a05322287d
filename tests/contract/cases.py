"""Every algorithm of every family, one line each: what joins this table has to keep the promises of the contract."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import cpe, fullbandit, kcenter, kernel, linear
from jaxbandits.base import Algorithm, Environment


class Case(NamedTuple):
    """How to make an algorithm and its environment, and what must make a difference."""

    make: Callable[..., tuple[Algorithm, Environment]]  # (dtype, **hyperparameters)
    changes: dict[str, Any]  # one other value of every hyperparameter that must change the run
    traced: tuple[str, ...] = ("delta",)  # hyperparameters that may be tracers
    dtypes: tuple[str, ...] = ("float64", "float32")
    max_rounds: int = 100_000  # enough to stop
    integers: bool = False  # observations are integers


ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]])
RATIOS = linear.ratio_tables(ARMS).p


def _linear(factory: Callable[..., Algorithm], action: type) -> Callable[..., tuple[Algorithm, Environment]]:
    """An algorithm for three arms in the plane, the second best trailing by 0.2."""

    def make(dtype, **hyperparameters):
        arms = jnp.asarray(ARMS, dtype)
        bandit = linear.LinearBandit(arms, jnp.asarray([1.0, 0.0], dtype), jnp.asarray(0.5, dtype))
        return factory(arms, **({"delta": 0.1} | hyperparameters)), linear.gaussian(bandit, action=action)

    return make


def _ratio(arms, **hyperparameters):
    return linear.lingape(arms, rule="ratio", ratios=RATIOS, **hyperparameters)


def _leap(arms, **hyperparameters):
    return linear.lingape(arms, **({"leap": True} | hyperparameters))


def _static(factory):
    def make(arms, **hyperparameters):
        allocation = hyperparameters.pop("allocation", (0.4, 0.4, 0.2))
        return factory(arms, jnp.asarray(allocation, arms.dtype), **({"growth": 0.05} | hyperparameters))

    return make


def _adaptive(arms, **hyperparameters):
    return linear.xy_adaptive(arms, **({"design_steps": 50} | hyperparameters))


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


def _levels(factory: Callable[..., Algorithm], problem: Callable[..., Any], arms: Callable[..., cpe.Arms]):
    """The best decision on a few arms."""

    def make(dtype, **hyperparameters):
        algorithm = factory(problem(dtype=dtype), **({"delta": 0.1} | hyperparameters))
        return algorithm, cpe.environment(arms(dtype=dtype), block=hyperparameters.get("block", 1))

    return make


def _blocks(factory: Callable[..., Algorithm]):
    make = _levels(factory, *THREE)
    return lambda dtype, **hyperparameters: make(dtype, block=8, **hyperparameters)


def _variance(factory: Callable[..., Algorithm]):
    return functools.partial(factory, estimator="variance")


def _chen(problem, **hyperparameters):
    return cpe.clucb(problem, **({"radius": "chen"} | hyperparameters))


THREE = functools.partial(cpe.best_arm, 3), functools.partial(cpe.bernoulli, [0.9, 0.4, 0.2])
# Groups of 1 and 2, one with variance .05 and one with .25, and one interview to be given away.
GROUPS = functools.partial(cpe.opinion_sampling, [1, 2], 3), functools.partial(cpe.bernoulli, [0.05, 0.5])


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


def _kernel(factory: Callable[..., Algorithm], *, alone: bool = False, **defaults: Any):
    """Three agents, or one learner, who ask a function on 40 points of the square."""
    agents = 1 if alone else 3

    def make(dtype, **hyperparameters):
        settings = {"beta": 1.0, "ridge": 0.04, "horizon": 24} | defaults | hyperparameters
        lengthscale = settings.pop("lengthscale", 0.2)
        settings |= {} if alone else {"n_agents": agents}
        problem = kernel.branin(jax.random.key(2), size=40, dtype=dtype)
        rule = functools.partial(kernel.squared_exponential, lengthscale=lengthscale)
        return factory(problem.candidates, kernel=rule, **settings), kernel.environment(problem, agents)

    return make


LINGAPE = {
    "delta": 0.01,
    "epsilon": 0.1,
    "ridge": 3.0,
    "noise_scale": 0.7,
    "norm_bound": 3.0,
    "union_bound": 1.0,
}
FIXED = {"delta": 0.01, "noise_scale": 0.7, "union_power": 1, "width": "subgaussian"}
LEVELS = {"delta": 0.01, "radius_scale": 0.7, "observations": "binary"}
SUMS = {"delta": 0.01, "epsilon": 0.4, "sigma": 1.0, "first_test": 2_000_000, "gram": "limit"}
STRIDES = SUMS | {"resolution": 0.3, "stride_z": 1.0, "stride_variance": 0.1}

CASES = {
    "lingape": Case(_linear(linear.lingape, linear.Pull), LINGAPE),
    "lingape-ratio": Case(_linear(_ratio, linear.Pull), LINGAPE),
    "lingape-leap": Case(
        _linear(_leap, linear.Pull),
        LINGAPE | {"leap_max": 2, "leap_margin": 40.0, "leap_noise_scale": 5.0, "leap": False},
        dtypes=("float64",),
    ),
    "xy-static": Case(
        _linear(_static(linear.xy_static), linear.Allocation),
        FIXED | {"allocation": (0.6, 0.3, 0.1), "ridge": 200.0, "growth": 0.2, "max_pulls": 40},
        max_rounds=2000,
    ),
    "xy-static-exact": Case(
        _linear(_static(linear.xy_static_exact), linear.Bridge),
        FIXED
        | {"allocation": (0.6, 0.3, 0.1), "ridge": 5.0, "max_pulls": 40}
        | {"growth": 0.2, "margin": 20.0, "bridge_noise_scale": 3.0},
        dtypes=("float64",),
        max_rounds=5000,
    ),
    "xy-adaptive": Case(
        _linear(_adaptive, linear.Allocation),
        FIXED | {"delta": 1e-40, "alpha": 0.3, "first_width": 0.5, "max_pulls": 40},
        dtypes=("float64",),
        max_rounds=100,
    ),
    "saqm": Case(_strides(fullbandit.saqm), STRIDES | {"alpha": 0.5, "reduction": "exact"}, ("delta", "epsilon")),
    "icb": Case(_strides(fullbandit.icb), STRIDES | {"width": "ellipsoid"}, ("delta", "sigma")),
    "exhaustive": Case(_strides(fullbandit.exhaustive), STRIDES, ("delta", "epsilon")),
    "spectral": Case(_strides(fullbandit.spectral), STRIDES, ("delta", "stride_variance")),
    "sa-foa": Case(
        _sums(fullbandit.sa_foa, means=[1.0, 0.9, 0.6, 0.5, 0.2, 0.0], k=3, size=12, seed=0),
        SUMS | {"draws": 3, "threshold": 1.0, "mode": "all", "reduction": "exact", "growth": 1.2},
        ("delta", "epsilon"),
    ),
    "coci": Case(_levels(cpe.coci, *THREE), LEVELS | {"block": 8}, ("delta", "radius_scale")),
    "coci-block": Case(_blocks(cpe.coci), {"delta": 0.01}, dtypes=("float64",)),
    "coci-variance": Case(_levels(_variance(cpe.coci), *GROUPS), LEVELS, dtypes=("float64",)),
    "uniform": Case(_levels(cpe.uniform, *THREE), LEVELS | {"block": 8}),
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
    "duets": Case(
        _kernel(kernel.duets),
        {"beta": 0.1, "ridge": 0.5, "lengthscale": 0.4, "horizon": 30, "first_epoch": 5, "epochs": (4, 20), "p0": 0.5}
        | {"inducing_probability": kernel.log_rate(2.0), "elimination": "point", "jitter": 0.1},
        ("beta", "ridge", "lengthscale"),
        max_rounds=1000,
    ),
    "dis-kernel-ucb": Case(
        _kernel(kernel.dis_kernel_ucb),
        {"beta": 0.1, "ridge": 0.5, "lengthscale": 0.4, "horizon": 30, "threshold": 1.0},
        ("beta", "ridge"),
        max_rounds=1000,
    ),
    "approx-dis-kernel-ucb": Case(
        _kernel(kernel.approx_dis_kernel_ucb, max_inducing=30),
        {"beta": 0.1, "ridge": 0.5, "lengthscale": 0.4, "horizon": 30, "threshold": 5.0, "oversampling": 3.0}
        | {"max_inducing": 2, "jitter": 0.1},
        ("beta", "ridge"),
        max_rounds=1000,
    ),
    "n-kernel-ucb": Case(
        _kernel(kernel.n_kernel_ucb),
        {"beta": 0.1, "ridge": 0.5, "lengthscale": 0.4, "horizon": 30},
        ("beta", "lengthscale"),
        max_rounds=1000,
    ),
    "gp-ucb": Case(
        _kernel(kernel.gp_ucb, alone=True),
        {"ridge": 0.5, "confidence": lambda t, log_det: jnp.sqrt(log_det)},
        ("beta",),
        dtypes=("float64",),
        max_rounds=1000,
    ),
    "bpe": Case(
        _kernel(kernel.bpe, alone=True),
        {"beta": 0.1, "ridge": 0.5, "lengthscale": 0.4, "horizon": 30, "keep_data": True},
        ("beta", "ridge"),
        max_rounds=1000,
    ),
    "clucb": Case(_levels(_chen, *THREE), {"delta": 0.01, "radius": "coci", "scale": 0.8}, ("delta", "scale")),
}
