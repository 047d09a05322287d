"""Table I of Jali, Karamchandani, Moharir: queries of DS-UCB against delta, on 1000 images.

k = 10 centers, radius scale C = 0.1, first center image 0, images of 64 x 64 x 3 numbers. The paper names neither its
images nor its first center, and images matter more than anything else: beside the first 1000 images there are others.
How the queries grow as delta shrinks tells which union bound the paper's runs had: over n points, or over n^2 pairs as
its equation (22) prints.
"""

from argparse import ArgumentParser, Namespace
from functools import partial
from typing import Any

import numpy as np

from experiments import _kcenter
from experiments._kcenter_dimensions import (
    Measured,
    chosen,
    measured,
    rises,
    same_as_the_other,
    schedule,
    scheduled_runs,
)
from experiments.report import Claim, Report, curve, joined, verdict
from jaxbandits import Status
from jaxbandits.kcenter import Lil, ds_ucb

N, QUICK_N = 1000, 100
TOTAL, QUICK_TOTAL = 10_000, 500
UNIT = 1e4
DELTAS = (0.3, 0.2, 0.1, 0.05, 0.01, 0.005, 0.001)
PRINTED = (107, 109, 116, 123, 137, 141, 157)
# By another program on the first 1000 images, 8 runs; standard errors between 1 and 2.
OTHER = (113.5, 119.5, 124.7, 131.1, 148.5, 149.4, 163.1)
OTHER_SE = 1.5
UNIONS = {"points": "n points", "pairs": "pairs"}
GROWTH = (1.38, 1.55)  # from the largest delta to the least
GROWTH_OF_PAIRS = 1.33

Cells = dict[str, list[Measured]]  # union -> for each delta


def add_arguments(parser: ArgumentParser) -> None:
    _kcenter.add_data_argument(parser)


def run(options: Namespace) -> Report:
    n, total = (QUICK_N, QUICK_TOTAL) if options.quick else (N, TOTAL)
    runs = options.seeds or (4 if options.quick else 8)
    images = _kcenter.images(options, total)
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
    cells = {
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
    return Report(
        f"Table I of Jali et al.: queries of DS-UCB x 1e4, n = {n}, k = 10, {images.label}",
        [cell.first for row in cells.values() for cell in row],
        claims(cells, sweeps, is_real=options.data is not None and n == N),
        joined(sweeps, "union"),
        partial(draw, cells=cells, n=n),
        notes=notes(cells, n, images.label, is_real=options.data is not None),
        grid=grid(cells, n),
    )


def claims(cells: Cells, sweeps: dict[str, dict[str, np.ndarray]], *, is_real: bool) -> list[Claim]:
    stopped = [columns["status"] == Status.STOPPED for columns in sweeps.values()]
    ended, total = sum(int(s.sum()) for s in stopped), sum(map(len, stopped))
    means = np.array([cell.first.ours for cell in cells["points"]])
    found = [Claim("every run stops", f"{ended} of {total}", ended == total)]
    found.append(
        Claim(
            "queries never fall as delta shrinks (by more than four standard errors)",
            ", ".join(f"{mean:.4g}" for mean in means),
            rises([cell.first for cell in cells["points"]]),
        )
    )
    if not is_real:
        return found
    points, pairs = growth(cells["points"]), growth(cells["pairs"])
    return [
        *found,
        Claim(
            f"with n points, queries grow by a factor in {GROWTH[0]} to {GROWTH[1]} from delta = 0.3 to 0.001",
            f"{points:.3f}, the paper's {PRINTED[-1] / PRINTED[0]:.3f}",
            GROWTH[0] <= points <= GROWTH[1],
        ),
        Claim(
            f"with pairs, as equation (22) prints, by less than {GROWTH_OF_PAIRS}",
            f"{pairs:.3f}",
            pairs < GROWTH_OF_PAIRS,
        ),
        same_as_the_other(
            {str(delta): cell.first for delta, cell in zip(DELTAS, cells["points"], strict=True)},
            {str(delta): (mean, OTHER_SE) for delta, mean in zip(DELTAS, OTHER, strict=True)},
        ),
    ]


def growth(row: list[Measured]) -> float:
    """Queries at the least delta over those at the largest, on the first images."""
    return row[-1].first.ours / row[0].first.ours


def grid(cells: Cells, n: int) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    shares = "ordered", "set"
    head = ("delta", "paper", f"first {n}", *shares, "instances", "ordered", "pairs", *shares, "verdict")

    def mean(cell: Measured) -> str:
        return f"{cell.first.ours:.1f} +- {cell.first.se:.1f}"

    rows = [
        (
            str(delta),
            str(printed),
            mean(points),
            points.ordered,
            points.members,
            points.range,
            "{} of {}".format(*points.right),
            mean(pairs),
            pairs.ordered,
            pairs.members,
            verdict(points.first),
        )
        for delta, printed, points, pairs in zip(DELTAS, PRINTED, cells["points"], cells["pairs"], strict=True)
    ]
    return head, rows


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
    figure.set_size_inches(9.6, 4.4)
    left, right = figure.subplots(1, 2)
    each = np.array([cell.instances for cell in cells["points"]]) * UNIT
    left.fill_between(
        DELTAS, each.min(axis=1), each.max(axis=1), color="#1b4f8f", alpha=0.12, lw=0, label="n points, other images"
    )
    styles = {"points": 0, "pairs": 1}
    labels = {"points": "union over n points", "pairs": "over pairs, as printed"}
    for union, row in cells.items():
        lines = [cell.first for cell in row]
        curve(left, DELTAS, lines, labels[union], styles[union], scale=UNIT)
        curve(right, DELTAS, lines, labels[union], styles[union], scale=1 / lines[0].ours)
    printed = np.array(PRINTED)
    if n == N:
        left.plot(DELTAS, printed * UNIT, "kx", label="printed in the paper")
    right.plot(DELTAS, printed / printed[0], "kx", label="printed in the paper")
    left.set(ylabel="queries until ten centers", title=f"Table I: DS-UCB on {n} images")
    left.set_ylim(bottom=0)
    right.set(ylabel="queries / queries at delta = 0.3", title="The growth tells the union bound")
    for axes in (left, right):
        axes.set(xscale="log", xlabel="delta")
        axes.invert_xaxis()
    left.legend(fontsize=9, loc="lower left")
    right.legend(fontsize=9, loc="upper left")
