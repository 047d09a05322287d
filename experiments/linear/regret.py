"""Regret over 10,000 pulls of a linear bandit: the upper bounds of LinUCB, and Thompson sampling at two scales.

Soare's instance in six dimensions, omega = 0.1, theta = e_1. The best and the tilted arm differ by 0.005, so the regret
is mostly the price of learning that the other five are worse.
"""

import itertools
from functools import partial
from typing import Any

import numpy as np

from experiments.claims import all_of, between
from experiments.figures import legend_below
from experiments.report import STANDARD_ERRORS, Claim, Report, joined, line, listed
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, concatenate, linear, record
from jaxbandits.base import Decision

HORIZON = 10_000
DELTA, NORM_BOUND, RIDGE = 0.05, 1.0, 1.0
# Mean and standard error of 1000 runs of a reference implementation, by t.
EXPECTED = {
    "LinUCB": {100: (49.8, 0.3), 1000: (137.4, 0.7), 10_000: (211.1, 1.0)},
    "LinTS": {100: (76.5, 0.1), 1000: (574.8, 0.9), 10_000: (1992.0, 3.0)},
    "LinTS, posterior": {100: (28.0, 0.4), 1000: (45.3, 0.7), 10_000: (78.7, 0.9)},
}
MARKS = (100, 1000, 10_000)
# LinTS receives the full horizon even if a quick run ends earlier; its law up to there is the same.
RULES = {
    "LinUCB": partial(linear.lin_ucb, delta=DELTA, norm_bound=NORM_BOUND, ridge=RIDGE),
    "LinTS": partial(linear.lin_ts, width=linear.Proved(DELTA, NORM_BOUND, HORIZON), ridge=RIDGE),
    "LinTS, posterior": partial(linear.lin_ts, width=linear.Posterior(), ridge=RIDGE),
}


def run(options: Settings) -> Report:
    horizon = HORIZON // 10 if options.quick else HORIZON
    seeds = options.seeds or (100 if options.quick else 1000)
    instance = linear.soare(6, 0.1, scale=1.0)
    times = [t for t in MARKS if t <= horizon]
    marks = sorted({*np.round(np.geomspace(10, horizon, 19)).astype(int).tolist(), *times})
    sweeps = {rule: sweep(rule, instance, options, seeds, horizon=horizon, marks=marks) for rule in RULES}
    curves = {rule: each.columns["curve.regret"] for rule, each in sweeps.items()}
    lines, off, grid = [], {}, []
    for rule, t in itertools.product(RULES, times):
        ours, (mean, se) = line(f"{rule}, t = {t}", curves[rule][:, marks.index(t)]), EXPECTED[rule][t]
        lines.append(ours)
        z = off[f"{rule}, t = {t}:"] = (ours.ours - mean) / np.hypot(ours.se, se)
        row = {"rule": rule, "t": f"{t:,}", "regret": f"{ours.ours:.1f} +- {ours.se:.1f}"}
        row |= {"expected": f"{mean:g} +- {se:g}", "z": f"{z:+.1f}"}
        grid.append(row | {"bound": f"{bound(t):,.0f}" if rule == "LinUCB" else "-", "runs": str(ours.runs)})
    last = {rule: values[:, -1].mean() for rule, values in curves.items()}
    within = f"within {STANDARD_ERRORS} standard errors of the expected regret"
    return Report(
        f"Regret on soare(6) over {horizon:,} pulls",
        lines,
        [
            between(within, off, -STANDARD_ERRORS, STANDARD_ERRORS, "+.1f"),
            all_of("LinUCB stays below the bound of its theorem", np.all(curves["LinUCB"] <= bound(marks), axis=1)),
            Claim(
                "draws from the posterior lose less than LinUCB, which loses less than LinTS",
                listed(last, ".1f"),
                last["LinTS, posterior"] < last["LinUCB"] < last["LinTS"],
            ),
        ],
        joined(sweeps, label="rule"),
        partial(draw, results=concatenate(sweeps, name="rule")),
        notes=(
            f"delta = {DELTA}, norm_bound = {NORM_BOUND:g}, ridge = {RIDGE:g}. The regret is computed from means, not "
            "from rewards. LinTS inflates the posterior as its proof requires. The posterior itself (scale = 1) has "
            "no such proof and the smallest regret.",
            "Expected figures are from a reference implementation.",
        ),
        grid=grid,
    )


def sweep(
    rule: str, instance: linear.Instance, options: Settings, seeds: int, *, horizon: int, marks: list[int]
) -> Results:
    means = instance.arms @ instance.theta
    lost = means.max() - means  # `linear.gaps` gives the best arm its lead over the second

    def regret(state: Any, decision: Decision) -> dict[str, Any]:
        return {"regret": lost @ state.counts.astype(lost.dtype)}

    def build(task: Any, key: Any) -> tuple:
        algorithm = RULES[rule](instance.arms)
        return algorithm, linear.environment(instance, algorithm), record(at=marks, value=regret)

    settings = {"options": options, "seeds": seeds, "max_rounds": horizon, "horizon": horizon}
    return simulate(f"linear regret, {horizon}: {rule}", build, **settings)


def bound(t: Any) -> np.ndarray:
    """Computes the bound of Theorem 3 of Abbasi-Yadkori, Pal and Szepesvari (2011), which holds for all t at once."""
    n, d = np.asarray(t, float), 6
    radius = np.sqrt(RIDGE) * NORM_BOUND + np.sqrt(2 * np.log(1 / DELTA) + d * np.log1p(n / (RIDGE * d)))
    return 4 * np.sqrt(n * d * np.log(RIDGE + n / d)) * radius


def draw(figure: Any, *, results: Results) -> None:
    axes = results.plot(
        y="curve.regret", band="quantiles", bound=("bound of LinUCB", bound), log="xy", ax=figure.subplots()
    )
    axes.set(xlabel="pulls", ylabel="regret (median, 5 % to 95 %)")
    axes.get_legend().remove()
    legend_below(figure, ncols=2)
