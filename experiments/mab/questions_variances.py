"""Unknown variances: what it costs in pulls not to know them, and the errors of a threshold after few pulls.

Four Gaussian arms, delta from 1e-1 to 1e-12. The variances of the arms are equal, or up to 16 times apart. A rule that
knows them has one noise scale for all arms, the largest. Two equal arms in turn show how often a threshold is ever
passed where no arm is better.
"""

import itertools
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.claims import above, above_bound, allowed, below, between, in_range
from experiments.figures import STYLES, curve, legend_under, split, ticks
from experiments.mab import common, questions
from experiments.mab.variances import (
    COSTS,
    EQUAL_STARTS,
    LENGTH,
    PASSED,
    PASSED_RUNS,
    PLAYED,
    PROVED,
    PULLS,
    RATIO_RUNS,
    RATIOS,
    ROUNDING,
    RULES,
    SD,
    START,
    STARTS,
    THRESHOLDS,
    VARIANCES,
    equal_arms,
    model,
    runs,
    times_of,
)
from experiments.report import STANDARD_ERRORS, Claim, Line, Report, joined, listed, number, plus_minus
from experiments.settings import Settings
from jaxbandits import Results
from jaxbandits.engine.results.intervals import clopper_pearson

DELTAS = (1e-1, 1e-3, 1e-6, 1e-9, 1e-12)
QUICK = (1e-1, 1e-3, 1e-6)
AFTER = {"student": 100, "uv_box": 300}  # places in the figure, beside the starts of gk16
DEAR = 10  # divisor of the runs of Track-and-Stop, which solves for its shares at every pull

Shares = Mapping[tuple[str, str, int], tuple[int, int]]  # runs that stop, and all, by cost, threshold, start


