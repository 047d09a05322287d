"""Table V of Jali, Karamchandani, Moharir: NS-TS on noisy distances of images, and how much the images matter.

Gaussian noise of variance 0.01 on normalised squared distances, delta = 0.1, n = 100, 500 and 1000 images, mix 0.9, 0.8
and 0. The paper names neither its images nor its first center: here instances are disjoint blocks of images, and the
first center is image 0 of each. A run ends with the tenth center or after two million queries, and says when it had
three, five and seven.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.claims import answers_are_right
from experiments.figures import COLORS, errorbars, marks
from experiments.kcenter import common as runs
from experiments.kcenter import noisy
from experiments.kcenter.common import add_arguments as add_arguments
from experiments.kcenter.noisy import Cell, ended, slashed
from experiments.papers import printed_by_place
from experiments.report import Claim, Line, Report, joined, line
from experiments.settings import Settings

NOISE_SCALE = 0.1
MIXES = (0.9, 0.8, 0.0)
LIMIT = 2_000_000  # queries of a run
BLOCKS = {100: 10, 500: 4, 1000: 2}
KS = (3, 5, 7, 10)
QUICK_BLOCKS, QUICK_KS, QUICK_LIMIT = {100: 6}, (3, 5), 200_000
UNIT = 1e3
NEAR = 1.5  # factor between the mixes
LAW = 0.4, 2.0  # queries over 2 beta sum T*
PRINTED = printed_by_place("kcenter", "table5")  # thousands of queries, for mix 0.9, 0.8 and 0


class Instances(NamedTuple):
    """The blocks of one size until the first k centers."""

    cells: list[dict[float, Cell]]  # of every block, by mix
    expected: np.ndarray  # (blocks,)  queries by 2 beta sum T*

    @property
    def first(self) -> int | None:
        """The first block all of whose runs ended."""
        return next((b for b, mixes in enumerate(self.cells) if ended(list(mixes.values()))), None)

    def means(self, mix: float) -> np.ndarray:
        """Of every block, infinite if a run was censored."""
        return np.array([mixes[mix].mean for mixes in self.cells])


Table = dict[tuple[int, int], Instances]  # (n, k) -> Instances


def run(options: Settings) -> Report:
    sizes, ks, limit = (QUICK_BLOCKS, QUICK_KS, QUICK_LIMIT) if options.quick else (BLOCKS, KS, LIMIT)
    seeds = options.seeds or 2
    images = runs.images(options, max(n * count for n, count in sizes.items()))
    distances = images.distances
    table: Table = {}
    columns, lines, mistakes = {}, [], 0
    for n, count in sizes.items():
        rows = runs.blocks(n, count)
        budget = {"k": ks[-1], "noise_scale": NOISE_SCALE, "mixes": MIXES, "limit": limit}
        found = noisy.thompson_runs(
            f"kcenter table 5: n = {n}", distances, rows, **budget, options=options, seeds=seeds
        )
        columns[f"n = {n}"] = found.columns | {"mix": found.mix, "block": found.block}
        mistakes += noisy.wrong(found.columns)
        law = [
            np.cumsum(noisy.expected(noisy.times(distances[np.ix_(row, row)], truth, NOISE_SCALE), n))
            for row, truth in zip(rows, found.truths, strict=True)
        ]
        for k in ks:
            table[n, k] = Instances(noisy.cells_by_mix(found, k), np.array([queries[k - 2] for queries in law]))
            lines += first_block_lines(n, k, table[n, k], seeds)

    return Report(
        f"Table V of Jali et al.: thousands of queries of NS-TS, {images.label}",
        lines,
        claims(table, (mistakes, sum(len(part["row"]) for part in columns.values()))),
        joined(columns, "size"),
        partial(draw, table=table, limit=limit),
        notes=notes(table, seeds, limit),
        grid=[row(n, k, instances, limit) for (n, k), instances in table.items()],
    )


def first_block_lines(n: int, k: int, instances: Instances, seeds: int) -> list[Line]:
    """The first block that ended, beside the paper's instance."""
    if instances.first is None:
        return [Line(f"n = {n}, k = {k}", np.nan, runs=seeds, censored=seeds, printed=PRINTED[n, k][0])]
    return [
        line(f"n = {n}, k = {k}, mix {mix}", found.queries / UNIT, printed=printed, note=f"block {instances.first}")
        for (mix, found), printed in zip(instances.cells[instances.first].items(), PRINTED[n, k], strict=True)
    ]


