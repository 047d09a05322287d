"""Table IV of Jali, Karamchandani, Moharir: queries of DS-TS, random sampling and naive greedy, by n and k.

delta = 0.1, Bernoulli KL intervals with a union over pairs for both, DS-TS with mix 0.99: its runs are those of Table
III. Random sampling queries random arms until the intervals tell the centers, and takes minutes a run from n = 500 on:
--random-up-to says where to leave it out. Naive greedy reads all distances.
"""

from argparse import ArgumentParser, Namespace
from functools import partial
from typing import Any

import numpy as np

from experiments import _kcenter
from experiments._kcenter_dimensions import DRAWS, K, Measured, measured, schedule, scheduled_runs
from experiments.kcenter_table3 import (
    BY_K,
    MIX,
    add_up_to,
    images_of,
    mean,
    places_of,
    sizes_of,
    thompson_runs,
)
from experiments.report import STYLES, Claim, Report, curve, joined, number
from jaxbandits import Status
from jaxbandits.kcenter import KL, ds_random, naive_queries

RANDOM_UP_TO = 100
RANDOM_RUNS = {100: 2}  # one for every other n
UNIT = 1e5
PRINTED = {
    (100, 10): 27,
    (500, 10): 29,
    (1000, 10): 43,
    (5000, 10): 130,
    (10_000, 10): 211,
    (1000, 3): 7,
    (1000, 5): 16,
    (1000, 7): 27,
}
PRINTED_RANDOM = {
    (100, 10): 189,
    (500, 10): 892,
    (1000, 10): 1731,
    (5000, 10): 9856,
    (10_000, 10): 19_790,
    (1000, 3): 406,
    (1000, 5): 518,
    (1000, 7): 1305,
}
OTHER_RANDOM = {(100, 10): 196.5}  # by another program, one run on the first images
SAME = 0.05  # by how much one run of it may differ from ours
RULES = ("DS-TS", "random")

Place = tuple[int, int]  # (n, k)
Cells = dict[str, dict[Place, Measured]]  # rule -> by n and k


def add_arguments(parser: ArgumentParser) -> None:
    _kcenter.add_data_argument(parser)
    add_up_to(parser)
    parser.add_argument(
        "--random-up-to",
        type=int,
        default=RANDOM_UP_TO,
        metavar="N",
        help="random sampling for at most so many images (%(default)s)",
    )


def run(options: Namespace) -> Report:
    sizes = sizes_of(options)
    images = images_of(options, sizes)
    m = images.points.shape[1]
    sweeps = {}
    for n, size in sizes.items():
        sweeps["DS-TS", n] = thompson_runs(n, size, MIX, images, options)
        if n <= options.random_up_to:
            sweeps["random", n] = scheduled_runs(
                f"kcenter table 4: random, n = {n}",
                partial(ds_random, delta=_kcenter.DELTA, interval=KL()),
                images,
                schedule(n, len(images.points), first=RANDOM_RUNS.get(n, 1)),
                options=options,
                test_every=DRAWS,
                lanes=RANDOM_RUNS.get(n, 1),
            )
    cells = {
        rule: {
            (n, k): measured(f"{rule}: n = {n}, k = {k}", sweeps[rule, n], unit=UNIT, k=k, printed=numbers.get((n, k)))
            for n, k in places_of(sizes)
            if (rule, n) in sweeps
        }
        for rule, numbers in zip(RULES, (PRINTED, PRINTED_RANDOM), strict=True)
    }
    return Report(
        f"Table IV of Jali et al.: queries x 1e5 until k centers of n images, {images.label}",
        [cell.first for row in cells.values() for cell in row.values()],
        claims(cells, list(sweeps.values()), m, is_real=options.data is not None and not options.quick),
        joined({f"{rule}, n = {n}": columns for (rule, n), columns in sweeps.items()}, "sweep"),
        partial(draw, cells=cells, sweeps=sweeps, m=m),
        notes=(
            "Means of runs on the first n images with their standard errors; naive: n m k, as the paper counts, and "
            "needed: m for each candidate and each new center. An arm costs at most 2 m queries, m of them for reading "
            "it at its cap, so that random sampling may take twice the needed ones, and nearly does.",
        ),
        grid=grid(cells, m, compare=options.data is not None),
    )


def most_queries(n: int, m: int, k: int) -> float:
    """Of any rule that samples dimensions: 2 m for each arm."""
    return 2 * naive_queries(n, m, k)[1] / UNIT


