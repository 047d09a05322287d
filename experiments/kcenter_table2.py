"""Table II of Jali, Karamchandani, Moharir: queries of DS-UCB, random sampling and naive greedy, by n and k.

delta = 0.1, radius scale C = 0.1, first center image 0, images of 64 x 64 x 3 numbers. Fewer centers are found on the
way to ten, so one run tells the queries of every k. The radii have a union over n points and the mean of the samples,
which reproduces the paper's numbers; what it prints, a union over pairs and the root of the mean, is shown too. Random
sampling takes minutes for n = 1000 and an hour for 10,000: --random-up-to says where to leave it out.
"""

from argparse import ArgumentParser, Namespace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments import _kcenter
from experiments._kcenter_dimensions import (
    DRAWS,
    K,
    Measured,
    measured,
    same_as_the_other,
    schedule,
    scheduled_runs,
)
from experiments.report import STYLES, Claim, Report, answers_are_right, curve, joined, number, verdict
from jaxbandits import Status
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
PRINTED = {
    (100, 10): 11,
    (500, 10): 8,
    (1000, 10): 12,
    (5000, 10): 28,
    (10_000, 10): 47,
    (1000, 3): 2,
    (1000, 5): 4,
    (1000, 7): 6,
}
PRINTED_RANDOM = {
    (100, 10): 191,
    (500, 10): 864,
    (1000, 10): 1536,
    (5000, 10): 7913,
    (10_000, 10): 17_994,
    (1000, 3): 254,
    (1000, 5): 591,
    (1000, 7): 883,
}
ROUNDING = 0.5
# By another program on the first n images: means and standard errors.
OTHER = {
    "DS-UCB": {
        (100, 10): (6.92, 0.07),
        (500, 10): (10.19, 0.06),
        (1000, 10): (12.62, 0.08),
        (5000, 10): (25.3, 0.3),
        (10_000, 10): (46.4, 0.4),
        (1000, 3): (2.83, 0.04),
        (1000, 5): (5.05, 0.06),
        (1000, 7): (8.28, 0.08),
    },
    "as printed": {
        (100, 10): (7.10, 0.04),
        (500, 10): (11.72, 0.08),
        (1000, 10): (15.41, 0.07),
        (5000, 10): (35.7, 0.2),
        (10_000, 10): (67.1, 0.4),
        (1000, 3): (3.91, 0.04),
        (1000, 5): (6.62, 0.04),
        (1000, 7): (10.47, 0.04),
    },
    "random": {(100, 10): (170.0, 2.0)},
}
BELOW_NAIVE = {100: 15, 10_000: 200}  # by how many times DS-UCB is, for at least so many images
GROWTH = (3.0, 5.0)  # from 1000 to 10,000 images

Place = tuple[int, int]  # (n, k)
Cells = dict[str, dict[Place, Measured]]  # rule -> by n and k
Sweeps = dict[tuple[str, int], dict[str, np.ndarray]]  # (rule, n) -> columns


def add_arguments(parser: ArgumentParser) -> None:
    _kcenter.add_data_argument(parser)
    parser.add_argument(
        "--random-up-to", type=int, metavar="N", help="random sampling for at most so many images (default: 1000)"
    )


