"""Table I of Jali, Karamchandani, Moharir: queries of DS-UCB against delta, on 1000 images.

k = 10 centers, radius scale C = 0.1, first center image 0, images of 64 x 64 x 3 numbers. The paper names neither its
images nor its first center, and images matter more than anything else: beside the first 1000 images there are others.
How the queries grow as delta shrinks tells which union bound the paper's runs had: over n points, or over n^2 pairs as
its equation (22) prints.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments.claims import below, between, every_run_stops, rises
from experiments.figures import band, curve, split
from experiments.kcenter import common
from experiments.kcenter.common import add_arguments as add_arguments
from experiments.kcenter.sampling import Columns, Measured, chosen, mean, measured, schedule, scheduled_runs
from experiments.papers import printed
from experiments.report import Claim, Report, joined, listed, verdict
from experiments.settings import Settings
from jaxbandits.kcenter import Lil, ds_ucb

N, QUICK_N = 1000, 100
TOTAL, QUICK_TOTAL = 10_000, 500
UNIT = 1e4
DELTAS, PRINTED = zip(*printed("kcenter", "table1"), strict=True)
UNIONS = {"points": "n points", "pairs": "pairs"}
GROWTH = (1.38, 1.55)  # from the largest delta to the least
GROWTH_OF_PAIRS = 1.33

Cells = dict[str, list[Measured]]  # union -> for each delta


def run(options: Settings) -> Report:
    n, total = (QUICK_N, QUICK_TOTAL) if options.quick else (N, TOTAL)
    runs = options.seeds or (4 if options.quick else 8)
    images = common.images(options, total)
    plans = {
        "points": schedule(n, total, first=runs, others=total // n - 1),
        "pairs": schedule(n, total, first=(runs + 1) // 2),
    }
    sweeps = {
        union: scheduled_runs(
            f"kcenter table 1: {union}, n = {n}",
            partial(ds_ucb, interval=Lil(union=union)),
            images,
            plan,
            settings={"delta": DELTAS},
            options=options,
        )
        for union, plan in plans.items()
    }
    cells: Cells = {
        union: [
            measured(
                f"{UNIONS[union]}, delta {delta}",
                chosen(columns, columns["setting"] == place),
                unit=UNIT,
                printed=PRINTED[place] if n == N else None,
            )
            for place, delta in enumerate(DELTAS)
        ]
        for union, columns in sweeps.items()
    }
    is_real = options.data is not None
    return Report(
        f"Table I of Jali et al.: queries of DS-UCB x 1e4, n = {n}, k = 10, {images.label}",
        [cell.first for row in cells.values() for cell in row],
        claims(cells, sweeps, is_real=is_real and n == N),
        joined(sweeps, "union"),
        partial(draw, cells=cells, n=n),
        notes=notes(cells, n, images.label, is_real=is_real),
        grid=[
            {
                "delta": str(delta),
                "paper": str(number),
                f"first {n}": mean(points),
                "ordered": points.ordered,
                "set": points.members,
                "instances": points.range,
                "instances, ordered": "{} of {}".format(*points.right),
                "pairs": mean(pairs),
                "pairs, ordered": pairs.ordered,
                "pairs, set": pairs.members,
                "verdict": verdict(points.first),
            }
            for delta, number, points, pairs in zip(DELTAS, PRINTED, cells["points"], cells["pairs"], strict=True)
        ],
    )


def claims(cells: Cells, sweeps: dict[str, Columns], *, is_real: bool) -> list[Claim]:
    rising = "queries never fall as delta shrinks (by more than four standard errors)"
    lines = [cell.first for cell in cells["points"]]
    found = [every_run_stops(sweeps.values()), Claim(rising, listed((x.ours for x in lines), ".4g"), rises(lines))]
    points, pairs = (row[-1].first.ours / row[0].first.ours for row in cells.values())
    if is_real:
        by = "queries grow by a factor in {} to {} from delta = 0.3 to 0.001".format(*GROWTH)
        paper = f", the paper's {PRINTED[-1] / PRINTED[0]:.3f}"
        found += [
            between(f"with n points, {by}", [points], *GROWTH, ".3f", paper),
            below(f"with pairs, as (22) prints, by less than {GROWTH_OF_PAIRS}", [pairs], GROWTH_OF_PAIRS, ".3f"),
        ]
    return found


def notes(cells: Cells, n: int, label: str, *, is_real: bool) -> tuple[str, ...]:
    each = np.array([cell.instances for cell in cells["points"]])
    factors = each[-1] / each[0]
    first = cells["points"][0].first
    return (
        f"first {n}: the mean of {first.runs} runs on the first {n} images with its standard error. instances: the "
        f"mean over {each.shape[1]} instances of {n} images that share none, and their range. The verdict compares the "
        "first images with the paper's, which are another instance: it allows for what instances differ.",
        f"Growth from delta = 0.3 to 0.001 over these instances: {factors.mean():.2f} ({factors.min():.2f} to "
        f"{factors.max():.2f}). The law of the radii allows at most a factor 1.33 with pairs, so the paper's runs had "
        "a union over n points at most. That is not proved to err with probability at most delta, nor is C = 0.1.",
        *([] if is_real else [f"The paper's images are Tiny ImageNet, these are {label}."]),
    )


def draw(figure: Any, *, cells: Cells, n: int) -> None:
    left, right = split(figure, (9.6, 4.4), 1, 2)
    each = np.array([cell.instances for cell in cells["points"]]) * UNIT
    band(left, DELTAS, each.min(axis=1), each.max(axis=1), label="n points, other images")
    for style, (row, label) in enumerate(
        zip(cells.values(), ("union over n points", "over pairs, as printed"), strict=True)
    ):
        lines = [cell.first for cell in row]
        curve(left, DELTAS, lines, label, style, scale=UNIT)
        curve(right, DELTAS, lines, label, style, scale=1 / lines[0].ours)
    if n == N:
        left.plot(DELTAS, np.multiply(PRINTED, UNIT), "kx", label="printed in the paper")
    right.plot(DELTAS, np.divide(PRINTED, PRINTED[0]), "kx", label="printed in the paper")
    left.set(ylabel="queries until ten centers", title=f"Table I: DS-UCB on {n} images", ylim=(0, None))
    right.set(ylabel="queries / queries at delta = 0.3", title="The growth tells the union bound")
    for axes in (left, right):
        axes.set(xscale="log", xlabel="delta")
        axes.invert_xaxis()
    left.legend(fontsize=9, loc="lower left")
    right.legend(fontsize=9, loc="upper left")
