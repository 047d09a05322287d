"""Table VI of Jali, Karamchandani, Moharir: NS-TandS against NS-TS on noisy distances of few images.

Gaussian noise of variance 0.001 on normalised squared distances, delta = 0.1, n = 15, 25 and 50 images. The paper names
neither its images nor its first center, and queries vary by a factor of 100: here instances are disjoint blocks of
images, the first center is image 0 of each, and what is compared are ratios on the same block. Blocks count on which
all runs of NS-TS with mix 0 end within 150,000 queries; NS-TandS may take ten times as many. It solves for its weights
every 100 queries (the paper does not say; perhaps at every one).

NS-TandS tracks differences (the paper: omega - t/T) or ratios (ours: omega/t), stops at the rate "loglog" or "log", and
counts t and T anew at each stage or never ("printed").
"""

from argparse import ArgumentParser, Namespace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments import _kcenter as runs
from experiments._kcenter_noisy import Cell, cell, cells_by_mix, slashed, thompson_runs
from experiments.report import STYLES, Claim, Line, Report, joined, number
from jaxbandits.kcenter import Pull, ns_tands

VARIANCE = 0.001
MIXES = (0.0, 0.8)
LIMIT = 150_000  # queries of NS-TS
TANDS_LIMIT = 10 * LIMIT
BLOCKS = {15: 20, 25: 12, 50: 20}
KS = {15: (3, 5), 25: (3, 5), 50: (3,)}
QUICK_KS = {15: (3,)}
TS, TS_MIXED = (f"NS-TS, mix {mix:g}" for mix in MIXES)
TANDS = {
    "difference, loglog": {"tracking": "difference", "rate": "loglog"},
    "difference, log": {"tracking": "difference", "rate": "log"},
    "difference, loglog, printed reset": {"tracking": "difference", "rate": "loglog", "reset": "printed"},
    "ratio, loglog": {"tracking": "ratio", "rate": "loglog"},
    "ratio, log": {"tracking": "ratio", "rate": "log"},
}
RULES = (TS_MIXED, *TANDS)
# Hundreds of queries: NS-TS with mix 0 and 0.8, NS-TandS.
PRINTED = {
    (15, 3): (137, 137, 85),
    (15, 5): (208, 204, 137),
    (25, 3): (32, 30, 30),
    (25, 5): (180, 157, 206),
    (50, 3): (29, 25, 71),
}
# By another program: blocks, median queries of NS-TS with mix 0, geometric means of the ratios to it.
OTHER = {
    (15, 3): (19, 6955, (0.94, 0.49, 0.65, 0.49, 0.28, 0.44)),
    (15, 5): (10, 25980, (1.02, 0.75, 1.44, 0.84, 0.34, 0.54)),
    (25, 3): (12, 10224, (0.94, 0.90, 1.35, 0.82, 0.37, 0.57)),
    (25, 5): (9, 23012, (0.93, 0.98, 1.53, 1.52, 0.43, 0.64)),
    (50, 3): (6, 7372, (0.98, 0.60, 1.35, 1.31, 0.55, 0.64)),
}


class Row(NamedTuple):
    """The blocks of one size that count, until the first k centers."""

    blocks: int
    cells: dict[str, list[Cell]]  # of every block that counts, by rule


class Ratio(NamedTuple):
    """Queries over those of NS-TS with mix 0 on the same block."""

    mean: float  # geometric, over the blocks that ended
    error: float  # relative, one standard error
    values: np.ndarray  # (ended,)
    censored: int  # blocks


Table = dict[tuple[int, int], Row]  # (n, k) -> Row


def add_arguments(parser: ArgumentParser) -> None:
    runs.add_data_argument(parser)


