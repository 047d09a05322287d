"""Table VI of Jali, Karamchandani, Moharir: NS-TandS against NS-TS on noisy distances of few images.

Gaussian noise of variance 0.001 on normalised squared distances, delta = 0.1, n = 15, 25 and 50 images. Instances are
disjoint blocks of images; the first center is image 0 of each. Queries vary by a factor of 100, so ratios on the same
block are compared. A block counts if all its runs of NS-TS with mix 0 end within 150,000 queries.

NS-TandS solves for its weights every 100 queries, tracks differences (paper: omega - t/T) or ratios (ours: omega/t),
stops at the rate "loglog" or "log", and restarts the counts t and T at each stage or never ("printed").
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.figures import COLORS, legend_below, marks, side_by_side, split, ticks
from experiments.kcenter import common as runs
from experiments.kcenter.common import add_arguments as add_arguments
from experiments.kcenter.noisy import by_instance, slashed
from experiments.papers import printed_by_place
from experiments.report import Claim, Columns, Line, Report, chosen, joined, mean_se, means, number, plus_minus
from experiments.settings import Settings
from jaxbandits.kcenter import ns_tands, ns_ts

VARIANCE = 0.001
LIMIT = 150_000  # queries of NS-TS
TANDS_LIMIT = 10 * LIMIT
BLOCKS = {15: 20, 25: 12, 50: 20}
KS = {15: (3, 5), 25: (3, 5), 50: (3,)}
QUICK_KS = {15: (3,)}
MIXES = {"NS-TS, mix 0": 0.0, "NS-TS, mix 0.8": 0.8}
TS, TS_MIXED = MIXES
TANDS = {  # name: head of its column, settings
    "difference, loglog": ("diff loglog", {"tracking": "difference", "rate": "loglog"}),
    "difference, log": ("diff log", {"tracking": "difference", "rate": "log"}),
    "difference, loglog, printed reset": (
        "diff reset printed",
        {"tracking": "difference", "rate": "loglog", "reset": "printed"},
    ),
    "ratio, loglog": ("ratio loglog", {"tracking": "ratio", "rate": "loglog"}),
    "ratio, log": ("ratio log", {"tracking": "ratio", "rate": "log"}),
}
HEADS = {TS_MIXED: "TS .8"} | {name: head for name, (head, _) in TANDS.items()}
PRINTED = printed_by_place("kcenter", "table6")  # hundreds of queries: NS-TS with mix 0 and 0.8, NS-TandS


class Row(NamedTuple):
    """The blocks that count, until the first k centers."""

    means: dict[str, np.ndarray]  # (blocks,)  queries by rule, infinite where a run was censored
    ratios: dict[str, Line]  # queries over the queries of NS-TS with mix 0 on the same block
    matches: str  # runs with greedy's centers, among all that reached the k-th center


Table = dict[tuple[int, int], Row]  # (n, k) -> Row


def run(options: Settings) -> Report:
    sizes = QUICK_KS if options.quick else KS
    seeds = options.seeds or (2 if options.quick else 4)
    images = runs.images(options.data, max(n * BLOCKS[n] for n in sizes))
    shared = {"distances": images.distances, "noise_scale": VARIANCE**0.5, "options": options, "seeds": seeds}
    parts: dict[str, Columns] = {}
    table: Table = {}
    for n, ks in sizes.items():
        rows, heading = runs.blocks(n, BLOCKS[n]), f"kcenter table 6: NS-TS: n = {n}"
        budget = {"k": ks[-1], "max_rounds": LIMIT // 2}
        drawn = runs.distance_runs(heading, ns_ts, rows=rows, settings={"mix": [*MIXES.values()]}, **budget, **shared)
        parts[f"NS-TS, n = {n}"] = drawn | {"rule": np.where(drawn["mix"] == MIXES[TS], TS, TS_MIXED)}
        for k in ks:
            reached = {rule: runs.until(chosen(drawn, drawn["mix"] == mix), k) for rule, mix in MIXES.items()}
            counted = np.flatnonzero(np.isfinite(means(by_instance(reached[TS]))))
            reached = {rule: chosen(each, np.isin(each["instance"], counted)) for rule, each in reached.items()}
            for name, (_, settings) in TANDS.items():
                heading = f"kcenter table 6: NS-TandS, {name}: n = {n}, k = {k}"
                budget = {"k": k, "max_rounds": TANDS_LIMIT}
                rule = partial(ns_tands, **settings)
                columns = runs.distance_runs(heading, rule, rows=rows[counted], **budget, **shared)
                columns |= {"instance": counted[columns["instance"]], "rule": np.full(len(columns["row"]), name)}
                parts[f"{name}, n = {n}, k = {k}"], reached[name] = columns, runs.until(columns, k)
            ours = {rule: means(by_instance(each)) for rule, each in reached.items()}
            ratios = {rule: ratio(rule, (n, k), ours[rule] / ours[TS]) for rule in HEADS}
            table[n, k] = Row(ours, ratios, runs.matches(*map(runs.stopped, reached.values())))
    return Report(
        f"Table VI of Jali et al.: NS-TandS against NS-TS, {images.label}",
        [each for row in table.values() for each in row.ratios.values()],
        [*claims(table), runs.greedy_was_found(parts.values())],
        joined(parts, "sweep"),
        partial(draw, table=table),
        notes=notes(table, seeds),
        grid=[shown(n, k, row) for (n, k), row in table.items()],
    )


def ratio(rule: str, nk: tuple[int, int], values: np.ndarray) -> Line:
    """Returns the geometric mean over blocks, beside the paper's for one of these rates and the printed tracking."""
    known = np.log(values[np.isfinite(values)])
    mixless, mixed, tands = PRINTED[nk]
    printed = (mixed if rule == TS_MIXED else tands) / mixless
    log, error = mean_se(known)
    name, censored = "{}: n = {}, k = {}".format(rule, *nk), len(values) - len(known)
    return Line(name, float(np.exp(log)), float(np.exp(log) * error), len(values), censored, printed=printed)


