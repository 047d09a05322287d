"""Table V of Jali, Karamchandani, Moharir: NS-TS on noisy distances of images, and the spread between images.

Gaussian noise of variance 0.01 on normalised squared distances, delta = 0.1, n = 100, 500 and 1000 images, mix 0.9, 0.8
and 0. The paper names neither its images nor its first center: here instances are disjoint blocks of images, and the
first center is image 0 of each. A run ends with the tenth center or after two million queries.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.claims import answers_are_right
from experiments.figures import COLORS, legend_below, marks, points
from experiments.kcenter import common as runs
from experiments.kcenter import noisy
from experiments.kcenter.common import add_arguments as add_arguments
from experiments.kcenter.noisy import slashed
from experiments.papers import printed_by_place
from experiments.report import Claim, Columns, Line, Report, joined, mean_se, means, number
from experiments.settings import Settings
from jaxbandits.kcenter import ns_ts

NOISE_SCALE = 0.1
MIXES = (0.9, 0.8, 0.0)
LIMIT = 2_000_000  # budget of a run in queries
BLOCKS, KS = {100: 10, 500: 4, 1000: 2}, (3, 5, 7, 10)
QUICK_BLOCKS, QUICK_KS, QUICK_LIMIT = {100: 6}, (3, 5), 200_000
UNIT = 1e3  # queries
NEAR = 1.5  # factor between the mixes
LAW = 0.4, 2.0  # queries over 2 beta sum T*
BLOCK = {"color": "#777777", "ms": 9, "mew": 1.5}  # in the figure
PRINTED = printed_by_place("kcenter", "table5")  # for every mix


class Blocks(NamedTuple):
    """The blocks of one size until the first k centers, in units of UNIT."""

    columns: Columns
    means: np.ndarray  # (mixes, blocks)  infinite where a run was censored
    ended: np.ndarray  # the blocks whose runs all ended
    first: list[Line]  # line of every mix for the first block, beside the paper's; empty if there is none
    expected: np.ndarray  # (blocks,)  queries by 2 beta sum T*


Table = dict[tuple[int, int], Blocks]  # (n, k) -> Blocks


def run(options: Settings) -> Report:
    sizes, ks, limit = (QUICK_BLOCKS, QUICK_KS, QUICK_LIMIT) if options.quick else (BLOCKS, KS, LIMIT)
    seeds = options.seeds or 2
    images = runs.images(options.data, max(n * count for n, count in sizes.items()))
    distances = images.distances
    shared = {"distances": distances, "k": ks[-1], "noise_scale": NOISE_SCALE, "settings": {"mix": MIXES}}
    shared |= {"max_rounds": limit // 2, "options": options, "seeds": seeds}
    sweeps, table = {}, {}
    for n, count in sizes.items():
        rows = runs.blocks(n, count)
        columns = runs.distance_runs(f"kcenter table 5: n = {n}", ns_ts, rows=rows, **shared)
        times = [noisy.times(*each, NOISE_SCALE) for each in runs.solved(distances, rows, ks[-1])]
        law = np.cumsum([noisy.expected(each, n) for each in times], axis=1) / UNIT
        table |= {(n, k): blocks_of(n, k, runs.until(columns, k), law[:, k - 2]) for k in ks}
        sweeps[f"n = {n}"] = columns
    every = joined(sweeps, "size")
    return Report(
        f"Table V of Jali et al.: thousands of queries of NS-TS, {images.label}",
        [each for nk, blocks in table.items() for each in blocks.first or [none_ended(*nk, seeds)]],
        [*claims(table), answers_are_right(wrong(every), len(every["row"]), runs.DELTA)],
        every,
        partial(draw, table=table, limit=limit),
        notes=notes(table, seeds, limit),
        grid=[row(n, k, blocks, limit) for (n, k), blocks in table.items()],
    )


def blocks_of(n: int, k: int, columns: Columns, expected: np.ndarray) -> Blocks:
    lines = [noisy.by_instance(part, UNIT) for part in runs.by_value(columns, "mix").values()]
    queries = np.array([means(row) for row in lines])
    ended, first = np.flatnonzero(np.isfinite(queries).all(axis=0)), []
    if len(ended):
        first = [
            row[ended[0]]._replace(quantity=f"n = {n}, k = {k}, mix {mix}", printed=printed)
            for row, mix, printed in zip(lines, MIXES, PRINTED[n, k], strict=True)
        ]
    return Blocks(columns, queries, ended, first, expected)


def none_ended(n: int, k: int, seeds: int) -> Line:
    return Line(f"n = {n}, k = {k}", np.nan, runs=seeds, censored=seeds, printed=PRINTED[n, k][0])


def wrong(columns: Columns) -> int:
    """Counts the runs that found another center than greedy's."""
    centers = columns["answer.indices"]
    is_found = np.arange(centers.shape[1]) < columns["answer.found"][:, None]
    return int(np.any(is_found & (centers != columns["greedy"]), axis=1).sum())


