"""Shared parts of the experiments on rare errors: builds, estimates by weights, and their cells."""

import sys
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from experiments.mab import common
from experiments.settings import Settings
from experiments.simulate import folder_name, when_free
from jaxbandits import mab, rare
from jaxbandits.numerics.thresholds import Threshold
from jaxbandits.rare import RareResult

QUICK = (2048, 512, 512, 512)  # runs of the rounds of a learning


def building(rule: str, delta: float, threshold: Callable[..., Threshold], arms: int) -> Callable[..., tuple]:
    """Returns the build of a rule, which makes the same algorithm whatever the means are."""
    evidence = threshold(arms=arms)

    def build(instance: mab.Instance, key: Any) -> tuple:
        algorithm = common.RULES[rule](instance.problem, delta=delta, threshold=evidence)
        return algorithm, mab.environment(instance, algorithm)

    return build


def settings_of(name: str, options: Settings) -> dict[str, Any]:
    """Returns the arguments that all estimates share; the key comes from the name."""
    print(f"\n{name}", file=sys.stderr)
    quick = {"rounds": QUICK, "relative_error": 0.2, "most_runs": 16_384} if options.quick else {}
    return {
        "key": jax.random.key(zlib.crc32(name.encode())),
        "store": options.store and options.store / folder_name(name),
        "lanes": options.lanes,
        **quick,
    }


def error(
    name: str,
    rule: str,
    instance: mab.Instance,
    delta: float,
    threshold: Callable[..., Threshold],
    *,
    options: Settings,
    max_rounds: int,
) -> RareResult:
    """Estimates the probability that a rule stops with a wrong answer."""
    build = building(rule, delta, threshold, instance.problem.arms)
    settings = settings_of(name, options)
    return when_free(partial(rare.error_probability, build, instance, max_rounds=max_rounds, **settings))


def shown(result: RareResult) -> str:
    """Formats an estimate with its relative error; a star stands for warnings."""
    return f"{result.estimate:.2e} +- {100 * result.relative_error:.0f} %" + "*" * (result.trust != "ok")


def columns_of(results: dict[tuple, RareResult], names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Returns estimates and diagnostics as columns, after a column for each part of the keys."""
    keys = {name: np.array([key[n] for key in results]) for n, name in enumerate(names)}
    fields = ("estimate", "se", "runs", "learning_runs", "effective", "share", "pareto_k", "censored", "seconds")
    values = {field: np.array([getattr(result, field) for result in results.values()]) for field in fields}
    trust = {"trust": np.array(["ok" if each.trust == "ok" else " ".join(each.trust) for each in results.values()])}
    return keys | values | trust


def warnings_of(results: dict[tuple, RareResult]) -> tuple[str, ...]:
    """Returns the warnings of all estimates as notes."""
    return tuple(
        f"* {', '.join(map(str, key))}: {' '.join(result.trust)}"
        for key, result in results.items()
        if result.trust != "ok"
    )
