"""Shared parts of the experiments on rare errors: builds, estimates by weights, and their cells."""

import sys
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from experiments.figures import STYLES, errorbars
from experiments.mab import common
from experiments.settings import Settings
from experiments.simulate import folder_name, when_free
from jaxbandits import mab, rare
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.thresholds import Threshold
from jaxbandits.rare import RareResult

QUICK = {"rounds": (2048, 512, 512, 512), "relative_error": 0.2, "most_runs": 8192}
# Budgets of rounds, by the smallest delta that they serve: at small delta errors come late.
LONGEST = {1e-2: 20_000, 1e-6: 100_000, 0.0: 300_000}
LONGEST_QUICK = {1e-2: 5_000, 0.0: 10_000}

Build = Callable[[Any, Any], tuple]


def longest(delta: float, options: Settings) -> int:
    """Returns the budget of rounds at a delta."""
    budgets = LONGEST_QUICK if options.quick else LONGEST
    return next(rounds for least, rounds in budgets.items() if delta >= least)


def building(rule: str, delta: float, threshold: Callable[..., Threshold], arms: int) -> Build:
    """Returns the build of a rule, which makes the same algorithm whatever the means are."""
    evidence = threshold(arms=arms)

    def build(instance: mab.Instance, key: Any) -> tuple:
        algorithm = common.RULES[rule](instance.problem, delta=delta, threshold=evidence)
        return algorithm, mab.environment(instance, algorithm)

    return build


def settings_of(name: str, options: Settings) -> dict[str, Any]:
    """Returns the arguments that all estimates share; the key comes from the name."""
    print(f"\n{name}", file=sys.stderr)
    return {
        "key": jax.random.key(zlib.crc32(name.encode())),
        "store": options.store and options.store / folder_name(name),
        "lanes": options.lanes,
        **(QUICK if options.quick else {}),
    }


def error(name: str, build: Build, instance: Any, *, options: Settings, delta: float) -> RareResult:
    """Estimates the probability that a rule stops with a wrong answer, within the budget of this delta."""
    call = partial(rare.error_probability, build, instance, max_rounds=longest(delta, options))
    return when_free(partial(call, **settings_of(name, options)))


def on_gauss4(rule: str, delta: float, *, options: Settings) -> RareResult:
    """Estimates the error of a rule with gk16 on `gauss4`: several experiments share these runs."""
    instance = mab.gauss4()
    build = building(rule, delta, thresholds.gk16, instance.problem.arms)
    return error(f"mab rare delta, gauss4, gk16, {rule}, {delta:g}", build, instance, options=options, delta=delta)


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


def draw_estimates(axes: Any, cells: dict[Any, RareResult], *, label: str, style: int) -> None:
    """Draws estimates by their x, with bars of two standard errors; hollow marks are estimates with warnings."""
    x, y, se = (
        np.array(each) for each in (list(cells), *zip(*((r.estimate, r.se) for r in cells.values()), strict=True))
    )
    errorbars(axes, x, y, se, label=label, style=style)
    is_trusted = np.array([each.trust == "ok" for each in cells.values()])
    filled = {"marker": STYLES[style]["marker"], "color": STYLES[style]["color"], "linestyle": "", "zorder": 3}
    axes.plot(x[is_trusted], y[is_trusted], **filled)