def claims(table: Table) -> list[Claim]:
    claims = []
    for rate in ("loglog", "log"):
        few, many = (f"{tracking}, {rate}" for tracking in ("ratio", "difference"))
        pairs = {nk: (row.ratios[few].ours, row.ratios[many].ours) for nk, row in table.items()}
        statement = f"{few} takes fewer queries than {many} and than NS-TS, in every row"
        shown = (f"n = {n}, k = {k}: {less:.2f} against {more:.2f} and 1" for (n, k), (less, more) in pairs.items())
        claims.append(Claim(statement, "; ".join(shown), all(less < min(1, more) for less, more in pairs.values())))
    return claims


def shown(n: int, k: int, row: Row) -> dict[str, str]:
    paper = PRINTED[n, k]
    return {
        "n, k (blocks)": f"{n}, {k} ({len(row.means[TS])} of {BLOCKS[n]})",
        "paper: TS 0/.8/TandS": slashed(paper),
        "TandS/TS": f"{paper[2] / paper[0]:.2f}",
        "median TS 0": number(round(float(np.median(row.means[TS])))),
        **{head: plus_minus(row.ratios[rule], 2) for rule, head in HEADS.items()},
        "ordered (as a set)": row.matches,
    }


def notes(table: Table, seeds: int) -> tuple[str, ...]:
    def factors(many: str, few: str) -> str:
        return slashed(row.ratios[many].ours / row.ratios[few].ours for row in table.values())

    printed, loglog = "difference, loglog, printed reset", "difference, loglog"
    return (
        f"Ratios are to NS-TS with mix 0 on the same block, each from the means of {seeds} runs; shown is their "
        "geometric mean over blocks and its standard error. A block is censored (and left out) if one of its runs "
        f"took {TANDS_LIMIT:,} queries. The paper's are hundreds of queries.",
        f"The rate log takes {factors('difference, log', loglog)} times the queries of loglog with difference "
        f"tracking and {factors('ratio, log', 'ratio, loglog')} times with ratio tracking; never resetting the counts "
        f"takes {factors(printed, loglog)} times. The paper's table does not show which it used.",
    )


def draw(figure: Any, *, table: Table) -> None:
    axes = split(figure, (8, 4.8), 1, 1)
    for s, rule in enumerate(HEADS):
        label = rule if rule == TS_MIXED else f"NS-TandS: {rule}"
        for x, row in enumerate(table.values()):
            x_of_rule, mean = x + 0.13 * (s - (len(HEADS) - 1) / 2), row.ratios[rule]
            values = row.means[rule] / row.means[TS]
            axes.plot(np.full(len(values), x_of_rule), values, ".", color=COLORS[s], alpha=0.5, ms=5, mew=0)
            within = np.exp(2 * mean.se / mean.ours)
            bars = mean.ours * np.array([[1 - 1 / within], [within - 1]])
            axes.errorbar(x_of_rule, mean.ours, yerr=np.nan_to_num(bars), label=None if x else label, **marks(s))
    for x, paper in enumerate(PRINTED[nk] for nk in table):
        label = None if x else "NS-TandS: printed in the paper"
        axes.plot([x - 0.4, x + 0.4], 2 * [paper[2] / paper[0]], "k-", lw=1.5, label=label)
    axes.axhline(1, color="k", lw=0.8, ls=":")
    names = [f"n = {n}, k = {k}\n{len(row.means[TS])} blocks" for (n, k), row in table.items()]
    side_by_side(axes, names, yscale="log", ylabel="queries / queries of NS-TS, mix 0")
    ticks(axes, [0.1, 0.2, 0.5, 1, 2, 5], axis="y")
    axes.set_title("Table VI: tracking the optimal proportions, block by block")
    legend_below(figure)
