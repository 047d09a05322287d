"""Table VII of Jali, Karamchandani, Moharir: k-center from people's judgements of shoes.

Bernoulli queries whose chances are the distances that judgements give (Zappos, the first n shoes), delta = 0.1; Random
sampling, NS-TS with mix 0.9, 0.7 and 0, NS-TandS. The paper does not name its first center: here it is the one whose
2 beta sum T* is nearest to the printed queries of NS-TS. NS-TandS stops at the rate "loglog" and tracks differences
(the paper: omega - t/T) or ratios (ours: omega/t).
"""

import math
from argparse import ArgumentParser
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.claims import above, below, between
from experiments.figures import COLORS, legend_below, marks, points
from experiments.kcenter import common as runs
from experiments.kcenter import noisy
from experiments.kcenter.noisy import known, slashed, slashed_means
from experiments.papers import printed_by_place
from experiments.report import Claim, Columns, Line, Report, joined, line_of, listed, number
from experiments.settings import Settings
from jaxbandits.base import Algorithm
from jaxbandits.kcenter import Greedy, greedy, ns_random, ns_tands, ns_ts

MIXES = (0.9, 0.7, 0.0)
KS = {55: (3, 5, 7, 10), 45: (5,), 35: (5,), 25: (5,), 15: (5,)}
SIZES, QUICK = (55, 25, 15), (25,)
RANDOM_SIZES = (25, 15)
MANY = 25  # number of nodes from which on runs are long, so one is made instead of several
TEST_EVERY = 1024  # queries per round of Random
LIMIT = 100_000_000  # budget of a run in rounds
UNIT = 1e4
CHOICE = 28.0  # beta for the choice of the first center
TS, RANDOM = (*(f"NS-TS, mix {mix:g}" for mix in MIXES),), "Random"
TANDS = {"NS-TandS, difference": "difference", "NS-TandS, ratio": "ratio"}
DIFFERENCE, RATIO = TANDS
# A run of difference tracking with k = 5 or 7 at n = 55 takes an hour.
TRACKED = {(55, 3): TANDS, (25, 5): TANDS, (15, 5): TANDS} | {(n, 5): [RATIO] for n in (55, 45, 35)}
RULES = (RANDOM, *TS, DIFFERENCE, RATIO)
PRINTED = {  # (n, k) -> rule -> ten thousands of queries
    nk: dict(zip(RULES, (*row, row[-1]), strict=True)) for nk, row in printed_by_place("kcenter", "table7").items()
}


class Row(NamedTuple):
    """One instance until the first k centers, in units of UNIT."""

    first: int  # center
    lines: dict[str, Line]  # rule -> queries
    matches: str  # runs with greedy's centers, among all that reached the k-th center
    times: float  # sum of T* over the stages
    expected: float  # 2 beta sum T*

    def mean(self, rule: str) -> float:
        """Returns the mean of a rule; infinite if a run was censored."""
        return known(self.lines[rule]).ours


Table = dict[tuple[int, int], Row]  # (n, k) -> Row
Sweeps = dict[tuple[str, int], Columns]  # (rule, k) -> columns; k = 0: of all k at once


def add_arguments(parser: ArgumentParser) -> None:
    runs.add_arguments(parser)
    what = f"shoes of the instances (default: {' '.join(map(str, SIZES))}; 45 and 35 take as long as 55)"
    parser.add_argument("--sizes", type=int, nargs="+", choices=KS, help=what)


