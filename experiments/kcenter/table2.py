"""Table II of Jali, Karamchandani, Moharir: queries of DS-UCB, random sampling and naive greedy, by n and k.

delta = 0.1, radius scale C = 0.1, first center image 0, images of 64 x 64 x 3 numbers. The radii have a union over n
points and the mean of the samples, which reproduces the paper's numbers. The printed ones, a union over pairs and the
root of the mean, are shown too. Random sampling takes minutes for n = 1000 and an hour for 10,000.
"""

from argparse import ArgumentParser
from functools import partial

import numpy as np

from experiments.claims import between, every_run_stops
from experiments.kcenter import common, sampling
from experiments.kcenter.sampling import BY_K, Cells, K, Measured, Place, Rule, Size, Sweeps, mean
from experiments.papers import printed_by_place
from experiments.report import Claim, Report, number, verdict
from experiments.settings import Settings
from jaxbandits.kcenter import Lil, ds_random, ds_ucb, naive_queries

SIZES = {100: Size(20, 19, 2, 2)} | {n: Size(20, 9, 2, 1) for n in (500, 1000)}
SIZES |= {5000: Size(4, 3, 1, 1), 10_000: Size(3, 3, 1, 1)}
QUICK_SIZES, QUICK_BY_K = {100: Size(4, 3), 200: Size(4, 1)}, 200
UNIT = 1e5
PRINTED = printed_by_place("kcenter", "table2 DS-UCB")
PRINTED_RANDOM = printed_by_place("kcenter", "table2 random")
HEADING = "kcenter table 2: {}, n = {{}}"
AS_PRINTED = partial(ds_ucb, scale="root", interval=Lil(union="pairs"))
RULES = {
    "DS-UCB": Rule("DS-UCB", HEADING.format("DS-UCB"), ds_ucb, PRINTED, has_others=True),
    "as printed": Rule("DS-UCB as printed", HEADING.format("as printed"), AS_PRINTED, PRINTED),
    "random": Rule("random sampling", HEADING.format("random"), ds_random, PRINTED_RANDOM, is_random=True),
}
ROUNDING = 0.5
BELOW_NAIVE = {
    100: 15,
    10_000: 200,
}  # factor by which DS-UCB is below naive greedy, and the number of images from which on it is
GROWTH = (3.0, 5.0)  # range of the growth from 1000 to 10,000 images


def add_arguments(parser: ArgumentParser) -> None:
    common.add_arguments(parser)
    sampling.add_random(parser, 1000)


def run(options: Settings) -> Report:
    sizes, by_k = (QUICK_SIZES, QUICK_BY_K) if options.quick else (SIZES, BY_K)
    total = max(n * (1 + size.others) if options.quick else n for n, size in sizes.items())
    images = common.images(options.data, total)
    m = images.points.shape[1]
    sweeps = sampling.sweeps_of(RULES, sizes, images, options)
    cells = {
        rule: {at: cell._replace(line=cell.line._replace(tolerance=ROUNDING)) for at, cell in row.items()}
        for rule, row in sampling.cells_of(sweeps, RULES, UNIT, by_k).items()
    }
    known = {"naive greedy, n m k": ("k-", lambda n, k: naive_queries(n, m, k)[0])}
    return sampling.report(
        f"Table II of Jali et al.: queries x 1e5 until k centers of n images, {images.label}",
        sweeps,
        RULES | {"as printed": RULES["as printed"]._replace(printed={})},  # its marks would cover DS-UCB's
        cells,
        claims=claims(cells, sweeps, m) + (image_claims(cells["DS-UCB"], m) if options.data is not None else []),
        notes=[*notes(cells["DS-UCB"]), *common.on_images(options, images)],
        grid=[row(cells, at, m) for at in cells["DS-UCB"]],
        unit=UNIT,
        by_k=by_k,
        banded="DS-UCB",
        known=known,
    )


def claims(cells: Cells, sweeps: Sweeps, m: int) -> list[Claim]:
    claims = [every_run_stops(sweeps.values())]
    if cells["random"]:
        pairs = [(cell.line.ours, 2 * m * n * (k - 1) / UNIT) for (n, k), cell in cells["random"].items()]
        few, needed = cells["random"][100, K].line.ours, naive_queries(100, m, K)[1] / UNIT
        claims += [
            Claim(
                "random sampling takes at most 2 m n (k - 1) queries",
                ", ".join(f"{queries:.4g} of {most:.4g}" for queries, most in pairs),
                all(queries <= most for queries, most in pairs),
            ),
            Claim("and on 100 images more than naive greedy needs", f"{few:.4g}, needed {needed:.4g}", few > needed),
        ]
    for rule in ("DS-UCB", "as printed"):
        claims.append(common.greedy_was_found([runs for (name, _), runs in sweeps.items() if name == rule], rule))
    return claims


def image_claims(row: dict[Place, Measured], m: int) -> list[Claim]:
    queries = {n: cell.line.ours for (n, k), cell in row.items() if k == K}
    times = {n: naive_queries(n, m, K)[0] / UNIT / ours for n, ours in queries.items()}
    claims = []
    for least, factor in BELOW_NAIVE.items():
        reached = {f"n = {n:,}:": value for n, value in times.items() if n >= least}
        what = f"DS-UCB takes at least {factor} times fewer queries than naive greedy for n >= {least:,}"
        claims += [between(what, reached, factor)] if reached else []
    if 10_000 in queries:
        what = f"ten times the images take {GROWTH[0]:g} to {GROWTH[1]:g} times the queries, from n = 1000 on"
        paper = f", in the paper {PRINTED[10_000, K] / PRINTED[1000, K]:.2f}"
        claims.append(between(what, [queries[10_000] / queries[1000]], *GROWTH, ".2f", paper))
    return claims


def row(cells: Cells, at: Place, m: int) -> dict[str, str]:
    cell, random, printed = (cells[rule].get(at) for rule in ("DS-UCB", "random", "as printed"))
    naive = naive_queries(at[0], m, at[1])[0] / UNIT
    return {
        "n, k": "{}, {}".format(*at),
        "verdict": verdict(cell.line),
        "naive": number(round(naive)),
        "random, paper": number(PRINTED_RANDOM.get(at, np.nan)),
        "random, ours": mean(random),
        "random, ordered (set)": common.matches(random.first) if random else "",
        "DS-UCB, paper": number(PRINTED.get(at, np.nan)),
        "DS-UCB, ours": mean(cell),
        "ordered (set)": common.matches(cell.first),
        "instances": cell.spread,
        "instances, ordered": cell.right,
        "below naive": f"{naive / cell.line.ours:.0f} x",
        "as printed": mean(printed),
        "as printed, ordered (set)": common.matches(printed.first),
    }


def notes(row: dict[Place, Measured]) -> tuple[str, ...]:
    several = {n: cell.instances for (n, k), cell in row.items() if len(cell.instances) > 2 and k == K}
    spread = ", ".join(f"{means.std(ddof=1) / means.mean():.0%} at {n}" for n, means in several.items())
    return (
        "ours: the mean over runs on the first n images with its standard error; naive: n m k, as the paper counts. "
        "instances: the mean over instances of n consecutive images, and their range; They share no images if there "
        "are enough, and start at different images in any case. Ordered (set): runs with greedy's centers in order "
        "(as a set).",
        f"Instances differ by {spread} (one standard deviation). The verdict compares the first images with the "
        "paper's, which are another instance, and allows for that.",
    )
