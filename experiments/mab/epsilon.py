"""Arms that are good enough: pulls against epsilon on four Gaussian arms, delta = 0.1.

The answer may be worse than the best arm by epsilon. Greedy top-two sampling (EB-TC) may starve an arm at epsilon = 0
and never stop; the smallest epsilon cures it.
"""

from typing import Any

import numpy as np

from experiments import study
from experiments.claims import below
from experiments.mab import common
from experiments.report import Claim, Line, Report, means
from experiments.settings import Settings
from jaxbandits import Results, mab

EPSILONS = (0.0, 0.02, 0.05, 0.1)
RULES = ("EB-TC", "EB-TCI", "LUCB", "KL-LUCB", "UGapE", "TaS, D")


def run(options: Settings, *, delta: float = common.DELTA, epsilons: tuple[float, ...] = EPSILONS) -> Report:
    epsilons = EPSILONS[::3] if options.quick and epsilons is EPSILONS else epsilons
    seeds = options.seeds or (60 if options.quick else 1000)
    instance = mab.gauss4()

    def sweep(rule: str, epsilon: float) -> Results:
        settings = {"options": options, "seeds": seeds, "delta": delta, "epsilon": epsilon, "paired": False}
        return common.runs(f"mab epsilon, {epsilon:g}", instance, rule, **settings)

    cells = study.crossed({"rule": RULES, "epsilon": epsilons}, sweep, name="{rule}, epsilon = {epsilon:g}")
    wrong = study.errors(cells)

    def more(epsilon: float) -> dict[str, str]:
        return {"most errors": f"{max(wrong[rule, epsilon][0] for rule in RULES)}", "runs": str(seeds)}

    labels: dict[str, Any] = {"title": f"Four Gaussian arms, delta = {delta:g}", "yscale": "log"}
    return study.report(
        f"Four Gaussian arms: pulls against epsilon, delta = {delta:g}",
        cells,
        [*claims(study.by(cells, "rule"), epsilons), common.confident(study.named(cells, wrong), delta)],
        draw=study.figure(cells, "epsilon", y_ticks=(700, 1000, 1500, 2000, 3000, 4000), **labels),
        grid=study.across(cells, "rule", more=more),
        notes=("Threshold: gk16, a heuristic. KL-LUCB is LUCB here, with other rewards.",),
    )


def claims(lines: dict[str, list[Line]], epsilons: tuple[float, ...]) -> list[Claim]:
    steps = {rule: float(np.max(np.diff(means(row)) / means(row)[:-1])) for rule, row in lines.items() if row[1:]}
    cured = [line for line, epsilon in zip(lines["EB-TC"], epsilons, strict=True) if epsilon >= 0.05]
    falls = below("means fall as epsilon grows: the largest relative step is below 0", steps, 0.0, "+.2f")
    return [
        *[falls] * (len(steps) > 0),
        Claim(
            "EB-TC has no censored run from epsilon = .05 on",
            f"{sum(line.censored for line in cured)} of {sum(line.runs for line in cured)}; "
            f"{lines['EB-TC'][0].censored} of {lines['EB-TC'][0].runs} at epsilon = {epsilons[0]:g}",
            all(line.censored == 0 for line in cured),
        ),
    ]
