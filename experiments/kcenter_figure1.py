"""The figure on C of Jali, Karamchandani, Moharir: queries and errors of DS-UCB against the scale of its radii.

Radii are sqrt(C log(1 + (1 + log t) / delta') / t), delta = 0.1, k = 10 centers of 1000 images, first center image 0.
The figure has no printed values; from it the paper picks C = 0.1. A wrong center need not be a bad one, so the radius
of the answer is shown too, over that of greedy's: the distance of the image farthest from its nearest center.
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
from experiments.report import STYLES, Claim, Line, Report, curve, joined, line, number
from jaxbandits import Status
from jaxbandits.base import Algorithm
from jaxbandits.kcenter import Dimensions, Lil, ds_ucb

N, QUICK_N = 1000, 100
TOTAL, QUICK_TOTAL = 10_000, 500
PICKED = 0.1
SCALES = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1)
LARGE = (0.3, 1.0)  # three to six times the queries of 0.1, so there are fewer runs
# By another program on the first 1000 images, 20 runs, at 0.3 and 1 two runs.
OTHER = {
    3e-3: (1.47e4, 0.12e4),
    1e-2: (1.30e5, 0.10e5),
    3e-2: (4.32e5, 0.13e5),
    0.1: (1.262e6, 0.008e6),
    0.3: (2.95e6, 0.03e6),
    1.0: (7.77e6, 0.01e6),
}
OTHER_RADIUS, OTHER_RADIUS_RUNS = {1e-2: 1.05, 3e-2: 1.06}, 5

Cells = dict[float, Measured]  # C -> queries
Lines = dict[float, Line]  # C -> share or radius, over all instances


def add_arguments(parser: ArgumentParser) -> None:
    _kcenter.add_data_argument(parser)


def ucb(problem: Dimensions, *, radius_scale: Any, leap: int) -> Algorithm:
    """DS-UCB with radii of this scale."""
    return ds_ucb(problem, delta=_kcenter.DELTA, interval=Lil(radius_scale), leap=leap)


def run(options: Namespace) -> Report:
    n, total = (QUICK_N, QUICK_TOTAL) if options.quick else (N, TOTAL)
    runs, large = options.seeds or (8 if options.quick else 20), LARGE[:1] if options.quick else LARGE
    others = total // n - 1
    images = _kcenter.images(options, total)
    parts = {
        "small": (SCALES, schedule(n, total, first=runs, others=others, runs=2)),
        "large": (large, schedule(n, total, first=2, others=others)),
    }
    sweeps = {
        name: scheduled_runs(
            f"kcenter figure 1: {name} C, n = {n}",
            ucb,
            images,
            plan,
            settings={"radius_scale": scales},
            options=options,
        )
        for name, (scales, plan) in parts.items()
    }
    at = {
        scale: chosen(sweeps[name], sweeps[name]["setting"] == place)
        for name, (scales, _) in parts.items()
        for place, scale in enumerate(scales)
    }
    cells = {scale: measured(f"queries, C = {scale:g}", columns, unit=1.0) for scale, columns in at.items()}

    def over_instances(what: str, values: dict[float, np.ndarray]) -> Lines:
        return {
            scale: line(f"{what}, C = {scale:g}", values[scale], status=columns["status"])
            for scale, columns in at.items()
        }

    errors = over_instances("wrong", {scale: ~columns["ordered"] for scale, columns in at.items()})
    wrong_sets = over_instances("wrong set", {scale: ~columns["members"] for scale, columns in at.items()})
    radii = over_instances("radius", {scale: columns["radius"] for scale, columns in at.items()})
    first_radii = {
        scale: line(f"radius, C = {scale:g}", columns["radius"][columns["instance"] == 0])
        for scale, columns in at.items()
    }
    return Report(
        f"DS-UCB against C, n = {n}, k = 10, delta = 0.1, {images.label}",
        [cell.first for cell in cells.values()],
        claims(cells, errors, radii, first_radii, sweeps, is_real=options.data is not None and n == N),
        joined(sweeps, "part"),
        partial(draw, cells=cells, errors=errors, wrong_sets=wrong_sets, radii=radii, n=n, instances=1 + others),
        notes=(
            f"queries: means over runs on the first {n} images with standard errors, then the mean and the range over "
            f"{1 + others} instances of {n} images that share none. Ordered and as a set: the runs on the first {n} "
            "images with greedy's centers. Errors and radius: over all runs on all instances.",
            "The radius is a squared distance, over greedy's; below 1 the answer is better than greedy's. At the least "
            "C centers rest on hardly more than one number of each image, and yet their radius is "
            f"{radii[SCALES[0]].ours:.2f} times greedy's.",
        ),
        grid=grid(cells, errors, radii),
    )


def claims(
    cells: Cells,
    errors: Lines,
    radii: Lines,
    first_radii: Lines,
    sweeps: dict[str, dict[str, np.ndarray]],
    *,
    is_real: bool,
) -> list[Claim]:
    status = np.concatenate([columns["status"] for columns in sweeps.values()])
    queries, wrong = [cell.first for cell in cells.values()], list(errors.values())
    found = [
        Claim(
            "every run stops",
            f"{int((status == Status.STOPPED).sum())} of {len(status)}",
            bool((status == Status.STOPPED).all()),
        ),
        Claim("queries grow with C", ", ".join(f"{x.ours:.3g}" for x in queries), rises(queries)),
        Claim(
            "errors fall with C",
            ", ".join(f"{x.ours:.2f}" for x in wrong),
            rises([x._replace(ours=-x.ours) for x in wrong]),
        ),
        Claim(
            "small radii do err: all answers are wrong at C = 0.01 or below",
            f"{errors[1e-2].ours:.0%} at 0.01",
            all(errors[scale].ours == 1 for scale in SCALES if scale <= 1e-2),
        ),
        Claim(
            "wrong centers are nearly as good: the radius is at most 10 % above greedy's for every C",
            ", ".join(f"{radius.ours:.3f}" for radius in radii.values()),
            all(radius.ours <= 1.1 for radius in radii.values()),
        ),
    ]
    if not is_real:
        return found
    ours = {f"C = {scale:g}": cell.first for scale, cell in cells.items()} | {
        f"radius, C = {scale:g}": radius for scale, radius in first_radii.items()
    }
    # Of the other program's radii only the means of five runs are known: their spread is taken to be ours.
    other_radius = {
        f"radius, C = {scale:g}": (mean, first_radii[scale].se * np.sqrt(first_radii[scale].runs / OTHER_RADIUS_RUNS))
        for scale, mean in OTHER_RADIUS.items()
    }
    return [
        *found,
        same_as_the_other(ours, {f"C = {scale:g}": other for scale, other in OTHER.items()} | other_radius),
    ]


def grid(cells: Cells, errors: Lines, radii: Lines) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    head = ("C", "queries, first images", "+- s.e.", "ordered", "set", "instances", "errors", "radius", "runs")
    rows = [
        (
            f"{scale:g}",
            number(round(cell.first.ours)),
            number(round(cell.first.se)) if np.isfinite(cell.first.se) else "-",
            cell.ordered,
            cell.members,
            cell.range,
            f"{errors[scale].ours:.3f}",
            f"{radii[scale].ours:.3f} +- {radii[scale].se:.3f}",
            str(errors[scale].runs),
        )
        for scale, cell in cells.items()
    ]
    return head, rows


def draw(figure: Any, *, cells: Cells, errors: Lines, wrong_sets: Lines, radii: Lines, n: int, instances: int) -> None:
    figure.set_size_inches(12, 4.2)
    left, middle, right = figure.subplots(1, 3)
    scales = list(cells)
    curve(left, scales, [cell.first for cell in cells.values()], f"first {n} images", 0)
    left.fill_between(
        scales,
        [cell.instances.min() for cell in cells.values()],
        [cell.instances.max() for cell in cells.values()],
        color="#1b4f8f",
        alpha=0.12,
        lw=0,
        label="other images",
    )
    left.set(yscale="log", ylabel="queries until ten centers", title="What the radii cost")
    left.legend(loc="upper left", fontsize=9)
    for lines, label, style in ((errors, "not greedy's, in order", 1), (wrong_sets, "not greedy's, as a set", 2)):
        y, bars = means(lines)
        bars = [np.minimum(bars, y), np.minimum(bars, 1 - y)]
        middle.errorbar(scales, y, yerr=bars, label=label, mfc="w", **STYLES[style])
    middle.axhline(_kcenter.DELTA, color="k", lw=1, ls=":")
    middle.text(scales[0], _kcenter.DELTA, "delta", va="bottom", fontsize=9)
    middle.set(
        ylabel=f"share of the runs, {instances} instances", title="How often the centers are wrong", ylim=(-0.03, 1.05)
    )
    middle.legend(loc="lower left", fontsize=9, bbox_to_anchor=(0, 0.14))
    y, bars = means(radii)
    right.errorbar(scales, y, yerr=bars, mfc="w", **STYLES[3])
    right.axhline(1, color="k", lw=1, ls=":")
    right.set(ylabel="radius / radius of greedy's centers", title="Wrong centers are nearly as good")
    for axes in (left, middle, right):
        axes.set(xscale="log", xlabel="C, the scale of the squared radii")
        axes.axvline(PICKED, color="#777777", lw=1, ls="--", zorder=0)
    left.text(0.9 * PICKED, 0.03, "the paper's C", transform=left.get_xaxis_transform(), ha="right", fontsize=9)


def means(lines: Lines) -> tuple[np.ndarray, np.ndarray]:
    """Means and two standard errors."""
    return tuple(np.array([[x.ours, 2 * np.nan_to_num(x.se)] for x in lines.values()]).T)
