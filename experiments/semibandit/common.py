"""Shared parts of the experiments on plays: sweeps, the lower bound, and the law of errors."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

import jaxbandits
from experiments import study
from experiments.claims import interval
from experiments.figures import STYLES, legend_below, split, ticks
from experiments.report import Claim, Columns, Line, listed, plus_minus
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, cpe
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
        jaxbandits.grid(delta=[delta]),
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


def confident(counts: Mapping[str, tuple[int, int]], delta: float = DELTA) -> Claim:
    """Claims that error counts of several sweeps, each (wrong, stopped), are all compatible with delta."""
    from scipy.stats import binom  # half a second

    return Claim(
        f"a share of at most delta = {delta:g} of the answers is wrong, in every sweep",
        ", ".join(f"{name} {wrong} of {ended}" for name, (wrong, ended) in counts.items()),
        all(ended and wrong <= binom.ppf(1 - FALSE_ALARM, ended, delta) for wrong, ended in counts.values()),
    )


def law(line: Line, time: float, threshold: Callable[[float], Any] = gk16) -> float:
    """Computes T* times the threshold at the mean plays, the asymptote of the mean."""
    return float(time * threshold(line.ours))


def grid(cells: study.Study, laws: Mapping[study.Key, float]) -> list[dict[str, str]]:
    """Formats a row per cell: plays, their quantiles, their ratio to the law, errors, speed."""
    wrong = study.errors(cells)
    return [
        {
            "rule": line.quantity,
            "plays": plus_minus(line),
            "10 %, median, 90 %": listed(np.quantile(cells.cells[key]["pulls"], (0.1, 0.5, 0.9)), ",.0f"),
            "/ (T* threshold)": f"{line.ours / laws[key]:.2f}",
            "wrong": "{} of {}".format(*wrong[key]),
            "95 %": interval(*wrong[key]),
            "s per 100 runs": f"{seconds(cells.sweeps[key]):.2g}",
        }
        for key, line in cells.lines.items()
    ]


def seconds(sweep: Results) -> float:
    """Returns the seconds for 100 runs."""
    return 100 * sweep.stats.seconds / len(sweep.columns["pulls"])


def draw_stops(figure: Any, cells: study.Study, ncols: int = 3) -> None:
    """Draws the share of stopped runs against plays: a panel per instance, the first axis, and a line per rule."""
    instances, _ = cells.axes.values()
    panels = split(figure, (4.2 * len(instances) + 1, 4.6), 1, len(instances), sharey=True, squeeze=False)[0]
    for axes, instance in zip(panels, instances, strict=True):
        stops(axes, {key[1]: columns for key, columns in cells.cells.items() if key[0] == instance})
        axes.set(title=instance)
        axes.label_outer()
    legend_below(figure, ncols=ncols)


def stops(axes: Any, cells: Mapping[str, Columns]) -> None:
    """Draws the share of stopped runs against plays in one panel."""
    for style, (rule, columns) in zip(STYLES, cells.items(), strict=False):
        plays = np.sort(columns["pulls"])
        axes.plot(plays, np.linspace(0, 1, len(plays)), label=rule, **style | {"marker": ""})
    axes.set(xscale="log", xlabel="plays", ylabel="share of runs that have stopped")
    low, high = axes.get_xlim()
    ticks(axes, [n * 10**k for k in range(1, 7) for n in (1, 2, 5) if low <= n * 10**k <= high])
