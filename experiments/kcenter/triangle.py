"""The triangle inequality between centers: its savings for DS-UCB, and for NS-TS on judgements of shoes. The distances
to other centers raise the lower bound of a distance, and a node is not queried against a new center that cannot be its
nearest. Points: 200 points of 1000 dimensions in 5, 10 and 20 clusters of half width 0.05, 300 different digits (with
KL intervals: their rewards vary too much for C = 0.1), 100 images; and the first 25 and 15 shoes of Zappos, if --data
has them. k = 10 (shoes: 5), delta = 0.1. This is an extension of the paper.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.claims import every_run_stops
from experiments.figures import legend_below, marks, split
from experiments.kcenter import common as runs
from experiments.kcenter.common import add_arguments as add_arguments
from experiments.report import STANDARD_ERRORS, Claim, Columns, Line, Report, joined, listed, mean_se, means, plus_minus
from experiments.settings import Settings
from jaxbandits import Outcome, kcenter
from jaxbandits.kcenter import KL, Lil, ds_ucb, ns_ts
from jaxbandits.kcenter._problem.images import DIGIT_LEVELS
from jaxbandits.kcenter._shared.triangle import tighten

KIND = "squared"  # relation of the distances to the metric
WAYS = {"without": {}, "with": {"triangle": KIND}}
LIL = Lil()
K, SHOE_K = 10, 5
CLUSTERS, CLUSTER_POINTS, CLUSTER_M, SPREAD = (5, 10, 20), 200, 1000, 0.05
DIGITS, IMAGES = 300, 100
SHOES = {25: 0, 15: 3}  # first centers, by number of shoes
MIX = 0.9  # mix of NS-TS
LIMIT = 20_000_000  # rounds on shoes

Case = dict[str, Columns]  # way -> runs of one kind of points


def run(options: Settings) -> Report:
    seeds = options.seeds or (1 if options.quick else 4)
    cases: dict[str, Case] = {}
    for g in CLUSTERS[1:2] if options.quick else CLUSTERS:
        instances = range(1 if options.quick else 3)
        points = np.concatenate([kcenter.clusters(CLUSTER_POINTS, CLUSTER_M, g, SPREAD, seed) for seed in instances])
        cases[f"{g} clusters"] = sampled(runs.as_images(points, f"{g} clusters", None), CLUSTER_POINTS, options, seeds)
    digits = kcenter.digits()
    different = np.sort(np.unique(digits, axis=0, return_index=True)[1])[:DIGITS]
    points = runs.as_images(digits[different], "digits", DIGIT_LEVELS)
    cases["digits"] = sampled(points, DIGITS, options, 3 * seeds, KL())
    if not options.quick:
        photographs = runs.images(options.data, 4 * IMAGES)
        cases[photographs.label] = sampled(photographs._replace(label="images"), IMAGES, options, seeds)
    if options.data is not None:
        cases |= {f"{n} shoes": judged(n, options, seeds) for n in list(SHOES)[: 1 if options.quick else None]}

    columns = {(name, way): sweep for name, case in cases.items() for way, sweep in case.items()}
    ratios = {name: ratio(case) for name, case in cases.items()}
    return Report(
        "The triangle inequality: queries without it and with it",
        [],
        [every_run_stops(columns.values()), *claims(cases, ratios)],
        joined(columns, "sweep"),
        partial(draw, cases=cases, ratios=ratios),
        notes=(
            "with / without: of the mean queries, with its standard error over runs. skipped: the share of arms that "
            "were never queried, because their center could not be the node's nearest. raised: the share whose lower "
            "bound is raised at the end of a run. Shoes: NS-TS with mix 0.9, and distances between which the triangle "
            "inequality holds for roots, but not throughout for the distances themselves.",
            "There is little to save. The first stage has a single center and so no triangle. Most of the cost is in "
            "separating the best nodes, by samples of their nearest centers, whose bounds the inequality does not "
            "improve.",
        ),
        grid=[row(name, case, ratios[name]) for name, case in cases.items()],
    )


def sampled(images: runs.Images, n: int, options: Settings, seeds: int, interval: Lil | KL = LIL) -> Case:
    """Runs DS-UCB on instances of n points."""
    total, m = images.points.shape
    problem = kcenter.Dimensions(n, m, K, images.levels)
    intervals = partial(kcenter.confidence, problem=problem, delta=runs.DELTA, interval=interval)
    made = partial(runs.image_runs, images=images, k=K, options=options, seeds=seeds)
    return both_ways(images.label, made, partial(ds_ucb, interval=interval), runs.blocks(n, total // n), intervals)


def judged(n: int, options: Settings, seeds: int) -> Case:
    """Runs NS-TS on the first n shoes."""
    distances, _ = runs.judgements(options.data, n)
    intervals = partial(kcenter.confidence, problem=kcenter.Distances(n, SHOE_K, "bernoulli"), delta=runs.DELTA)
    shared = {"k": SHOE_K, "first_center": SHOES[n], "max_rounds": LIMIT}
    made = partial(runs.distance_runs, distances=distances, options=options, seeds=seeds, **shared)
    return both_ways(f"{n} shoes", made, partial(ns_ts, mix=MIX), runs.blocks(n, 1), intervals)


def both_ways(name: str, made: Any, rule: Any, rows: np.ndarray, intervals: Any) -> Case:
    """Runs without and with the triangle inequality; `intervals` computes the intervals of all arms of a state."""

    def metrics(task: Any, outcome: Outcome) -> dict[str, jax.Array]:
        return effect(outcome, intervals(outcome.state))

    return {
        way: made(f"kcenter triangle: {name}, {way}", partial(rule, **settings), rows=rows, metrics=metrics)
        for way, settings in WAYS.items()
    }


def effect(outcome: Outcome, intervals: kcenter.Confidence) -> dict[str, jax.Array]:
    """Counts the arms of a finished run: all, skipped ones, and ones with a raised lower bound."""
    between, (_, lower, upper) = outcome.state.between, intervals
    nodes, slots = (jnp.arange(size) for size in lower.shape)
    # The i-th center has arms with the i centers before it, any other node with all.
    is_center = nodes[:, None] == outcome.answer.indices
    order = jnp.where(is_center.any(axis=1), jnp.argmax(is_center, axis=1), slots.size)
    arms = slots < order[:, None]
    raised = jnp.zeros_like(arms)
    if between is not None:
        held = jnp.ones(slots.size, bool)
        raised = jax.vmap(lambda low, high: tighten(between, low, high, held, KIND))(lower, upper) > lower
    return {"arms": arms.sum(), "skipped": (arms & jnp.isinf(upper)).sum(), "raised": (arms & raised).sum()}


def mean_queries(columns: Columns) -> Line:
    """Averages queries over the runs that stopped, with the instances fixed."""
    rows = [mean_se(each["pulls"]) for each in runs.by_value(runs.stopped(columns), "row").values()]
    means, errors = np.transpose(rows)
    return Line("", float(np.mean(means)), float(np.linalg.norm(errors) / len(errors)))


def ratio(case: Case) -> Line:
    """Divides mean queries with the triangle inequality by mean queries without."""
    before, after = map(mean_queries, case.values())
    factor = after.ours / before.ours
    return Line("", factor, factor * np.hypot(before.se / before.ours, after.se / after.ours))


def share(case: Case, what: str) -> float:
    """Computes the share of arms that were `skipped` (never queried) or have a `raised` lower bound at the end."""
    return case["with"][what].sum() / case["with"]["arms"].sum()


def claims(cases: dict[str, Case], ratios: dict[str, Line]) -> list[Claim]:
    clustered = {name: each for name, each in ratios.items() if "clusters" in name}
    mean = np.mean([each.ours for each in clustered.values()])
    se = np.linalg.norm(np.nan_to_num([each.se for each in clustered.values()])) / len(clustered)
    photographs = {name: each for name, each in ratios.items() if "image" in name or "crop" in name}
    return [
        Claim(
            "the centers are greedy's in every run, in order (as a set), without the triangle inequality and with it",
            ", ".join(f"{name} {', '.join(map(runs.matches, case.values()))}" for name, case in cases.items()),
            all(sweep["ordered"].all() for case in cases.values() for sweep in case.values()),
        ),
        Claim(
            f"it saves queries on clustered points, by more than {STANDARD_ERRORS} standard errors",
            f"{1 - mean:.1%} of them, +- {se:.1%}; "
            + listed({name: 1 - each.ours for name, each in clustered.items()}, ".1%"),
            mean + STANDARD_ERRORS * se < 1,
        ),
        *(
            Claim(
                f"it changes nothing on images, within {STANDARD_ERRORS} standard errors",
                f"{each.ours:.3f} +- {each.se:.3f}, {share(cases[name], 'raised'):.1%} of the lower bounds raised",
                abs(each.ours - 1) < STANDARD_ERRORS * each.se,
            )
            for name, each in photographs.items()
        ),
    ]


def row(name: str, case: Case, saved: Line) -> dict[str, str]:
    cells = {"": name, "instances": f"{case['with']['instance'].max() + 1}"}
    for way, sweep in case.items():
        cells |= {way: plus_minus(mean_queries(sweep)), f"{way}: ordered (set)": runs.matches(sweep)}
    cells["with / without"] = plus_minus(saved, 3)
    return cells | {what: f"{share(case, what):.1%}" for what in ("skipped", "raised")}


def draw(figure: Any, *, cases: dict[str, Case], ratios: dict[str, Line]) -> None:
    left, right = split(figure, (9.6, 0.5 * len(cases) + 2), 1, 2, sharey=True)
    places = np.arange(len(cases))
    bars = [2 * np.nan_to_num(each.se) for each in ratios.values()]
    left.errorbar(means(ratios.values()), places, xerr=bars, **marks(0))
    left.axvline(1, color="k", lw=1)
    left.set(xlabel="queries with / without", title="Queries", yticks=places, xlim=(0, None))
    left.set_yticklabels(list(cases))
    left.invert_yaxis()
    for style, (what, label) in enumerate({"skipped": "never queried", "raised": "lower bound raised"}.items(), 1):
        right.plot([share(case, what) for case in cases.values()], places, label=label, **marks(style))
    right.set(xlabel="share of the arms", title="Arms", xlim=(-0.03, 1.03))
    legend_below(figure, right, ncols=2)