def run(options: Settings) -> Report:
    sizes = options.extra["sizes"] or (QUICK if options.quick else SIZES)
    table: Table = {}
    parts: dict[str, Columns] = {}
    label, shown = "", {"unit": UNIT, "printed_runs": 10}
    for n in sizes:
        distances, label = runs.judgements(options.data, n)
        solution = likely(distances, n)
        first, times = int(solution.centers[0]), noisy.times(distances, solution, None)
        law = noisy.expected(times, n)
        sweeps = sweeps_of(n, distances, first, options)
        for k in KS[n]:
            columns_of = {rule: sweeps.get((rule, k), sweeps.get((rule, 0))) for rule in RULES}
            reached = {rule: runs.until(columns, k) for rule, columns in columns_of.items() if columns}
            lines = {
                rule: line_of(f"{rule}: n = {n}, k = {k}", columns, printed=PRINTED[n, k][rule], **shown)
                for rule, columns in reached.items()
            }
            matches = runs.matches(*map(runs.stopped, reached.values()))
            table[n, k] = Row(first, lines, matches, times[: k - 1].sum() / UNIT, law[: k - 1].sum() / UNIT)
        parts |= {f"{rule}, n = {n}, k = {k or KS[n][-1]}": columns for (rule, k), columns in sweeps.items()}

    over_law = [row.mean(TS[0]) / row.expected for row in table.values()]
    counts = ", ".join(f"{row.lines[TS[0]].runs} for n = {n}" for (n, k), row in table.items() if k == 5)
    return Report(
        f"Table VII of Jali et al.: ten thousands of queries, {label}",
        [each for row in table.values() for each in row.lines.values()],
        [
            *(claims(table) if options.data is not None else []),
            between("NS-TS takes half to one and a half times 2 beta sum T*", over_law, 0.5, 1.5, ".2f"),
            runs.greedy_was_found(parts.values()),
        ],
        joined(parts, "sweep"),
        partial(draw, table=table),
        notes=(
            f"Runs: {counts}; means and their standard errors. Random makes {TEST_EVERY} queries per round, which "
            f"keeps its law except that it stops up to {TEST_EVERY - 1} queries late. Cells without a number have not "
            "been run; they take from ten minutes to hours.",
            "The paper's first center is unknown, and its numbers are for one instance. Ours was chosen by its T* to "
            "resemble it, so levels are comparable within a factor of two, and ratios between rules more closely.",
        ),
        grid=[each for (n, k), row in table.items() for each in rows(n, k, row)],
    )


def likely(distances: np.ndarray, n: int) -> Greedy:
    """Computes greedy's centers from the first center whose 2 beta sum T* is nearest, in logarithm, to the printed
    queries.

    Stages that end in a tie, or on certain judgements, have no such number.
    """
    solutions, misses = [], []
    for first in range(n):
        solution = greedy(distances, k=KS[n][-1], first_center=first)
        if np.all((solution.gaps > 0) & (solution.bottlenecks > 0) & (solution.bottlenecks < 1)):
            law = np.cumsum(2 * CHOICE * noisy.times(distances, solution, None))
            solutions.append(solution)
            misses.append(sum(abs(np.log(law[k - 2] / UNIT / PRINTED[n, k][TS[0]])) for k in KS[n]))
    return solutions[int(np.argmin(misses))]


