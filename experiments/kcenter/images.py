"""The ten images that greedy k-center and sampling choose from a thousand, and their costs. A query of DS-UCB and DS-TS
reads one of 64 x 64 x 3 numbers of two images. A query of NS-TS observes their distance with Gaussian noise. Exact
greedy reads everything. delta = 0.1, first center image 0. DS-UCB with a tenth of the paper's C shows examples of wrong
answers. The picture is of each rule's first run.
"""

from argparse import ArgumentParser
from functools import partial
from typing import Any

import numpy as np

from experiments.claims import above, every_run_stops
from experiments.kcenter import common
from experiments.kcenter.sampling import DRAWS
from experiments.report import Claim, Columns, Report, joined, line_of, number, plus_minus
from experiments.settings import Settings
from jaxbandits import Status
from jaxbandits.kcenter import Lil, ds_random, ds_ts, ds_ucb, greedy, naive_queries, ns_ts
from jaxbandits.kcenter._problem.images import SIDE

SIZE, QUICK_SIZE = (1000, 10), (50, 5)  # images and centers
VARIANCE = 1e-4
SMALL_C = 0.01
THOMPSON_LEAP = {"leap": 4}  # dimensions drawn per round; DS-TS, whose runs take minutes, uses two or three of them
GREEDY, UCB, TS, NOISY, RANDOM = "exact greedy", "DS-UCB", "DS-TS", "NS-TS", "random sampling"
SMALL = f"DS-UCB, C = {SMALL_C}"
CERTAIN = (UCB, TS, NOISY, RANDOM)  # rules with an error rate of at most delta
RED, GREEN, BLUE, GREY, INK = "#d0021b", "#1e7d4f", "#1b4f8f", "#8a8a8a", "#222222"


def add_arguments(parser: ArgumentParser) -> None:
    common.add_arguments(parser)
    parser.add_argument("--random", action="store_true", help="add random sampling (minutes)")


def run(options: Settings) -> Report:
    n, k = QUICK_SIZE if options.quick else SIZE
    seeds = options.seeds or 4
    images, rows = common.images(options.data, n), common.blocks(n, 1)
    m = images.points.shape[1]
    shared = {"rows": rows, "k": k, "options": options, "seeds": seeds, "lanes": seeds}

    def sampled(name: str, rule: Any, **settings: Any) -> Columns:
        return common.image_runs(f"kcenter images: {name}, n = {n}", rule, images, **shared | settings)

    noisy = {"distances": images.distances, "noise_scale": VARIANCE**0.5} | shared
    sweeps = {
        UCB: sampled(UCB, ds_ucb),
        SMALL: sampled(SMALL, partial(ds_ucb, interval=Lil(SMALL_C))),
        TS: sampled(TS, ds_ts, drawn=THOMPSON_LEAP, seeds=1, lanes=1),
        NOISY: common.distance_runs(f"kcenter images: {NOISY}, n = {n}", ns_ts, **noisy),
    }
    if options.extra["random"]:
        sweeps[RANDOM] = sampled(RANDOM, ds_random, drawn=DRAWS, seeds=1, lanes=1)

    printed, needed = naive_queries(n, m, k)
    # Greedy itself counts as one run, which needs m (n - p) numbers at the p-th stage.
    exact = {"answer.indices": greedy(images.sums, k=k).centers, "answer.queries": m * (n - np.arange(1, k))}
    exact |= {"pulls": needed, "status": Status.STOPPED, "ordered": True, "members": True, "radius": 1.0}
    shown = {GREEDY: {name: np.asarray(value)[None] for name, value in exact.items()}} | sweeps
    return Report(
        f"The {k} centers of {n} images: by greedy and by sampling, {images.label}",
        [],
        claims(sweeps, needed),
        joined(sweeps),
        partial(draw, shown=shown, points=images.points, label=images.label),
        notes=(
            f"Greedy's queries are the {number(needed)} numbers that it needs, m (n - p) at the p-th stage; the paper "
            f"counts n m k = {number(printed)}. A query of NS-TS is a whole distance with noise of variance "
            f"{VARIANCE:g}, so its number is not compared. radius: the squared distance of the image farthest from "
            "its nearest center, over greedy's.",
        ),
        grid=[
            {
                "": name,
                "queries": plus_minus(line_of(name, columns)),
                "below greedy": "" if name == NOISY else f"{needed / columns['pulls'].mean():.3g} x",
                "ordered (as a set)": common.matches(columns),
                "radius": f"{columns['radius'].mean():.3f}",
            }
            for name, columns in shown.items()
        ],
    )