def run(options: Settings) -> Report:
    deltas = QUICK if options.quick else DELTAS
    seeds = options.seeds or (100 if options.quick else 1000)
    times = {sd: times_of(values) for sd, values in SD.items()}

    def sweep(sd: str, rule: str, variances: str, threshold: str) -> Results | None:
        if (variances, threshold) not in PLAYED[rule]:
            return None
        number = max(seeds // DEAR, 10) if rule == "TaS, D" else seeds
        return runs(sd, rule, variances, threshold, delta=deltas, options=options, seeds=number)

    cells = study.crossed(
        {"sd": SD, "rule": RULES, "variances": VARIANCES, "threshold": THRESHOLDS, "delta": deltas},
        sweep,
        rows="delta",
        name="{sd}, {rule}, {variances}, {threshold}, delta = {delta:g}",
        more=lambda sd, delta, variances, **_: {"bound": times[sd][model(variances)] * questions.kl(delta)},
    )
    starts = study.crossed(
        {"variances": COSTS, "threshold": EQUAL_STARTS, "start": STARTS},
        partial(runs, "unequal", "EB-TCI", delta=common.DELTA, options=options, seeds=seeds),
        name="{variances}, {threshold}, start {start}",
    )
    equal = study.crossed(
        {"variances": COSTS, "threshold": EQUAL_STARTS, "start": EQUAL_STARTS["gk16"]},
        partial(equal_arms, options=options, seeds=3 * seeds),
    )
    ratios = {
        key: questions.over_time(each, times[key[0]][model(key[2])], key[-1]) for key, each in cells.lines.items()
    }
    shares = {key: (int(np.sum(common.stopped(each))), len(each["status"])) for key, each in equal.cells.items()}
    wrong = study.errors(cells) | study.errors(starts)
    lines = cells.lines | starts.lines
    sure = {
        lines[key].quantity: each
        for key, each in wrong.items()
        if set(key) & set(PROVED) and (key in starts.lines or key[-1] == common.DELTA)
    }
    return Report(
        "Unknown variances: what it costs in pulls not to know them",
        list(lines.values()),
        [
            above_bound(cells.lines.values()),
            questions.near(ratios, examples(ratios)),
            questions.near(starts.lines, PULLS),
            as_thresholds(cells.lines),
            *prices(cells.lines, deltas[-1]),
            common.confident(sure),
            *claims_on_shares(shares),
        ],
        joined(cells.cells | starts.cells | equal.cells, label="instance"),
        partial(draw, cells=cells, ratios=ratios, shares=shares),
        notes=(
            "At each delta: pulls / (T* log(1/delta)), for the T* of what the rule knows, "
            + "; ".join(f"{time['adaptive']:.2f}, known {time['known']:.2f} ({sd})" for sd, time in times.items())
            + ". Over known: the last ratio, over the T* of known variances. Pulls and errors are at delta = .1. "
            "A rule with known variances has the largest of unequal ones. Two equal arms: runs that stop within "
            f"{number(LENGTH)} pulls, delta = .1. Were one arm better by very little, half of them would be wrong. "
            "gk16 is a heuristic, the other thresholds are proved.",
        ),
        grid=tables(cells, starts, ratios=ratios, shares=shares, wrong=wrong, times=times),
    )


def examples(ratios: Mapping[study.Key, Line]) -> dict[study.Key, tuple[float, float]]:
    """Returns the ratios of the NumPy program, with standard errors from the spread of our runs and the rounding."""
    made = {}
    for kind, values in RATIOS.items():
        for delta, value in values.items():
            key = ("unequal", "EB-TCI", "adaptive", kind, delta)
            if key in ratios:
                spread = ratios[key].se * np.sqrt(ratios[key].runs / RATIO_RUNS)
                made[key] = value, float(np.hypot(spread, ROUNDING / np.sqrt(3)))
    return made


def as_thresholds(lines: Mapping[study.Key, Line]) -> Claim:
    """Claims that means are in the order of the thresholds, gk16 < student < uv_box."""
    groups: dict[study.Key, dict[str, Line]] = {}
    for (sd, rule, variances, kind, delta), each in lines.items():
        if variances in COSTS:
            groups.setdefault((sd, rule, variances, delta), {})[kind] = each
    pairs = [
        (row[a], row[b]) for row in groups.values() for a, b in itertools.pairwise(EQUAL_STARTS) if {a, b} <= {*row}
    ]
    steps = {b.quantity: (b.ours - a.ours) / float(np.hypot(a.se, b.se)) for a, b in pairs}
    least = min(steps, key=steps.__getitem__)
    return Claim(
        "pulls are in the order of the thresholds: gk16, student, uv_box",
        f"{len(steps)} pairs, the nearest {steps[least]:.1f} standard errors apart ({least})",
        steps[least] > 0,
    )


def prices(lines: Mapping[study.Key, Line], delta: float) -> list[Claim]:
    """Returns claims on pulls with unknown variances over pulls with known ones, at one delta."""

    def values(sd: str, unknown: str, known: str) -> dict[str, float]:
        return {
            rule: price(lines, sd, rule, (unknown, known), delta).ours
            for rule in RULES
            if ("adaptive", unknown) in PLAYED[rule]
        }

    where = f"delta = {delta:g}, unknown over known variances"
    return [
        in_range(f"equal variances, {where}, gk16", values("equal", "gk16", "gk16"), 0.85, 1.2),
        below(
            f"equal variances, {where}, student over kk_pair, are below 1.25",
            values("equal", "student", "kk_pair"),
            1.25,
        ),
        below(f"unequal variances, {where}, of which the largest, gk16", values("unequal", "gk16", "gk16")),
    ]


def price(lines: Mapping[study.Key, Line], sd: str, rule: str, thresholds: tuple[str, str], delta: float) -> Line:
    """Divides pulls with unknown variances by pulls with known ones, each with its threshold."""
    unknown, known = (
        lines[sd, rule, variances, kind, delta]
        for variances, kind in zip(("adaptive", "known"), thresholds, strict=True)
    )
    ratio = unknown.ours / known.ours
    return unknown._replace(ours=ratio, se=ratio * float(np.hypot(unknown.se / unknown.ours, known.se / known.ours)))


def claims_on_shares(shares: Shares) -> list[Claim]:
    """Returns claims on how often two equal arms are told apart."""
    heuristic = {key: pair for key, pair in shares.items() if key[1] == "gk16"}
    off = {}
    for (cost, _, start), (stops, n) in heuristic.items():
        other = PASSED[cost, start]
        pooled = (stops + other * PASSED_RUNS) / (n + PASSED_RUNS)
        off[f"{cost}, start {start}"] = (stops / n - other) / np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / PASSED_RUNS))
    worst = {f"{cost}, start {start}": shares[cost, "gk16", start] for cost, start in (("adaptive", 2), ("plug-in", 2))}
    first, *_, last = EQUAL_STARTS["gk16"]
    rows = {cost: [pair[0] / pair[1] for key, pair in heuristic.items() if key[0] == cost] for cost in COSTS}
    return [
        between(
            f"two equal arms: shares are within {STANDARD_ERRORS} standard errors of the shares of a NumPy program",
            off,
            -STANDARD_ERRORS,
            STANDARD_ERRORS,
            "+.1f",
        ),
        above(
            "two equal arms: gk16 stops more than delta = .1 after two pulls each; lower ends of 95 % intervals",
            {name: clopper_pearson(*pair)[0] for name, pair in worst.items()},
            common.DELTA,
        ),
        Claim(
            f"two equal arms: with gk16 fewer runs stop after {last} pulls each than after {first}",
            "; ".join(f"{cost} {listed(row, '.3f')}" for cost, row in rows.items()),
            all(row[-1] < row[0] for row in rows.values()),
        ),
        Claim(
            "two equal arms: a share of at most delta = .1 passes student and uv_box",
            "at most {} of {} runs".format(*max(pair for key, pair in shares.items() if key[1] in PROVED)),
            all(
                stops <= allowed(n, common.DELTA, false_alarm=common.FALSE_ALARM)
                for (_, kind, _), (stops, n) in shares.items()
                if kind in PROVED
            ),
        ),
    ]


