"""The ways in which rules err: when a wrong run stops, with which answer and which means, from delta = 0.1 to 1e-9.

At moderate delta an error is a few bad rewards of each arm. At 1e-6 it is K single rewards, at 1e-9 one reward of the
best arm, which is then never pulled again while the others are told apart.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments.figures import STYLES, split
from experiments.mab import weighted
from experiments.report import Claim, Report, listed, number
from experiments.settings import Settings
from jaxbandits import mab
from jaxbandits.rare import RareResult

DELTAS = (1e-1, 1e-2, 1e-4, 1e-6, 1e-9)
RULES = ("TTUCB", "TaS, D", "EB-TCI", "LUCB")
QUANTILES = (0.1, 0.5, 0.9)

Cell = tuple[str, float]  # rule, delta


def run(options: Settings) -> Report:
    deltas = DELTAS[:4:3] if options.quick else DELTAS
    rules = RULES[:2] if options.quick else RULES
    instance = mab.gauss4()
    cases = {(rule, delta): weighted.on_gauss4(rule, delta) for rule in rules for delta in deltas}
    results = weighted.estimates(cases, options)
    return Report(
        "How rules err on four Gaussian arms, threshold gk16",
        [],
        claims(results),
        weighted.columns_of(results, ("rule", "delta")),
        partial(draw, results=results),
        notes=(
            "T given a wrong answer: its quantiles. Means: averages over wrong runs of each arm's mean reward, "
            f"weighted by the likelihood; the truth is {listed(np.asarray(instance.means).tolist(), 'g')}.",
            *weighted.warnings_of(results),
        ),
        grid=[
            {"rule": rule, "delta": f"{delta:g}", "error": weighted.shown(result)}
            | {f"T, {q:g}": number(int(t)) for q, t in zip(QUANTILES, result.quantiles(QUANTILES), strict=True)}
            | {"answers 1, 2, 3": ", ".join(f"{share:.0%}" for share in answers(result))}
            | {"means when it happened": ", ".join(f"{mean:.2f}" for mean in means(result))}
            | {"pulls of the best arm, median": number(int(median_of_best(result)))}
            for (rule, delta), result in results.items()
        ],
    )


def answers(result: RareResult) -> np.ndarray:
    """Computes the share of each wrong answer."""
    weights = result.events.weights
    return np.array([weights[result.events.answers == j].sum() for j in range(1, 4)]) / weights.sum()


def means(result: RareResult) -> np.ndarray:
    """Computes the average of each arm's mean reward over wrong runs."""
    events = result.events
    each = events.sums / np.maximum(events.counts, 1)
    return events.weights @ each / events.weights.sum()


def median_of_best(result: RareResult) -> float:
    """Computes the median number of pulls of the best arm over wrong runs."""
    order = np.argsort(result.events.counts[:, 0], kind="stable")
    upto = np.cumsum(result.events.weights[order])
    return float(result.events.counts[order[np.searchsorted(upto, upto[-1] / 2)], 0])


def claims(results: dict[Cell, RareResult]) -> list[Claim]:
    starved = {f"{rule}, {delta:g}": median_of_best(each) for (rule, delta), each in results.items() if delta <= 1e-6}
    first = {
        f"{rule}, {delta:g}": float(answers(each)[0]) for (rule, delta), each in results.items() if len(answers(each))
    }
    return [
        Claim(
            "from delta = 1e-6 on, half of the errors have at most ten pulls of the best arm",
            listed(starved, ".0f"),
            len(starved) > 0 and max(starved.values()) <= 10,
        ),
        Claim(
            "the second-best arm is the most frequent wrong answer; its share",
            listed(first, ".2f"),
            all(np.argmax(answers(each)) == 0 for each in results.values()),
        ),
    ]


def draw(figure: Any, *, results: dict[Cell, RareResult]) -> None:
    rules = tuple(dict.fromkeys(rule for rule, _ in results))
    panels = split(figure, (max(6.4, 4.2 * len(rules)), 4.2), 1, len(rules), sharey=True, squeeze=False)[0]
    for rule, axes in zip(rules, panels, strict=True):
        for n, (delta, result) in enumerate((key[1], each) for key, each in results.items() if key[0] == rule):
            order = np.argsort(result.events.pulls, kind="stable")
            weights = np.cumsum(result.events.weights[order])
            style = {name: STYLES[n][name] for name in ("linestyle", "color")}
            axes.step(
                result.events.pulls[order], weights / weights[-1], where="post", label=f"delta = {delta:g}", **style
            )
        axes.set(xscale="log", xlabel="pulls until the stop, given a wrong answer", title=rule, ylim=(0, 1.02))
        axes.legend(loc="best")
    panels[0].set_ylabel("share of the errors")
