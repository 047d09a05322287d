"""Table II of Jali, Karamchandani, Moharir: queries of DS-UCB, random sampling and naive greedy, by n and k.

delta = 0.1, radius scale C = 0.1, first center image 0, images of 64 x 64 x 3 numbers. Fewer centers are found on the
way to ten, so one run tells the queries of every k. The radii have a union over n points and the mean of the samples,
which reproduces the paper's numbers; what it prints, a union over pairs and the root of the mean, is shown too. Random
sampling takes minutes for n = 1000 and an hour for 10,000: --random-up-to says where to leave it out.
"""

from argparse import ArgumentParser
from functools import partial
from typing import NamedTuple

import numpy as np

from experiments.claims import answers_are_right, every_run_stops
from experiments.kcenter import common
from experiments.kcenter.sampling import (
    DRAWS,
    K,
    Measured,
    Place,
    Sweeps,
    cells_of,
    draw_by_n_and_k,
    mean,
    schedule,
    scheduled_runs,
)
from experiments.papers import printed_by_place
from experiments.report import Claim, Report, joined, number, verdict
from experiments.settings import Settings
from jaxbandits.kcenter import Lil, ds_random, ds_ucb, naive_queries


class Size(NamedTuple):
    """How many runs a number of images gets."""

    first: int  # on the first n images
    others: int  # other instances
    runs: int  # on each of them
    random: int  # of random sampling, on the first n images


SIZES = {
    100: Size(20, 19, 2, 2),
    500: Size(20, 9, 2, 1),
    1000: Size(20, 9, 2, 1),
    5000: Size(4, 3, 1, 1),
    10_000: Size(3, 3, 1, 1),
}
QUICK_SIZES = {100: Size(4, 3, 1, 0), 200: Size(4, 1, 1, 0)}
BY_K, QUICK_BY_K = 1000, 200  # the n for which k varies
KS = (3, 5, 7)
UNIT = 1e5
RULES = {"DS-UCB": {}, "as printed": {"scale": "root", "interval": Lil(union="pairs")}}
PRINTED = printed_by_place("kcenter", "table2 DS-UCB")
PRINTED_RANDOM = printed_by_place("kcenter", "table2 random")
ROUNDING = 0.5
BELOW_NAIVE = {100: 15, 10_000: 200}  # by how many times DS-UCB is, for at least so many images
GROWTH = (3.0, 5.0)  # from 1000 to 10,000 images
LABELS = {"DS-UCB": "DS-UCB", "as printed": "DS-UCB as printed", "random": "random sampling"}

Cells = dict[str, dict[Place, Measured]]  # rule -> by n and k


def add_arguments(parser: ArgumentParser) -> None:
    common.add_arguments(parser)
    parser.add_argument(
        "--random-up-to",
        type=int,
        default=1000,
        metavar="N",
        help="random sampling for at most so many images (%(default)s)",
    )


def run(options: Settings) -> Report:
    sizes, by_k = (QUICK_SIZES, QUICK_BY_K) if options.quick else (SIZES, BY_K)
    total = max(n * (1 + size.others) if options.quick else n for n, size in sizes.items())
    images = common.images(options, total)
    m = images.points.shape[1]
    sweeps: Sweeps = {}
    for n, size in sizes.items():
        first = options.seeds or size.first
        for rule, settings in RULES.items():
            others = size.others if rule == "DS-UCB" else 0
            sweeps[rule, n] = scheduled_runs(
                f"kcenter table 2: {rule}, n = {n}",
                partial(ds_ucb, delta=common.DELTA, **settings),
                images,
                schedule(n, total, first=first, others=others, runs=size.runs),
                options=options,
            )
        if n <= options.own["random_up_to"] and size.random:
            sweeps["random", n] = scheduled_runs(
                f"kcenter table 2: random, n = {n}",
                partial(ds_random, delta=common.DELTA),
                images,
                schedule(n, total, first=size.random),
                options=options,
                test_every=DRAWS,
                lanes=size.random,
            )
    places = [(n, K) for n in sizes] + [(by_k, k) for k in KS]
    cells = {
        rule: cells_of(sweeps, rule, places, UNIT, PRINTED_RANDOM if rule == "random" else PRINTED) for rule in LABELS
    }
    absolute = {
        rule: {place: UNIT * value for place, value in table.items()}
        for rule, table in (("DS-UCB", PRINTED), ("random", PRINTED_RANDOM))
    }
    return Report(
        f"Table II of Jali et al.: queries x 1e5 until k centers of n images, {images.label}",
        [cell.first._replace(tolerance=ROUNDING) for row in cells.values() for cell in row.values()],
        claims(cells, sweeps, m, is_real=options.data is not None),
        joined({f"{rule}, n = {n}": columns for (rule, n), columns in sweeps.items()}, "sweep"),
        partial(
            draw_by_n_and_k,
            sweeps=sweeps,
            labels=LABELS,
            printed=absolute,
            by_k=by_k,
            banded="DS-UCB",
            known={"naive greedy, n m k": ("k-", lambda n, k: naive_queries(n, m, k)[0])},
        ),
        notes=notes(cells, images.label, is_real=options.data is not None),
        grid=[row(cells, place, m) for place in cells["DS-UCB"]],
    )