def run(options: Namespace) -> Report:
    sizes, by_k = (QUICK_SIZES, QUICK_BY_K) if options.quick else (SIZES, BY_K)
    random_up_to = 1000 if options.random_up_to is None else options.random_up_to
    total = max(n * (1 + size.others) if options.quick else n for n, size in sizes.items())
    images = _kcenter.images(options, total)
    m = images.points.shape[1]
    sweeps: Sweeps = {}
    for n, size in sizes.items():
        first = options.seeds or size.first
        for rule, settings in RULES.items():
            others = size.others if rule == "DS-UCB" else 0
            sweeps[rule, n] = scheduled_runs(
                f"kcenter table 2: {rule}, n = {n}",
                partial(ds_ucb, delta=_kcenter.DELTA, **settings),
                images,
                schedule(n, total, first=first, others=others, runs=size.runs),
                options=options,
            )
        if n <= random_up_to and size.random:
            sweeps["random", n] = scheduled_runs(
                f"kcenter table 2: random, n = {n}",
                partial(ds_random, delta=_kcenter.DELTA),
                images,
                schedule(n, total, first=size.random),
                options=options,
                test_every=DRAWS,
                lanes=size.random,
            )

    places = [(n, K) for n in sizes] + [(by_k, k) for k in KS]
    cells = {
        rule: {
            (n, k): measured(
                f"{rule}: n = {n}, k = {k}",
                sweeps[rule, n],
                unit=UNIT,
                k=k,
                printed=(PRINTED_RANDOM if rule == "random" else PRINTED).get((n, k)),
            )
            for n, k in places
            if (rule, n) in sweeps
        }
        for rule in (*RULES, "random")
    }
    return Report(
        f"Table II of Jali et al.: queries x 1e5 until k centers of n images, {images.label}",
        [cell.first._replace(tolerance=ROUNDING) for row in cells.values() for cell in row.values()],
        claims(cells, sweeps, m, is_real=options.data is not None),
        joined({f"{rule}, n = {n}": columns for (rule, n), columns in sweeps.items()}, "sweep"),
        partial(draw, cells=cells, sweeps=sweeps, by_k=by_k, m=m),
        notes=notes(cells, images.label, is_real=options.data is not None),
        grid=grid(cells, m),
    )


