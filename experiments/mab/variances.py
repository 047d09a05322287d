"""Sweeps of the experiment on unknown variances, and what NumPy programs measured."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import jaxbandits
from experiments.mab import common
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, mab
from jaxbandits.base import Algorithm, Outcome
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.thresholds import Threshold

MEANS = (1.0, 0.7, 0.5, 0.3)
SD = {"equal": (1.0, 1.0, 1.0, 1.0), "unequal": (1.0, 0.5, 1.0, 2.0)}
COSTS = ("adaptive", "plug-in")
VARIANCES = ("known", *COSTS)
THRESHOLDS: dict[str, Callable[[int], Threshold]] = {  # arms -> Threshold
    "gk16": lambda arms: thresholds.gk16(arms=arms),
    "kk_pair": lambda arms: thresholds.kk_pair(arms=arms),
    "student": lambda arms: thresholds.student(arms=arms),
    "uv_box": lambda arms: thresholds.uv_box(arms=arms),
}
PROVED = ("kk_pair", "student", "uv_box")
START = {"gk16": 10, "student": 20, "uv_box": 30}  # pulls of each arm at first, if its variance is unknown
RULES: dict[str, Callable[..., Algorithm]] = {
    "EB-TCI": mab.eb_tci,
    "T3C": mab.t3c,
    "TaS, D": mab.tas,
    "uniform": mab.uniform,
}
FORMS = {("known", "gk16"), ("known", "kk_pair"), ("adaptive", "gk16"), ("adaptive", "student")}
PLAYED = {  # variances and thresholds of every rule
    "EB-TCI": FORMS | {(cost, kind) for cost in COSTS for kind in ("gk16", "student", "uv_box")},
    "T3C": FORMS,
    "TaS, D": FORMS - {("adaptive", "student")},
    "uniform": FORMS,
}

STARTS = (2, 3, 10)
EQUAL_ARMS, LENGTH = (0.0, 0.0), 3000  # means, and pulls of both arms together
EQUAL_STARTS = {"gk16": (2, 3, 10, 30), "student": (2,), "uv_box": (2,)}  # the last two are infinite at first

# Means, standard errors of NumPy programs, EB-TCI, unequal variances: pulls at delta = .1 of 1000 runs, by start.
PULLS = {
    ("adaptive", "gk16", 2): (346.6, 6.2),
    ("plug-in", "gk16", 2): (269.6, 7.2),
    ("adaptive", "gk16", 3): (350.2, 6.1),
    ("plug-in", "gk16", 3): (298.3, 6.7),
    ("adaptive", "gk16", 10): (348.5, 5.7),
    ("plug-in", "gk16", 10): (325.7, 5.9),
    ("adaptive", "student", 10): (927.0, 9.7),
    ("plug-in", "student", 10): (968.8, 10.1),
}
RATIOS = {  # pulls / (T* log(1/delta)) of 300 runs, at delta = 1e-3, 1e-6, 1e-12
    "gk16": {1e-3: 1.31, 1e-6: 1.17, 1e-12: 1.10},
    "student": {1e-3: 2.42, 1e-6: 1.79, 1e-12: 1.45},
}
RATIO_RUNS, ROUNDING = 300, 0.005
PASSED = {  # share of 3000 runs of two equal arms in which gk16 is ever passed
    ("adaptive", 2): 0.184,
    ("plug-in", 2): 0.358,
    ("adaptive", 3): 0.141,
    ("plug-in", 3): 0.236,
    ("adaptive", 10): 0.089,
    ("plug-in", 10): 0.111,
    ("adaptive", 30): 0.063,
    ("plug-in", 30): 0.066,
}
PASSED_RUNS = 3000


def instance_of(sd: tuple[float, ...], cost: str = "adaptive", means: tuple[float, ...] = MEANS) -> mab.Instance:
    return mab.gaussian(means, sd=sd, cost=cost)


def problem_of(sd: tuple[float, ...], variances: str) -> mab.Gaussian:
    """Returns what a rule knows: the largest standard deviation, or only the number of arms."""
    return mab.Gaussian(len(sd), max(sd)) if variances == "known" else mab.Gaussian(len(sd), None, cost=variances)


def runs(
    sd: str, rule: str, variances: str, threshold: str, *, start: int | None = None, delta: Any, **settings: Any
) -> Results:
    """Runs a rule on the four arms, with a row for every delta. Its results have a column `wrong`."""
    problem = problem_of(SD[sd], variances)
    instance = instance_of(SD[sd], "adaptive" if variances == "known" else variances)
    pulls = 1 if variances == "known" else start or START[threshold]
    made = partial(RULES[rule], problem, threshold=THRESHOLDS[threshold](len(MEANS)), start=pulls)
    name = f"mab questions variances, {sd}: {rule}, {variances}, {threshold}, start {pulls}"
    return swept(name, instance, made, delta=delta, longest=common.LONGEST, **settings)


def equal_arms(variances: str, threshold: str, start: int, *, options: Settings, seeds: int) -> Results | None:
    """Runs uniform sampling of two equal arms until the threshold is passed, or for `LENGTH` pulls."""
    if start not in EQUAL_STARTS[threshold]:
        return None
    instance = instance_of((1.0, 1.0), variances, EQUAL_ARMS)
    made = partial(mab.uniform, instance.problem, threshold=THRESHOLDS[threshold](2), start=start)
    name = f"mab questions variances, two equal arms: {variances}, {threshold}, start {start}"
    return swept(name, instance, made, delta=common.DELTA, longest=LENGTH, options=options, seeds=seeds)


def swept(
    name: str,
    instance: mab.Instance,
    rule: Callable[..., Algorithm],
    *,
    delta: Any,
    longest: int,
    options: Settings,
    seeds: int,
) -> Results:
    def build(task: Any, key: Any) -> tuple:
        algorithm = rule(delta=task["delta"])
        return algorithm, mab.environment(instance, algorithm)

    def metrics(task: Any, outcome: Outcome) -> dict[str, Any]:
        return {"wrong": ~mab.is_right(instance, outcome.answer)}

    tasks = jaxbandits.grid(delta=np.atleast_1d(np.asarray(delta, float)))
    return simulate(name, build, tasks, options=options, seeds=seeds, max_rounds=longest, metrics=metrics)


def times_of(sd: tuple[float, ...]) -> dict[str, float]:
    """Computes T* of arms of unknown variances, "adaptive", and of the same arms with known ones, "known"."""
    costs = {"adaptive": "adaptive", "known": "plug-in"}
    return {
        name: float(common.time_of(instance_of(sd, cost), sd=np.array(sd), question=mab.TopM(1)))
        for name, cost in costs.items()
    }


def model(variances: str) -> str:
    """Returns whose T* bounds the pulls: of rules that know the variances, or that do not."""
    return "known" if variances == "known" else "adaptive"
