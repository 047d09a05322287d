"""The cost of a proof: TTUCB with each threshold that applies, on Bernoulli and on Gaussian arms.

gk16 and log_t are heuristics; gk_union is proved for Bernoulli arms, kk_pair for Gaussian ones, kl_lucb for the
intervals of KL-LUCB. The latter is shown as the largest.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments import study
from experiments.claims import interval
from experiments.figures import STYLES, points, ticks
from experiments.mab import common
from experiments.mab.common import DELTA
from experiments.report import Claim, Columns, Line, Report, listed, plus_minus
from experiments.settings import Settings
from jaxbandits import Results, mab
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.thresholds import Evidence

KINDS = {
    "gk2": (thresholds.gk16, thresholds.log_t, thresholds.gk_union, thresholds.kl_lucb),
    "gauss4": (thresholds.gk16, thresholds.log_t, thresholds.kk_pair),
}
STATUS = {
    "gk16": "heuristic",
    "log_t": "heuristic",
    "gk_union": "proved, Bernoulli",
    "kl_lucb": "proved for intervals",
    "kk_pair": "proved, Gaussian",
}

Key = tuple[str, str]  # instance, threshold


def run(options: Settings, *, delta: float = DELTA) -> Report:
    seeds = options.seeds or (100 if options.quick else 1000)
    instances = {name: getattr(mab, name)() for name in KINDS}
    proofs = {(name, kind.__name__): kind(arms=instances[name].problem.arms) for name in KINDS for kind in KINDS[name]}

    def sweep(instance: str, threshold: str) -> Results | None:
        proof = proofs.get((instance, threshold))
        settings = {"options": options, "seeds": seeds, "delta": delta, "threshold": proof}
        return proof and common.runs(f"mab thresholds, {instance}", instances[instance], "TTUCB", **settings)

    cells = study.crossed({"instance": KINDS, "threshold": STATUS}, sweep)
    at_mean = {key: value_at_mean(proofs[key], delta, columns) for key, columns in cells.cells.items()}
    wrong = study.errors(cells)
    return study.report(
        f"TTUCB with different thresholds, delta = {delta:g}",
        cells,
        [*(in_order(name, cells.lines, at_mean) for name in KINDS), common.confident(study.named(cells, wrong), delta)],
        draw=partial(draw, lines=cells.lines, at_mean=at_mean),
        notes=("A count of no errors proves nothing; the interval bounds how many there may be.",),
        grid=[
            {
                "instance, threshold": each.quantity,
                "status": STATUS[key[1]],
                "at the mean": f"{at_mean[key]:.2f}",
                "pulls": plus_minus(each),
                "median": f"{np.median(cells.cells[key]['pulls']):,.0f}",
                "wrong": "{} of {}".format(*wrong[key]),
                "95 %": interval(*wrong[key]),
            }
            for key, each in cells.lines.items()
        ],
    )


def value_at_mean(threshold: thresholds.Threshold, delta: float, columns: Columns) -> float:
    """Computes the threshold at the mean counts of the best two arms."""
    counts = jnp.asarray(np.sort(columns["counts"].mean(axis=0))[-2:])
    return float(threshold(jnp.asarray(delta), Evidence(jnp.asarray(columns["pulls"].mean()), counts)))


def in_order(name: str, lines: Mapping[Key, Line], at_mean: dict[Key, float]) -> Claim:
    """Claims that larger thresholds cost more pulls."""
    pulls = {kind: line.ours for (where, kind), line in lines.items() if where == name}
    by_value = sorted(pulls, key=lambda kind: at_mean[name, kind])
    return Claim(
        f"{name}: means are in the order of the thresholds at t = mean",
        listed({kind: pulls[kind] for kind in by_value}, ",.0f"),
        by_value == sorted(pulls, key=pulls.__getitem__),
    )


def draw(figure: Any, *, lines: Mapping[Key, Line], at_mean: dict[Key, float]) -> None:
    axes = figure.subplots()
    for style, name in enumerate(KINDS):
        keys = [key for key in lines if key[0] == name]
        points(axes, [at_mean[key] for key in keys], [lines[key] for key in keys], name, style)
        for key in keys:
            point, color = (at_mean[key], lines[key].ours), STYLES[style]["color"]
            axes.annotate(key[1], point, (6, -10), textcoords="offset points", fontsize=8, color=color)
    axes.set(xlabel="threshold at the mean", ylabel="pulls until the stop", title="TTUCB: cost of a threshold")
    ticks(axes, range(4, 26, 4))
    axes.legend()