def claims(cells: Cells, sweeps: list[dict[str, np.ndarray]], m: int, *, is_real: bool) -> list[Claim]:
    stopped = np.concatenate([columns["status"] == Status.STOPPED for columns in sweeps])
    thompson, random = (cells[rule] for rule in RULES)
    saved = {
        place: naive_queries(place[0], m, place[1])[1] / UNIT / cell.first.ours for place, cell in thompson.items()
    }
    found = [
        Claim("every run stops", f"{stopped.sum()} of {len(stopped)}", bool(stopped.all())),
        _kcenter.greedy_was_found(sweeps),
    ]
    if random:
        used = {place: cell.first.ours / most_queries(place[0], m, place[1]) for place, cell in random.items()}
        found.append(
            Claim(
                "random sampling takes more queries than naive greedy needs, and at most 2 m an arm",
                f"{shown(used)} of 2 m an arm; half is needed",
                all(0.5 < value <= 1 for value in used.values()),
            )
        )
    if not is_real:
        return found
    found.append(
        Claim(
            "DS-TS takes at least 4 times fewer queries than naive greedy needs",
            shown(saved),
            min(saved.values()) >= 4,
        )
    )
    both = {place: random[place].first.ours for place in OTHER_RANDOM if place in random}
    if both:
        found.append(
            Claim(
                f"random sampling takes what it takes in another program, within {SAME:.0%}",
                ", ".join(f"{ours:.4g} against {OTHER_RANDOM[place]}" for place, ours in both.items()),
                all(abs(ours / OTHER_RANDOM[place] - 1) < SAME for place, ours in both.items()),
            )
        )
    return found


def shown(values: dict[Place, float]) -> str:
    return ", ".join(f"{value:.3g} (n = {n:,}, k = {k})" for (n, k), value in values.items())


def grid(cells: Cells, m: int, *, compare: bool) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    thompson, random = (cells[rule] for rule in RULES)
    head = (
        "n, k",
        "naive",
        "needed",
        "random",
        "ordered",
        "as a set",
        "DS-TS",
        "needed / DS-TS",
        "instances",
        "ordered",
        "as a set",
    )
    rows = []
    for (n, k), cell in thompson.items():
        naive, needed = (queries / UNIT for queries in naive_queries(n, m, k))
        other = random.get((n, k))
        rows.append(
            (
                f"{n}, {k}: ours",
                *(number(round(x)) for x in (naive, needed)),
                *(("", "", "") if other is None else (mean(other), other.ordered, other.members)),
                mean(cell),
                f"{needed / cell.first.ours:.1f}",
                cell.range,
                cell.ordered,
                cell.members,
            )
        )
        if (n, k) in PRINTED:
            printed = number(PRINTED_RANDOM[n, k]), "", "", number(PRINTED[n, k])
            rows.append(("  paper", number(round(naive)), "", *printed, "", "", "", ""))
        if compare and (n, k) in OTHER_RANDOM:
            rows.append(("  another program", "", "", number(OTHER_RANDOM[n, k]), *[""] * 7))
    return head, rows


def draw(figure: Any, *, cells: Cells, sweeps: dict[tuple[str, int], dict[str, np.ndarray]], m: int) -> None:
    figure.set_size_inches(10.2, 4.8)
    left, right = figure.subplots(1, 2)
    sizes = [n for n, k in cells["DS-TS"] if k == K]
    largest = BY_K if BY_K in sizes else sizes[-1]
    ks = range(2, K + 1)
    for axes, x, places in ((left, sizes, [(n, K) for n in sizes]), (right, list(ks), [(largest, k) for k in ks])):
        naive, needed = np.transpose([naive_queries(n, m, k) for n, k in places])
        axes.plot(x, naive, "k-", lw=1.2, label="naive greedy, n m k")
        axes.plot(x, needed, "k:", lw=1.2, label="really needed")
        for style, (rule, printed) in enumerate(zip(RULES, (PRINTED, PRINTED_RANDOM), strict=True)):
            there = [(at, place) for at, place in zip(x, places, strict=True) if (rule, place[0]) in sweeps]
            label = "random sampling" if rule == "random" else rule
            if there:
                found = [measured(rule, sweeps[rule, n], unit=1.0, k=k).first for _, (n, k) in there]
                curve(axes, [at for at, _ in there], found, label, style)
            marks = [(at, printed[place] * UNIT) for at, place in zip(x, places, strict=True) if place in printed]
            color = STYLES[style]["color"]
            axes.plot([at for at, _ in marks], [queries for _, queries in marks], "x", color=color, mew=2)
        axes.set(yscale="log")
    left.plot([], [], "kx", mew=2, label="in the paper")
    left.set(xscale="log", xlabel="images n", ylabel="queries", title=f"Until {K} centers")
    left.set_xticks(sizes, [f"{n:,}" for n in sizes])
    left.minorticks_off()
    right.set(xlabel="centers k", title=f"Of {largest} images", xticks=list(ks))
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
