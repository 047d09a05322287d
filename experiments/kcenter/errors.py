"""Error rates of DS-UCB with the paper's radius, with the proved one, and with Bernoulli KL intervals.

The paper runs DS-UCB with radii sqrt(C log(1 + (1 + log t) / delta') / t), C = 0.1, which is no bound for rewards in
[0, 1]; Lemma 1 proves a radius some six times as wide. Here n = 20 points of m = 192 dimensions, k = 3, 20 instances of
three kinds: points around the middle of the cube, each at a scale of its own (contrast), crops of photographs, 8 x 8 x
3 (crops), and corners of the cube (binary), whose rewards have the largest variance, up to 1/4. An extension.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.claims import FALSE_ALARM, allowed, every_run_stops, interval
from experiments.figures import STYLES, legend_below, marks, split
from experiments.kcenter import common
from experiments.report import Claim, Columns, Line, Report, joined, line_of, plus_minus
from experiments.settings import Settings
from jaxbandits import Status
from jaxbandits.kcenter import KL, Lemma1, Lil, binary_rows, contrast_rows, ds_ucb, greedy, image_crops, pairwise_sums
from jaxbandits.kcenter._images import IMAGE_LEVELS
from jaxbandits.kcenter._points import BINARY_LEVELS

N, SIDE, K = 20, 8, 3
M = 3 * SIDE**2
INSTANCES, QUICK_INSTANCES = 20, 5
DELTAS, QUICK_DELTAS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001), (0.3, 0.01)
KINDS = {
    "contrast": (partial(contrast_rows, N, M), None),
    "crops": (partial(image_crops, N, size=SIDE, augment=True), IMAGE_LEVELS),
    "binary": (partial(binary_rows, N, M), BINARY_LEVELS),
}
QUICK_KINDS = ("contrast", "binary")  # rewards of the least and of the largest variance
PAPER = "C = 0.1"
RULES = {PAPER: Lil(), "Lemma 1": Lemma1(), "KL": KL()}
RADIUS_SCALE = 0.1  # C
LEAP = {"leap": 1}  # dimensions drawn each round: with so few of them in all, arms get two to five queries in a row


class Cell(NamedTuple):
    """The runs of one rule on one kind, at one delta."""

    delta: float
    queries: Line
    wrong: int
    stopped: int
    interval: tuple[float, float]  # of 95 %, by Clopper and Pearson
    allowed: int  # errors that a rule with error probability delta exceeds with a probability of FALSE_ALARM

    @property
    def rate(self) -> float:
        """The share of wrong answers."""
        return self.wrong / self.stopped

    @property
    def breaks(self) -> bool:
        """Whether there are more than allowed."""
        return self.wrong > self.allowed


Cells = dict[tuple[str, str], list[Cell]]  # (kind, rule) -> for each delta


def run(options: Settings) -> Report:
    deltas, instances = (QUICK_DELTAS, QUICK_INSTANCES) if options.quick else (DELTAS, INSTANCES)
    seeds = options.seeds or (20 if options.quick else 2000 // INSTANCES)
    names = QUICK_KINDS if options.quick else tuple(KINDS)
    shared = {"rows": common.blocks(N, instances), "k": K, "settings": {"delta": deltas}, "drawn": LEAP}
    shared |= {"options": options, "seeds": seeds}
    sweeps, cells, variances = {}, {}, {}
    for kind, (make, levels) in ((name, KINDS[name]) for name in names):
        found = common.untied(make, K, instances)
        images = common.as_images(np.concatenate(found), kind, levels)
        variances[kind] = float(np.mean([decisive_variance(points / (levels or 1)) for points in found]))
        for rule, radius in RULES.items():
            factory = partial(ds_ucb, ties="lowest", interval=radius)  # a wrong leader may tie with another one
            columns = common.image_runs(f"kcenter errors: {kind}, {rule}", factory, images, **shared)
            sweeps[kind, rule] = columns
            cells[kind, rule] = [cell(delta, runs) for delta, runs in common.by_value(columns, "delta").items()]
    shown = ", ".join(f"{variance:.3f} ({kind})" for kind, variance in variances.items())
    return Report(
        f"Error rates of DS-UCB, n = {N}, m = {M}, k = {K}",
        [],
        [every_run_stops(sweeps.values()), *claims(cells, names)],
        joined(sweeps, "sweep"),
        partial(draw, cells=cells, variances=variances),
        notes=(
            f"{instances * seeds:,} runs a row, on all instances alike. A run is wrong if it stops with other centers "
            "than greedy's, or in another order. allowed: what a rule of error probability delta exceeds with a "
            f"probability of {FALSE_ALARM:.1%}.",
            f"The variance of a reward of the next center: {shown}; C / 2 = {RADIUS_SCALE / 2:g}. Where it is larger, "
            "the radius with C = 0.1 is too small, and errors fall more slowly than delta. An arm is read after m "
            "samples, so few dimensions mean few errors, too.",
        ),
        grid=[
            {
                "points, rule": ", ".join(name),
                "delta": str(each.delta),
                "queries": plus_minus(each.queries),
                "wrong": f"{each.wrong} of {each.stopped}",
                "share (95 % interval)": "{:.2%} ({:.2%} to {:.2%})".format(each.rate, *each.interval),
                "allowed": str(each.allowed),
                "verdict": "BREAKS delta" if each.breaks else "keeps delta",
            }
            for name, row in cells.items()
            for each in row
        ],
    )


def decisive_variance(points: np.ndarray) -> float:
    """Of a reward of the new center against its nearest one, the mean over the stages; points (n, m) in [0, 1]."""
    centers = greedy(pairwise_sums(points), k=K).centers
    found = []
    for p in range(1, K):
        rewards = np.square(points[centers[p]] - points[centers[:p]])
        found.append(rewards[np.argmin(rewards.mean(axis=1))].var())
    return float(np.mean(found))


def cell(delta: float, columns: Columns) -> Cell:
    queries = line_of("", columns)
    stopped = queries.runs - queries.censored - queries.failed
    wrong = int(((columns["status"] == Status.STOPPED) & ~columns["ordered"]).sum())
    return Cell(delta, queries, wrong, stopped, interval(wrong, stopped), int(allowed(stopped, delta)))


def claims(cells: Cells, kinds: Sequence[str]) -> list[Claim]:
    keeps = "{}: a share of at most delta of the answers is wrong, for every {}"
    found = []
    for rule in (rule for rule in RULES if rule != PAPER):
        row = [each for kind in kinds for each in cells[kind, rule]]
        wrong, stopped = np.sum([(each.wrong, each.stopped) for each in row], axis=0)
        kept = not any(each.breaks for each in row)
        found.append(Claim(keeps.format(rule, "kind and delta"), f"{wrong} of {stopped:,}", kept))
    for kind in kinds:
        rates = ", ".join(f"{each.rate:.2%} at {each.delta}" for each in cells[kind, PAPER])
        kept = not any(each.breaks for each in cells[kind, PAPER])
        found.append(Claim(keeps.format(f"{PAPER}, {kind}", "delta"), rates, kept))
    breaks = [each.breaks for each in cells["binary", PAPER]]
    statement = f"{PAPER} errs more often than delta at every delta where the rewards have the largest variance"
    return [*found, Claim(statement, f"{sum(breaks)} of {len(breaks)} deltas on binary points", all(breaks))]


def draw(figure: Any, *, cells: Cells, variances: dict[str, float]) -> None:
    panels = split(figure, (10.2, 4.6), 1, len(variances), sharex=True, sharey=True)
    least = min(0.5 / row[0].stopped for row in cells.values())
    for axes, (kind, variance) in zip(panels, variances.items(), strict=True):
        for style, rule in enumerate(RULES):
            row = cells[kind, rule]
            deltas, rates = np.array([(each.delta * 1.06 ** (style - 1), each.rate) for each in row]).T
            low, high = np.transpose([each.interval for each in row])
            seen = rates > 0
            bars = [rates - np.maximum(low, 0.1 * rates), high - rates]
            axes.errorbar(deltas[seen], rates[seen], [bar[seen] for bar in bars], label=rule, mfc="w", **STYLES[style])
            axes.plot(deltas[~seen], np.full((~seen).sum(), least), **marks(style))
        edge = [cells[kind, PAPER][place].delta for place in (0, -1)]
        axes.plot(edge, edge, "k-", lw=1, label="delta")
        axes.set(xscale="log", yscale="log", xlabel="delta", title=f"{kind}, variance {variance:.3f}")
        axes.invert_xaxis()
    panels[0].axhline(least, color="none")
    panels[0].set(ylabel="share of wrong answers (lowest: none seen)")
    legend_below(figure, ncols=4)
