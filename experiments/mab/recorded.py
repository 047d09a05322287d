"""An A/B/n test on recorded visits: a day's delay, a day's batch, and runs that exhaust the record.

The record is made up, by the seeded function `visits`: 60 days of 400 visits, each to one of three versions of a page,
of which 3, 3.5 and 5 % pay. In turn, the i-th visit that a rule sends to a version is the version's i-th in the record:
only ties and a rule's own draws differ from run to run. The bootstrap draws visits with replacement.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from experiments import study
from experiments.claims import errors_of
from experiments.figures import STYLES, legend_below, side_by_side
from experiments.mab import common
from experiments.report import Claim, Columns, Report, listed, number
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, Status, feedback, mab
from jaxbandits.base import Algorithm, Environment, Outcome

Order = Literal["in turn", "bootstrap"]

RATES = (0.03, 0.035, 0.05)
BEST = 2
DAYS, DAY = 60, 400  # days, visits per day
SEED = 3
RULES = ("EB-TCI", "T3C", "uniform", "elimination")
FEEDBACK = ("at once", "a day late", "in batches of a day")
ORDERS: tuple[Order, ...] = ("in turn", "bootstrap")


class Visits(NamedTuple):
    """A record of visits, in order of time; made up."""

    version: np.ndarray  # int (n,)
    paid: np.ndarray  # bool (n,)


def visits() -> Visits:
    """Makes up the record."""
    random = np.random.default_rng(SEED)
    version = random.integers(len(RATES), size=DAYS * DAY)
    return Visits(version, random.random(DAYS * DAY) < np.array(RATES)[version])


def rewards(record: Visits) -> list[list[float]]:
    """Returns the rewards of every version, in order of time."""
    return [record.paid[record.version == version].astype(float).tolist() for version in range(len(RATES))]


def run(options: Settings) -> Report:
    rules = RULES[:2] if options.quick else RULES
    seeds = options.seeds or (60 if options.quick else 400)
    axes = {"rule": rules, "feedback": FEEDBACK, "order": ORDERS}
    cells = study.crossed(axes, partial(sweep, options=options, seeds=seeds))
    columns = rewards(visits())
    shares = ", ".join(f"{np.mean(column):.4f} of {len(column):,}" for column in columns)
    return study.report(
        f"An A/B/n test on a made-up record of {DAYS * DAY:,} visits, delta = {common.DELTA:g}",
        cells,
        claims(cells.cells),
        draw=partial(draw, cells=cells.cells),
        notes=(
            f"The record is made up; in it the versions paid {shares}. Visits: median over all runs, 5 % to 95 % in "
            "brackets; censored runs count as longer than all others, -: censored. A run in turn is censored when it "
            "asks for a visit that is not in the record, a bootstrap run after as many visits as the record has. "
            "Threshold: gk16, a heuristic; successive elimination has its own radius.",
        ),
        grid=[
            {"rule": rule, "feedback": kind}
            | {
                f"{order}: {name}": text
                for order in ORDERS
                for name, text in summary(cells.cells[rule, kind, order]).items()
            }
            | {"runs": str(seeds)}
            for rule in rules
            for kind in FEEDBACK
        ],
    )._replace(lines=[])


def fed_back(kind: str, algorithm: Algorithm, environment: Environment) -> tuple[Algorithm, Environment]:
    """Returns the algorithm and the environment with one kind of feedback."""
    if kind == "a day late":
        return feedback.delayed(algorithm, environment, delay=DAY)
    return feedback.batched(algorithm, DAY) if kind == "in batches of a day" else algorithm, environment


def sweep(rule: str, feedback: str, order: Order, **shared: Any) -> Results:
    columns = rewards(visits())

    def build(task: Any, key: Any) -> tuple:
        algorithm = common.RULES[rule](mab.Bernoulli(len(RATES)), delta=common.DELTA)
        recorded = mab.recorded(columns, algorithm, order=order)
        return fed_back(feedback, algorithm, common.counted(recorded, algorithm, len(RATES)))

    def metrics(task: Any, outcome: Outcome) -> dict[str, Any]:
        return {"wrong": outcome.answer != BEST}

    name = f"mab recorded, {feedback}, {order}: {rule}"
    return simulate(name, build, max_rounds=DAYS * DAY, metrics=metrics, **shared)


def until_stop(columns: Columns) -> np.ndarray:
    """Returns the visits until the stop of every run, infinity for a censored one."""
    return np.where(common.stopped(columns), columns["pulls"], np.inf)


def median(columns: Columns) -> float:
    return float(np.quantile(until_stop(columns), 0.5, method="inverted_cdf"))


def summary(columns: Columns) -> dict[str, str]:
    """Returns the cells of a sweep in the table."""
    low, high = np.quantile(until_stop(columns), (0.05, 0.95), method="inverted_cdf")
    wrong, ended = errors_of(columns)
    statuses = columns["status"]
    return {
        "visits": f"{number(median(columns))} ({number(low)} to {number(high)})",
        "censored": str(int(np.isin(statuses, (Status.EXHAUSTED, Status.MAX_ROUNDS)).sum())),
        "wrong": f"{wrong} of {ended}",
    }


def claims(cells: Mapping[study.Key, Columns]) -> list[Claim]:
    rules = tuple(dict.fromkeys(rule for rule, _, _ in cells))
    late = {}
    for rule in rules:
        plain, slow = (median(cells[rule, kind, "bootstrap"]) for kind in FEEDBACK[:2])
        if np.isfinite(plain):
            late[rule] = (slow - plain) / DAY
    censored = {rule: 1 - float(np.mean(common.stopped(cells[rule, FEEDBACK[2], "bootstrap"]))) for rule in rules}
    errors = {", ".join(key): errors_of(columns) for key, columns in cells.items() if key[2] == "bootstrap"}
    return [
        Claim(
            "feedback a day late makes the median test at most three days longer, one for each version (bootstrap)",
            listed(late, "+.1f"),
            len(late) > 0 and max(late.values()) <= len(RATES),
        ),
        Claim(
            "in batches of a day, under 5 % of the runs of EB-TCI and T3C are censored (bootstrap)",
            listed(censored, ".3f"),
            max(censored["EB-TCI"], censored["T3C"]) < 0.05,
        ),
        common.confident({name: each for name, each in errors.items() if each[1] > 0}),
    ]


def draw(figure: Any, *, cells: Mapping[study.Key, Columns]) -> None:
    figure.set_size_inches(9.6, 4.8)
    rules = tuple(dict.fromkeys(rule for rule, _, _ in cells))
    for order, axes in zip(ORDERS, figure.subplots(1, 2, sharey=True), strict=True):
        for style, rule in enumerate(rules):
            for n, kind in enumerate(FEEDBACK):
                # Censored runs end where the axis does.
                days = np.minimum(until_stop(cells[rule, kind, order]) / DAY, DAYS)
                low, middle, high = np.quantile(days, (0.05, 0.5, 0.95))
                bars = [[middle - low], [high - middle]]
                x = n + 0.12 * (style - (len(rules) - 1) / 2)
                look = STYLES[style] | {"linestyle": ""}
                axes.errorbar([x], [middle], bars, label=rule if n == 0 else None, mfc="w", **look)
        side_by_side(axes, FEEDBACK, title=f"{order}", xlim=(-0.5, 2.5), ylim=(0, DAYS * 1.03))
        axes.axhline(DAYS, color="k", lw=1, ls=":")
    figure.axes[0].set_ylabel("days until the stop, of 400 visits")
    legend_below(figure, ncols=4)
