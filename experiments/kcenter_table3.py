"""Table III of Jali, Karamchandani, Moharir: queries of DS-TS on images, by the share of posterior draws.

DS-TS queries the leader against the slot of the least posterior draw with probability `mix`, else against that of the
least lower bound: mix = 1, 0.99 and 0. delta = 0.1, Bernoulli KL intervals with a union over pairs, first center image
0, images of 64 x 64 x 3 numbers. Fewer centers are found on the way to ten, so one run tells the queries of every k.
DS-UCB with its own radii stands beside. Runs of 5000 and 10,000 images take long: --up-to says where to end.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments import _kcenter
from experiments._kcenter import Images
from experiments._kcenter_dimensions import (
    K,
    Measured,
    measured,
    same_as_the_other,
    schedule,
    scheduled_runs,
)
from experiments.kcenter_table2 import KS
from experiments.kcenter_table2 import PRINTED as PRINTED_UCB
from experiments.report import STYLES, Claim, Report, curve, joined, number
from jaxbandits import Status
from jaxbandits.kcenter import ds_ts, ds_ucb, pairwise_sums


class Size(NamedTuple):
    """How many runs a number of images gets."""

    first: int  # on the first n images, of each mix
    others: int = 0  # other instances, a run each of DS-UCB and of DS-TS with the paper's mix


MIXES = (1.0, 0.99, 0.0)
MIX = 0.99  # the paper's choice
SIZES = {100: Size(5, 4), 500: Size(5), 1000: Size(5), 5000: Size(2), 10_000: Size(1)}
QUICK_SIZES = {50: Size(2, 1)}
QUICK_STEP = 16  # of an image's numbers, every so many-th is left
UP_TO = 1000
BY_K = 1000  # the n for which k varies
UNIT, UNIT_UCB = 1e4, 1e5
LEAP = 1  # dimensions drawn each round: every further one brings posterior draws, and DS-TS often changes its slot
# For mix 1, 0.99 and 0.
PRINTED = {
    (100, 10): (271, 268, 286),
    (500, 10): (305, 287, 357),
    (1000, 10): (450, 431, 588),
    (5000, 10): (1309, 1305, 1869),
    (10_000, 10): (2107, 2113, 3057),
    (1000, 3): (75, 75, 85),
    (1000, 5): (166, 165, 195),
    (1000, 7): (271, 267, 327),
}
# By another program on the first n images: means, and of how many runs.
OTHER = {
    (100, 10): ((191, 180, 191.7), 5),
    (500, 10): ((363.9, 356, 439), 2),
    (1000, 10): ((476, 464, 598), 2),
    (5000, 10): ((None, 1090, None), 1),
    (1000, 3): ((159, 161, 165), 2),
    (1000, 5): ((230, 227, 269), 2),
    (1000, 7): ((334, 332, 414), 2),
}
LARGE = 500  # images from which on the claims on mixes hold
GAIN = (1.15, 1.5)  # queries with mix 0 over those with 0.99
COST = (2.0, 5.0)  # queries of DS-TS over those of DS-UCB

Place = tuple[int, int]  # (n, k)
Cells = dict[str, dict[Place, Measured]]  # rule -> by n and k
Sweeps = dict[tuple[str, int], dict[str, np.ndarray]]  # (rule, n) -> columns
UCB = "DS-UCB"


def add_arguments(parser: ArgumentParser) -> None:
    _kcenter.add_data_argument(parser)
    add_up_to(parser)


def add_up_to(parser: ArgumentParser) -> None:
    parser.add_argument("--up-to", type=int, default=UP_TO, metavar="N", help="the most images of a run (%(default)s)")


def run(options: Namespace) -> Report:
    sizes = sizes_of(options)
    images = images_of(options, sizes)
    sweeps: Sweeps = {}
    for n, size in sizes.items():
        for mix in MIXES:
            sweeps[name(mix), n] = thompson_runs(n, size, mix, images, options)
        sweeps[UCB, n] = scheduled_runs(
            f"kcenter table 3: DS-UCB, n = {n}",
            partial(ds_ucb, delta=_kcenter.DELTA),
            images,
            schedule(n, len(images.points), first=2 * (options.seeds or size.first), others=size.others),
            options=options,
        )
    places = places_of(sizes)
    cells = {name(mix): cells_of(sweeps, name(mix), places, UNIT, mix) for mix in MIXES}
    cells[UCB] = cells_of(sweeps, UCB, places, UNIT_UCB)
    return Report(
        f"Table III of Jali et al.: queries of DS-TS x 1e4 until k centers of n images, {images.label}",
        [cell.first for row in cells.values() for cell in row.values()],
        claims(cells, sweeps, is_real=options.data is not None and not options.quick),
        joined({f"{rule}, n = {n}": columns for (rule, n), columns in sweeps.items()}, "sweep"),
        partial(draw, cells=cells, sweeps=sweeps),
        notes=notes(cells),
        grid=grid(cells, compare=options.data is not None),
    )


def sizes_of(options: Namespace) -> dict[int, Size]:
    return QUICK_SIZES if options.quick else {n: size for n, size in SIZES.items() if n <= options.up_to}


def images_of(options: Namespace, sizes: dict[int, Size]) -> Images:
    """As many as make the instances of the smallest size disjoint."""
    count = max(max(sizes), min(n * (1 + size.others) for n, size in sizes.items()))
    images = _kcenter.images(options, count)
    if not options.quick:
        return images
    points = images.points[:, ::QUICK_STEP]
    return Images(points, pairwise_sums(points), f"{images.label}, one number of {QUICK_STEP}")


def places_of(sizes: dict[int, Size]) -> list[Place]:
    return [(n, K) for n in sizes] + [(BY_K, k) for k in KS if BY_K in sizes]


def name(mix: float) -> str:
    return f"mix {mix:g}"


def thompson_runs(n: int, size: Size, mix: float, images: Images, options: Namespace) -> dict[str, np.ndarray]:
    """Runs of DS-TS; those of the paper's mix on other instances, too."""
    others = size.others if mix == MIX else 0
    return scheduled_runs(
        f"kcenter DS-TS, mix {mix:g}: n = {n}",
        partial(ds_ts, delta=_kcenter.DELTA, mix=mix),
        images,
        schedule(n, len(images.points), first=options.seeds or size.first, others=others),
        options=options,
        leap=LEAP,
    )


