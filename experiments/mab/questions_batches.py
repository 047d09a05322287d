"""Batches: pulls and decisions until the stop against the pulls of a decision, for the best two arms and a level.

A laboratory decides for a plate, a website for a day. The rules look at the rewards once in `every` pulls. The
question of Track-and-Stop is which arms lie above .5, the question of the others which two arms are the best.
"""

from functools import partial
from typing import Any

import numpy as np

import jaxbandits
from experiments import study
from experiments.claims import apart, grows
from experiments.mab import common
from experiments.report import STANDARD_ERRORS, Claim, Report
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, mab
from jaxbandits.base import Outcome

MEANS = (0.9, 0.75, 0.4, 0.3, 0.2, 0.1)
EVERY = (1, 3, 10, 30, 100, 300)
TOP, LEVEL = mab.TopM(2), mab.Above(0.5)
RULES = {
    "uniform": (mab.uniform, TOP),
    "EB-TCI": (partial(mab.eb_tci, leader_share="ids"), TOP),
    "LUCB": (mab.lucb, TOP),
    "TaS": (mab.tas, LEVEL),
}
# Means and standard errors of 1000 runs of an independent program in 64 bit.
EXAMPLES = {
    ("uniform", 1): (859.1, 15.7),
    ("uniform", 10): (878.8, 15.8),
    ("uniform", 100): (983.2, 16.2),
    ("EB-TCI", 1): (430.8, 8.2),
    ("EB-TCI", 10): (466.6, 7.4),
    ("EB-TCI", 100): (730.5, 7.0),
    ("LUCB", 1): (807.2, 15.5),
    ("LUCB", 10): (837.3, 10.1),
    ("LUCB", 100): (1047.5, 9.8),
    ("TaS", 1): (1330.9, 21.0),
    ("TaS", 10): (1420.9, 21.0),
    ("TaS", 100): (1784.5, 22.3),
}


def run(options: Settings) -> Report:
    every = EVERY[::2] if options.quick else EVERY
    seeds = options.seeds or (200 if options.quick else 1000)
    cells = study.crossed(
        {"rule": tuple(RULES), "every": every},
        partial(until_stop, options=options, seeds=seeds),
        name="{rule}, every {every}",
    )
    wrong = study.errors(cells)

    def more(rule: str) -> dict[str, str]:
        return {"most errors": f"{max(wrong[rule, each][0] for each in every)}", "runs": str(seeds)}

    def decisions(rule: str, each: int) -> float:
        together = 2 if rule == "LUCB" and each == 1 else each
        return float(np.mean(cells.cells[rule, each]["pulls"] - len(MEANS))) / together

    decided = [
        {"rule": f"{rule}, decisions"}
        | {str(each): f"{decisions(rule, each):,.1f}" for each in every}
        | {"most errors": "", "runs": str(seeds)}
        for rule in RULES
    ]
    labels: dict[str, Any] = {"title": "Six Gaussian arms, delta = 0.1", "xscale": "log", "yscale": "log"}
    return study.report(
        "Batches: pulls until the stop against the pulls of a decision, delta = 0.1",
        cells,
        [*claims(cells), common.confident(study.named(cells, wrong))],
        draw=study.figure(cells, "every", x_ticks=True, y_ticks=(400, 600, 1000, 1500, 2500), **labels),
        grid=[*study.across(cells, "every", more=more), *decided],
        notes=("Threshold: gk16, a heuristic. TaS answers another question than the others.",),
    )


def until_stop(rule: str, every: int, *, options: Settings, seeds: int) -> Results:
    factory, question = RULES[rule]
    instance = mab.gaussian(MEANS)

    def build(task: Any, key: Any) -> tuple:
        algorithm = factory(instance.problem, question=question, delta=task["delta"], every=every)
        return algorithm, mab.environment(instance, algorithm)

    def metrics(task: Any, outcome: Outcome) -> dict[str, Any]:
        return {"wrong": ~mab.is_right(instance, outcome.answer, question=question)}

    return simulate(
        f"mab batches: {rule}, every {every}",
        build,
        jaxbandits.grid(delta=np.array([common.DELTA])),
        options=options,
        seeds=seeds,
        max_rounds=common.LONGEST,
        metrics=metrics,
    )


def claims(cells: study.Study) -> list[Claim]:
    odd = sum(int(np.sum((columns["pulls"] - len(MEANS)) % every != 0)) for (_, every), columns in cells.cells.items())
    along = {rule: list(study.along(cells, "every", rule=rule).values()) for rule in RULES}
    return [
        apart(
            f"means equal another program's: differences within {STANDARD_ERRORS} standard errors",
            cells.lines,
            EXAMPLES,
        ),
        Claim("a run's pulls after the first six fill whole batches", f"{odd} runs of other lengths", odd == 0),
        *(grows(f"{rule}: pulls grow with the size of a batch", lines, ".0f") for rule, lines in along.items()),
    ]
