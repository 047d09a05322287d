"""Shares of right answers over time, without a stop: PEPS, RAGE, L-T3C and uniform sampling on two instances.

The share of runs whose answer at time t is the best arm, as in Li, Jamieson and Jain (2024). The instances are
soare(6), omega = .1, theta = 2 e_1, and 20 unit vectors of dimension 6, two of which are close. RAGE answers from the
end of its first phase on.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.figures import STYLES, legend_below
from experiments.likelihood import common
from experiments.report import STANDARD_ERRORS, Claim, Report, listed, mean_se
from experiments.settings import Settings
from jaxbandits import Results, linear

INSTANCES = {"soare(6)": partial(linear.soare, 6, 0.1), "sphere_pair": partial(linear.sphere_pair, 0, 20, 6)}
MARKS = (30, 100, 300, 1000, 3000, 10_000)
DELTA = 0.1  # determines the phases of RAGE
# Shares of right answers of an independent implementation on soare(6): 400 runs, of RAGE 1000.
EXAMPLES = {
    "PEPS": ((0.585, 0.678, 0.785, 0.925, 0.985, 1.0), 400),
    "uniform": ((0.570, 0.648, 0.725, 0.873, 0.985, 1.0), 400),
    "L-T3C": ((0.638, 0.800, 0.930, 1.0, 1.0, 1.0), 400),
    "RAGE": ((0.0, 0.0, 0.0, 0.757, 0.999, 1.0), 1000),
}

Key = tuple[str, str]  # instance, rule


def run(options: Settings) -> Report:
    marks = MARKS[:4] if options.quick else MARKS
    seeds = options.seeds or (100 if options.quick else 1000)

    def sweep(instance: str, rule: str) -> Results:
        factory = linear.rage if rule == "RAGE" else common.without_stop(rule)
        # RAGE stops by itself. A run that has stopped keeps its answer.
        ends = {"longest": 100} if rule == "RAGE" else {"longest": marks[-1], "horizon": marks[-1]}
        shared = {"options": options, "seeds": seeds, "delta": DELTA, "marks": marks}
        title = f"linear2 identification, {instance}, {marks[-1]}: {rule}"
        return common.runs(title, INSTANCES[instance](), factory, **shared, **ends)

    cells = study.crossed({"instance": INSTANCES, "rule": EXAMPLES}, sweep)
    right = {key: mean_se(each["curve.right"].astype(float)) for key, each in cells.cells.items()}
    return study.report(
        "Identification: the share of right answers at time t",
        cells,
        [expected(right, marks, seeds), *(not_below(name, right) for name in INSTANCES)],
        draw=partial(draw, right=right, marks=marks),
        notes=("The expected shares are from an independent implementation.",),
        grid=[
            {"instance, rule": ", ".join(key)}
            | {f"t = {t:,}": f"{m:.3f} +- {se:.3f}" for t, m, se in zip(marks, *each, strict=True)}
            | {"expected": listed(EXAMPLES[key[1]][0][: len(marks)], ".3f") if key[0] == "soare(6)" else "-"}
            for key, each in right.items()
        ],
    )._replace(lines=[])


def expected(right: dict[Key, tuple], marks: tuple[int, ...], seeds: int) -> Claim:
    """Claims agreement of the shares on soare(6).

    The spread is computed from the pooled mean, so that a share of 1 also has one.
    """
    off = {}
    for rule, (shares, runs) in EXAMPLES.items():
        ours, theirs = right["soare(6)", rule][0], np.array(shares[: len(marks)])
        pooled = (seeds * ours + runs * theirs + 1) / (seeds + runs + 2)
        off[rule] = float(np.max(np.abs(ours - theirs) / np.sqrt(pooled * (1 - pooled) * (1 / seeds + 1 / runs))))
    statement = f"soare(6): shares are within {STANDARD_ERRORS} standard errors of the expected ones"
    return Claim(statement, "largest differences: " + listed(off, ".1f"), max(off.values()) <= STANDARD_ERRORS)


def not_below(name: str, right: dict[Key, tuple]) -> Claim:
    (peps, se), (uniform, other) = right[name, "PEPS"], right[name, "uniform"]
    room = STANDARD_ERRORS * np.hypot(se, other)
    least = float(np.min(peps - uniform))
    return Claim(
        f"{name}: PEPS is nowhere below uniform sampling by a margin",
        f"at least {least:+.3f}",
        np.all(peps - uniform >= -room),
    )


def draw(figure: Any, *, right: dict[Key, tuple], marks: tuple[int, ...]) -> None:
    figure.set_size_inches(9.6, 4.6)
    for name, axes in zip(INSTANCES, figure.subplots(1, 2, sharey=True), strict=True):
        for rule, style in zip(EXAMPLES, STYLES, strict=False):
            mean, se = right[name, rule]
            axes.errorbar(marks, mean, 2 * se, label=rule, mfc="w", ms=4, **style)
        axes.set(title=name, xscale="log", xlabel="pulls")
    figure.axes[0].set_ylabel("share of right answers")
    legend_below(figure, ncols=4)
