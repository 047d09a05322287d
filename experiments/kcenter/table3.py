"""Table III of Jali, Karamchandani, Moharir: queries of DS-TS on images, by the share of posterior draws.

DS-TS queries the leader against the slot of the smallest posterior draw with probability `mix`, otherwise against the
slot of the smallest lower bound: mix = 1, 0.99 and 0. delta = 0.1, first center image 0, images of 64 x 64 x 3 numbers.
DS-UCB is shown for comparison. Runs of 5000 and 10,000 images take long; --up-to limits them.
"""

from argparse import ArgumentParser
from functools import partial

from experiments.claims import every_run_stops
from experiments.kcenter import common, sampling
from experiments.kcenter.common import Images
from experiments.kcenter.sampling import Cells, K, Place, Rule, Size, factors, mean
from experiments.papers import printed_by_place
from experiments.report import Claim, Report, number
from experiments.settings import Settings
from jaxbandits.kcenter import ds_ts, ds_ucb

MIXES = (1.0, 0.99, 0.0)
SIZES = {100: Size(5, 4), 500: Size(5), 1000: Size(5), 5000: Size(2), 10_000: Size(1)}
QUICK_SIZES = {50: Size(2, 1)}
QUICK_STEP = 16  # step between the numbers of an image that are kept
UP_TO = 1000
PRINTED = printed_by_place("kcenter", "table3")  # for mix 1, 0.99 and 0
PRINTED_UCB = {
    at: 10 * value for at, value in printed_by_place("kcenter", "table2 DS-UCB").items()
}  # printed in units of 1e5
LARGE = 500  # number of images from which on the claims on mixes hold
GAIN = (1.15, 1.5)  # queries with mix 0 over queries with 0.99
COST = (2.0, 5.0)  # queries of DS-TS / queries of DS-UCB
UNIT = 1e4

UCB = "DS-UCB"
NAMES = tuple(f"mix {mix:g}" for mix in MIXES)
ONE, PAPER, NONE = NAMES
RULES = {
    name: Rule(
        f"DS-TS, {name}",
        f"kcenter DS-TS, {name}: n = {{}}",
        partial(ds_ts, mix=MIXES[i]),
        {at: row[i] for at, row in PRINTED.items()},
        drawn={"leap": 1},  # Each further one costs posterior draws, and DS-TS often changes its slot
        has_others=name == PAPER,
    )
    for i, name in enumerate(NAMES)
} | {
    UCB: Rule(UCB, "kcenter table 3: DS-UCB, n = {}", ds_ucb, PRINTED_UCB, has_others=True, times=2),
}


def add_arguments(parser: ArgumentParser) -> None:
    common.add_arguments(parser)
    parser.add_argument(
        "--up-to", type=int, default=UP_TO, metavar="N", help="largest number of images of a run (%(default)s)"
    )


def run(options: Settings) -> Report:
    sizes, images = sizes_and_images(options)
    sweeps = sampling.sweeps_of(RULES, sizes, images, options)
    cells = sampling.cells_of(sweeps, RULES, UNIT)
    claims = [every_run_stops(sweeps.values())]
    for who, rules in (("DS-TS", NAMES), (UCB, [UCB])):
        claims.append(common.greedy_was_found((runs for (rule, _), runs in sweeps.items() if rule in rules), who))
    return sampling.report(
        f"Table III of Jali et al.: queries of DS-TS x 1e4 until k centers of n images, {images.label}",
        sweeps,
        RULES,
        cells,
        claims=claims + (image_claims(cells) if options.data is not None and not options.quick else []),
        notes=notes(cells),
        grid=grid(cells),
        unit=UNIT,
    )


def sizes_and_images(options: Settings) -> tuple[dict[int, Size], Images]:
    """Loads enough images to make the instances of the smallest size disjoint."""
    sizes = QUICK_SIZES if options.quick else {n: size for n, size in SIZES.items() if n <= options.extra["up_to"]}
    images = common.images(options.data, max(max(sizes), min(n * (1 + size.others) for n, size in sizes.items())))
    if options.quick:
        images = common.as_images(images.points[:, ::QUICK_STEP], f"{images.label}, one number of {QUICK_STEP}")
    return sizes, images


def quotients(cells: Cells, over: str, under: str, least: int = 0) -> dict[Place, float]:
    """Divides mean queries of one rule by another's on the same first images, for ten centers and n >= `least`."""
    return {
        (n, k): cell.line.ours / cells[under][n, k].line.ours
        for (n, k), cell in cells[over].items()
        if k == K and n >= least
    }


def image_claims(cells: Cells) -> list[Claim]:
    def within(what: str, over: str, under: str, ends: tuple[float, float], n: int = 0) -> Claim:
        values = quotients(cells, over, under, n)
        paper = factors({at: RULES[over].printed[at] / RULES[under].printed[at] for at in values})
        holds = all(ends[0] <= value <= ends[1] for value in values.values())
        return Claim(what.format(*ends), f"{factors(values)}; in the paper {paper}", holds)

    cost = within("DS-TS takes {:g} to {:g} times the queries of DS-UCB", PAPER, UCB, COST)
    more, less = quotients(cells, ONE, PAPER, LARGE), quotients(cells, NONE, ONE, LARGE)
    if not more:
        return [cost]
    large = f"for n >= {LARGE}"
    return [
        Claim(f"mix 0.99 takes no more queries than mix 1 {large}", factors(more), min(more.values()) >= 1),
        Claim(f"mix 1 takes fewer queries than mix 0 {large}", factors(less), min(less.values()) > 1),
        within(f"mix 0 takes {{:g}} to {{:g}} times the queries of mix 0.99 {large}", NONE, PAPER, GAIN, LARGE),
        cost,
    ]


def grid(cells: Cells) -> list[dict[str, str]]:
    rows = []
    for at, cell in cells[PAPER].items():
        none, ours, ucb = (cells[rule][at].line.ours for rule in (NONE, PAPER, UCB))
        rows.append(
            {"n, k": "{}, {}: ours".format(*at)}
            | {name: mean(cells[name][at]) for name in NAMES}
            | {
                "0 / 0.99": f"{none / ours:.2f}",
                "DS-UCB": mean(cells[UCB][at]),
                "0.99 / DS-UCB": f"{ours / ucb:.2f}",
                "instances, 0.99": cell.spread,
                "ordered (as a set)": common.matches(*(cells[name][at].first for name in NAMES)),
            }
        )
        if at in PRINTED:
            one, paper, none = PRINTED[at]
            ucb = PRINTED_UCB[at]
            shown = (number(one), number(paper), number(none), f"{none / paper:.2f}", number(ucb))
            rows.append(dict(zip(rows[0], ("  paper", *shown, f"{paper / ucb:.2f}", "", ""), strict=True)))
    return rows


def notes(cells: Cells) -> tuple[str, ...]:
    texts = [
        "Means of runs on the first n images with their standard errors, all in 1e4 queries. DS-UCB has radii of scale "
        "C = 0.1 and a union over n points; DS-TS has the wider KL intervals and a union over pairs, which explain "
        "its extra cost. At equal intervals, mix 0 against 0.99, posterior draws save queries. The paper's images and "
        "first center are unknown."
    ]
    for at, cell in cells[PAPER].items():
        if len(cell.instances) > 2:
            ratio = cell.instances / cells[UCB][at].instances
            texts.append(
                f"Over {len(ratio)} instances of {at[0]} images DS-TS with mix 0.99 takes "
                f"{common.spread(cell.instances)} x 1e4 and {common.spread(ratio, '{:.2f}'.format)} times the queries "
                "of DS-UCB."
            )
    return tuple(texts)
