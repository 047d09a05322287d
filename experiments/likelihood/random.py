"""A thousand random instances, one run of every rule on each, compared in pairs.

Twenty uniform unit vectors in six dimensions, of which the closest two compete (Tao et al., 2018): one seed, one
instance. A result on Soare's instance need not hold on these. All instances are rows of one sweep; Lazy
Track-and-Stop, which finds a spanner on the host, is not among the rules.
"""

from functools import partial
from typing import Any

import jax
import numpy as np

from experiments import study
from experiments.figures import STYLES, legend_below, split
from experiments.likelihood import common
from experiments.report import STANDARD_ERRORS, Claim, Report, listed, mean_se
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, linear
from jaxbandits.base import Outcome
from jaxbandits.numerics import thresholds

DELTA, K, D = 0.1, 20, 6
RULES = ("LinGapE", "L-T3C", "FWS", "LinGame", "uniform")
PIVOT = "FWS"
AT = (0.05, 0.25, 0.5, 0.75, 0.95)


def run(options: Settings, *, delta: float = DELTA) -> Report:
    number = options.seeds or (50 if options.quick else 1000)
    instances = [linear.sphere_pair(seed, K, D) for seed in range(number)]
    table = {"arms": np.array([each.arms for each in instances]), "theta": np.array([each.theta for each in instances])}
    times = times_of(table)
    cells = study.crossed({"rule": RULES}, partial(runs, table=table, options=options, number=number, delta=delta))
    ratios = {rule: columns["pulls"] / (times * float(common.kl(delta))) for (rule,), columns in cells.cells.items()}
    wrong = study.errors(cells)
    logs = {rule: np.log(ratios[rule] / ratios[PIVOT]) for rule in RULES if rule != PIVOT}
    report = study.report(
        f"{number:,} random instances, sphere_pair(K = {K}, d = {D}), delta = {delta}",
        cells,
        [
            study.stops(cells),
            common.confident(common.counts_of(cells, delta)),
            above_bound(ratios),
            *(dearer(rule, logs[rule]) for rule in ("LinGame", "uniform")),
        ],
        draw=partial(draw, ratios=ratios, times=times),
        notes=(
            f"T* lies between {times.min():,.0f} and {times.max():,.0f}, median {np.median(times):,.0f}. gk16 for all: "
            f"a heuristic. Pairs: the geometric mean of pulls over the pulls of {PIVOT} on the same instance.",
        ),
        grid=[row_of(rule, ratios[rule], logs.get(rule), wrong[rule,]) for rule in RULES],
    )
    return report._replace(lines=[], columns={**report.columns, "time": np.tile(times, len(RULES))})


def times_of(table: dict[str, np.ndarray]) -> np.ndarray:
    """Computes the certified lower end of T* of every instance."""

    def time(instance: dict[str, Any]) -> Any:
        return linear.characteristic_time(instance["arms"], instance["theta"], steps=2000).lower

    return np.asarray(jax.jit(partial(jax.lax.map, time, batch_size=100))(table))


def runs(rule: str, table: dict[str, np.ndarray], options: Settings, number: int, delta: float) -> Results:
    """Makes one run on every instance. All rules share the noise."""
    factory = common.by_ratios(rule, thresholds.gk16(arms=K))

    def build(task: Any, key: Any) -> tuple:
        algorithm = factory(task["arms"], delta=delta)
        instance = linear.Instance(task["arms"], task["theta"], 1.0)
        return algorithm, linear.environment(instance, algorithm)

    def metrics(task: Any, outcome: Outcome) -> dict[str, Any]:
        return {"wrong": ~linear.is_right(linear.Instance(task["arms"], task["theta"], 1.0), outcome.answer)}

    shared = {"options": options, "seeds": 1, "max_rounds": common.LONGEST, "metrics": metrics}
    return simulate(f"linear2 random, {number}: {rule}", build, table, noise=f"linear2 random, {number}", **shared)


def row_of(rule: str, ratios: np.ndarray, logs: np.ndarray | None, wrong: tuple[int, int]) -> dict[str, str]:
    mean, se = mean_se(ratios)
    against = "1" if logs is None else "{:.3f} +- {:.3f}".format(*geometric(logs))
    quantiles = np.quantile(ratios, AT)
    return (
        {"rule": rule, "pulls / (T* kl)": f"{mean:.2f} +- {se:.2f}"}
        | {f"{q:.0%}": f"{value:.2f}" for q, value in zip(AT, quantiles, strict=True)}
        | {f"/ {PIVOT}": against, "wrong": common.shown(*wrong)}
    )


def geometric(logs: np.ndarray) -> tuple[float, float]:
    """Computes the geometric mean of ratios and its standard error."""
    mean, se = mean_se(logs)
    return float(np.exp(mean)), float(np.exp(mean) * se)


def above_bound(ratios: dict[str, np.ndarray]) -> Claim:
    """Claims that the lower bound, which holds for means, holds for the mean over instances."""
    means = {rule: mean_se(each) for rule, each in ratios.items()}
    return Claim(
        "the mean of pulls / (T* kl) is not below 1",
        listed({rule: mean for rule, (mean, _) in means.items()}, ".2f"),
        all(mean + STANDARD_ERRORS * se >= 1 for mean, se in means.values()),
    )


def dearer(rule: str, logs: np.ndarray) -> Claim:
    mean, se = geometric(logs)
    return Claim(
        f"{rule} needs more pulls than {PIVOT} on the same instances",
        f"{mean:.2f} +- {se:.2f} times; on {np.mean(logs > 0):.0%} of the instances",
        mean - STANDARD_ERRORS * se > 1,
    )


def draw(figure: Any, *, ratios: dict[str, np.ndarray], times: np.ndarray) -> None:
    left, right = split(figure, (9.6, 4.6), 1, 2)
    share = (np.arange(len(times)) + 0.5) / len(times)
    for rule, style in zip(RULES, STYLES, strict=False):
        drawn = style | {"marker": ""}
        left.plot(np.sort(ratios[rule]), share, label=rule, **drawn)
        if rule != PIVOT:
            right.plot(np.sort(ratios[rule] / ratios[PIVOT]), share, **drawn)
    left.axvline(1, color="k", lw=1)
    right.axvline(1, color="k", lw=1)
    left.set(xscale="log", xlabel="pulls / (T* kl)", ylabel="share of the instances below")
    right.set(xscale="log", xlabel=f"pulls / pulls of {PIVOT}, same instance")
    legend_below(figure, left, ncols=5)
