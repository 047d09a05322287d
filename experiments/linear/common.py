"""Shared parts of the experiments on linear bandits: sweeps of each algorithm, with the settings of the paper."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

import jaxbandits
from experiments.claims import column, errors_are_rare
from experiments.report import Claim, Line
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import linear

DELTA = 0.05


def arm_counts(task: Any, outcome: jaxbandits.Outcome) -> dict[str, jax.Array]:
    return {"counts": outcome.state.counts}


def _runs(name: str, instance: linear.Instance, rule: Any, shared: dict[str, Any]) -> jaxbandits.Results:
    def build(task: Any, key: Any) -> tuple:
        algorithm = rule()
        return algorithm, linear.environment(instance, algorithm)

    return simulate(name, build, **shared)


def lingape_runs(name: str, instance: linear.Instance, *, options: Settings, seeds: int, **settings: Any):
    """Runs LinGapE as in section 7.1: R = 1, S = ||theta|| <= 2, ridge 1; with leaps, which leave its law unchanged."""
    rule = partial(linear.lingape, instance.arms, **{"delta": DELTA, "leap": 65536} | settings)
    shared = {"options": options, "seeds": seeds, "max_rounds": 2**31 - 1, "metrics": arm_counts}
    return _runs(f"{name}: LinGapE", instance, rule, shared)


def static_runs(name: str, instance: linear.Instance, *, options: Settings, seeds: int, **settings: Any):
    """Runs XY-static on its certified optimal allocation; a run takes about log(pulls) / growth rounds."""
    allocation = linear.xy_allocation(instance.arms).allocation
    rule = partial(linear.xy_static, instance.arms, allocation, **{"delta": DELTA} | settings)
    shared = {"options": options, "seeds": seeds, "max_rounds": 100_000, "metrics": arm_counts}
    return _runs(f"{name}: XY-static", instance, rule, shared)


def adaptive_runs(name: str, instance: linear.Instance, *, options: Settings, seeds: int, **settings: Any):
    """Runs XY-adaptive as published: an eliminated arm may come back. One round is a phase."""
    rule = partial(linear.xy_adaptive, instance.arms, **{"delta": DELTA} | settings)
    shared = {"options": options, "seeds": seeds, "max_rounds": 100, "chunk": 4}
    return _runs(f"{name}: XY-adaptive", instance, rule, shared)


def oracle_line(name: str, instance: linear.Instance, *, options: Settings | None = None, **settings: Any) -> Line:
    """Computes the pulls of XY-oracle, which are not random; takes a name and options as the sweeps do."""
    del options
    oracle = linear.xy_oracle(instance.arms, theta=instance.theta, delta=DELTA, **settings)
    return Line(name, oracle.n, bound=bound(instance))


def bound(instance: linear.Instance, delta: float = DELTA) -> float:
    """Computes T* kl(delta, 1 - delta) of an instance."""
    return float(linear.lower_bound(instance.arms, instance.theta, delta=delta, noise_scale=instance.noise_scale).pulls)


def delta_is_kept(sweeps: Sequence[jaxbandits.Results], instance: linear.Instance) -> Claim:
    """Claims that the stopped runs on one instance recommend its best arm as often as promised."""
    right = np.asarray(jax.vmap(partial(linear.is_right, instance))(column(sweeps, "answer")))
    return errors_are_rare([{"status": column(sweeps, "status"), "right": right}], DELTA)
