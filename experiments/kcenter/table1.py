"""Table I of Jali, Karamchandani, Moharir: queries of DS-UCB against delta, on 1000 images.

k = 10 centers, radius scale C = 0.1, first center image 0, images of 64 x 64 x 3 numbers. The growth of the queries as
delta shrinks identifies the union bound of the paper's runs: over n points, or over n^2 pairs as in its equation (22).
"""

from functools import partial
from typing import Any

import numpy as np

from experiments.claims import below, between, every_run_stops, grows
from experiments.figures import curve, split
from experiments.kcenter import common
from experiments.kcenter.common import add_arguments as add_arguments
from experiments.kcenter.sampling import Measured, draw_instances, mean, measured, scheduled_runs
from experiments.papers import printed
from experiments.report import Claim, Report, joined, verdict
from experiments.settings import Settings
from jaxbandits.kcenter import Lil, ds_ucb

SIZE, QUICK_SIZE = (1000, 10_000), (100, 500)  # images of an instance, and in all
UNIT = 1e4
DELTAS, PRINTED = zip(*printed("kcenter", "table1"), strict=True)
GROWTH = (1.38, 1.55)  # range of the growth from the largest delta to the smallest
GROWTH_OF_PAIRS = 1.33


def run(options: Settings) -> Report:
    n, total = QUICK_SIZE if options.quick else SIZE
    is_full, runs = not options.quick, options.seeds or (4 if options.quick else 8)
    images = common.images(options.data, total)
    plans = {"points": {"first": runs, "others": total // n - 1}, "pairs": {"first": (runs + 1) // 2}}
    sweeps, cells = {}, {}
    for union, plan in plans.items():
        heading, rule = f"kcenter table 1: {union}, n = {n}", partial(ds_ucb, interval=Lil(union=union))
        columns = scheduled_runs(heading, rule, images, n, settings={"delta": DELTAS}, options=options, **plan)
        label = "n points" if union == "points" else union
        sweeps[union] = columns
        cells[union] = [
            measured(f"{label}, delta {delta}", runs, unit=UNIT, printed=paper if is_full else None)
            for (delta, runs), paper in zip(common.by_value(columns, "delta").items(), PRINTED, strict=True)
        ]
    rising = "queries never fall as delta shrinks (by more than four standard errors)"
    claims = [every_run_stops(sweeps.values()), grows(rising, [cell.line for cell in cells["points"]], ".4g")]
    growth = cells["points"][-1].instances / cells["points"][0].instances
    return Report(
        f"Table I of Jali et al.: queries of DS-UCB x 1e4, n = {n}, k = 10, {images.label}",
        [cell.line for row in cells.values() for cell in row],
        claims + (growth_claims(**cells) if options.data is not None and is_full else []),
        joined(sweeps, "union"),
        partial(draw, cells=cells, n=n, is_full=is_full),
        notes=(
            f"first {n}: the mean of {cells['points'][0].line.runs} runs on the first {n} images with its standard "
            f"error. instances: the mean over {len(growth)} instances of {n} images that share none, and their range. "
            "The verdict compares the first images with the paper's, which are another instance, and allows for the "
            "spread between instances. Ordered (set): runs with greedy's centers in order (as a set).",
            "Growth from delta = 0.3 to 0.001 over these instances: "
            f"{common.spread(growth, '{:.2f}'.format, np.mean)}. With pairs, the law of the radii allows at most a "
            "factor 1.33, so the paper's runs had a union over at most n points. Neither that union nor C = 0.1 is "
            "proved to err with probability at most delta.",
            *common.on_images(options, images),
        ),
        grid=[
            {
                "delta": str(delta),
                "paper": str(number),
                f"first {n}": mean(points),
                "ordered (set)": common.matches(points.first),
                "instances": points.spread,
                "instances, ordered": points.right,
                "pairs": mean(pairs),
                "pairs, ordered (set)": common.matches(pairs.first),
                "verdict": verdict(points.line),
            }
            for delta, number, points, pairs in zip(DELTAS, PRINTED, cells["points"], cells["pairs"], strict=True)
        ],
    )


def growth_claims(points: list[Measured], pairs: list[Measured]) -> list[Claim]:
    ours = {union: row[-1].line.ours / row[0].line.ours for union, row in (("points", points), ("pairs", pairs))}
    by = "queries grow by a factor in {} to {} from delta = 0.3 to 0.001".format(*GROWTH)
    paper = f", the paper's {PRINTED[-1] / PRINTED[0]:.3f}"
    return [
        between(f"with n points, {by}", [ours["points"]], *GROWTH, ".3f", paper),
        below(f"with pairs, as (22) prints, by less than {GROWTH_OF_PAIRS}", [ours["pairs"]], GROWTH_OF_PAIRS, ".3f"),
    ]


def draw(figure: Any, *, cells: dict[str, list[Measured]], n: int, is_full: bool) -> None:
    left, right = split(figure, (9.6, 4.4), 1, 2)
    draw_instances(left, DELTAS, cells["points"], "n points, other images", scale=UNIT)
    for style, (label, row) in enumerate(
        zip(("union over n points", "over pairs, as printed"), cells.values(), strict=True)
    ):
        lines = [cell.line for cell in row]
        curve(left, DELTAS, lines, label, style, scale=UNIT)
        curve(right, DELTAS, lines, label, style, scale=1 / lines[0].ours)
    if is_full:
        left.plot(DELTAS, np.multiply(PRINTED, UNIT), "kx", label="printed in the paper")
    right.plot(DELTAS, np.divide(PRINTED, PRINTED[0]), "kx", label="printed in the paper")
    left.set(ylabel="queries until ten centers", title=f"Table I: DS-UCB on {n} images", ylim=(0, None))
    right.set(ylabel="queries / queries at delta = 0.3", title="The growth identifies the union bound")
    for axes, corner in ((left, "lower left"), (right, "upper left")):
        axes.set(xscale="log", xlabel="delta")
        axes.invert_xaxis()
        axes.legend(fontsize=9, loc=corner)
