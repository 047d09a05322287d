"""Shared parts of the experiments on plays: sweeps, the lower bound, and the law of errors."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

import jaxbandits
from experiments.claims import interval
from experiments.figures import STYLES, ticks
from experiments.report import Claim, Line, plus_minus
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, Status, cpe
from jaxbandits.base import Algorithm, Outcome

DELTA = 0.1
LONGEST = 2_000_000  # budget of a run in plays
FALSE_ALARM = 1e-6
GRAPHS = {"E20": cpe.spanning_trees_e20, "E25": cpe.spanning_trees_e25}


def runs(
    name: str,
    instance: cpe.Instance,
    rule: str,
    factory: Callable[..., Algorithm],
    *,
    options: Settings,
    seeds: int,
    delta: float = DELTA,
    longest: int = LONGEST,
    lanes: int | None = None,
) -> Results:
    """Runs one rule on one instance; all rules under one name receive the same samples.

    Columns: `wrong`, and `counts` (K,), the samples of every arm.
    """

    def build(task: Any, key: jax.Array) -> tuple:
        algorithm = factory(instance.problem, delta=task["delta"])
        return algorithm, cpe.environment(instance, algorithm, stream=key)

    def metrics(task: Any, outcome: Outcome) -> dict[str, Any]:
        return {"wrong": ~cpe.is_right(instance, outcome.answer), "counts": outcome.state.counts}

    return simulate(
        f"{name}: {rule}",
        build,
        jaxbandits.grid(delta=np.array([delta])),
        options=options,
        seeds=seeds,
        max_rounds=longest,
        lanes=lanes,
        noise=name,
        metrics=metrics,
    )


def time_of(instance: cpe.Instance) -> float:
    """Computes T* in plays."""
    noise_scale = float(np.asarray(instance.arms.noise_scale))
    return float(cpe.characteristic_time(instance.problem, instance.theta, noise_scale).value)


def gk16(plays: Any, delta: Any = DELTA) -> Any:
    """Computes gk16, the threshold of most runs here, after `plays` plays."""
    return np.log((1 + np.log(plays)) / delta)


def errors(sweep: Results) -> tuple[int, int]:
    """Counts wrong answers and the runs that stopped."""
    ended = sweep.columns["status"] == Status.STOPPED
    return int(np.sum(sweep.columns["wrong"] & ended)), int(np.sum(ended))


def confident(counts: dict[str, tuple[int, int]], delta: float = DELTA) -> Claim:
    """Claims that error counts of several sweeps, each (wrong, stopped), are all compatible with delta."""
    from scipy.stats import binom  # half a second

    return Claim(
        f"a share of at most delta = {delta:g} of the answers is wrong, in every sweep",
        ", ".join(f"{name} {wrong} of {ended}" for name, (wrong, ended) in counts.items()),
        all(ended and wrong <= binom.ppf(1 - FALSE_ALARM, ended, delta) for wrong, ended in counts.values()),
    )


def cells(line: Line, sweep: Results, time: float, threshold: Callable[[float], Any] = gk16) -> dict[str, str]:
    """Formats the row of one rule: plays, their spread, the bound, errors."""
    plays = sweep.columns["pulls"]
    wrong, ended = errors(sweep)
    return {
        "rule": line.quantity,
        "plays": plus_minus(line),
        "10 %, median, 90 %": ", ".join(f"{q:,.0f}" for q in np.quantile(plays, (0.1, 0.5, 0.9))),
        "/ (T* threshold)": f"{line.ours / (time * threshold(line.ours)):.2f}",
        "wrong": f"{wrong} of {ended}",
        "95 %": "[{:.2g}, {:.2g}]".format(*interval(wrong, ended)) if ended else "-",
        "s per 100 runs": f"{100 * sweep.stats.seconds / len(plays):.2g}",
    }


def draw_stops(axes: Any, sweeps: Mapping[str, Results]) -> None:
    """Draws the share of stopped runs against plays, a line per rule."""
    for style, (rule, sweep) in zip(STYLES, sweeps.items(), strict=False):
        plays = np.sort(sweep.columns["pulls"])
        axes.plot(plays, np.linspace(0, 1, len(plays)), label=rule, **style | {"marker": ""})
    axes.set(xscale="log", xlabel="plays")
    low, high = axes.get_xlim()
    ticks(axes, [n * 10**k for k in range(1, 7) for n in (1, 2, 5) if low <= n * 10**k <= high])
