"""Table V of Jali, Karamchandani, Moharir: NS-TS on noisy distances of images, and how much the images matter.

Gaussian noise of variance 0.01 on normalised squared distances, delta = 0.1, n = 100, 500 and 1000 images, mix 0.9, 0.8
and 0. The paper names neither its images nor its first center: here instances are disjoint blocks of images, and the
first center is image 0 of each. A run ends with the tenth center or after two million queries.
"""

import itertools
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.claims import answers_are_right
from experiments.figures import COLORS, errorbars, legend_below, marks
from experiments.kcenter import common as runs
from experiments.kcenter import noisy
from experiments.kcenter.common import add_arguments as add_arguments
from experiments.kcenter.noisy import Cell, slashed, slashed_means
from experiments.papers import printed_by_place
from experiments.report import Claim, Line, Report, joined, line, mean_se
from experiments.settings import Settings

NOISE_SCALE = 0.1
MIXES = (0.9, 0.8, 0.0)
LIMIT = 2_000_000  # queries of a run
BLOCKS, KS = {100: 10, 500: 4, 1000: 2}, (3, 5, 7, 10)
QUICK_BLOCKS, QUICK_KS, QUICK_LIMIT = {100: 6}, (3, 5), 200_000
UNIT = 1e3
NEAR = 1.5  # factor between the mixes
LAW = 0.4, 2.0  # queries over 2 beta sum T*
BLOCK = {"color": "#777777", "ms": 9, "mew": 1.5}  # in the figure
PRINTED = printed_by_place("kcenter", "table5")  # thousands of queries, for mix 0.9, 0.8 and 0


class Instances(NamedTuple):
    """The blocks of one size until the first k centers."""

    cells: dict[float, list[Cell]]  # of every block, by mix
    expected: np.ndarray  # (blocks,)  queries by 2 beta sum T*

    @property
    def means(self) -> dict[float, np.ndarray]:
        """Of every block, infinite if a run was censored."""
        return {mix: np.array([each.mean for each in row]) for mix, row in self.cells.items()}

    @property
    def ended(self) -> np.ndarray:
        """The blocks all of whose runs ended."""
        return np.flatnonzero(np.isfinite(list(self.means.values())).all(axis=0))

    @property
    def first(self) -> dict[float, Cell]:
        """The first block all of whose runs ended; nothing if there is none."""
        return {mix: row[self.ended[0]] for mix, row in self.cells.items()} if len(self.ended) else {}


Table = dict[tuple[int, int], Instances]  # (n, k) -> Instances


def run(options: Settings) -> Report:
    sizes, ks, limit = (QUICK_BLOCKS, QUICK_KS, QUICK_LIMIT) if options.quick else (BLOCKS, KS, LIMIT)
    seeds = options.seeds or 2
    images = runs.images(options, max(n * count for n, count in sizes.items()))
    distances = images.distances
    shared = {"distances": distances, "k": ks[-1], "noise_scale": NOISE_SCALE, "mixes": MIXES, "limit": limit}
    shared |= {"options": options, "seeds": seeds}
    columns, table = {}, {}
    for n, count in sizes.items():
        rows = runs.blocks(n, count)
        columns[n] = noisy.thompson_runs(f"kcenter table 5: n = {n}", rows=rows, **shared)
        law = law_of(distances, rows, ks[-1])
        table |= {(n, k): Instances(noisy.cells_by_mix(columns[n], k), law[:, k - 2]) for k in ks}
    mistakes, total = (sum(map(count, columns.values())) for count in (noisy.wrong, lambda part: len(part["row"])))
    return Report(
        f"Table V of Jali et al.: thousands of queries of NS-TS, {images.label}",
        [each for (n, k), instances in table.items() for each in first_block_lines(n, k, instances, seeds)],
        [*claims(table), answers_are_right(mistakes, total, runs.DELTA)],
        joined({f"n = {n}": part for n, part in columns.items()}, "size"),
        partial(draw, table=table, limit=limit),
        notes=notes(table, seeds, limit),
        grid=[row(n, k, instances, limit) for (n, k), instances in table.items()],
    )


