"""Table VI of Jali, Karamchandani, Moharir: NS-TandS against NS-TS on noisy distances of few images.

Gaussian noise of variance 0.001 on normalised squared distances, delta = 0.1, n = 15, 25 and 50 images. Instances are
disjoint blocks of images, the first center is image 0 of each, and ratios on the same block are compared, as queries
vary by a factor of 100. Blocks count on which all runs of NS-TS with mix 0 end within 150,000 queries.

NS-TandS solves for its weights every 100 queries, tracks differences (paper: omega - t/T) or ratios (ours: omega/t),
stops at the rate "loglog" or "log", and counts t and T anew at each stage or never ("printed").
"""

import itertools
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.figures import COLORS, legend_below, marks, side_by_side, split, ticks
from experiments.kcenter import common as runs
from experiments.kcenter.common import add_arguments as add_arguments
from experiments.kcenter.noisy import Cell, cells_by_instance, cells_by_mix, matches, slashed, thompson_runs
from experiments.papers import printed_by_place
from experiments.report import Claim, Columns, Line, Report, joined, mean_se, number, plus_minus
from experiments.settings import Settings
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
HEADS = ("TS .8", "diff loglog", "diff log", "diff reset printed", "ratio loglog", "ratio log")  # of RULES
PRINTED = printed_by_place("kcenter", "table6")  # hundreds of queries: NS-TS with mix 0 and 0.8, NS-TandS

Row = dict[str, list[Cell]]  # by rule: every block that counts, until the first k centers
Table = dict[tuple[int, int], Row]  # (n, k) -> Row


class Ratio(NamedTuple):
    """Queries over those of NS-TS with mix 0 on the same block."""

    mean: float  # geometric, over the blocks that ended
    error: float  # relative, one standard error
    values: np.ndarray  # (ended,)
    censored: int  # blocks


def run(options: Settings) -> Report:
    sizes = QUICK_KS if options.quick else KS
    seeds = options.seeds or (2 if options.quick else 4)
    images = runs.images(options, max(n * BLOCKS[n] for n in sizes))
    shared = {"distances": images.distances, "noise_scale": VARIANCE**0.5, "options": options, "seeds": seeds}
    parts: dict[str, Columns] = {}
    table: Table = {}
    for n, ks in sizes.items():
        rows, heading = runs.blocks(n, BLOCKS[n]), f"kcenter table 6: NS-TS: n = {n}"
        thompson = thompson_runs(heading, rows=rows, k=ks[-1], mixes=MIXES, limit=LIMIT, **shared)
        parts[f"NS-TS, n = {n}"] = thompson | {"rule": np.where(thompson["mix"] == MIXES[0], TS, TS_MIXED)}
        for k in ks:
            by_rule = dict(zip((TS, TS_MIXED), cells_by_mix(thompson, k).values(), strict=True))
            counted = np.flatnonzero([np.isfinite(each.mean) for each in by_rule[TS]])
            table[n, k] = {rule: [found[block] for block in counted] for rule, found in by_rule.items()}
            for name, settings in TANDS.items():
                heading = f"kcenter table 6: NS-TandS, {name}: n = {n}, k = {k}"
                budget = {"k": k, "action": Pull, "max_rounds": TANDS_LIMIT}
                rule = partial(ns_tands, delta=runs.DELTA, **settings)
                columns = runs.distance_runs(heading, rule, rows=rows[counted], **budget, **shared)
                table[n, k][name] = cells_by_instance(columns, k)
                label = {"instance": counted[columns["instance"]], "rule": np.full(len(columns["row"]), name)}
                parts[f"{name}, n = {n}, k = {k}"] = columns | label

    return Report(
        f"Table VI of Jali et al.: NS-TandS against NS-TS, {images.label}",
        [ratio_line(name, place, row) for place, row in table.items() for name in RULES],
        [*claims(table), runs.greedy_was_found(parts.values())],
        joined(parts, "sweep"),
        partial(draw, table=table),
        notes=notes(table, seeds),
        grid=[shown(n, k, row) for (n, k), row in table.items()],
    )


def ratio(row: Row, name: str) -> Ratio:
    ours, base = (np.array([each.mean for each in row[rule]]) for rule in (name, TS))
    known = np.isfinite(ours)
    values = ours[known] / base[known]
    mean, error = mean_se(np.log(values))
    return Ratio(float(np.exp(mean)), float(error), values, int((~known).sum()))


def ratio_line(name: str, place: tuple[int, int], row: Row) -> Line:
    """A ratio; the paper's NS-TandS stands beside the printed tracking, which took one of these rates."""
    mean, error, values, censored = ratio(row, name)
    mixless, mixed, tands = PRINTED[place]
    printed = (mixed if name == TS_MIXED else tands) / mixless
    quantity = "{}: n = {}, k = {}".format(name, *place)
    return Line(quantity, mean, mean * error, len(values) + censored, censored, printed=printed)


def claims(table: Table) -> list[Claim]:
    found = []
    for few, many in (("ratio, loglog", "difference, loglog"), ("ratio, log", "difference, log")):
        pairs = {place: (ratio(row, few).mean, ratio(row, many).mean) for place, row in table.items()}
        statement = f"{few} takes fewer queries than {many} and than NS-TS, in every row"
        shown = (f"n = {n}, k = {k}: {less:.2f} against {more:.2f} and 1" for (n, k), (less, more) in pairs.items())
        found.append(Claim(statement, "; ".join(shown), all(less < min(1, more) for less, more in pairs.values())))
    return found


def shown(n: int, k: int, row: Row) -> dict[str, str]:
    return {
        "n, k (blocks)": f"{n}, {k} ({len(row[TS])} of {BLOCKS[n]})",
        "paper: TS 0/.8/TandS": slashed(PRINTED[n, k]),
        "TandS/TS": f"{PRINTED[n, k][2] / PRINTED[n, k][0]:.2f}",
        "median TS 0": number(round(float(np.median([each.mean for each in row[TS]])))),
        **{head: plus_minus(ratio_line(name, (n, k), row), 2) for head, name in zip(HEADS, RULES, strict=True)},
        "ordered (as a set)": matches(itertools.chain(*row.values())),
    }


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
    axes = split(figure, (8, 4.8), 1, 1)
    for s, name in enumerate(RULES):
        label = name if name == TS_MIXED else f"NS-TandS: {name}"
        for x, row in enumerate(table.values()):
            mean, error, values, _ = ratio(row, name)
            place = x + 0.13 * (s - (len(RULES) - 1) / 2)
            axes.plot(np.full(len(values), place), values, ".", color=COLORS[s], alpha=0.5, ms=5, mew=0)
            bars = mean * np.array([[1 - np.exp(-2 * error)], [np.exp(2 * error) - 1]])
            axes.errorbar(place, mean, yerr=np.nan_to_num(bars), label=None if x else label, **marks(s))
    for x, printed in enumerate(PRINTED[place] for place in table):
        label = None if x else "NS-TandS: printed in the paper"
        axes.plot([x - 0.4, x + 0.4], 2 * [printed[2] / printed[0]], "k-", lw=1.5, label=label)
    axes.axhline(1, color="k", lw=0.8, ls=":")
    names = [f"n = {n}, k = {k}\n{len(row[TS])} blocks" for (n, k), row in table.items()]
    side_by_side(axes, names, yscale="log", ylabel="queries over those of NS-TS, mix 0")
    ticks(axes, [0.1, 0.2, 0.5, 1, 2, 5], axis="y")
    axes.set_title("Table VI: tracking the optimal proportions, block by block")
    legend_below(figure)
