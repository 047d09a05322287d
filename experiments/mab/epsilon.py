"""Arms that are good enough: pulls against epsilon on four Gaussian arms, delta = 0.1.

The answer may be worse than the best arm by epsilon. Greedy top-two sampling (EB-TC) may starve an arm at epsilon = 0
and never stop; the smallest epsilon cures it.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments.claims import below
from experiments.figures import means_figure
from experiments.mab import common
from experiments.report import Claim, Line, Report, joined, line_of, means, plus_minus
from experiments.settings import Settings
from jaxbandits import Results, mab

EPSILONS = (0.0, 0.02, 0.05, 0.1)
RULES = ("EB-TC", "EB-TCI", "LUCB", "KL-LUCB", "UGapE", "TaS, D")


def run(options: Settings) -> Report:
    epsilons = EPSILONS[::3] if options.quick else EPSILONS
    seeds = options.seeds or (60 if options.quick else 1000)
    instance = mab.gauss4()
    sweeps: dict[tuple[str, float], Results] = {}
    for rule in RULES:
        for epsilon in epsilons:
            settings = {"options": options, "seeds": seeds, "epsilon": epsilon, "paired": False}
            sweeps[rule, epsilon] = common.runs(f"mab epsilon, {epsilon:g}", instance, rule, **settings)
    lines = {
        rule: [line_of(f"{rule}, epsilon = {epsilon:g}", sweeps[rule, epsilon]) for epsilon in epsilons]
        for rule in RULES
    }
    wrong = {f"{rule}, epsilon = {epsilon:g}": common.errors(sweep) for (rule, epsilon), sweep in sweeps.items()}
    return Report(
        "Four Gaussian arms: pulls against epsilon, delta = 0.1",
        [line for row in lines.values() for line in row],
        [*claims(lines, epsilons), common.confident(wrong)],
        joined({f"{rule}, {epsilon:g}": sweep for (rule, epsilon), sweep in sweeps.items()}, label="rule, epsilon"),
        partial(draw, lines=lines, epsilons=epsilons),
        notes=("Threshold: gk16, a heuristic. KL-LUCB is LUCB here, with other rewards.",),
        grid=[
            {"epsilon": f"{epsilon:g}"}
            | {rule: plus_minus(lines[rule][n]) for rule in RULES}
            | {
                "most errors": f"{max(wrong[f'{rule}, epsilon = {epsilon:g}'][0] for rule in RULES)}",
                "runs": str(seeds),
            }
            for n, epsilon in enumerate(epsilons)
        ],
    )


def claims(lines: dict[str, list[Line]], epsilons: tuple[float, ...]) -> list[Claim]:
    steps = {rule: float(np.max(np.diff(means(row)) / means(row)[:-1])) for rule, row in lines.items()}
    cured = [line for line, epsilon in zip(lines["EB-TC"], epsilons, strict=True) if epsilon >= 0.05]
    return [
        below("means fall as epsilon grows: the largest relative step is below 0", steps, 0.0, "+.2f"),
        Claim(
            "EB-TC has no censored run from epsilon = .05 on",
            f"{sum(line.censored for line in cured)} of {sum(line.runs for line in cured)}; "
            f"{lines['EB-TC'][0].censored} of {lines['EB-TC'][0].runs} at epsilon = 0",
            all(line.censored == 0 for line in cured),
        ),
    ]


def draw(figure: Any, *, lines: dict[str, list[Line]], epsilons: tuple[float, ...]) -> None:
    axes = means_figure(figure, epsilons, lines, yscale="log", title="Four Gaussian arms, delta = 0.1")
    axes.set(xlabel="epsilon", ylabel="pulls until the stop")
