"""What the experiments on linear bandits share: the sweeps of each algorithm, with the settings of the paper."""

from argparse import Namespace
from functools import partial
from typing import Any

import jax
import numpy as np

import jaxbandits
from experiments._simulate import simulate
from jaxbandits import linear

DELTA = 0.05


def arm_counts(task: Any, outcome: jaxbandits.Outcome) -> dict[str, jax.Array]:
    """Pulls of every arm."""
    return {"counts": outcome.state.counts}


def lingape_runs(name: str, instance: linear.Instance, *, options: Namespace, seeds: int, **settings: Any):
    """LinGapE as in section 7.1: R = 1, S = ||theta|| <= 2, ridge 1; with leaps, which leave its law unchanged."""
    settings = {"delta": DELTA, "leap": 65536} | settings
    return simulate(
        f"{name}: LinGapE",
        lambda task, key: (linear.lingape(instance.arms, **settings), linear.environment(instance)),
        options=options,
        seeds=seeds,
        max_rounds=2**31 - 1,
        metrics=arm_counts,
    )


def static_runs(name: str, instance: linear.Instance, *, options: Namespace, seeds: int, **settings: Any):
    """XY-static on its certified optimal allocation; about log(pulls) / growth rounds a run."""
    allocation = linear.xy_allocation(instance.arms).allocation
    settings = {"delta": DELTA} | settings
    return simulate(
        f"{name}: XY-static",
        lambda task, key: (
            linear.xy_static(instance.arms, allocation, **settings),
            linear.environment(instance, linear.Allocation),
        ),
        options=options,
        seeds=seeds,
        max_rounds=100_000,
        metrics=arm_counts,
    )


def adaptive_runs(name: str, instance: linear.Instance, *, options: Namespace, seeds: int, **settings: Any):
    """XY-adaptive as published: an arm that was thrown out may come back. One round is a phase."""
    settings = {"delta": DELTA} | settings
    return simulate(
        f"{name}: XY-adaptive",
        lambda task, key: (
            linear.xy_adaptive(instance.arms, **settings),
            linear.environment(instance, linear.Allocation),
        ),
        options=options,
        seeds=seeds,
        max_rounds=100,
        chunk=4,
    )


def bound(instance: linear.Instance, delta: float = DELTA) -> float:
    """T* kl(delta, 1 - delta) of an instance."""
    return float(linear.lower_bound(instance.arms, instance.theta, delta=delta, noise_scale=instance.noise_scale).pulls)


def wrong(results: jaxbandits.Results, instance: linear.Instance) -> int:
    """How many of the stopped runs recommend an arm that is not the best."""
    is_right = jax.vmap(partial(linear.is_right, instance))(results.columns["answer"])
    return int(np.sum(~np.asarray(is_right) & (results.columns["status"] == jaxbandits.Status.STOPPED)))
