"""The kernel bandits of the conformance suite."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from contract.case import Case

from jaxbandits import kernel
from jaxbandits.base import Algorithm


def _kernel(factory: Callable[..., Algorithm], *, alone: bool = False, **defaults: Any):
    """Makes a case of three agents, or one learner, that query a function on 40 points of the square."""

    def make(dtype, shown=None, **hyperparameters):
        settings = {"beta": 1.0, "noise_variance": 0.04, "horizon": 24} | defaults | hyperparameters
        lengthscale = settings.pop("lengthscale", 0.2)
        settings |= {} if alone else {"n_agents": 3}
        instance = kernel.branin(jax.random.key(2), size=40, dtype=dtype)
        rule = kernel.SquaredExponential(lengthscale)
        candidates = instance.candidates if shown is None else shown(instance.candidates)
        algorithm = factory(candidates, **({"kernel": rule} | settings))
        return algorithm, kernel.environment(instance, algorithm)

    return make


GP = {"beta": (1.0, 0.1), "noise_variance": (0.04, 0.5), "lengthscale": (0.2, 0.4)}
HORIZON = {"horizon": 30}

CASES = {
    "duets": Case(
        _kernel(kernel.duets),
        GP | {"inducing_rate": (10.0, 0.5), "jitter": (1e-10, 0.1)},
        HORIZON | {"epochs": 5, "elimination": "point"},
        max_rounds=1000,
    ),
    "dis-kernel-ucb": Case(_kernel(kernel.dis_kernel_ucb), GP | {"threshold": (10.0, 1.0)}, HORIZON, max_rounds=1000),
    "approx-dis-kernel-ucb": Case(
        _kernel(kernel.approx_dis_kernel_ucb, max_inducing=30),
        GP | {"threshold": (20.0, 5.0), "oversampling": (1.0, 3.0), "jitter": (1e-10, 0.1)},
        HORIZON | {"max_inducing": 2},
        max_rounds=1000,
    ),
    "n-kernel-ucb": Case(_kernel(kernel.n_kernel_ucb), GP, HORIZON, max_rounds=1000),
    "gp-ucb": Case(
        _kernel(kernel.gp_ucb, alone=True),
        GP,
        {"beta": lambda t, log_det: jnp.sqrt(log_det)},
        dtypes=("float64",),
        max_rounds=1000,
    ),
    "bpe": Case(_kernel(kernel.bpe, alone=True), GP, HORIZON | {"keep_data": True}, max_rounds=1000),
}