def claims(sweeps: dict[str, Columns], needed: int) -> list[Claim]:
    certain = {name: sweeps[name] for name in CERTAIN if name in sweeps}
    small, saved = sweeps[SMALL], {name: needed / line_of(name, sweeps[name]).ours for name in (UCB, SMALL, TS)}
    return [
        every_run_stops(sweeps.values()),
        common.greedy_was_found(certain.values(), ", ".join(certain)),
        above("sampling numbers takes fewer queries than reading all (greedy over sampling)", saved),
        Claim(
            "DS-UCB errs with a tenth of the paper's C, yet its radius is at most 10 % above greedy's",
            f"{common.matches(small)} ordered (as a set), radius {small['radius'].mean():.3f}",
            not small["ordered"].all() and small["radius"].mean() <= 1.1,
        ),
    ]


# The figure's layout in inches; it keeps the bars under their images.
IMAGE, GAP, BAR = 0.92, 0.08, 0.62
LEFT, TOP, BOTTOM, BETWEEN = 2.65, 1.15, 0.15, 0.26


def draw(figure: Any, *, shown: dict[str, Columns], points: np.ndarray, label: str) -> None:
    centers, queries = (
        {name: runs[column][0].astype(np.int64) for name, runs in shown.items()}
        for column in ("answer.indices", "answer.queries")
    )
    exact, every = centers[GREEDY], np.concatenate(list(queries.values()))
    k, edges = len(exact), LEFT + np.arange(len(exact)) * (IMAGE + GAP)
    width, height = edges[-1] + IMAGE + GAP + 0.1, TOP + len(shown) * (IMAGE + BAR + BETWEEN) + BOTTOM
    least, most = 10 ** np.floor(np.log10(every.min())), 1.5 * every.max()
    figure.set_layout_engine("none")
    figure.set_size_inches(width, height)
    page = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    page.axis("off")

    def write(y: float, text: str, size: float = 10, color: str = INK, weight: str = "normal") -> None:
        page.text(0.15, y, text, fontsize=size, color=color, weight=weight, va="top")

    write(height - 0.2, f"Greedy {k}-center on {len(points)} images ({label})", 14, "k", "bold")
    about = "Each image is the farthest from those to its left. Bars: queries to find it (log scale)."
    write(height - 0.5, about, color="#444444")
    write(height - 0.72, "Framed in red: not greedy's center at this place.", color=RED)
    for position, name in enumerate(shown):
        top = height - TOP - position * (IMAGE + BAR + BETWEEN)
        floor, is_wrong = top - IMAGE - BAR - 0.05, centers[name] != exact
        for x, center, wrong in zip(edges, centers[name], is_wrong, strict=True):
            sides, ends = (x, x + IMAGE), (top - IMAGE, top)
            if center >= 0:
                page.imshow(points[center].reshape(SIDE, SIDE, 3), extent=(*sides, *ends), aspect="auto")
            if wrong:
                page.fill(np.repeat(sides, 2), (*ends, *ends[::-1]), fill=False, edgecolor=RED, lw=3.5)
        high = 0.8 * BAR * np.log(queries[name] / least) / np.log(most / least)
        page.bar(edges[1:] + IMAGE / 2, high, 0.62 * IMAGE, floor, color=GREY if name == NOISY else BLUE)
        page.plot((edges[0], edges[-1] + IMAGE), (floor, floor), "k-", lw=0.8)
        page.text(edges[0] + IMAGE / 2, floor, "given", ha="center", va="bottom", fontsize=8, color="#666666")
        for x, y, value in zip(edges[1:] + IMAGE / 2, floor + high, queries[name], strict=True):
            page.text(x, y, _short(value), ha="center", va="bottom", fontsize=8)
        write(top - 0.02, name, 13, "k", "bold")
        spent, wrong = queries[name].sum(), is_wrong.sum()
        cost = "one noisy distance" if name == NOISY else "one number of two images"
        text = [(f"{_short(spent)} queries", INK), (f"of {cost} each", INK)]
        if name not in (GREEDY, NOISY):
            factor = queries[GREEDY].sum() / spent
            fewer = f"{factor:.3g} times fewer than greedy" if factor >= 1 else f"{1 / factor:.3g} times greedy's"
            text.append((fewer, INK))
        if name != GREEDY:
            text.append((f"{wrong} of {k} centers differ", RED) if wrong else ("all centers right", GREEN))
        for depth, (words, color) in enumerate(text):
            write(top - 0.32 - 0.22 * depth, words, color=color)


def _short(value: float) -> str:
    for unit, name in ((1e9, "billion"), (1e6, "million")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value / 1000:.3g}k" if value >= 1000 else f"{value:.0f}"
