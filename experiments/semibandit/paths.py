"""Paths and matchings with Gaussian noise: the same algorithms on classes that are listed and are no matroids."""

from functools import partial
from typing import Any

import numpy as np

from experiments.figures import legend_below
from experiments.report import Claim, Report, joined, line_of
from experiments.semibandit import common
from experiments.settings import Settings
from jaxbandits import Results, cpe
from jaxbandits.numerics import thresholds

Key = tuple[str, str]  # class, rule
CLASSES = {"paths5": cpe.paths5, "matching3": cpe.matching3}
NOISE = 0.5  # largest sub-Gaussian constant of rewards in [0, 1], as in the experiments of cpe


def rules(rows: np.ndarray) -> dict[str, Any]:
    return {
        "P-FWS": cpe.pfws,
        "CombGame": cpe.combgame,
        "CLUCB on plays, ratio": partial(cpe.semi_clucb, threshold=thresholds.gk16(arms=rows.shape[1])),
        "all in turn": partial(cpe.round_robin, rows=rows),
    }


def run(options: Settings) -> Report:
    seeds = options.seeds or (40 if options.quick else 1000)
    sweeps: dict[Key, Results] = {}
    times = {}
    for name, make in CLASSES.items():
        problem, theta = make().problem, np.asarray(make().theta)
        instance = cpe.instance(problem, cpe.gaussian(theta, NOISE))
        times[name] = common.time_of(instance)
        for rule, factory in rules(np.asarray(problem.rows)).items():
            of_noise = partial(factory, noise_scale=NOISE)
            sweeps[name, rule] = common.runs(
                f"pfws paths, {name}", instance, rule, of_noise, options=options, seeds=seeds
            )
    lines = {key: line_of(", ".join(key), sweep) for key, sweep in sweeps.items()}
    shares = {
        name: lines[name, "P-FWS"].ours / (time * common.gk16(lines[name, "P-FWS"].ours))
        for name, time in times.items()
    }
    return Report(
        "Paths and matchings, Gaussian noise, delta = 0.1",
        list(lines.values()),
        [
            Claim(
                "the mean of P-FWS is .9 to 1.6 T* threshold(mean)",
                ", ".join(f"{name} {share:.3f}" for name, share in shares.items()),
                all(0.9 <= share <= 1.6 for share in shares.values()),
            ),
            common.confident({", ".join(key): common.errors(sweep) for key, sweep in sweeps.items()}),
        ],
        joined(sweeps, label="class, rule"),
        partial(draw, sweeps=sweeps),
        notes=(
            f"Threshold: gk16, a heuristic; noise_scale {NOISE}. "
            + ", ".join(f"{name}: T* = {time:.2f}" for name, time in times.items()),
        ),
        grid=[common.cells(lines[key], sweep, times[key[0]]) for key, sweep in sweeps.items()],
    )


def draw(figure: Any, *, sweeps: dict[Key, Results]) -> None:
    figure.set_size_inches(9, 4.6)
    for name, axes in zip(CLASSES, figure.subplots(1, 2, sharey=True), strict=True):
        drawn = {rule: sweep for (where, rule), sweep in sweeps.items() if where == name}
        common.draw_stops(axes, drawn)
        axes.set(title=name)
    figure.axes[0].set_ylabel("share of runs that have stopped")
    legend_below(figure, ncols=4)
