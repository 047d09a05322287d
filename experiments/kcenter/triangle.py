"""The triangle inequality between centers: what it saves DS-UCB, and NS-TS on judgements of shoes.

A lower bound of a distance is raised by way of the other centers, and a node is not queried against a new center that
cannot be its nearest. Points: 200 points of 1000 dimensions in 5, 10 and 20 clusters of half width 0.05, 300 different
digits (with KL intervals: their rewards vary too much for C = 0.1), 100 images; and the first 25 and 15 shoes of
Zappos, where --data has them. k = 10 (shoes: 5), delta = 0.1. An extension of the paper.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.claims import every_run_stops
from experiments.figures import legend_below, marks, split
from experiments.kcenter import common as runs
from experiments.kcenter.common import add_arguments as add_arguments
from experiments.report import STANDARD_ERRORS, Claim, Columns, Line, Report, joined, listed, mean_se, plus_minus
from experiments.settings import Settings
from jaxbandits import Outcome, Status
from jaxbandits.kcenter import KL, Dimensions, Lil, PairPull, clusters, digits, ds_ucb, ns_ts
from jaxbandits.kcenter._images import DIGIT_LEVELS
from jaxbandits.kcenter._intervals import Interval, arm_bounds, bounds_of
from jaxbandits.kcenter._samples import mean
from jaxbandits.kcenter._triangle import tighten

KIND = "squared"  # the relation of the distances and the metric
WAYS = {"without": {}, "with": {"triangle": KIND}}
LIL = Lil()
K, SHOE_K = 10, 5
CLUSTERS, CLUSTER_POINTS, CLUSTER_M, SPREAD = (5, 10, 20), 200, 1000, 0.05
DIGITS, IMAGES = 300, 100
SHOES = {25: 0, 15: 3}  # first centers, by number of shoes
MIX = 0.9  # of NS-TS
LIMIT = 20_000_000  # rounds on shoes

Bounds = Callable[[Any], tuple[jax.Array, jax.Array, jax.Array]]  # state -> counts, lower, upper, all (n, k-1)
Case = dict[str, Columns]  # way -> runs of one kind of points


class Saving(NamedTuple):
    """What became of the queries."""

    ratio: float  # with over without
    se: float
    skipped: float  # share of the first queries of all arms
    raised: float  # share of the arms whose lower bound is raised at the end


def run(options: Settings) -> Report:
    seeds = options.seeds or (1 if options.quick else 4)
    cases: dict[str, Case] = {}
    for g in CLUSTERS[1:2] if options.quick else CLUSTERS:
        instances = range(1 if options.quick else 3)
        points = np.concatenate([clusters(CLUSTER_POINTS, CLUSTER_M, g, SPREAD, seed) for seed in instances])
        cases[f"{g} clusters"] = sampled(runs.as_images(points, f"{g} clusters", None), CLUSTER_POINTS, options, seeds)
    cases["digits"] = sampled(different_digits(), DIGITS, options, 3 * seeds, interval=KL())
    if not options.quick:
        photographs = runs.images(options, 4 * IMAGES)
        cases[photographs.label] = sampled(photographs._replace(label="images"), IMAGES, options, seeds)
    if options.data is not None:
        cases |= {f"{n} shoes": judged(n, options, seeds) for n in list(SHOES)[: 1 if options.quick else None]}

    columns = {(name, way): sweep for name, case in cases.items() for way, sweep in case.items()}
    savings = {name: saving(case) for name, case in cases.items()}
    return Report(
        "The triangle inequality: queries without it and with it",
        [],
        [every_run_stops(columns.values()), *claims(cases, savings)],
        joined(columns, "sweep"),
        partial(draw, savings=savings),
        notes=(
            "with / without: of the mean queries, with its standard error over runs. skipped: the share of arms that "
            "were never queried, as their center could not be the node's nearest. raised: the share whose lower bound "
            "is raised at the end of a run. Shoes: NS-TS with mix 0.9, and distances between which the triangle "
            "inequality holds for roots, but not throughout for the distances themselves.",
            "There is little to save: the first stage has one center, and no other one to go by; and what costs most "
            "is telling the best nodes apart, by samples of their nearest centers, whose bounds are not the looser.",
        ),
        grid=[row(name, case, savings[name]) for name, case in cases.items()],
    )


def different_digits() -> runs.Images:
    points = digits()
    _, first = np.unique(points, axis=0, return_index=True)
    return runs.as_images(points[np.sort(first)[:DIGITS]], "digits", DIGIT_LEVELS)


def sampled(images: runs.Images, n: int, options: Settings, seeds: int, interval: Interval = LIL) -> Case:
    """Runs of DS-UCB on instances of n points."""
    total, m = images.points.shape
    problem = Dimensions(n, m, K, images.levels)
    bounds = bounds_of(interval, n, runs.DELTA)
    bounds = arm_bounds(bounds, problem, cap=m, scale="mean", dtype=jnp.result_type(float))

    def statistics(state: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
        return state.counts, *bounds(state.counts, state.sums)

    made = partial(runs.image_runs, images=images, k=K, options=options, seeds=seeds)
    rule = partial(ds_ucb, delta=runs.DELTA, interval=interval)
    return both_ways(images.label, made, rule, runs.blocks(n, total // n), statistics)


def judged(n: int, options: Settings, seeds: int) -> Case:
    """Runs of NS-TS on the first n shoes."""
    interval = bounds_of(KL(), n, runs.DELTA)
    distances, _ = runs.judgements(options, n)

    def statistics(state: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
        counts = state.samples.counts
        lower, upper = interval(mean(state.samples, distances.dtype), jnp.maximum(counts, 1))
        return counts, jnp.where(counts > 0, lower, 0), jnp.where(counts > 0, upper, jnp.inf)

    shared = {"k": SHOE_K, "action": PairPull, "first_center": SHOES[n], "max_rounds": LIMIT}
    made = partial(runs.distance_runs, distances=distances, options=options, seeds=seeds, **shared)
    rule = partial(ns_ts, delta=runs.DELTA, mix=MIX)
    return both_ways(f"{n} shoes", made, rule, runs.blocks(n, 1), statistics)


def both_ways(name: str, made: Callable[..., Columns], rule: Any, rows: np.ndarray, statistics: Bounds) -> Case:
    metrics = partial(effect, statistics=statistics)
    return {
        way: made(f"kcenter triangle: {name}, {way}", partial(rule, **settings), rows=rows, metrics=metrics)
        for way, settings in WAYS.items()
    }


def effect(task: Any, outcome: Outcome, *, statistics: Bounds) -> dict[str, jax.Array]:
    """How many arms there were in a finished run, skipped ones and those whose lower bound is raised."""
    state = outcome.state
    counts, lower, upper = statistics(state)
    nodes, slots = (jnp.arange(size) for size in counts.shape)
    # The i-th center has arms with the i centers before it, a node that is none with all.
    is_center = nodes[:, None] == outcome.answer.indices
    found = jnp.where(is_center.any(axis=1), jnp.argmax(is_center, axis=1), slots.size)
    arms = slots < found[:, None]
    raised = jnp.zeros_like(arms)
    if state.between is not None:
        held = jnp.ones(slots.size, bool)
        raised = jax.vmap(lambda low, high: tighten(state.between, low, high, held, KIND))(lower, upper) > lower
    return {"arms": arms.sum(), "skipped": (arms & (counts == 0)).sum(), "raised": (arms & raised).sum()}


def mean_and_se(columns: Columns) -> tuple[float, float]:
    """Of the queries of the runs that stopped; instances are given."""
    stopped = runs.chosen(columns, columns["status"] == Status.STOPPED)
    means, errors = np.transpose([mean_se(each["pulls"]) for each in runs.by_value(stopped, "row").values()])
    return float(np.mean(means)), float(np.linalg.norm(errors) / len(errors))


def saving(case: Case) -> Saving:
    (before, before_se), (after, after_se) = map(mean_and_se, case.values())
    skipped, raised = (case["with"][name].sum() / case["with"]["arms"].sum() for name in ("skipped", "raised"))
    return Saving(after / before, after / before * np.hypot(before_se / before, after_se / after), skipped, raised)


def claims(cases: dict[str, Case], savings: dict[str, Saving]) -> list[Claim]:
    clustered = {name: each for name, each in savings.items() if "clusters" in name}
    mean = np.mean([each.ratio for each in clustered.values()])
    se = np.linalg.norm([np.nan_to_num(each.se) for each in clustered.values()]) / len(clustered)
    photographs = [each for name, each in savings.items() if "image" in name or "crop" in name]
    return [
        Claim(
            "the centers are greedy's in every run, in order (as a set), without the triangle inequality and with it",
            ", ".join(f"{name} {', '.join(map(runs.matches, case.values()))}" for name, case in cases.items()),
            all(sweep["ordered"].all() for case in cases.values() for sweep in case.values()),
        ),
        Claim(
            f"it saves queries on clustered points, by more than {STANDARD_ERRORS} standard errors",
            f"{1 - mean:.1%} of them, +- {se:.1%}; "
            + listed({name: 1 - each.ratio for name, each in clustered.items()}, ".1%"),
            mean + STANDARD_ERRORS * se < 1,
        ),
        *(
            Claim(
                f"it changes nothing on images, within {STANDARD_ERRORS} standard errors",
                f"{each.ratio:.3f} +- {each.se:.3f}, {each.raised:.1%} of the lower bounds raised",
                abs(each.ratio - 1) < STANDARD_ERRORS * each.se,
            )
            for each in photographs
        ),
    ]


def row(name: str, case: Case, saved: Saving) -> dict[str, str]:
    cells = {"": name, "instances": f"{case['with']['instance'].max() + 1}"}
    for way, sweep in case.items():
        cells |= {way: plus_minus(Line("", *mean_and_se(sweep))), f"{way}: ordered (set)": runs.matches(sweep)}
    ratio = plus_minus(Line("", saved.ratio, saved.se), 3)
    return cells | {"with / without": ratio, "skipped": f"{saved.skipped:.1%}", "raised": f"{saved.raised:.1%}"}


def draw(figure: Any, *, savings: dict[str, Saving]) -> None:
    left, right = split(figure, (9.6, 0.5 * len(savings) + 2), 1, 2, sharey=True)
    places, values = np.arange(len(savings)), list(savings.values())
    bars = [2 * np.nan_to_num(each.se) for each in values]
    left.errorbar([each.ratio for each in values], places, xerr=bars, **marks(0))
    left.axvline(1, color="k", lw=1)
    left.set(xlabel="queries with / without", title="Queries", yticks=places, xlim=(0, None))
    left.set_yticklabels(list(savings))
    left.invert_yaxis()
    right.plot([each.skipped for each in values], places, label="never queried", **marks(1))
    right.plot([each.raised for each in values], places, label="lower bound raised", **marks(2))
    right.set(xlabel="share of the arms", title="Arms", xlim=(-0.03, 1.03))
    legend_below(figure, right, ncols=2)
