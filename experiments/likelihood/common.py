"""Shared parts of the experiments on likelihood-ratio stopping: rules, their sweeps, bounds and errors."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jaxbandits
from experiments import study
from experiments.claims import allowed, interval
from experiments.report import Claim, Line, plus_minus
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, linear
from jaxbandits.base import Algorithm, Array, Decision, Outcome
from jaxbandits.numerics import thresholds

LONGEST = 300_000  # budget of a run in rounds

# (arms, *, stop) -> Algorithm
RULES: dict[str, Callable[..., Algorithm]] = {
    "LinGapE": linear.lingape_glr,
    "L-T3C": linear.l_t3c,
    "FWS": linear.fws,
    "Lazy TaS": linear.lazy_tas,
    "PEPS": linear.peps,
    "LinGame": linear.lingame,
    "LinGame-C": linear.lingame_c,
    "uniform": linear.uniform,
}


def runs(
    name: str,
    instance: linear.Instance,
    factory: Callable[..., Algorithm],
    *,
    options: Settings,
    seeds: int,
    delta: float | Sequence[float],
    marks: Sequence[int] = (),
    longest: int = LONGEST,
    **settings: Any,
) -> Results:
    """Runs one rule on one instance, with a row for every delta.

    `factory` takes (arms, *, delta), and items if the instance has them. Columns: `wrong` (the answer is not the
    best item), and with marks `curve.right`.
    """
    items = {} if instance.items is None else {"items": instance.items}

    def build(task: Any, key: Any) -> tuple:
        algorithm = factory(instance.arms, delta=task["delta"], **items)
        made = algorithm, linear.environment(instance, algorithm)
        return (*made, jaxbandits.record(at=marks, value=watch)) if marks else made

    def watch(state: Any, decision: Decision) -> dict[str, Any]:
        # RAGE has no answer before the end of its first phase.
        begun = state.phase > 0 if hasattr(state, "phase") else True
        return {"right": linear.is_right(instance, decision.answer) & begun}

    def metrics(task: Any, outcome: Outcome) -> dict[str, Any]:
        return {"wrong": ~linear.is_right(instance, outcome.answer)}

    table = jaxbandits.grid(delta=np.atleast_1d(np.asarray(delta, float)))
    shared = {"options": options, "seeds": seeds, "max_rounds": longest, "metrics": metrics}
    return simulate(name, build, table, **shared, **settings)


def by_ratios(
    rule: str, threshold: thresholds.Threshold, *, glr_ridge: float | None = None, **settings: Any
) -> Callable[..., Algorithm]:
    """Returns a rule of `RULES` with its threshold: (arms, *, delta, and options of the stop) -> Algorithm."""

    def factory(arms: Array, *, delta: Array | float, **options: Any) -> Algorithm:
        stop = linear.likelihood_ratio(threshold, delta=delta, glr_ridge=glr_ridge, **options)
        return RULES[rule](arms, stop=stop, **settings)

    return factory


def without_stop(rule: str) -> Callable[..., Algorithm]:
    """Returns a rule of `RULES` that never stops, (arms, *, delta) -> Algorithm."""

    def factory(arms: Array, *, delta: Array | float, items: Array | None = None) -> Algorithm:
        del delta
        return RULES[rule](arms, stop=linear.no_stop(items))

    return factory


def kl(delta: Any) -> np.ndarray:
    """Computes the divergence of Bernoulli distributions of means delta and 1 - delta."""
    delta = np.asarray(delta, float)
    return (1 - 2 * delta) * np.log((1 - delta) / delta)


def time_of(instance: linear.Instance) -> float:
    """Computes the certified lower end of T*, in pulls per unit of log(1 / delta)."""
    arms, theta, noise_scale, items = instance
    return float(linear.characteristic_time(arms, theta, items=items, noise_scale=noise_scale).lower)


def practical(time: float, delta: float) -> float:
    """Solves t = T* gk16(t, delta), the time at which the ratio of the best shares passes the threshold."""
    t = time * float(kl(delta))
    for _ in range(60):
        t = time * (np.log1p(np.log(max(t, 1.0))) - np.log(delta))
    return float(t)


def shown(wrong: int, ended: int) -> str:
    """Formats a count of errors with its 95 % interval."""
    return f"{wrong} of {ended} {interval(wrong, ended)}"


def cells_of(each: Line, practical: float | None = None, digits: int = 2) -> dict[str, str]:
    """Formats the pulls of a cell, over the lower bound and, if it is known, over the practical time."""
    cells = {"pulls": plus_minus(each), "/ (T* kl)": f"{over_bound(each):.{digits}f}"}
    return cells | ({"/ practical": f"{each.ours / practical:.2f}"} if practical else {})


def over_bound(each: Line) -> float:
    """Computes pulls / (T* kl)."""
    return each.ours / (each.bound or np.nan)


def counts_of(cells: study.Study, delta: float | None = None) -> dict[str, tuple[int, int, float]]:
    """Counts (wrong, stopped, delta) in every cell, for `confident`. If None, delta is an axis."""
    counts = {}
    for key, (wrong, ended) in study.errors(cells).items():
        counts[cells.lines[key].quantity] = wrong, ended, study.at_of(cells, key).get("delta", delta)
    return counts


def confident(counts: dict[str, tuple[int, int, float]]) -> Claim:
    """Claims that error counts, each (wrong, stopped, delta), are compatible with delta; names the worst."""
    worst = max(counts, key=lambda name: counts[name][0] / max(counts[name][1], 1) / counts[name][2])
    wrong, ended, delta = counts[worst]
    return Claim(
        f"a share of at most delta of the answers is wrong, in each of {len(counts)} cells",
        f"at most {wrong} of {ended} at delta = {delta:g} ({worst})",
        all(ended > 0 and wrong <= allowed(ended, delta) for wrong, ended, delta in counts.values()),
    )
