"""Comparison of float32 and float64: whole runs of every family's rules in both, their pulls and their errors.

A GPU reads float32 in half the time and computes it in half (an H200) or a small fraction of it (most others). An
instance's arrays set the precision; integers keep 64 bit. Except for combinatorial arms, each precision draws its own
random numbers. Therefore means are compared: pulls until the stop or, if a rule does not stop, its regret at the end.
The whole takes hours; with `--store` a killed call resumes.
"""

import sys
from functools import partial
from typing import Any

import jax
import numpy as np

import jaxbandits
from experiments.bench.gpu import is_wanted
from experiments.bench.twins import Twin, twins
from experiments.claims import answers_are_right
from experiments.figures import marks
from experiments.report import Claim, Line, Report, line, mean_se, plus_minus
from experiments.settings import Settings
from experiments.simulate import folder_name
from jaxbandits import Results, Status

DTYPES = ("float64", "float32")
NEAR, SURE = 0.01, 2  # relative tolerance; margin in standard errors
FEWER = 20  # divisor of the number of runs if quick


def run(options: Settings) -> Report:
    """Reports a row for every rule."""
    pairs, refused = {}, []
    for twin in twins():
        if not is_wanted(twin.rule, options):
            continue
        name = f"{twin.rule}, {twin.instance}"
        try:
            pairs[name] = twin, [swept(twin, dtype, options) for dtype in DTYPES]
        except ValueError as error:
            refused.append(f"{name} refuses float32: {error}")
            continue
        ratio, se = ratio_of(pairs[name])
        print(twin.family, name, f"float32 / float64 = {ratio:.4f} +- {se:.4f}", file=sys.stderr, sep=", ")
    return Report(
        "What float32 changes",
        [],
        [claim for name, pair in pairs.items() for claim in claims(name, *pair)],
        {
            "algorithm": np.array(list(pairs)),
            **{dtype: np.array([lines_of(pair)[n].ours for pair in pairs.values()]) for n, dtype in enumerate(DTYPES)},
            **dict(zip(("ratio", "ratio_se"), np.array([ratio_of(pair) for pair in pairs.values()]).T, strict=True)),
        },
        partial(draw, ratios={name: ratio_of(pair) for name, pair in pairs.items()}),
        notes=[
            f"same: equal to {NEAR:.0%}, {SURE} standard errors included. differs: not equal to {NEAR:.0%}, even with "
            f"{2 * SURE} of them. undecided: too few runs. right: share of the runs that stopped.",
            *refused,
        ],
        grid=[row(name, pair) for name, pair in pairs.items()],
    )


def swept(twin: Twin, dtype: str, options: Settings) -> Results:
    """Runs the sweep of a twin, with the columns `value` and `right`."""

    def metrics(task: Any, outcome: jaxbandits.Outcome) -> dict[str, Any]:
        measures = {"value": twin.value(outcome)} if twin.value else {}
        return measures | ({"right": twin.is_right(outcome)} if twin.is_right else {})

    return jaxbandits.sweep(
        twin.build(dtype),
        seeds=options.seeds or max(twin.seeds // (FEWER if options.quick else 1), 2),
        key=jax.random.key(0),
        max_rounds=twin.max_rounds,
        lanes=options.lanes,
        metrics=metrics,
        store=options.store and options.store / folder_name(f"precision {twin.rule} {twin.instance} {dtype}"),
        progress=False,
    )


Pair = tuple[Twin, list[Results]]


def lines_of(pair: Pair) -> list[Line]:
    """Returns the compared means, one per precision."""
    twin, sweeps = pair
    if twin.value:
        return [line("", sweep.columns["value"]) for sweep in sweeps]
    return [line("", sweep.columns["pulls"], status=sweep.columns["status"]) for sweep in sweeps]


def ratio_of(pair: Pair) -> tuple[float, float]:
    """Returns float32 over float64 and its standard error, run by run since some have the same noise in both."""
    twin, (double, single) = pair
    name = "value" if twin.value else "pulls"
    both = (double.columns["status"] == Status.STOPPED) & (single.columns["status"] == Status.STOPPED)
    both |= twin.value is not None
    mean = double.columns[name][both].mean()
    more, se = mean_se(single.columns[name][both] / mean - double.columns[name][both] / mean)
    return 1 + float(more), float(se)


def verdict(pair: Pair) -> str:
    """Returns the verdict whether the means are equal to a percent."""
    ratio, se = ratio_of(pair)
    if abs(ratio - 1) + SURE * se <= NEAR:
        return "same"
    return "differs" if abs(ratio - 1) - 2 * SURE * se > NEAR else "undecided"


def claims(name: str, twin: Twin, sweeps: list[Results]) -> list[Claim]:
    """Claims that float32 errs at most as often as promised."""
    if twin.is_right is None:
        return []
    stopped, right = sweeps[1].columns["status"] == Status.STOPPED, sweeps[1].columns["right"]
    return [answers_are_right(int(np.sum(stopped & ~right)), int(stopped.sum()), twin.delta, f"{name}, float32")]


def row(name: str, pair: Pair) -> dict[str, str]:
    """Returns one row as text."""
    twin, sweeps = pair
    ratio, se = ratio_of(pair)
    cells = {"": name, "family": twin.family, "runs": str(len(sweeps[0].columns["row"]))}
    for dtype, sweep, mean in zip(DTYPES, sweeps, lines_of(pair), strict=True):
        stopped = sweep.columns["status"] == Status.STOPPED
        wrong = str(np.sum(stopped & ~sweep.columns["right"])) if twin.is_right else ""
        cells |= {dtype: plus_minus(mean, 1 if twin.value else 0), f"wrong, {dtype}": wrong}
    double, single = (sweep.stats.rounds / sweep.stats.seconds for sweep in sweeps)
    cells |= {"float32 / float64": f"{ratio:.4f} +- {se:.4f}", "times as fast": f"{single / double:.2f}"}
    return cells | {"verdict": verdict(pair)}


def draw(figure: Any, *, ratios: dict[str, tuple[float, float]]) -> None:
    figure.set_size_inches(7, 1 + 0.22 * len(ratios))
    axes, y = figure.subplots(), np.arange(len(ratios))[::-1]
    ratio, se = np.array(list(ratios.values())).T
    axes.errorbar(100 * (ratio - 1), y, xerr=200 * se, **marks(0))
    axes.axvspan(-100 * NEAR, 100 * NEAR, color="#dddddd", zorder=0)
    axes.axvline(0, color="k", lw=1)
    axes.set(xlabel="float32 beyond float64, % of the mean, with two standard errors", ylim=(-1, len(ratios)))
    axes.set_yticks(y, list(ratios), fontsize=8)
