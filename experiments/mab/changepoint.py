"""Change points: regret when the means of the arms change twice in 10,000 pulls.

Three Bernoulli arms of Garivier and Moulines (2011), of means .5, .3 and .4. Between pulls 3,000 and 5,000 the third
has mean .9. Regret is dynamic: against the best arm of every pull. A second row makes no change: it shows the price of
adapting. A rule that keeps every reward stays with the third arm: after 2,000 rewards of mean .9, up to 8,000 of mean
.4 must pass until their average is below .5.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import jaxbandits
from experiments import study
from experiments.claims import below
from experiments.figures import legend_below, split
from experiments.report import Claim, Columns, Line, Report, line, listed, plus_minus
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, feedback, mab
from jaxbandits.base import Algorithm, Decision

MEANS = np.array([[0.5, 0.3, 0.4], [0.5, 0.3, 0.9], [0.5, 0.3, 0.4]])  # (segments, K)
CHANGES = (3000, 5000)
HORIZON = 10_000
# Pulls at which the means change; the second row does not get there.
ROWS = {"two changes": CHANGES, "no change": (HORIZON, HORIZON + 1)}
SEGMENTS = ("before", "between", "after")
STATIONARY = ("UCB1", "KL-UCB", "Thompson")  # rules that keep every reward
ADAPTIVE = ("D-UCB", "SW-UCB")


def discounted_ucb(problem: mab.Bernoulli) -> Algorithm:
    """Builds the rule with the discount of Theorem 1 for a known horizon and number of changes."""
    return mab.discounted_ucb(problem, discount=1 - np.sqrt(len(CHANGES) / HORIZON) / 4)


def sliding_window_ucb(problem: mab.Bernoulli) -> Algorithm:
    """Builds the rule with the window of Theorem 2 for a known horizon and number of changes."""
    return mab.sliding_window_ucb(problem, window=int(2 * np.sqrt(HORIZON * np.log(HORIZON) / len(CHANGES))))


def exp3(problem: mab.Bernoulli) -> Algorithm:
    return mab.exp3(problem, gamma=mab.exp3_gamma(problem, horizon=HORIZON))


def m_ucb(problem: mab.Bernoulli) -> Algorithm:
    """Builds the rule with the constants of its paper, for changes by at least .5."""
    constants = mab.m_ucb_constants(problem, horizon=HORIZON, changes=len(CHANGES), smallest_change=0.5)
    return mab.m_ucb(problem, **constants._asdict())


RULES: dict[str, Callable[[mab.Bernoulli], Algorithm]] = {
    "UCB1": mab.ucb1,
    "KL-UCB": mab.kl_ucb,
    "Thompson": mab.thompson,
    "D-UCB": discounted_ucb,
    "SW-UCB": sliding_window_ucb,
    "M-UCB": m_ucb,
    "Exp3": exp3,
}


def run(options: Settings) -> Report:
    seeds = options.seeds or (100 if options.quick else 1000)
    marks = tuple(range(250, HORIZON + 1, 250))
    cells = study.crossed(
        {"changes": ROWS, "rule": RULES},
        partial(sweep, options=options, seeds=seeds, marks=marks),
        rows="changes",
        name="{rule}, {changes}",
        values=lambda columns: regret_of(columns, marks)[:, -1],
    )
    regret = {key: regret_of(each, marks) for key, each in cells.cells.items()}
    total, stationary = (dict(zip(RULES, row, strict=True)) for row in study.by(cells, "changes").values())
    parts = {rule: segments(regret["two changes", rule], marks) for rule in RULES}
    curves = Results(study.columns(cells) | {"curve.regret": np.concatenate(list(regret.values()))}, None)
    return study.report(
        f"Dynamic regret of three Bernoulli arms over {HORIZON:,} pulls, with changes after 3,000 and 5,000",
        cells,
        claims(parts, total, stationary),
        draw=partial(draw, curves=curves),
        notes=(
            "D-UCB and SW-UCB have the discount and the window of their theorems for this horizon and two changes, and "
            "exploration .6. M-UCB, which restarts at detected changes, has its constants for a change by .5. Exp3 has "
            "its rate for this horizon, UCB1 its proved radius, KL-UCB c = 0.",
        ),
        grid=[
            {"rule": rule}
            | {
                f"{name} the changes" if name != "between" else "between them": plus_minus(part, 1)
                for name, part in zip(SEGMENTS, parts[rule], strict=True)
            }
            | {"all": plus_minus(total[rule], 1), "no change": plus_minus(stationary[rule], 1), "runs": str(seeds)}
            for rule in RULES
        ],
    )


def sweep(rule: str, *, options: Settings, seeds: int, marks: tuple[int, ...]) -> Results:
    """Runs one rule, with the changes in row 0 and without in row 1."""
    instances = [mab.bernoulli(means) for means in MEANS]

    def counts(state: Any, decision: Decision) -> dict[str, Any]:
        return {"counts": state.counts}

    def build(task: Any, key: Any) -> tuple:
        algorithm = RULES[rule](mab.Bernoulli(MEANS.shape[1]))
        segments = [mab.environment(instance, algorithm) for instance in instances]
        return algorithm, feedback.changing(segments, at=task["at"]), jaxbandits.record(at=marks, value=counts)

    return simulate(
        f"mab changepoint: {rule}",
        build,
        {"at": np.array(list(ROWS.values()))},
        options=options,
        seeds=seeds,
        max_rounds=HORIZON,
        horizon=HORIZON,
    )


def regret_of(columns: Columns, marks: tuple[int, ...]) -> np.ndarray:
    """Returns the dynamic regret (runs, marks) of the runs of a row."""
    return dynamic_regret(columns["curve.counts"], marks, list(ROWS.values())[columns["row"][0]])


def dynamic_regret(counts: np.ndarray, marks: tuple[int, ...], at: tuple[int, ...]) -> np.ndarray:
    """Computes the regret (runs, G) against the best arm of every pull, from the pulls of each arm (runs, G, K).

    The means change after `at` pulls, which are marks or lie behind the last one.
    """
    pulls = np.diff(counts, axis=1, prepend=0)
    in_force = np.searchsorted(at, (0, *marks[:-1]), side="right")
    gaps = (MEANS.max(axis=1, keepdims=True) - MEANS)[in_force]  # (G, K)
    return np.cumsum(np.sum(pulls * gaps, axis=2), axis=1)


def segments(regret: np.ndarray, marks: tuple[int, ...]) -> list[Line]:
    """Returns the regret lost before, between and after the changes."""
    ends = [marks.index(end) for end in (*CHANGES, HORIZON)]
    lost = np.diff(regret[:, ends], axis=1, prepend=0)
    return [line(name, lost[:, n]) for n, name in enumerate(SEGMENTS)]


def claims(parts: dict[str, list[Line]], total: dict[str, Line], stationary: dict[str, Line]) -> list[Claim]:
    after = (HORIZON - CHANGES[1]) * (MEANS[2].max() - MEANS[2, 2])  # regret of a rule that never leaves the third arm
    stuck = {rule: parts[rule][2].ours / after for rule in STATIONARY}
    price = {rule: stationary["Thompson"].ours / stationary[rule].ours for rule in ADAPTIVE}
    return [
        Claim(
            "after the second change, rules that keep every reward lose over half of what the third arm would",
            listed(stuck, ".2f"),
            min(stuck.values()) > 0.5,
        ),
        *(
            Claim(
                f"with two changes, {rule} loses less than UCB1",
                f"{total[rule].ours:.0f}, UCB1 {total['UCB1'].ours:.0f}",
                total[rule].ours < total["UCB1"].ours,
            )
            for rule in ADAPTIVE
        ),
        below(
            "without a change, Thompson sampling loses under a third of what D-UCB and SW-UCB do", price, 1 / 3, ".2f"
        ),
    ]


def draw(figure: Any, *, curves: Results) -> None:
    for title, axes in zip(ROWS, split(figure, (9.6, 4.8), 1, 2, sharey=True), strict=True):
        curves.where(changes=title).plot(y="curve.regret", ax=axes, log="")
        axes.set(title=title, xlabel="pulls", ylabel="")
        axes.get_legend().remove()
    for change in CHANGES:
        figure.axes[0].axvline(change, color="k", lw=1, ls=":")
    figure.axes[0].set(ylabel="dynamic regret", title="changes after 3,000 and 5,000 pulls")
    legend_below(figure, ncols=7)