def cells_of(
    sweeps: Sweeps,
    rule: str,
    places: Sequence[Place],
    unit: float,
    mix: float | None = None,
) -> dict[Place, Measured]:
    """What a rule took, by n and k, beside what the paper printed."""

    def printed(place: Place) -> float | None:
        if place not in PRINTED:
            return None
        return PRINTED_UCB[place] if mix is None else PRINTED[place][MIXES.index(mix)]

    return {
        (n, k): measured(f"{rule}: n = {n}, k = {k}", sweeps[rule, n], unit=unit, k=k, printed=printed((n, k)))
        for n, k in places
    }


def quotients(cells: Cells, above: str, below: str, least: int = 0) -> dict[Place, float]:
    """Mean queries of one rule over another's on the same first images, for ten centers of at least so many."""
    units = {UCB: UNIT_UCB}
    return {
        (n, k): cell.first.ours * units.get(above, UNIT) / cells[below][n, k].first.ours / units.get(below, UNIT)
        for (n, k), cell in cells[above].items()
        if k == K and n >= least
    }


def shown(values: dict[Place, float]) -> str:
    return ", ".join(f"{value:.3f} (n = {n:,})" for (n, _), value in values.items())


def claims(cells: Cells, sweeps: Sweeps, *, is_real: bool) -> list[Claim]:
    status = np.concatenate([columns["status"] for columns in sweeps.values()])
    stopped = int((status == Status.STOPPED).sum())
    found = [Claim("every run stops", f"{stopped} of {len(status)}", stopped == len(status))]
    for label, is_one in (("DS-TS", lambda rule: rule != UCB), (UCB, lambda rule: rule == UCB)):
        claim = _kcenter.greedy_was_found([columns for (rule, _), columns in sweeps.items() if is_one(rule)])
        found.append(claim._replace(statement=f"{label}: {claim.statement}"))
    if not is_real:
        return found
    one, paper, none = (name(mix) for mix in MIXES)
    less, more = quotients(cells, paper, one, LARGE), quotients(cells, one, none, LARGE)
    gain, cost = quotients(cells, none, paper, LARGE), quotients(cells, paper, UCB)
    if gain:
        found += [
            Claim(f"mix 0.99 takes no more queries than mix 1 for n >= {LARGE}", shown(less), max(less.values()) <= 1),
            Claim(f"mix 1 takes fewer queries than mix 0 for n >= {LARGE}", shown(more), max(more.values()) < 1),
            Claim(
                f"mix 0 takes {GAIN[0]} to {GAIN[1]} times the queries of mix 0.99 for n >= {LARGE}",
                f"{shown(gain)}; in the paper {shown(paper_gain(gain))}",
                all(GAIN[0] <= value <= GAIN[1] for value in gain.values()),
            ),
        ]
    return [
        *found,
        Claim(
            f"DS-TS takes {COST[0]:g} to {COST[1]:g} times the queries of DS-UCB",
            f"{shown(cost)}; in the paper {shown(paper_cost(cost))}",
            all(COST[0] <= value <= COST[1] for value in cost.values()),
        ),
        same_as_the_other(*against_the_other(cells)),
    ]


def paper_gain(places: Iterable[Place]) -> dict[Place, float]:
    return {place: PRINTED[place][2] / PRINTED[place][1] for place in places}


def paper_cost(places: Iterable[Place]) -> dict[Place, float]:
    return {place: PRINTED[place][1] * UNIT / PRINTED_UCB[place] / UNIT_UCB for place in places}


def against_the_other(cells: Cells) -> tuple[dict[str, Any], dict[str, tuple[float, float]]]:
    """Our lines and the other program's (mean, standard error), its runs being as scattered as ours."""
    ours, other = {}, {}
    for column, mix in enumerate(MIXES):
        for place, cell in cells.get(name(mix), {}).items():
            means, count = OTHER.get(place, ((None,) * len(MIXES), 1))
            if means[column] is not None and cell.first.runs > 1:
                ours[cell.first.quantity] = cell.first
                other[cell.first.quantity] = means[column], cell.first.se * np.sqrt(cell.first.runs / count)
    return ours, other