def tables(
    cells: study.Study,
    starts: study.Study,
    *,
    ratios: Mapping[study.Key, Line],
    shares: Shares,
    wrong: Mapping[study.Key, tuple[int, int]],
    times: Mapping[str, Mapping[str, float]],
) -> list[dict[str, str]]:
    """Returns a row for each sweep: of the four arms over delta, by start, and of two equal arms."""
    deltas = cells.axes["delta"]
    names = ("arms", "rule", "variances", "threshold", "start")

    def row(*key: Any, pulls: str = "", errors: str = "", passed: str = "", **more: str) -> dict[str, str]:
        at_deltas = {name: more.get(name, "") for name in (*(f"{delta:g}" for delta in deltas), "over known")}
        last = {"pulls": pulls, "wrong": errors, "stop": passed}
        return dict(zip(names, map(str, key), strict=True)) | at_deltas | last

    made = []
    for key in dict.fromkeys(key[:-1] for key in ratios):
        sd, _, variances, kind = key
        each = {f"{delta:g}": ratios[*key, delta] for delta in deltas}
        over = ratios[*key, deltas[-1]].ours * times[sd][model(variances)] / times[sd]["known"]
        shown = {name: f"{line.ours:.3f} +- {line.se:.3f}" for name, line in each.items()} | {
            "over known": f"{over:.3f}"
        }
        pulls, errors = plus_minus(cells.lines[*key, common.DELTA]), "{} of {}".format(*wrong[*key, common.DELTA])
        made.append(row(*key, 1 if variances == "known" else START[kind], pulls=pulls, errors=errors, **shown))
    for key, line in starts.lines.items():
        made.append(row("unequal", "EB-TCI", *key, pulls=plus_minus(line), errors="{} of {}".format(*wrong[key])))
    for key, pair in shares.items():
        made.append(row("two equal", "uniform", *key, passed="{} of {}".format(*pair)))
    return made


def draw(figure: Any, *, cells: study.Study, ratios: Mapping[study.Key, Line], shares: Shares) -> None:
    panels = split(figure, (12.4, 5.4), 1, 3)
    deltas = cells.axes["delta"]
    for style, (variances, kind) in enumerate(
        (("known", "gk16"), *((cost, kind) for cost in COSTS for kind in EQUAL_STARTS))
    ):
        lines = [ratios["unequal", "EB-TCI", variances, kind, delta] for delta in deltas]
        curve(panels[0], deltas, lines, f"{'largest ' * (variances == 'known')}{variances}, {kind}", style, ms=5)
    panels[0].set(
        xscale="log", title="EB-TCI, unequal variances", xlabel="delta", ylabel=questions.OVER_TIME, yscale="log"
    )
    for style, rule in enumerate(RULES):
        for kinds, dash in ((("gk16", "gk16"), "-"), (("student", "kk_pair"), ":")):
            if ("adaptive", kinds[0]) in PLAYED[rule]:
                lines = [price(cells.lines, "equal", rule, kinds, delta) for delta in deltas]
                name = f"{rule}, {kinds[0]}" + f" over {kinds[1]}" * (kinds[0] != kinds[1])
                curve(panels[1], deltas, lines, name, style, linestyle=dash, ms=5)
    panels[1].axhline(1, color="k", lw=1, ls=":")
    panels[1].set(xscale="log", title="Equal variances", xlabel="delta", ylabel="pulls, unknown over known variances")
    for style, cost in enumerate(COSTS):
        for kind, starts in EQUAL_STARTS.items():
            pairs = [shares[cost, kind, start] for start in starts]
            rates = np.array([stops / n for stops, n in pairs])
            low, high = clopper_pearson(*np.array(pairs).T)
            look = STYLES[style] | ({} if kind == "gk16" else {"linestyle": ""})
            at = starts if kind == "gk16" else [AFTER[kind] * (1 + 0.1 * style)]
            label = f"{cost}, gk16" if kind == "gk16" else None
            panels[2].errorbar(at, rates, [rates - low, high - rates], label=label, mfc="w", **look)
    panels[2].axhline(common.DELTA, color="k", lw=1, ls=":", label="delta")
    panels[2].set(
        xscale="log", title="Two equal arms", xlabel="pulls of each arm at first", ylabel="share of runs that stop"
    )
    ticks(panels[2], [*EQUAL_STARTS["gk16"], *AFTER.values()], [*map(str, EQUAL_STARTS["gk16"]), *AFTER])
    for axes in panels[:2]:
        axes.invert_xaxis()
    ticks(panels[0], (1, 2, 3, 5, 10), axis="y")
    for axes in panels:
        legend_under(axes, fontsize=8)