def sweeps_of(n: int, distances: np.ndarray, first: int, options: Settings) -> Sweeps:
    """Runs the sweeps of one instance. Rules that do not use k run once, for the largest."""
    seeds = options.seeds or (1 if options.quick or n > MANY else 2)
    most = KS[n][-1]
    shared = {"distances": distances, "rows": runs.blocks(n, 1), "first_center": first, "max_rounds": LIMIT}
    shared |= {"options": options, "seeds": seeds}

    def sweep(name: str, rule: Callable[..., Algorithm], k: int, tasks: int = 1, **more: Any) -> Columns:
        heading = f"kcenter table 7: {name}: n = {n}, k = {k}"
        lanes = -(-tasks * seeds // 2)  # few, so that two cores can share them
        settings = {"k": k, "lanes": lanes} | shared | more
        return runs.distance_runs(heading, rule, **settings)

    # Posterior draws are most of the work, so mix 0 has a program of its own without them.
    drawn = sweep("NS-TS by posterior", ns_ts, most, len(MIXES) - 1, settings={"mix": MIXES[:-1]})
    sweeps = {(f"NS-TS, mix {mix:g}", 0): columns for mix, columns in runs.by_value(drawn, "mix").items()}
    sweeps[TS[-1], 0] = sweep(TS[-1], partial(ns_ts, mix=MIXES[-1]), most)
    if n in RANDOM_SIZES:
        sweeps[RANDOM, 0] = sweep(RANDOM, partial(ns_random, test_every=TEST_EVERY), most)
    for k in KS[n]:
        for name in TRACKED.get((n, k), ()):
            sweeps[name, k] = sweep(name, partial(ns_tands, tracking=TANDS[name]), k)
    return sweeps


def claims(table: Table) -> list[Claim]:
    def quotients(a: str, b: str, sizes: Collection[int]) -> dict[str, float]:
        return {
            f"n = {n}, k = {k}:": row.mean(a) / row.mean(b)
            for (n, k), row in table.items()
            if n in sizes and a in row.lines and b in row.lines
        }

    few, random = quotients(RATIO, TS[0], KS), quotients(TS[0], RANDOM, RANDOM_SIZES)
    small, large = quotients(DIFFERENCE, TS[0], (25, 15)), quotients(DIFFERENCE, TS[0], (55,))
    paper = {f"k = {k}:": row[DIFFERENCE] / row[TS[0]] for (n, k), row in PRINTED.items() if n == 55}
    judged = [
        below("NS-TandS with ratio tracking takes fewer queries than NS-TS", few, form=".2f"),
        below("NS-TS takes less than an eighth of Random's", random, 1 / 8),
        below("NS-TandS with difference tracking takes fewer queries than NS-TS for n <= 25", small, form=".2f"),
    ]
    if large:
        what = "the paper's NS-TandS takes fewer queries than its NS-TS at n = 55, and so does ours, as printed"
        both = below(what, large, form=".2f")
        both = both._replace(measured=f"paper {listed(paper, '.2f')}; ours {both.measured}")
        judged += [above("as printed (difference tracking) it takes more of them at n = 55", large, form=".2f"), both]
    return judged


def rows(n: int, k: int, row: Row) -> list[dict[str, str]]:
    """Builds the rows of one n and k: ours and the paper's."""

    def shown(rule: str) -> str:
        each = row.lines.get(rule)
        return f"{each.censored} of {each.runs} censored" if each and each.censored else runs.mean(each, 3)

    ratio, paper = row.mean(RATIO) if RATIO in row.lines else np.nan, PRINTED[n, k]
    beta = math.log((1 + math.log(ratio * UNIT)) * n**2 / runs.DELTA)  # rate loglog
    ours = {
        "n, k": f"{n}, {k}: ours",
        "first": str(row.first),
        "Random": shown(RANDOM),
        "NS-TS .9/.7/0": slashed_means(row.lines[rule] for rule in TS),
        "TandS difference": shown(DIFFERENCE),
        "TandS ratio": shown(RATIO),
        "TS .9 / (2 beta T*)": f"{row.mean(TS[0]) / row.expected:.2f}",
        "ratio / (beta T*)": f"{ratio / (row.times * beta):.2f}" if RATIO in row.lines else "",
        "ordered (as a set)": row.matches,
    }
    printed = {"n, k": "  paper", "first": "?", "Random": number(paper[RANDOM])}
    printed |= {"NS-TS .9/.7/0": slashed(paper[rule] for rule in TS), "TandS difference": number(paper[DIFFERENCE])}
    return [ours, dict.fromkeys(ours, "") | printed]


def draw(figure: Any, *, table: Table) -> None:
    axes = noisy.draw_by_place(figure, table, "Table VII: k-center from judgements of similarity")
    for s, rule in enumerate(RULES):
        axes.plot([], [], label=rule, **marks(s))
        for x, (nk, row) in enumerate(table.items()):
            at = x + 0.12 * (s - (len(RULES) - 1) / 2)
            if rule in row.lines:
                points(axes, at, [row.lines[rule]], None, s, scale=UNIT)
            if rule != RATIO:
                axes.plot(at, PRINTED[nk][rule] * UNIT, "_", color=COLORS[s], ms=9, mew=2)
    axes.plot([], [], "k_", ms=9, mew=2, label="printed in the paper")
    legend_below(figure, ncols=4)