def claims(cells: Cells, sweeps: Sweeps, m: int, *, is_real: bool) -> list[Claim]:
    ours, random = cells["DS-UCB"], {place: cell.first.ours for place, cell in cells["random"].items()}
    found = [every_run_stops(sweeps.values())]
    if random:
        most = {(n, k): 2 * m * n * (k - 1) / UNIT for n, k in random}
        needed = naive_queries(100, m, K)[1] / UNIT
        found += [
            Claim(
                "random sampling takes at most 2 m n (k - 1) queries",
                ", ".join(f"{queries:.4g} of {most[place]:.4g}" for place, queries in random.items()),
                all(queries <= most[place] for place, queries in random.items()),
            ),
            Claim(
                "and on 100 images more than naive greedy needs",
                f"{random[100, K]:.4g}, needed {needed:.4g}",
                random[100, K] > needed,
            ),
        ]
    for rule in RULES:
        right, total = np.sum([cell.right for (_, k), cell in cells[rule].items() if k == K], axis=0)
        found.append(answers_are_right(int(total - right), int(total), common.DELTA, rule))
    if not is_real:
        return found
    times = {n: naive_queries(n, m, K)[0] / UNIT / ours[n, K].first.ours for n, k in ours if k == K}
    for least, factor in BELOW_NAIVE.items():
        reached = {n: value for n, value in times.items() if n >= least}
        if reached:
            found.append(
                Claim(
                    f"DS-UCB takes at least {factor} times fewer queries than naive greedy for n >= {least:,}",
                    ", ".join(f"{value:.3g} at {n:,}" for n, value in reached.items()),
                    min(reached.values()) >= factor,
                )
            )
    if (10_000, K) in ours:
        growth = ours[10_000, K].first.ours / ours[1000, K].first.ours
        found.append(
            Claim(
                f"ten times the images take {GROWTH[0]:g} to {GROWTH[1]:g} times the queries, from n = 1000 on",
                f"{growth:.2f}, in the paper {PRINTED[10_000, K] / PRINTED[1000, K]:.2f}",
                GROWTH[0] <= growth <= GROWTH[1],
            )
        )
    return found


def row(cells: Cells, place: Place, m: int) -> dict[str, str]:
    """One n and k."""
    cell, random, printed = (cells[rule].get(place) for rule in ("DS-UCB", "random", "as printed"))
    naive = naive_queries(place[0], m, place[1])[0] / UNIT
    return {
        "n, k": "{}, {}".format(*place),
        "verdict": verdict(cell.first._replace(tolerance=ROUNDING)),
        "naive": number(round(naive)),
        "random, paper": number(PRINTED_RANDOM.get(place, np.nan)),
        "random, ours": mean(random),
        "random, ordered": random.ordered if random else "",
        "random, set": random.members if random else "",
        "DS-UCB, paper": number(PRINTED.get(place, np.nan)),
        "DS-UCB, ours": mean(cell),
        "ordered": cell.ordered,
        "set": cell.members,
        "instances": cell.range,
        "instances, ordered": "{} of {}".format(*cell.right),
        "below naive": f"{naive / cell.first.ours:.0f} x",
        "as printed": mean(printed),
        "as printed, ordered": printed.ordered,
        "as printed, set": printed.members,
    }


def notes(cells: Cells, label: str, *, is_real: bool) -> tuple[str, ...]:
    row = {place: cell for place, cell in cells["DS-UCB"].items() if len(cell.instances) > 2 and place[1] == K}
    spread = ", ".join(
        f"{cell.instances.std(ddof=1) / cell.instances.mean():.0%} at {n}" for (n, _), cell in row.items()
    )
    return (
        "ours: the mean over runs on the first n images with its standard error; naive: n m k, as the paper counts. "
        "instances: the mean over instances of n consecutive images, and their range; they share no images where there "
        "is room for that, and start at other images in any case. Ordered (and as a set): runs with greedy's centers.",
        f"Instances differ by {spread} (one standard deviation). The verdict compares the first images with the "
        "paper's, which are another instance, and allows for that.",
        *([] if is_real else [f"The paper's images are Tiny ImageNet, these are {label}."]),
    )