def claims(table: Table, mistakes: tuple[int, int]) -> list[Claim]:
    ratios = np.concatenate([each.means(mix) / each.expected for each in table.values() for mix in MIXES])
    ratios = ratios[np.isfinite(ratios)]
    logs = {mix: np.log(quotients) for mix, quotients in against_first_mix(table).items()}
    means = {mix: np.exp(values.mean()) for mix, values in logs.items()}
    errors = {mix: means[mix] * values.std(ddof=1) / np.sqrt(len(values)) for mix, values in logs.items()}
    worst = max(np.exp(np.abs(values).max()) for values in logs.values())
    return [
        Claim(
            f"mixes are within a factor {NEAR} of each other on one instance (geometric mean over those that ended)",
            ", ".join(f"{mix:g} / {MIXES[0]}: {means[mix]:.2f} +- {errors[mix]:.2f}" for mix in logs)
            + f"; on a single one at most {worst:.2f}",
            all(1 / NEAR < mean < NEAR for mean in means.values()),
        ),
        Claim(
            f"queries are {LAW[0]} to {LAW[1]} times 2 beta sum T*, on every block that ended",
            f"{ratios.min():.2f} to {ratios.max():.2f}, {np.median(ratios):.2f} in the median",
            LAW[0] <= ratios.min() and ratios.max() <= LAW[1],
        ),
        answers_are_right(*mistakes, runs.DELTA),
    ]


def against_first_mix(table: Table) -> dict[float, np.ndarray]:
    """Queries of the other mixes over those of the first, each block once: until the last center all runs found."""
    last: dict[tuple[int, int], dict[float, Cell]] = {}
    for (n, _), instances in table.items():
        last |= {(n, b): cells for b, cells in enumerate(instances.cells) if ended(list(cells.values()))}
    return {mix: np.array([cells[mix].mean / cells[MIXES[0]].mean for cells in last.values()]) for mix in MIXES[1:]}


def row(n: int, k: int, instances: Instances, limit: float) -> dict[str, str]:
    found = [each for mixes in instances.cells for each in mixes.values()]
    first = [] if instances.first is None else list(instances.cells[instances.first].values())
    means = instances.means(MIXES[0])
    ratio = (means / instances.expected)[np.isfinite(means)]
    return {
        "n, k": f"{n}, {k}",
        "paper, mix .9/.8/0": slashed(PRINTED[n, k]),
        "block": str(instances.first) if first else "-",
        "ours on it": slashed([each.mean for each in first], UNIT) or "-",
        "s.e.": slashed([each.se for each in first], UNIT) or "-",
        "all blocks, mix .9": noisy.quantiles(means, limit, UNIT),
        "below paper": f"{np.sum(means < PRINTED[n, k][0] * UNIT)} of {len(means)}",
        "q / (2 beta T*)": f"{ratio.min():.2f} to {ratio.max():.2f}" if len(ratio) else "-",
        "runs ended": f"{sum(len(each.queries) for each in found)} of {sum(each.runs for each in found)}",
        **noisy.ordered_cells(found),
    }


def notes(table: Table, seeds: int, limit: int) -> tuple[str, ...]:
    easy = [means.min() / UNIT for (_, k), instances in table.items() if k == 3 for means in [instances.means(0.9)]]
    hard = [sum(np.isinf(instances.means(0.9))) for (_, k), instances in table.items() if k == 3]
    return (
        f"Block b holds images b n to (b+1) n - 1. {seeds} runs of each block and mix, the ordered shares over all of "
        f"them; a block ended if all its runs did, within {limit:,} queries. Median and, in brackets, range over "
        "blocks of their means.",
        f"The gaps between the best and the second best candidate decide: for k = 3 the quickest block takes "
        f"{slashed(easy)} thousand queries (n = {slashed([n for n, k in table if k == 3])}), and {slashed(hard)} "
        "blocks do not end. The paper's one instance is a draw from such a range.",
    )


def draw(figure: Any, *, table: Table, limit: float) -> None:
    title = "Table V: NS-TS on noisy distances of images"
    axes = noisy.draw_by_place(figure, table, title, "queries until the k-th center")
    for x, ((n, k), instances) in enumerate(table.items()):
        noisy.scatter(axes, x - 0.2, instances.means(MIXES[0]), limit, color="#777777", ms=9, mew=1.5)
        for style, (mix, printed) in enumerate(zip(MIXES, PRINTED[n, k], strict=True)):
            place = x + 0.05 + 0.1 * style
            if instances.first is not None:
                found = instances.cells[instances.first][mix]
                errorbars(axes, place, found.mean, found.se, None, style, linestyle="")
            axes.plot(place, printed * UNIT, "x", color=COLORS[style], ms=6, mew=1.5)
    axes.axhline(limit, color="k", lw=0.8, ls=":")
    axes.text(0.99, limit, "limit", transform=axes.get_yaxis_transform(), ha="right", va="bottom", fontsize=9)
    axes.plot([], [], "_", color="#777777", ms=9, mew=1.5, label="a block, mix 0.9")
    axes.plot([], [], "^", color="#777777", mfc="w", ms=9, mew=1.5, label="blocks that did not end")
    for style, mix in enumerate(MIXES):
        axes.plot([], [], label=f"first block that ended, mix {mix:g}", **marks(style))
    axes.plot([], [], "kx", ms=6, mew=1.5, label="printed in the paper")
    figure.legend(loc="outside lower center", ncols=3, fontsize=9)