def run(options: Namespace) -> Report:
    sizes = QUICK_KS if options.quick else KS
    seeds = options.seeds or (2 if options.quick else 4)
    images = runs.images(options, max(n * BLOCKS[n] for n in sizes))
    parts: dict[str, dict[str, np.ndarray]] = {}
    table: Table = {}
    for n, ks in sizes.items():
        rows = runs.blocks(n, BLOCKS[n])
        thompson = thompson_runs(
            f"kcenter table 6: NS-TS: n = {n}",
            images.distances,
            rows,
            k=ks[-1],
            noise_scale=VARIANCE**0.5,
            mixes=MIXES,
            limit=LIMIT,
            options=options,
            seeds=seeds,
        )
        rule = np.where(thompson.mix == MIXES[0], TS, TS_MIXED)
        parts[f"NS-TS, n = {n}"] = thompson.columns | {"block": thompson.block, "rule": rule}
        for k in ks:
            by_mix = cells_by_mix(thompson, k)
            cells = {name: [each[mix] for each in by_mix] for name, mix in zip((TS, TS_MIXED), MIXES, strict=True)}
            counted = np.flatnonzero([np.isfinite(each.mean) for each in cells[TS]])
            cells = {name: [found[b] for b in counted] for name, found in cells.items()}
            for name, settings in TANDS.items():
                columns = runs.distance_runs(
                    f"kcenter table 6: NS-TandS, {name}: n = {n}, k = {k}",
                    partial(ns_tands, delta=runs.DELTA, **settings),
                    images.distances,
                    rows[counted],
                    k=k,
                    action=Pull,
                    noise_scale=VARIANCE**0.5,
                    options=options,
                    seeds=seeds,
                    max_rounds=TANDS_LIMIT,
                ).columns
                cells[name] = [
                    cell(columns, columns["row"] == i, thompson.truths[b].centers, k) for i, b in enumerate(counted)
                ]
                label = {"block": counted[columns["row"]], "rule": np.full(len(columns["row"]), name)}
                parts[f"{name}, n = {n}, k = {k}"] = columns | label
            table[n, k] = Row(len(rows), cells)

    return Report(
        f"Table VI of Jali et al.: NS-TandS against NS-TS, {images.label}",
        lines(table),
        [*claims(table), runs.greedy_was_found(parts.values())],
        joined(parts, "sweep"),
        partial(draw, table=table),
        notes=notes(table, seeds),
        grid=grid(table, compare=options.data is not None),
    )


def ratio(row: Row, name: str) -> Ratio:
    means = np.array([[each.mean for each in row.cells[rule]] for rule in (name, TS)])
    known = np.isfinite(means[0])
    values = means[0, known] / means[1, known]
    logs = np.log(values)
    error = float(logs.std(ddof=1) / np.sqrt(len(logs))) if len(logs) > 1 else np.nan
    return Ratio(float(np.exp(logs.mean())) if len(logs) else np.nan, error, values, int((~known).sum()))


def lines(table: Table) -> list[Line]:
    """Ratios; the paper's NS-TandS stands beside the printed tracking, which took one of these rates."""
    found = []
    for (n, k), row in table.items():
        mixless, mixed, tands = PRINTED[n, k]
        for name in RULES:
            mean, error, values, censored = ratio(row, name)
            printed = mixed / mixless if name == TS_MIXED else tands / mixless if name in TANDS else None
            quantity = f"{name}: n = {n}, k = {k}"
            found.append(Line(quantity, mean, mean * error, len(values) + censored, censored, printed=printed))
    return found


def claims(table: Table) -> list[Claim]:
    pairs = [("ratio, loglog", "difference, loglog"), ("ratio, log", "difference, log")]
    return [
        Claim(
            f"{few} takes fewer queries than {many} and than NS-TS, in every row",
            "; ".join(
                f"n = {n}, k = {k}: {ratio(row, few).mean:.2f} against {ratio(row, many).mean:.2f} and 1"
                for (n, k), row in table.items()
            ),
            all(ratio(row, few).mean < min(1, ratio(row, many).mean) for row in table.values()),
        )
        for few, many in pairs
    ]


