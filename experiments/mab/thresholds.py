"""The cost of a proof: TTUCB with each threshold that applies, on Bernoulli and on Gaussian arms.

gk16 and log_t are heuristics; gk_union is proved for Bernoulli arms, kk_pair for Gaussian ones, kl_lucb for the
intervals of KL-LUCB. The latter is shown as the largest.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments.figures import STYLES, errorbars, ticks
from experiments.mab import common
from experiments.mab.common import DELTA
from experiments.report import Claim, Line, Report, joined, line_of, listed, plus_minus
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


def run(options: Settings) -> Report:
    seeds = options.seeds or (100 if options.quick else 1000)
    sweeps: dict[Key, Results] = {}
    at_mean: dict[Key, float] = {}
    for name, kinds in KINDS.items():
        instance = getattr(mab, name)()
        for kind in kinds:
            threshold = kind(arms=instance.problem.arms)
            key = name, threshold.__name__
            settings = {"options": options, "seeds": seeds, "threshold": threshold}
            sweeps[key] = common.runs(f"mab thresholds, {name}", instance, "TTUCB", **settings)
            at_mean[key] = value_at_mean(threshold, sweeps[key])
    lines = {key: line_of(", ".join(key), sweep) for key, sweep in sweeps.items()}
    wrong = {", ".join(key): common.errors(sweep) for key, sweep in sweeps.items()}
    return Report(
        "TTUCB with different thresholds, delta = 0.1",
        list(lines.values()),
        [*(in_order(name, lines, at_mean) for name in KINDS), common.confident(wrong)],
        joined(sweeps, label="instance, threshold"),
        partial(draw, lines=lines, at_mean=at_mean),
        notes=("A count of no errors proves nothing; the interval bounds how many there may be.",),
        grid=[
            {
                "instance, threshold": ", ".join(key),
                "status": STATUS[key[1]],
                "at the mean": f"{at_mean[key]:.2f}",
                "pulls": plus_minus(lines[key]),
                "median": f"{np.median(sweep.columns['pulls']):,.0f}",
                "wrong": "{} of {}".format(*common.errors(sweep)),
                "95 %": common.interval(*common.errors(sweep)),
            }
            for key, sweep in sweeps.items()
        ],
    )


def value_at_mean(threshold: thresholds.Threshold, sweep: Results) -> float:
    """Computes the threshold at the mean counts of the best two arms."""
    counts = np.sort(sweep.columns["counts"].mean(axis=0))[-2:]
    return float(
        threshold(jnp.asarray(DELTA), Evidence(jnp.asarray(sweep.columns["pulls"].mean()), jnp.asarray(counts)))
    )


def in_order(name: str, lines: dict[Key, Line], at_mean: dict[Key, float]) -> Claim:
    """Claims that larger thresholds cost more pulls."""
    pulls = {kind: line.ours for (where, kind), line in lines.items() if where == name}
    by_value = sorted(pulls, key=lambda kind: at_mean[name, kind])
    return Claim(
        f"{name}: means are in the order of the thresholds at t = mean",
        listed({kind: pulls[kind] for kind in by_value}, ",.0f"),
        by_value == sorted(pulls, key=pulls.__getitem__),
    )


def draw(figure: Any, *, lines: dict[Key, Line], at_mean: dict[Key, float]) -> None:
    axes = figure.subplots()
    for style, name in enumerate(KINDS):
        keys = [key for key in lines if key[0] == name]
        x, y = ([values[key] for key in keys] for values in (at_mean, {key: lines[key].ours for key in keys}))
        errorbars(axes, x, np.array(y), [lines[key].se for key in keys], label=name, style=style, linestyle="")
        for value, height, key in zip(x, y, keys, strict=True):
            color = STYLES[style]["color"]
            axes.annotate(key[1], (value, height), (6, -10), textcoords="offset points", fontsize=8, color=color)
    axes.set(xlabel="threshold at the mean", ylabel="pulls until the stop", title="TTUCB: cost of a threshold")
    ticks(axes, range(4, 26, 4))
    axes.legend()
