"""Shared parts of the experiments on rare errors: builds, estimates by weights, and their cells."""

import sys
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from experiments.figures import STYLES, errorbars
from experiments.mab import common
from experiments.settings import Settings
from experiments.simulate import folder_name, when_free
from jaxbandits import mab, rare
from jaxbandits.base import Algorithm, Environment
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.thresholds import Threshold
from jaxbandits.rare import RareResult

Key = TypeVar("Key")

FULL = {"rounds": (2048, 512, 512, 512), "relative_error": 0.1, "most_runs": 16_384}
QUICK = FULL | {"relative_error": 0.2, "most_runs": 8192}
# Budgets of rounds, by the smallest delta that they serve: at small delta errors come late.
LONGEST = {1e-6: 100_000, 0.0: 200_000}
LONGEST_QUICK = {1e-2: 5_000, 0.0: 10_000}


class Case(NamedTuple):
    """A probability to be estimated: of a wrong answer, or with `pulls` that a run lasts longer."""

    name: str  # folder of its runs; the key is made from it
    build: Callable[..., tuple]  # (instance, key, delta) -> (algorithm, environment)
    instance: Any
    delta: float
    pulls: int | None = None


def longest(delta: float, options: Settings) -> int:
    """Returns the budget of rounds at a delta."""
    budgets = LONGEST_QUICK if options.quick else LONGEST
    return next(rounds for least, rounds in budgets.items() if delta >= least)


def building(rule: str, threshold: Callable[..., Threshold]) -> Callable[..., tuple]:
    """Returns the build of a rule, which makes the same algorithm whatever the means are."""
    return partial(_build, rule=rule, threshold=threshold)


def _build(
    instance: mab.Instance, key: Any, delta: Any, *, rule: str, threshold: Callable[..., Threshold]
) -> tuple[Algorithm, Environment]:
    del key
    evidence = threshold(arms=instance.problem.arms)
    algorithm = common.RULES[rule](instance.problem, delta=delta, threshold=evidence)
    return algorithm, mab.environment(instance, algorithm)


def on_gauss4(rule: str, delta: float) -> Case:
    """Returns the error of a rule with gk16 on `gauss4`: several experiments share these runs."""
    name = f"mab rare delta, gauss4, gk16, {rule}, {delta:g}"
    return Case(name, building(rule, thresholds.gk16), mab.gauss4(), delta)


def estimates(cases: Mapping[Key, Case], options: Settings) -> dict[Key, RareResult]:
    """Makes every estimate. With `--workers` each is made by one of them; those with the smallest delta come first."""
    if options.executor is None:
        return {key: estimate(each, options) for key, each in cases.items()}
    theirs = Settings(quick=options.quick, lanes=options.lanes, store=options.store, count=int)
    order = sorted(cases, key=lambda key: (cases[key].delta, -(cases[key].pulls or 0)))
    futures = {key: options.executor.submit(_by_worker, cases[key], theirs) for key in order}
    return {key: futures[key].result() for key in cases}


def _by_worker(case: Case, options: Settings) -> RareResult:
    jax.config.update("jax_enable_x64", True)
    return estimate(case, options, progress=False)


def estimate(case: Case, options: Settings, *, progress: bool = True) -> RareResult:
    """Makes an estimate; an error is one within the budget of its delta."""
    print(f"\n{case.name}", file=sys.stderr)
    call = partial(
        rare.error_probability if case.pulls is None else rare.tail_probability,
        case.build,
        case.instance,
        key=jax.random.key(zlib.crc32(case.name.encode())),
        given={"delta": case.delta},
        store=options.store and options.store / folder_name(case.name),
        lanes=options.lanes,
        progress=progress,
        **(QUICK if options.quick else FULL),
    )
    event = {"max_rounds": longest(case.delta, options)} if case.pulls is None else {"pulls": case.pulls}
    return when_free(partial(call, **event))


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
