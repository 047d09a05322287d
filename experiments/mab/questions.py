"""Shared parts of the experiments on questions: instances, and the sweep of a rule that answers one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import jaxbandits
from experiments.claims import differences
from experiments.mab import common
from experiments.report import STANDARD_ERRORS, Claim, Line
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, mab
from jaxbandits.base import Algorithm, Outcome

OVER_TIME = r"pulls / ($T^\star \log(1/\delta)$)"  # label of an axis
Rule = Callable[..., Algorithm]  # (problem, *, delta) -> Algorithm


class Asked(NamedTuple):
    """A question about arms."""

    law: Callable[..., mab.Instance]  # means -> Instance
    means: Sequence[float]
    question: Any  # one of `mab.TopM`, `Above`, `GoodArm`, `AllGood`


TOP = Asked(mab.gaussian, (0.9, 0.75, 0.4, 0.3, 0.2, 0.1), mab.TopM(2))
ABOVE = Asked(mab.gaussian, (0.6, 0.3, 0.2, -0.25, -0.5), mab.Above(0.0))
SEVERAL = Asked(mab.gaussian, (0.6, 0.3, -0.1, -0.3), mab.GoodArm(0.0))
NONE = Asked(mab.gaussian, (-0.25, -0.3, -0.6), mab.GoodArm(0.0))
ALL_GOOD = Asked(mab.gaussian, (1.0, 0.9, 0.6, 0.3), mab.AllGood(0.2))


def runs(
    name: str, asked: Asked, rule: Rule, *, delta: float | Sequence[float], options: Settings, seeds: int
) -> Results:
    """Runs a rule of fixed confidence, with a row for every delta. Its results have a column `wrong`."""
    instance = asked.law(asked.means)

    def build(task: Any, key: Any) -> tuple:
        algorithm = rule(instance.problem, delta=task["delta"])
        return algorithm, mab.environment(instance, algorithm)

    def metrics(task: Any, outcome: Outcome) -> dict[str, Any]:
        return {"wrong": ~mab.is_right(instance, outcome.answer, question=asked.question)}

    return simulate(
        name,
        build,
        jaxbandits.grid(delta=np.atleast_1d(np.asarray(delta, float))),
        options=options,
        seeds=seeds,
        max_rounds=common.LONGEST,
        metrics=metrics,
    )


def time_of(asked: Asked) -> float:
    """Computes T*; refuses arms that leave the question without a unique answer."""
    instance = asked.law(asked.means)
    time = float(mab.characteristic_time(instance.problem, instance.means, question=asked.question).value)
    if not np.isfinite(time):
        raise ValueError(f"means must leave the question with a unique answer, got {list(asked.means)}")
    return time


def kl(delta: float) -> float:
    """Computes the relative entropy of delta from 1 - delta."""
    return (1 - 2 * delta) * float(np.log((1 - delta) / delta))


def over_time(line: Line, time: float, delta: float) -> Line:
    """Divides mean pulls by T* log(1/delta)."""
    unit = -time * float(np.log(delta))
    return line._replace(ours=line.ours / unit, se=line.se / unit, bound=None)


def near(lines: Mapping[Any, Line], examples: Mapping[Any, tuple[float, float]]) -> Claim:
    """Claims that means agree with NumPy programs, each (mean, standard error), in the cells that were run."""
    off = {lines[key].quantity: difference for key, difference in differences(lines, examples).items()}
    low, high = min(off, key=off.__getitem__), max(off, key=off.__getitem__)
    return Claim(
        f"means are within {STANDARD_ERRORS} standard errors of the means of NumPy programs, {len(off)} pairs",
        f"differences of {off[low]:+.1f} ({low}) to {off[high]:+.1f} ({high}) standard errors",
        max(map(abs, off.values())) <= STANDARD_ERRORS,
    )