def claims(cells: Cells, sweeps: Sweeps, m: int, *, is_real: bool) -> list[Claim]:
    ours, random = cells["DS-UCB"], cells["random"]
    times = {n: naive_queries(n, m, K)[0] / UNIT / ours[n, K].first.ours for n, k in ours if k == K}
    status = np.concatenate([columns["status"] for columns in sweeps.values()])
    stopped = int((status == Status.STOPPED).sum())
    found = [Claim("every run stops", f"{stopped} of {len(status)}", stopped == len(status))]
    if random:
        most = {(n, k): 2 * m * n * (k - 1) / UNIT for n, k in random}
        needed = naive_queries(100, m, K)[1] / UNIT
        at_100 = random[100, K].first.ours
        found += [
            Claim(
                "random sampling takes at most 2 m n (k - 1) queries",
                ", ".join(f"{cell.first.ours:.4g} of {most[place]:.4g}" for place, cell in random.items()),
                all(cell.first.ours <= most[place] for place, cell in random.items()),
            ),
            Claim(
                "and on 100 images more than naive greedy needs",
                f"{at_100:.4g}, needed {needed:.4g}",
                at_100 > needed,
            ),
        ]
    for rule in RULES:
        right = np.sum([cell.right for (_, k), cell in cells[rule].items() if k == K], axis=0)
        claim = answers_are_right(int(right[1] - right[0]), int(right[1]), _kcenter.DELTA)
        found.append(claim._replace(statement=f"{rule}: {claim.statement}"))
    if not is_real:
        return found
    for least, factor in BELOW_NAIVE.items():
        reached = {n: value for n, value in times.items() if n >= least}
        if reached:
            found.append(
                Claim(
                    f"DS-UCB takes at least {factor} times fewer queries than naive greedy for n >= {least:,}",
                    ", ".join(f"{value:.3g} at {n:,}" for n, value in reached.items()),
                    all(value >= factor for value in reached.values()),
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
    return [
        *found,
        same_as_the_other(
            {cell.first.quantity: cell.first for row in cells.values() for cell in row.values()},
            {f"{rule}: n = {n}, k = {k}": value for rule, row in OTHER.items() for (n, k), value in row.items()},
        ),
    ]


def grid(cells: Cells, m: int) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    shares = "ordered", "set"
    head = (
        "n, k",
        "naive",
        "random, paper",
        "ours",
        *shares,
        "DS-UCB, paper",
        "ours",
        *shares,
        "instances",
        "ordered",
        "below naive",
        "as printed",
        *shares,
        "verdict",
    )

    def mean(cell: Measured | None) -> tuple[str, str, str]:
        if cell is None:
            return "", "", ""
        se = f" +- {cell.first.se:.2g}" if np.isfinite(cell.first.se) else ""
        return f"{number(float(f'{cell.first.ours:.4g}'))}{se}", cell.ordered, cell.members

    rows = []
    for (n, k), cell in cells["DS-UCB"].items():
        naive = naive_queries(n, m, k)[0] / UNIT
        rows.append(
            (
                f"{n}, {k}",
                number(round(naive)),
                number(PRINTED_RANDOM[n, k]) if (n, k) in PRINTED_RANDOM else "",
                *mean(cells["random"].get((n, k))),
                number(PRINTED[n, k]) if (n, k) in PRINTED else "",
                *mean(cell),
                cell.range,
                "{} of {}".format(*cell.right),
                f"{naive / cell.first.ours:.0f} x",
                *mean(cells["as printed"][n, k]),
                verdict(cell.first._replace(tolerance=ROUNDING)),
            )
        )
    return head, rows


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


def draw(figure: Any, *, cells: Cells, sweeps: Sweeps, by_k: int, m: int) -> None:
    figure.set_size_inches(10.6, 4.8)
    left, right = figure.subplots(1, 2)
    labels = {"random": "random sampling", "as printed": "DS-UCB as printed", "DS-UCB": "DS-UCB"}
    styles = {"random": 3, "as printed": 1, "DS-UCB": 0}
    sizes = [n for n, k in cells["DS-UCB"] if k == K]
    ks = range(2, K + 1)
    left.plot(sizes, [naive_queries(n, m, K)[0] for n in sizes], "k-", lw=1.2, label="naive greedy, n m k")
    right.plot(ks, [naive_queries(by_k, m, k)[0] for k in ks], "k-", lw=1.2)
    for rule, label in labels.items():
        row = {n: cell for (n, k), cell in cells[rule].items() if k == K}
        if row:
            curve(left, list(row), [cell.first for cell in row.values()], label, styles[rule], scale=UNIT)
        if (rule, by_k) in sweeps:
            by = [measured(label, sweeps[rule, by_k], unit=1.0, k=k) for k in ks]
            curve(right, ks, [cell.first for cell in by], label, styles[rule])
            if rule == "DS-UCB":
                band(right, ks, by, 1.0)
    band(left, sizes, [cells["DS-UCB"][n, K] for n in sizes], UNIT)
    for printed, rule in ((PRINTED_RANDOM, "random"), (PRINTED, "DS-UCB")):
        color = STYLES[styles[rule]]["color"]
        left.plot(
            [n for n, k in printed if k == K],
            [value * UNIT for (_, k), value in printed.items() if k == K],
            "x",
            color=color,
            mew=2,
            label=f"{labels[rule]}, in the paper",
        )
        at = {k: value * UNIT for (n, k), value in printed.items() if n == BY_K}
        if by_k == BY_K:
            right.plot(list(at), list(at.values()), "x", color=color, mew=2)
    left.set(xscale="log", xlabel="images n", ylabel="queries", title=f"Until {K} centers")
    right.set(xlabel="centers k", title=f"Of {by_k} images", xticks=list(ks))
    for axes in (left, right):
        axes.set(yscale="log")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)


def band(axes: Any, x: Any, cells: list[Measured], scale: float) -> None:
    """The range over instances."""
    low, high = ([f(cell.instances) * scale for cell in cells] for f in (np.min, np.max))
    axes.fill_between(x, low, high, color=STYLES[0]["color"], alpha=0.12, lw=0, label="DS-UCB, other images")