def law_of(distances: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
    """2 beta sum T* (blocks, k-1) until the second center, the third and so on."""
    times = [
        noisy.times(distances[np.ix_(row, row)], solution, NOISE_SCALE)
        for row, solution in zip(rows, runs.solutions(distances, rows, k), strict=True)
    ]
    return np.cumsum([noisy.expected(each, rows.shape[1]) for each in times], axis=1)


def first_block_lines(n: int, k: int, instances: Instances, seeds: int) -> list[Line]:
    """The first block that ended, beside the paper's instance."""
    if not instances.first:
        return [Line(f"n = {n}, k = {k}", np.nan, runs=seeds, censored=seeds, printed=PRINTED[n, k][0])]
    return [
        line(f"n = {n}, k = {k}, mix {mix}", found.queries / UNIT, printed=printed)
        for (mix, found), printed in zip(instances.first.items(), PRINTED[n, k], strict=True)
    ]


def claims(table: Table) -> list[Claim]:
    ratios = np.concatenate([each.means[mix] / each.expected for each in table.values() for mix in MIXES])
    ratios = ratios[np.isfinite(ratios)]
    # Each block once, until the last center that all its runs found.
    last = {(n, block): (instances, block) for (n, _), instances in table.items() for block in instances.ended}
    first, *others = (np.array([each.means[mix][block] for each, block in last.values()]) for mix in MIXES)
    logs = np.log(np.divide(others, first))
    means, errors = np.exp(logs.mean(axis=1)), mean_se(logs, axis=1)[1]
    shown = [
        f"{mix:g} / {MIXES[0]}: {mean:.2f} +- {mean * error:.2f}"
        for mix, mean, error in zip(MIXES[1:], means, errors, strict=True)
    ]
    return [
        Claim(
            f"mixes are within a factor {NEAR} of each other on one instance (geometric mean over those that ended)",
            f"{', '.join(shown)}; on a single one at most {np.exp(np.abs(logs).max()):.2f}",
            all(1 / NEAR < mean < NEAR for mean in means),
        ),
        Claim(
            f"queries are {LAW[0]} to {LAW[1]} times 2 beta sum T*, on every block that ended",
            f"{ratios.min():.2f} to {ratios.max():.2f}, {np.median(ratios):.2f} in the median",
            LAW[0] <= ratios.min() and ratios.max() <= LAW[1],
        ),
    ]


def row(n: int, k: int, instances: Instances, limit: float) -> dict[str, str]:
    found = list(itertools.chain(*instances.cells.values()))
    first = list(instances.first.values())
    means = instances.means[MIXES[0]]
    ratio = (means / instances.expected)[np.isfinite(means)]
    return {
        "n, k": f"{n}, {k}",
        "paper, mix .9/.8/0": slashed(PRINTED[n, k]),
        "block": str(instances.ended[0]) if first else "-",
        "ours on it": slashed_means(first, UNIT) if first else "-",
        "all blocks, mix .9": noisy.quantiles(means, limit, UNIT),
        "below paper": f"{np.sum(means < PRINTED[n, k][0] * UNIT)} of {len(means)}",
        "q / (2 beta T*)": f"{ratio.min():.2f} to {ratio.max():.2f}" if len(ratio) else "-",
        "runs ended": f"{sum(len(each.queries) for each in found)} of {sum(each.runs for each in found)}",
        "ordered (as a set)": noisy.matches(found),
    }


def notes(table: Table, seeds: int, limit: int) -> tuple[str, ...]:
    means = {n: instances.means[MIXES[0]] for (n, k), instances in table.items() if k == 3}
    easy, hard = [each.min() / UNIT for each in means.values()], [np.isinf(each).sum() for each in means.values()]
    return (
        f"Block b holds images b n to (b+1) n - 1. {seeds} runs of each block and mix, the ordered shares over all of "
        f"them; a block ended if all its runs did, within {limit:,} queries. Median and, in brackets, range over "
        "blocks of their means.",
        f"The gaps between the best and the second best candidate decide: for k = 3 the quickest block takes "
        f"{slashed(easy)} thousand queries (n = {slashed(list(means))}), and {slashed(hard)} "
        "blocks do not end. The paper's one instance is a draw from such a range.",
    )


def draw(figure: Any, *, table: Table, limit: float) -> None:
    axes = noisy.draw_by_place(figure, table, "Table V: NS-TS on noisy distances of images")
    axes.set_ylabel("queries until the k-th center")
    for x, ((n, k), instances) in enumerate(table.items()):
        blocks = instances.means[MIXES[0]]
        axes.plot(np.full(len(blocks), x - 0.2), blocks, "_", **BLOCK)
        axes.plot(x - 0.2, limit if np.isinf(blocks).any() else np.nan, "^", **BLOCK, mfc="w")
        for style, (mix, printed) in enumerate(zip(MIXES, PRINTED[n, k], strict=True)):
            at = x + 0.05 + 0.1 * style
            if found := instances.first.get(mix):
                errorbars(axes, at, found.mean, found.se, None, style, linestyle="")
            axes.plot(at, printed * UNIT, "x", color=COLORS[style], ms=6, mew=1.5)
    axes.axhline(limit, color="k", lw=0.8, ls=":")
    axes.text(0.99, limit, "limit", transform=axes.get_yaxis_transform(), ha="right", va="bottom", fontsize=9)
    axes.plot([], [], "_", **BLOCK, label="a block, mix 0.9")
    axes.plot([], [], "^", **BLOCK, mfc="w", label="blocks that did not end")
    for style, mix in enumerate(MIXES):
        axes.plot([], [], label=f"first block that ended, mix {mix:g}", **marks(style))
    axes.plot([], [], "kx", ms=6, mew=1.5, label="printed in the paper")
    legend_below(figure)
