"""Table II of Jali, Karamchandani, Moharir: queries of DS-UCB, random sampling and naive greedy, by n and k.

delta = 0.1, radius scale C = 0.1, first center image 0, images of 64 x 64 x 3 numbers. Fewer centers are found on the
way to ten, so one run tells the queries of every k. The radii have a union over n points and the mean of the samples,
which reproduces the paper's numbers; what it prints, a union over pairs and the root of the mean, is shown too. Random
sampling takes minutes for n = 1000 and an hour for 10,000: --random-up-to says where to leave it out.
"""

from argparse import ArgumentParser
from functools import partial

import numpy as np

from experiments.claims import answers_are_right, between, every_run_stops
from experiments.kcenter import common, sampling
from experiments.kcenter.sampling import BY_K, KS, Cells, K, Place, Rule, Size, Sweeps, mean, schedule
from experiments.papers import printed_by_place
from experiments.report import Claim, Report, number, verdict
from experiments.settings import Settings
from jaxbandits.kcenter import Lil, ds_ucb, naive_queries

SIZES = {
    100: Size(20, 19, 2, 2),
    500: Size(20, 9, 2, 1),
    1000: Size(20, 9, 2, 1),
    5000: Size(4, 3, 1, 1),
    10_000: Size(3, 3, 1, 1),
}
QUICK_SIZES = {100: Size(4, 3), 200: Size(4, 1)}
QUICK_BY_K = 200
UNIT = 1e5
UCB = {"DS-UCB": {}, "as printed": {"scale": "root", "interval": Lil(union="pairs")}}
PRINTED = printed_by_place("kcenter", "table2 DS-UCB")
PRINTED_RANDOM = printed_by_place("kcenter", "table2 random")
RULES = {
    "DS-UCB": Rule("DS-UCB", UNIT, PRINTED),
    "as printed": Rule("DS-UCB as printed", UNIT, PRINTED),
    "random": Rule("random sampling", UNIT, PRINTED_RANDOM),
}
ROUNDING = 0.5
BELOW_NAIVE = {100: 15, 10_000: 200}  # by how many times DS-UCB is, for at least so many images
GROWTH = (3.0, 5.0)  # from 1000 to 10,000 images


def add_arguments(parser: ArgumentParser) -> None:
    common.add_arguments(parser)
    sampling.add_random(parser, 1000)


def run(options: Settings) -> Report:
    sizes, by_k = (QUICK_SIZES, QUICK_BY_K) if options.quick else (SIZES, BY_K)
    total = max(n * (1 + size.others) if options.quick else n for n, size in sizes.items())
    images = common.images(options, total)
    m, is_real = images.points.shape[1], options.data is not None
    sweeps: Sweeps = {}
    for n, size in sizes.items():
        heading = f"kcenter table 2: {{}}, n = {n}"
        for rule, settings in UCB.items():
            others = size.others if rule == "DS-UCB" else 0
            plan = schedule(n, total, first=options.seeds or size.first, others=others, runs=size.runs)
            algorithm = partial(ds_ucb, delta=common.DELTA, **settings)
            sweeps[rule, n] = sampling.scheduled_runs(heading.format(rule), algorithm, images, plan, options=options)
        if n <= options.own["random_up_to"] and size.random:
            random = {"runs": size.random, "options": options}
            sweeps["random", n] = sampling.random_runs(heading.format("random"), n, images, **random)
    cells = sampling.cells_of(sweeps, RULES, [(n, K) for n in sizes] + [(by_k, k) for k in KS])
    cells = {
        rule: {at: cell._replace(first=cell.first._replace(tolerance=ROUNDING)) for at, cell in row.items()}
        for rule, row in cells.items()
    }
    return sampling.report(
        f"Table II of Jali et al.: queries x 1e5 until k centers of n images, {images.label}",
        sweeps,
        RULES,
        cells,
        claims(cells, sweeps, m, is_real=is_real),
        notes(cells, images.label, is_real=is_real),
        [row(cells, place, m) for place in cells["DS-UCB"]],
        by_k=by_k,
        banded="DS-UCB",
        known={"naive greedy, n m k": ("k-", lambda n, k: naive_queries(n, m, k)[0])},
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
    for rule in UCB:
        right, total = np.sum([cell.right for (_, k), cell in cells[rule].items() if k == K], axis=0)
        found.append(answers_are_right(int(total - right), int(total), common.DELTA, rule))
    if not is_real:
        return found
    times = {n: naive_queries(n, m, K)[0] / UNIT / ours[n, K].first.ours for n, k in ours if k == K}
    for least, factor in BELOW_NAIVE.items():
        reached = {f"n = {n:,}:": value for n, value in times.items() if n >= least}
        what = f"DS-UCB takes at least {factor} times fewer queries than naive greedy for n >= {least:,}"
        found += [between(what, reached, factor)] if reached else []
    if (10_000, K) in ours:
        growth = ours[10_000, K].first.ours / ours[1000, K].first.ours
        what = f"ten times the images take {GROWTH[0]:g} to {GROWTH[1]:g} times the queries, from n = 1000 on"
        paper = f", in the paper {PRINTED[10_000, K] / PRINTED[1000, K]:.2f}"
        found.append(between(what, [growth], *GROWTH, ".2f", paper))
    return found


def row(cells: Cells, place: Place, m: int) -> dict[str, str]:
    cell, random, printed = (cells[rule].get(place) for rule in ("DS-UCB", "random", "as printed"))
    naive = naive_queries(place[0], m, place[1])[0] / UNIT
    return {
        "n, k": "{}, {}".format(*place),
        "verdict": verdict(cell.first),
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