def grid(cells: Cells, *, compare: bool) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    head = (
        "n, k",
        *(name(mix) for mix in MIXES),
        "0 / 0.99",
        "DS-UCB",
        "0.99 / DS-UCB",
        "instances, 0.99",
        "ordered",
        "as a set",
    )
    rows = []
    for place, first in cells[name(MIX)].items():
        row = {rule: by_place[place] for rule, by_place in cells.items()}
        ratio = row[name(0.0)].first.ours / first.first.ours
        cost = first.first.ours * UNIT / row[UCB].first.ours / UNIT_UCB
        rows.append(
            (
                f"{place[0]}, {place[1]}: ours",
                *(mean(row[name(mix)]) for mix in MIXES),
                f"{ratio:.2f}",
                mean(row[UCB], UNIT_UCB / UNIT),
                f"{cost:.2f}",
                first.range,
                *(shares([row[name(mix)] for mix in MIXES], kind) for kind in ("ordered", "members")),
            )
        )
        if place in PRINTED:
            ours, upper = PRINTED[place], PRINTED_UCB[place] * UNIT_UCB / UNIT
            ratios = f"{ours[2] / ours[1]:.2f}", f"{ours[1] / upper:.2f}"
            rows.append(("  paper", *map(number, ours), ratios[0], number(upper), ratios[1], "", "", ""))
        if compare and place in OTHER:
            means = ["" if value is None else number(value) for value in OTHER[place][0]]
            rows.append(("  another program", *means, *[""] * 6))
    return head, rows


def mean(cell: Measured, scale: float = 1.0) -> str:
    se = f" +- {cell.first.se * scale:.2g}" if np.isfinite(cell.first.se) else ""
    return f"{number(float(f'{cell.first.ours * scale:.4g}'))}{se}"


def shares(cells: Sequence[Measured], kind: str) -> str:
    """Runs with greedy's centers, of several rules together."""
    counts = [map(int, getattr(cell, kind).split(" of ")) for cell in cells]
    return "{} of {}".format(*map(sum, zip(*counts, strict=True)))


def notes(cells: Cells) -> tuple[str, ...]:
    found = [
        "Means of runs on the first n images with their standard errors, all in 1e4 queries. DS-UCB has radii of scale "
        "C = 0.1 and a union over n points, DS-TS the wider KL intervals and a union over pairs: what DS-TS costs more "
        "is the interval's doing. At equal intervals, mix 0 against 0.99, posterior draws save queries. The paper's "
        "images and first center are unknown."
    ]
    for place, cell in cells[name(MIX)].items():
        others = cells[UCB][place].instances
        if len(cell.instances) > 2:
            ratio = np.sort(cell.instances * UNIT / others / UNIT_UCB)
            found.append(
                f"Over {len(ratio)} instances of {place[0]} images DS-TS with mix 0.99 takes {number_range(cell)} and "
                f"{np.median(ratio):.2f} ({ratio[0]:.2f} to {ratio[-1]:.2f}) times the queries of DS-UCB."
            )
    return tuple(found)


def number_range(cell: Measured) -> str:
    return f"{np.median(cell.instances):.3g} ({cell.instances.min():.3g} to {cell.instances.max():.3g}) x 1e4"


def draw(figure: Any, *, cells: Cells, sweeps: Sweeps) -> None:
    figure.set_size_inches(10.2, 4.8)
    left, right = figure.subplots(1, 2)
    sizes = [n for n, k in cells[UCB] if k == K]
    largest = BY_K if BY_K in sizes else sizes[-1]
    ks = range(2, K + 1)
    for style, (rule, row) in enumerate(cells.items()):
        unit = UNIT_UCB if rule == UCB else UNIT
        label = rule if rule == UCB else f"DS-TS, {rule}"
        curve(left, sizes, [row[n, K].first for n in sizes], label, style, scale=unit)
        by_k = [measured(rule, sweeps[rule, largest], unit=1.0, k=k).first for k in ks]
        curve(right, ks, by_k, label, style)
        for axes, x, places in ((left, sizes, [(n, K) for n in sizes]), (right, ks, [(largest, k) for k in ks])):
            there = [(at, place) for at, place in zip(x, places, strict=True) if place in PRINTED]
            values = [PRINTED_UCB[place] if rule == UCB else PRINTED[place][style] for _, place in there]
            axes.plot([at for at, _ in there], np.array(values) * unit, "x", color=STYLES[style]["color"], mew=2)
    left.plot([], [], "kx", mew=2, label="in the paper")
    left.set(xscale="log", xlabel="images n", ylabel="queries", title=f"Until {K} centers")
    left.set_xticks(sizes, [f"{n:,}" for n in sizes])
    right.set(xlabel="centers k", title=f"Of {largest} images", xticks=list(ks))
    left.minorticks_off()
    for axes in (left, right):
        axes.set(yscale="log")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=9)
