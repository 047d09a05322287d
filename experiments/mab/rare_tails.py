"""Runs that do not end: the tail of the stopping time of four rules, far beyond what plain runs reach.

TTUCB's tail falls exponentially. EB-TC may starve an arm for ever, and its tail falls like a power of the number of
pulls; Track-and-Stop and EB-TCI starve one rarely. Plain runs are drawn beside, as far as they reach.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments.mab import common, weighted
from experiments.report import Claim, Report, listed
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import mab
from jaxbandits.numerics import thresholds
from jaxbandits.rare import RareResult

RULES = ("TTUCB", "TaS, D", "EB-TCI", "EB-TC")
TIMES = (2_000, 4_000, 8_000, 12_000, 16_000)
PLAIN = 100_000  # runs

Cell = tuple[str, int]  # rule, pulls


def run(options: Settings) -> Report:
    rules = RULES[::3] if options.quick else RULES
    times = TIMES[:3:2] if options.quick else TIMES
    plain = options.seeds or (2_000 if options.quick else PLAIN)
    instance = mab.gauss4()
    builds = {rule: weighted.building(rule, thresholds.gk16) for rule in rules}
    cases = {
        (rule, pulls): weighted.Case(f"mab rare tails, {rule}, {pulls}", build, instance, common.DELTA, pulls)
        for rule, build in builds.items()
        for pulls in times
    }
    results = weighted.estimates(cases, options)
    lengths = {
        rule: plain_lengths(rule, build, instance, options=options, seeds=plain, longest=times[-1] + 1)
        for rule, build in builds.items()
    }
    observed = {key: (float(np.mean(lengths[key[0]] > key[1])), len(lengths[key[0]])) for key in results}
    return Report(
        "The tail of the stopping time on four Gaussian arms, delta = 0.1, threshold gk16",
        [],
        claims(results, observed),
        weighted.columns_of(results, ("rule", "pulls")),
        partial(draw, results=results, observed=observed),
        notes=(f"Plain: the share of {plain:,} runs.", *weighted.warnings_of(results)),
        grid=[
            {"rule": rule}
            | {
                f"T > {pulls:,}": f"{weighted.shown(results[rule, pulls])} ({observed[rule, pulls][0]:.2g} plain)"
                for pulls in times
            }
            for rule in rules
        ],
    )


def plain_lengths(rule: str, build: Any, instance: mab.Instance, *, options: Settings, seeds: int, longest: int) -> Any:
    """Runs a rule plainly; returns the pulls of every run, `longest` if it is censored."""
    results = simulate(
        f"mab rare tails, plain, {rule}",
        lambda task, key: build(instance._replace(means=task["means"]), key, common.DELTA),
        {"means": jnp.asarray(instance.means)[None]},
        options=options,
        seeds=seeds,
        max_rounds=longest,
    )
    return results.columns["pulls"]


def claims(results: dict[Cell, RareResult], observed: dict[Cell, tuple[float, int]]) -> list[Claim]:
    z = {}
    for key, (share, runs) in observed.items():
        if share * runs >= 20:
            error = np.hypot(results[key].se, np.sqrt(share * (1 - share) / runs))
            z[f"{key[0]}, {key[1]:,}"] = (results[key].estimate - share) / error
    rates = {}
    for rule in dict.fromkeys(rule for rule, _ in results):
        last = [(pulls, each.estimate) for (name, pulls), each in results.items() if name == rule][-2:]
        (t0, p0), (t1, p1) = last
        rates[rule] = 1000 * np.log(p0 / p1) / (t1 - t0)
    return [
        Claim(
            "estimates agree with plain runs where these reach; in standard errors",
            listed(z, "+.1f"),
            len(z) > 0 and max(map(abs, z.values())) < 4,
        ),
        Claim(
            "EB-TC's tail falls slowest; decay of log P(T > t) per 1,000 pulls at the end",
            listed(rates, ".2f"),
            min(rates, key=rates.__getitem__) == "EB-TC",
        ),
    ]


def draw(figure: Any, *, results: dict[Cell, RareResult], observed: dict[Cell, tuple[float, int]]) -> None:
    axes = figure.subplots()
    for n, rule in enumerate(dict.fromkeys(rule for rule, _ in results)):
        cells = {pulls: each for (name, pulls), each in results.items() if name == rule}
        weighted.draw_estimates(axes, cells, label=rule, style=n)
        reached = [(pulls, observed[rule, pulls][0]) for pulls in cells if observed[rule, pulls][0] > 0]
        if reached:
            label = "plain runs" if n == 0 else None
            axes.plot(*zip(*reached, strict=True), "x", color="k", ms=8, label=label)
    axes.set(yscale="log", xlabel="pulls t", ylabel="P(T > t)", title="Four Gaussian arms, delta = 0.1, gk16")
    axes.legend()
