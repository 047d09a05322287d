"""Table 1 of Tirinzoni and Degenne (2022): 50 arms in 20 dimensions, with and without elimination of arms.

The published instance, delta = .01, the threshold log_t, ridge 1, every arm once at the start. The published stopping
times of FWS and Lazy Track-and-Stop are heavy-tailed, so both get ten times as many runs as the others, and quantiles.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.figures import COLORS, side_by_side
from experiments.likelihood import common
from experiments.papers import printed
from experiments.report import STANDARD_ERRORS, Claim, Line, Report, joined, line_of, listed, plus_minus, verdict
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

Key = tuple[str, str]  # rule, elimination


class Cell(NamedTuple):
    """One printed cell, in pulls."""

    pulls: float
    se: float


def run(options: Settings) -> Report:
    seeds = options.seeds or (20 if options.quick else 100)
    instance = linear.random_tirinzoni_published()
    time = common.time_of(instance)
    made = factories(instance)
    sweeps = {
        key: common.runs(
            f"linear2 tirinzoni: {', elimination '.join(key)}",
            instance,
            factory,
            options=options,
            seeds=seeds * (1 if options.quick else MANY.get(key[0], 1)),
            delta=DELTA,
            longest=10**6,
        )
        for key, factory in made.items()
    }
    bound, cells = time * float(common.kl(DELTA)), published()
    lines = {
        key: line_of(
            ", ".join(key), each, printed=cells[key].pulls, printed_se=cells[key].se, bound=bound, spread="its runs'"
        )
        for key, each in sweeps.items()
    }
    wrong = {key: common.errors(each.columns) for key, each in sweeps.items()}
    practical = practical_by_log_t(time)
    return Report(
        "Pulls until the stop on the published instance, K = 50, d = 20",
        list(lines.values()),
        [
            expected(lines),
            common.confident({", ".join(key): (*each, DELTA) for key, each in wrong.items()}),
            Claim(
                "no mean is below T* kl(delta, 1 - delta)",
                f"at least {min(each.ours for each in lines.values()) / bound:.2f} of it",
                min(each.ours for each in lines.values()) >= bound,
            ),
            *(saves(rule, lines) for rule in ORDER[:5]),
        ],
        joined(sweeps, label="rule, elimination"),
        partial(draw, sweeps=sweeps, cells=cells, practical=practical),
        notes=(
            f"T* = {time:,.1f}: T* kl is {bound:,.0f}, the practical time (the t at which t = T* log_t) is "
            f"{practical:,.0f}. log_t is a heuristic. So is RAGE's test with the rewards of all its phases.",
            "A printed mean has the standard deviation over its 100 runs. Elimination: none; of the stop (the "
            "Oracle's); of the stop and the choice of arms.",
        ),
        grid=[row_of(key, lines[key], sweeps[key], wrong[key], bound=bound, practical=practical) for key in sweeps],
    )


def factories(instance: linear.Instance) -> dict[Key, Any]:
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


def published() -> dict[Key, Cell]:
    """Returns the printed means, with standard errors from the printed standard deviations."""
    cells = {}
    for name, elimination in (("no elimination", PLAIN), ("elimination", BOTH)):
        for rule, (mean, sd, *_) in zip(ORDER, printed("likelihood", f"tirinzoni, {name}"), strict=False):
            cells[rule, elimination] = Cell(1000 * mean, 1000 * sd / PUBLISHED_RUNS**0.5)
    return cells


def practical_by_log_t(time: float) -> float:
    """Solves t = T* log_t(t, delta)."""
    log_t = thresholds.log_t()
    t = time * float(common.kl(DELTA))
    for _ in range(60):
        t = time * float(log_t(DELTA, thresholds.Evidence(pulls=t)))
    return t


def row_of(
    key: Key, each: Line, sweep: Results, wrong: tuple[int, int], *, bound: float, practical: float
) -> dict[str, str]:
    pulls = stopped(sweep)
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
        "/ (T* kl)": f"{each.ours / bound:.2f}",
        "/ practical": f"{each.ours / practical:.2f}",
        "wrong": common.shown(*wrong),
        "verdict": "reproduced" if said.startswith("agrees") else said.replace("DIFFERS", "differs"),
    }


def stopped(sweep: Results) -> np.ndarray:
    """Returns the pulls of the runs that stopped."""
    return sweep.columns["pulls"][sweep.columns["status"] == Status.STOPPED]


def expected(lines: dict[Key, Line]) -> Claim:
    differences = {
        rule: (lines[rule, PLAIN].ours - mean) / float(np.hypot(lines[rule, PLAIN].se, se))
        for rule, (mean, se) in EXAMPLES.items()
    }
    statement = f"without elimination: within {STANDARD_ERRORS} standard errors of another implementation"
    return Claim(statement, listed(differences, "+.1f"), max(map(abs, differences.values())) <= STANDARD_ERRORS)


def saves(rule: str, lines: dict[Key, Line]) -> Claim:
    plain, both = lines[rule, PLAIN], lines[rule, BOTH]
    return Claim(
        f"{rule}: elimination costs no pulls",
        f"{both.ours / plain.ours - 1:+.1%}",
        both.ours - plain.ours <= STANDARD_ERRORS * np.hypot(plain.se, both.se),
    )


def draw(figure: Any, *, sweeps: dict[Key, Results], cells: dict[Key, Cell], practical: float) -> None:
    figure.set_size_inches(8, 4.6)
    axes = figure.subplots()
    for elimination, shift in ((PLAIN, -0.18), (BOTH, 0.18)):
        color = COLORS[elimination == BOTH]
        for n, rule in enumerate(ORDER):
            if (rule, elimination) not in sweeps:
                continue
            pulls, cell = stopped(sweeps[rule, elimination]), cells[rule, elimination]
            low, middle, high = np.quantile(pulls, AT)
            label = f"ours: 5, 50, 95 %, mean; elimination: {elimination}" if n == 0 else None
            bars = [[middle - low], [high - middle]]
            axes.errorbar(n + shift, middle, bars, color=color, marker="_", ms=10, capsize=3, label=label)
            axes.plot(n + shift, pulls.mean(), "o", color=color, mfc="w")
            printed_label = "printed, with two standard errors" if (n, elimination) == (0, PLAIN) else None
            axes.errorbar(n + shift + 0.12, cell.pulls, 2 * cell.se, color="k", marker="x", label=printed_label)
    axes.set_xlim(-0.5, len(ORDER) - 0.5)
    axes.axhline(practical, color="k", ls=":", lw=1, label="practical time")
    side_by_side(axes, ORDER, yscale="log", ylabel="pulls until the stop")
    axes.legend(fontsize=9)