def claims(table: Table) -> list[Claim]:
    ratios = np.concatenate([(blocks.means / blocks.expected).ravel() for blocks in table.values()])
    ratios = ratios[np.isfinite(ratios)]
    # Each block counts once, until the last center that all its runs found.
    last = {(n, block): blocks.means[:, block] for (n, _), blocks in table.items() for block in blocks.ended}
    first, *others = np.array(list(last.values())).T
    logs = np.log(np.divide(others, first))
    factors, errors = np.exp(logs.mean(axis=1)), mean_se(logs, axis=1)[1]
    shown = [
        f"{mix:g} / {MIXES[0]}: {factor:.2f} +- {factor * error:.2f}"
        for mix, factor, error in zip(MIXES[1:], factors, errors, strict=True)
    ]
    return [
        Claim(
            f"mixes are within a factor {NEAR} of each other on one instance (geometric mean over those that ended)",
            f"{', '.join(shown)}; on a single one at most {np.exp(np.abs(logs).max()):.2f}",
            all(1 / NEAR < factor < NEAR for factor in factors),
        ),
        Claim(
            f"queries are {LAW[0]} to {LAW[1]} times 2 beta sum T*, on every block that ended",
            f"{ratios.min():.2f} to {ratios.max():.2f}, {np.median(ratios):.2f} in the median",
            LAW[0] <= ratios.min() and ratios.max() <= LAW[1],
        ),
    ]


def row(n: int, k: int, blocks: Blocks, limit: int) -> dict[str, str]:
    def shown(value: float) -> str:
        """Blocks that did not end are the longest; they only exceed the limit."""
        return number(value) if np.isfinite(value) else f"> {number(limit / UNIT)}"

    paper, ours, stopped = PRINTED[n, k], blocks.means[0], runs.stopped(blocks.columns)
    ratio = (ours / blocks.expected)[np.isfinite(ours)]
    return {
        "n, k": f"{n}, {k}",
        "paper, mix .9/.8/0": slashed(paper),
        "block": str(blocks.ended[0]) if blocks.first else "-",
        "ours on it": noisy.slashed_means(blocks.first) if blocks.first else "-",
        "all blocks, mix .9": runs.spread(ours, shown),
        "below paper": f"{np.sum(ours < paper[0])} of {len(ours)}",
        "q / (2 beta T*)": f"{ratio.min():.2f} to {ratio.max():.2f}" if len(ratio) else "-",
        "runs ended": f"{len(stopped['row'])} of {len(blocks.columns['row'])}",
        "ordered (as a set)": runs.matches(stopped),
    }


def notes(table: Table, seeds: int, limit: int) -> tuple[str, ...]:
    ours = {n: blocks.means[0] for (n, k), blocks in table.items() if k == 3}
    easy, hard = [each.min() for each in ours.values()], [np.isinf(each).sum() for each in ours.values()]
    return (
        f"Block b holds images b n to (b+1) n - 1. {seeds} runs of each block and mix, the ordered shares over all of "
        f"them; a block ended if all its runs did, within {limit:,} queries. Median and, in brackets, range over "
        "blocks of their means.",
        f"The gaps between the best and the second-best candidate decide. For k = 3 the quickest block takes "
        f"{slashed(easy)} thousand queries (n = {slashed(ours)}), and {slashed(hard)} "
        "blocks do not end. The paper's single instance is a draw from such a range.",
    )


def draw(figure: Any, *, table: Table, limit: int) -> None:
    axes = noisy.draw_by_place(figure, table, "Table V: NS-TS on noisy distances of images")
    axes.set_ylabel("queries until the k-th center")
    for x, (nk, blocks) in enumerate(table.items()):
        ours = blocks.means[0] * UNIT
        axes.plot(np.full(len(ours), x - 0.2), ours, "_", **BLOCK)
        axes.plot(x - 0.2, limit if np.isinf(ours).any() else np.nan, "^", **BLOCK, mfc="w")
        at = x + 0.05 + 0.1 * np.arange(len(MIXES))
        for style, measured in enumerate(blocks.first):
            points(axes, at[style], [measured], None, style, scale=UNIT)
        for style, printed in enumerate(PRINTED[nk]):
            axes.plot(at[style], printed * UNIT, "x", color=COLORS[style], ms=6, mew=1.5)
    axes.axhline(limit, color="k", lw=0.8, ls=":")
    axes.text(0.99, limit, "limit", transform=axes.get_yaxis_transform(), ha="right", va="bottom", fontsize=9)
    axes.plot([], [], "_", **BLOCK, label="a block, mix 0.9")
    axes.plot([], [], "^", **BLOCK, mfc="w", label="blocks that did not end")
    for style, mix in enumerate(MIXES):
        axes.plot([], [], label=f"first block that ended, mix {mix:g}", **marks(style))
    axes.plot([], [], "kx", ms=6, mew=1.5, label="printed in the paper")
    legend_below(figure)
