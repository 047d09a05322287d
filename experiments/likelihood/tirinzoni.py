"""Table 1 of Tirinzoni and Degenne (2022): 50 arms in 20 dimensions, with and without elimination of arms.

The published instance, delta = .01, the threshold log_t, ridge 1, every arm once at the start. The published stopping
times of FWS and Lazy Track-and-Stop are heavy-tailed, so both get ten times as many runs as the others, and quantiles.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.claims import above_bound, apart
from experiments.figures import COLORS, side_by_side
from experiments.likelihood import common
from experiments.papers import printed
from experiments.report import STANDARD_ERRORS, Claim, Columns, Line, Report, plus_minus, verdict
from experiments.settings import Settings
from jaxbandits import Results, Status, linear
from jaxbandits.numerics import thresholds

DELTA = 0.01
PUBLISHED_RUNS = 100
ORDER = ("LinGapE", "LinGame", "FWS", "Lazy TaS", "Oracle", "RAGE")  # order of the printed rows
MANY = {"FWS": 10, "Lazy TaS": 10}  # times as many runs
PLAIN, BOTH = "none", "both"
# Pulls of an independent implementation, without elimination: mean, standard error.
EXAMPLES = {"LinGapE": (35_060, 1050), "FWS": (34_700, 1400), "Lazy TaS": (65_400, 1600)}
AT = (0.05, 0.5, 0.95)
# Reasons for cells that do not agree.
EXPLAINED = {
    ("FWS", PLAIN): "one printed run of hundreds of thousands of pulls: the standard deviation is 1.4 times the mean",
    ("Lazy TaS", PLAIN): "its warm start keeps the first plan for long, which makes the printed tail",
}


def run(options: Settings) -> Report:
    seeds = options.seeds or (20 if options.quick else 100)
    instance = linear.random_tirinzoni_published()
    time = common.time_of(instance)
    made = factories(instance)
    bound, practical, cells_in_print = time * float(common.kl(DELTA)), practical_by_log_t(time), published()

    def sweep(rule: str, elimination: str) -> Results | None:
        if (rule, elimination) not in made:
            return None
        fewer = seeds * (1 if options.quick else MANY.get(rule, 1))
        shared = {"options": options, "seeds": fewer, "delta": DELTA, "longest": 10**6}
        name = f"linear2 tirinzoni: {rule}, elimination {elimination}"
        return common.runs(name, instance, made[rule, elimination], **shared)

    cells = study.crossed(
        {"elimination": (PLAIN, BOTH), "rule": tuple(dict.fromkeys(rule for rule, _ in made))},
        sweep,
        name="{rule}, {elimination}",
        more=lambda rule, elimination: cells_in_print[rule, elimination] | {"bound": bound, "spread": "its runs'"},
    )
    plain = {rule: cells.lines[PLAIN, rule] for rule in EXAMPLES}
    agrees = f"without elimination: within {STANDARD_ERRORS} standard errors of another implementation"
    wrong = study.errors(cells)
    return study.report(
        "Pulls until the stop on the published instance, K = 50, d = 20",
        cells,
        [
            apart(agrees, plain, EXAMPLES),
            common.confident(common.counts_of(cells, DELTA)),
            above_bound(cells.lines.values()),
            *(saves(rule, cells.lines) for rule in ORDER[:5]),
        ],
        draw=partial(draw, cells=cells, practical=practical),
        notes=(
            f"T* = {time:,.1f}: T* kl is {bound:,.0f}, the practical time (the t at which t = T* log_t) is "
            f"{practical:,.0f}. log_t is a heuristic. So is RAGE's test with the rewards of all its phases.",
            "A printed mean has the standard deviation over its 100 runs. Elimination: none; of the stop (the "
            "Oracle's); of the stop and the choice of arms.",
        ),
        grid=[
            row_of((rule, elimination), each, cells.cells[elimination, rule], wrong[elimination, rule], practical)
            for (elimination, rule), each in cells.lines.items()
        ],
    )


def factories(instance: linear.Instance) -> dict[tuple[str, str], Any]:
    """Returns the rules, each (arms, *, delta) -> Algorithm, by name and elimination."""
    best = linear.characteristic_time(instance.arms, instance.theta, noise_scale=instance.noise_scale).allocation
    log_t = thresholds.log_t()
    game = {"shared_learner": True, "optimism": False, "clip": False}
    rules = {
        "LinGapE": common.by_ratios("LinGapE", log_t, width="log"),
        "LinGame": common.by_ratios("LinGame", log_t, **game),
        "FWS": common.by_ratios("FWS", log_t),
        "Lazy TaS": common.by_ratios("Lazy TaS", log_t),
        "Oracle": lambda arms, **options: linear.fixed_weights(
            arms, best, stop=linear.likelihood_ratio(log_t, **options)
        ),
    }
    plain = {(rule, PLAIN): factory for rule, factory in rules.items()}
    plain["RAGE", PLAIN] = partial(linear.rage, reuse=True)
    stop = {"Oracle": "stop"}
    return plain | {(rule, BOTH): partial(rules[rule], eliminate=stop.get(rule, "both")) for rule in rules}


def published() -> dict[tuple[str, str], dict[str, float]]:
    """Returns the printed means, with standard errors from the printed standard deviations, by rule and elimination."""
    cells = {}
    for name, elimination in (("no elimination", PLAIN), ("elimination", BOTH)):
        for rule, (mean, sd, *_) in zip(ORDER, printed("likelihood", f"tirinzoni, {name}"), strict=False):
            cells[rule, elimination] = {"printed": 1000 * mean, "printed_se": 1000 * sd / PUBLISHED_RUNS**0.5}
    return cells


def practical_by_log_t(time: float) -> float:
    """Solves t = T* log_t(t, delta)."""
    log_t = thresholds.log_t()
    t = time * float(common.kl(DELTA))
    for _ in range(60):
        t = time * float(log_t(DELTA, thresholds.Evidence(pulls=t)))
    return t


def row_of(
    key: tuple[str, str], each: Line, columns: Columns, wrong: tuple[int, int], practical: float
) -> dict[str, str]:
    pulls = stopped(columns)
    said = verdict(each)
    if said == "DIFFERS" and key in EXPLAINED:
        said = f"explained: {EXPLAINED[key]}"
    low, middle, high = np.quantile(pulls, AT)
    return {
        "rule": key[0],
        "elimination": "stop" if key == ("Oracle", BOTH) else key[1],
        "pulls": plus_minus(each),
        "sd": f"{pulls.std(ddof=1):,.0f}",
        "5 %": f"{low:,.0f}",
        "median": f"{middle:,.0f}",
        "95 %": f"{high:,.0f}",
        "printed": f"{each.printed:,.0f} +- {each.printed_se:,.0f}",
        "/ (T* kl)": f"{common.over_bound(each):.2f}",
        "/ practical": f"{each.ours / practical:.2f}",
        "wrong": common.shown(*wrong),
        "verdict": "reproduced" if said.startswith("agrees") else said.replace("DIFFERS", "differs"),
    }


def stopped(columns: Columns) -> np.ndarray:
    """Returns the pulls of the runs that stopped."""
    return columns["pulls"][columns["status"] == Status.STOPPED]


def saves(rule: str, lines: Mapping[study.Key, Line]) -> Claim:
    plain, both = lines[PLAIN, rule], lines[BOTH, rule]
    return Claim(
        f"{rule}: elimination costs no pulls",
        f"{both.ours / plain.ours - 1:+.1%}",
        both.ours - plain.ours <= STANDARD_ERRORS * np.hypot(plain.se, both.se),
    )


def draw(figure: Any, *, cells: study.Study, practical: float) -> None:
    figure.set_size_inches(8, 4.6)
    axes = figure.subplots()
    for elimination, shift in ((PLAIN, -0.18), (BOTH, 0.18)):
        color = COLORS[elimination == BOTH]
        for n, rule in enumerate(ORDER):
            if (elimination, rule) not in cells.lines:
                continue
            pulls, line = stopped(cells.cells[elimination, rule]), cells.lines[elimination, rule]
            low, middle, high = np.quantile(pulls, AT)
            label = f"ours: 5, 50, 95 %, mean; elimination: {elimination}" if n == 0 else None
            bars = [[middle - low], [high - middle]]
            axes.errorbar(n + shift, middle, bars, color=color, marker="_", ms=10, capsize=3, label=label)
            axes.plot(n + shift, pulls.mean(), "o", color=color, mfc="w")
            printed_label = "printed, with two standard errors" if (n, elimination) == (0, PLAIN) else None
            theirs = {"marker": "x", "color": "k", "label": printed_label}
            axes.errorbar(n + shift + 0.12, line.printed, 2 * line.printed_se, **theirs)
    axes.set_xlim(-0.5, len(ORDER) - 0.5)
    axes.axhline(practical, color="k", ls=":", lw=1, label="practical time")
    side_by_side(axes, ORDER, yscale="log", ylabel="pulls until the stop")
    axes.legend(fontsize=9)
