"""Regret over 100,000 pulls of Bernoulli arms: seven rules against the line of Lai and Robbins.

Two arms of means .9 and .8, and ten of means .1, .05 (three times), .02 and .01. The regret of a consistent rule grows
at least as C log t, with C the sum of gap / kl(mean, best). At this horizon, much of the regret is lost before that
growth sets in.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.claims import between
from experiments.figures import legend_below, split
from experiments.mab import common
from experiments.report import Claim, Columns, Line, Report, listed
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, concatenate, mab, record
from jaxbandits.base import Algorithm, Decision

INSTANCES = {"two arms": (0.9, 0.8), "ten arms": (0.1, *[0.05] * 3, *[0.02] * 3, *[0.01] * 3)}
HORIZON = 100_000
OPTIMAL = ("KL-UCB", "IMED", "Bayes-UCB", "Thompson")  # in the sense of Lai and Robbins


def rules(problem: mab.Gaussian | mab.Bernoulli, horizon: int) -> dict[str, Algorithm]:
    return {
        "UCB1": mab.ucb1(problem),
        "KL-UCB": mab.kl_ucb(problem),
        "IMED": mab.imed(problem),
        "Bayes-UCB": mab.bayes_ucb(problem),
        "Thompson": mab.thompson(problem),
        "MOSS": mab.moss(problem, horizon=horizon),
        "MOSS, anytime": mab.moss_anytime(problem),
    }


def run(options: Settings) -> Report:
    horizon = HORIZON // 20 if options.quick else HORIZON
    seeds = options.seeds or (100 if options.quick else 1000)
    marks = common.geometric(10, horizon, 12 if options.quick else 20)
    constants = {name: float(mab.lai_robbins(mab.bernoulli(means))) for name, means in INSTANCES.items()}
    axes = {"instance": INSTANCES, "rule": rules(mab.Bernoulli(2), horizon)}
    settings: dict[str, Any] = {"options": options, "seeds": seeds, "horizon": horizon, "marks": marks}
    cells = study.crossed(axes, partial(sweep, **settings), values=last)
    return study.report(
        f"Regret of Bernoulli arms over {horizon:,} pulls",
        cells,
        claims(cells.lines, constants, horizon),
        draw=partial(draw, sweeps=cells.sweeps, constants=constants),
        notes=(
            "UCB1 has its proved radius (exploration 2), KL-UCB and Bayes-UCB the recommended c = 0. "
            + "; ".join(f"{name}: C = {value:.2f}" for name, value in constants.items())
            + ". Quick runs end before their regret is near C log t.",
        ),
        grid=[
            {
                "instance, rule": each.quantity,
                "regret": f"{each.ours:.1f} +- {each.se:.1f}",
                "/ (C log t)": f"{each.ours / (constants[key[0]] * np.log(horizon)):.2f}",
                "5 % to 95 %": listed(np.quantile(last(cells.cells[key]), (0.05, 0.95)), ".1f", " to "),
                "runs": str(each.runs),
            }
            for key, each in cells.lines.items()
        ],
    )


def last(columns: Columns) -> np.ndarray:
    """Returns the regret of every run at its end."""
    return columns["curve.regret"][:, -1]


def sweep(instance: str, rule: str, *, horizon: int, marks: tuple[int, ...], **settings: Any) -> Results:
    arms = mab.bernoulli(INSTANCES[instance])
    lost = common.gaps(arms)

    def regret(state: Any, decision: Decision) -> dict[str, Any]:
        return {"regret": lost @ state.counts.astype(lost.dtype)}

    def build(task: Any, key: Any) -> tuple:
        return rules(arms.problem, horizon)[rule], mab.environment(arms), record(at=marks, value=regret)

    name = f"mab regret, {instance}, {horizon}: {rule}"
    return simulate(name, build, max_rounds=horizon, horizon=horizon, **settings)


def claims(lines: Mapping[study.Key, Line], constants: dict[str, float], horizon: int) -> list[Claim]:
    claims = []
    for name, constant in constants.items():
        few, ucb1 = {rule: lines[name, rule].ours for rule in OPTIMAL}, lines[name, "UCB1"].ours
        statement = f"{name}: the rules of Lai and Robbins' constant lose less than UCB1"
        claims.append(Claim(statement, f"{listed(few, '.1f')}; UCB1 {ucb1:.1f}", max(few.values()) < ucb1))
        share = few["Thompson"] / (constant * np.log(horizon))
        claims.append(between(f"{name}: Thompson sampling loses .35 to 2 times C log t", [share], 0.35, 2, ".2f"))
    return claims


def draw(figure: Any, *, sweeps: Mapping[study.Key, Results], constants: dict[str, float]) -> None:
    for (name, constant), axes in zip(constants.items(), split(figure, (9.6, 4.8), 1, 2), strict=True):
        results = concatenate({rule: each for (where, rule), each in sweeps.items() if where == name}, name="rule")
        bound = "C log t", lambda t, constant=constant: constant * np.log(t)
        results.plot(y="curve.regret", bound=bound, ax=axes, log="xy")
        axes.set(title=name, xlabel="pulls", ylabel="")
        axes.get_legend().remove()
    figure.axes[0].set_ylabel("regret")
    legend_below(figure, ncols=4)
