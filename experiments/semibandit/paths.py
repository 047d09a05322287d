"""Paths and matchings with Gaussian noise: the same algorithms on classes that are listed and are no matroids."""

from functools import partial

import numpy as np

from experiments import study
from experiments.claims import between
from experiments.report import Report
from experiments.semibandit import common
from experiments.settings import Settings
from jaxbandits import Results, cpe
from jaxbandits.numerics import thresholds

CLASSES = {"paths5": cpe.paths5, "matching3": cpe.matching3}
NOISE = 0.5  # largest sub-Gaussian constant of rewards in [0, 1], as in the experiments of cpe


RULES = {  # rule -> (rows of the decisions) -> its factory
    "P-FWS": lambda rows: cpe.pfws,
    "CombGame": lambda rows: cpe.combgame,
    "CLUCB on plays, ratio": lambda rows: partial(cpe.semi_clucb, threshold=thresholds.gk16(arms=rows.shape[1])),
    "all in turn": lambda rows: partial(cpe.round_robin, rows=rows),
}


def run(options: Settings, *, noise_scale: float = NOISE) -> Report:
    seeds = options.seeds or (40 if options.quick else 1000)
    problems = {name: make().problem for name, make in CLASSES.items()}
    arms = {name: cpe.gaussian(np.asarray(make().theta), noise_scale) for name, make in CLASSES.items()}
    instances = {name: cpe.instance(problems[name], arms[name]) for name in CLASSES}

    def sweep(kind: str, rule: str) -> Results:
        factory = partial(RULES[rule](np.asarray(problems[kind].rows)), noise_scale=noise_scale)
        return common.runs(f"pfws paths, {kind}", instances[kind], rule, factory, options=options, seeds=seeds)

    cells = study.crossed({"kind": CLASSES, "rule": RULES}, sweep)
    times = {name: common.time_of(instance) for name, instance in instances.items()}
    laws = {key: common.law(line, times[key[0]]) for key, line in cells.lines.items()}
    shares = {name: cells.lines[name, "P-FWS"].ours / laws[name, "P-FWS"] for name in CLASSES}
    return study.report(
        "Paths and matchings, Gaussian noise, delta = 0.1",
        cells,
        [
            between("the mean of P-FWS is .9 to 1.6 T* threshold(mean)", shares, 0.9, 1.6, ".3f"),
            common.confident(study.named(cells, study.errors(cells))),
        ],
        draw=partial(common.draw_stops, cells=cells, ncols=4),
        notes=(
            f"Threshold: gk16, a heuristic; noise_scale {noise_scale}. "
            + ", ".join(f"{name}: T* = {time:.2f}" for name, time in times.items()),
        ),
        grid=common.grid(cells, laws),
    )