def grid(table: Table, *, compare: bool) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    head = (
        "n, k (blocks)",
        "paper: TS 0/.8/TandS",
        "TandS/TS",
        "median TS 0",
        "TS .8",
        "diff loglog",
        "diff log",
        "diff reset printed",
        "ratio loglog",
        "ratio log",
        "ordered",
        "as a set",
    )
    body = []
    for (n, k), row in table.items():
        cells = [each for found in row.cells.values() for each in found]
        reached = sum(len(each.queries) for each in cells)

        def shown(name: str, row: Row = row) -> str:
            mean, error, _, censored = ratio(row, name)
            return f"{mean:.2f} +- {mean * error:.2f}" + (f" ({censored} cens.)" if censored else "")

        body.append(
            (
                f"{n}, {k} ({len(row.cells[TS])} of {row.blocks})",
                slashed(PRINTED[n, k]),
                f"{PRINTED[n, k][2] / PRINTED[n, k][0]:.2f}",
                number(round(float(np.median([each.mean for each in row.cells[TS]])))),
                *map(shown, RULES),
                f"{sum(each.ordered for each in cells)} of {reached}",
                f"{sum(each.members for each in cells)} of {reached}",
            )
        )
        if compare:
            blocks, median, ratios = OTHER[n, k]
            other = (f"  another program ({blocks})", "", "", number(median), *(f"{x:.2f}" for x in ratios), "", "")
            body.append(other)
    return head, body


def notes(table: Table, seeds: int) -> tuple[str, ...]:
    def factors(many: str, few: str) -> str:
        return slashed([ratio(row, many).mean / ratio(row, few).mean for row in table.values()])

    printed, loglog = "difference, loglog, printed reset", "difference, loglog"
    return (
        f"Ratios are to NS-TS with mix 0 on the same block, each from the means of {seeds} runs; shown is their "
        "geometric mean over blocks and its standard error. A block is censored (and left out) if one of its runs "
        f"took {TANDS_LIMIT:,} queries. The paper's are hundreds of queries.",
        f"The rate log takes {factors('difference, log', loglog)} times the queries of loglog with difference "
        f"tracking and {factors('ratio, log', 'ratio, loglog')} times with ratio tracking; never to reset the counts "
        f"takes {factors(printed, loglog)} times. Which of them the paper used its table does not tell.",
    )


def draw(figure: Any, *, table: Table) -> None:
    figure.set_size_inches(8, 4.8)
    axes = figure.subplots()
    styles = [*STYLES, {"marker": "P", "linestyle": "", "color": "#555555"}]
    for s, name in enumerate(RULES):
        marks = styles[s] | {"linestyle": ""}
        label = name if name == TS_MIXED else f"NS-TandS: {name}"
        for x, row in enumerate(table.values()):
            mean, error, values, _ = ratio(row, name)
            place = x + 0.13 * (s - (len(RULES) - 1) / 2)
            axes.plot(np.full(len(values), place), values, ".", color=marks["color"], alpha=0.5, ms=5, mew=0)
            bars = mean * np.array([[1 - np.exp(-2 * error)], [np.exp(2 * error) - 1]])
            axes.errorbar(place, mean, yerr=np.nan_to_num(bars), mfc="w", label=None if x else label, **marks)
    for x, (n, k) in enumerate(table):
        label = None if x else "NS-TandS: printed in the paper"
        axes.plot([x - 0.4, x + 0.4], 2 * [PRINTED[n, k][2] / PRINTED[n, k][0]], "k-", lw=1.5, label=label)
    axes.axhline(1, color="k", lw=0.8, ls=":")
    ticks = [0.1, 0.2, 0.5, 1, 2, 5]
    axes.set(yscale="log", ylabel="queries over those of NS-TS, mix 0", xticks=range(len(table)))
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_xticklabels([f"n = {n}, k = {k}\n{len(row.cells[TS])} blocks" for (n, k), row in table.items()])
    axes.set_title("Table VI: tracking the optimal proportions, block by block")
    axes.grid(axis="x", visible=False)
    figure.legend(loc="outside lower center", ncols=3, fontsize=9)
