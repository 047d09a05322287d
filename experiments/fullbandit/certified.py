"""The cost of a guarantee: seven stopping rules on the same rewards, run by run.

Synthetic instances as in Figure 3 of Kuroki et al. (2020): n = 10 arms, super-arms of k = 5, noise N(0, 1) of every
arm, sigma = 5, delta = 0.05, epsilon = 0.5, G-optimal shares on 50 and on 20 random super-arms. All rules track the
same design, so one path of rewards serves them all. They are tested at times that grow by 0.5 %, SA-FOA's lottery after
every pull. SAQM assumes the ratio 0.9 of peeling (the paper) or computes it from all super-arms (exact). SA-FOA permits
a lead of epsilon/2 (the paper) or of epsilon.
"""

import itertools
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.claims import all_of
from experiments.figures import errorbars, split, ticks
from experiments.fullbandit.common import DELTA, EPSILON
from experiments.fullbandit.synthetic import ARMS, Task, follow, g_design, path_runs, tasks
from experiments.report import Claim, Report, joined, line, listed, plus_minus
from experiments.settings import Settings
from jaxbandits import Outcome, Status, fullbandit
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.fullbandit import Estimate
from jaxbandits.fullbandit._algorithms.sa_foa import lottery_hazard

GAPS = (0.1, 0.4, 1.0)
ROWS = (50, 20)  # super-arms of a support
RATIO = 1.005  # ratio of two successive times
TIMES = tuple(np.unique(np.geomspace(100, 10**8, round(np.log(10**6) / np.log(RATIO))).astype(int)).tolist())
CERTIFIED = {
    "Exhaustive": fullbandit.exhaustive_rule,
    "spectral": fullbandit.spectral_rule,
    "ICB, ellipsoid": partial(fullbandit.icb_rule, radius="ellipsoid"),
    "SAQM, exact": partial(fullbandit.saqm_rule, alpha="exact"),
    "SAQM, 0.9": partial(fullbandit.saqm_rule, alpha=0.9),
}
SAMPLED = {"SA-FOA, eps/2": 0.5, "SA-FOA, eps": 1.0}  # permitted lead in units of epsilon
RULES = (*CERTIFIED, *SAMPLED)
POLYNOMIAL = ("spectral", "ICB, ellipsoid")  # rules that are polynomial and certified


class Notes(NamedTuple):
    """Notes of one run."""

    pulls: Array  # int (rules,)              pulls when the rule first held; 0 if it has not yet
    answers: Array  # bool (rules, n)         answers at that time
    exceeded: Array  # bool (samplings,)      then, whether the exhaustive rule found a larger lead than permitted
    hazards: Array  # float (samplings,)      of the lotteries so far
    clocks: Array  # float (samplings,)       at which they end


def run(options: Settings) -> Report:
    realizations = options.seeds or (10 if options.quick else 100)
    parts = {f"s = {rows}": paths(rows, realizations, options) for rows in ROWS}
    runs = joined(parts, label="support")
    times = dict(zip(RULES, runs["pulls_of"].T.astype(float), strict=True))
    ratios = {name: pulls / times["Exhaustive"] for name, pulls in times.items()}
    lines, factors, grid = {}, {}, []
    for support, gap in itertools.product(parts, GAPS):
        here = (runs["support"] == support) & (runs["gap"] == gap)
        for name in RULES:
            lines[support, gap, name] = line(f"{name}, {support}, gap {gap}", times[name][here])
            factors[support, gap, name] = ratios[name][here].mean()
        first, shown = lines[support, gap, "Exhaustive"], {n: f"{factors[support, gap, n]:.2f}" for n in RULES[1:]}
        for name, exceeded in zip(SAMPLED, runs["exceeded"][here].mean(axis=0), strict=True):
            shown[name] += f" ({exceeded:.0%})"
        row = {"support, gap": f"{support}, {gap}", "Exhaustive, pulls": plus_minus(first), **shown}
        grid.append(row | {"runs": str(here.sum())})
    polynomial = {name: [factors["s = 50", gap, name] for gap in GAPS] for name in POLYNOMIAL}
    few, early = runs["support"] == "s = 20", times["SAQM, 0.9"] < times["SAQM, exact"]
    wrong = dict(zip(RULES, (~runs["good"]).sum(axis=0), strict=True))
    # Otherwise a rule that never held would have 0 pulls and count as the fastest.
    stopped = (runs["pulls_of"] > 0).all(axis=1) & (runs["status"] == Status.STOPPED)

    def draw(figure) -> None:
        panels = split(figure, (9.6, 5.2), 1, 2, sharey=True)
        y = np.arange(len(RULES))[::-1]
        for axes, support in zip(panels, parts, strict=True):
            for style, gap in enumerate(GAPS):
                shown = [lines[support, gap, name] for name in RULES]
                bars = {"yerr": None, "xerr": [2 * x.se for x in shown], "linestyle": ""}
                errorbars(
                    axes, [x.ours for x in shown], y + 0.22 * (1 - style), 0, label=f"gap {gap}", style=style, **bars
                )
            axes.set(xscale="log", xlabel="pulls until the stop", title=f"support: {support}")
            axes.axhspan(-0.5, len(SAMPLED) - 0.5, color="#eeeeee", zorder=0)
            axes.set_ylim(-0.5, len(RULES) - 0.5)
            axes.grid(axis="y", visible=False)
        ticks(panels[0], y, RULES, axis="y")
        panels[1].legend(loc="upper right")
        panels[0].text(0.98, 0.02, "no guarantee", transform=panels[0].transAxes, ha="right")

    return Report(
        "The cost of a guarantee: stopping rules on the same rewards, n = 10, k = 5",
        list(lines.values()),
        [
            all_of("every rule stops in every run", stopped),
            *(
                all_of(
                    f"Exhaustive never stops later than {name} on the same rewards",
                    ratios[name] >= 1,
                    f" runs; {ratios[name].min():.2f} to {ratios[name].max():.2f} times the pulls",
                )
                for name in POLYNOMIAL
            ),
            Claim(
                "on 50 rows spectral takes the fewest pulls of the rules that are polynomial and certified",
                ", ".join(f"{name} {min(means):.2f} to {max(means):.2f} times" for name, means in polynomial.items()),
                np.all(np.less(*polynomial.values())),
            ),
            Claim(
                "SA-FOA often stops while the exhaustive rule forbids it (half of all stops)",
                listed(dict(zip(SAMPLED, runs["exceeded"].mean(axis=0), strict=True)), ".0%"),
                runs["exceeded"].mean() > 0.5,
            ),
            Claim(
                "the ratio 0.9 stops SAQM before the exact one would, on 20 rows",
                f"{np.mean(early[few]):.0%} of the runs; {np.mean(early[~few]):.0%} on 50 rows",
                np.mean(early[few]) > 0.5,
            ),
            Claim("no answer of any rule loses more than epsilon", listed(wrong, "d"), not any(wrong.values())),
        ],
        runs,
        draw,
        notes=(
            "Exhaustive in pulls, the others as multiples of it: means of the ratios within a run. In brackets the "
            "share of SA-FOA's stops at which the exhaustive rule still found a lead above the permitted one.",
            "On any path, ICB and spectral stop no earlier than the exhaustive rule. Spectral pays for the worst "
            "direction of a design and gains where designs are well conditioned; on 20 rows ICB stops earlier.",
        ),
        grid=grid,
    )


def paths(rows: int, realizations: int, options: Settings) -> dict[str, np.ndarray]:
    """Runs all rules on one path of rewards for every gap and realization; supports have `rows` rows."""
    table = tasks(GAPS, realizations, lambda r: g_design(r, rows))
    settings = {"options": options, "max_rounds": len(TIMES) + 1, "metrics": verdicts}
    return path_runs(f"certified: s = {rows}", referee, table, **settings)


def referee(design: fullbandit.Design) -> Algorithm:
    dtype, none = design.inverse.dtype, jnp.zeros(len(SAMPLED))

    def begin(key: Key) -> Notes:
        clocks = jnp.maximum(jax.random.exponential(key, none.shape, dtype), jnp.finfo(dtype).tiny)
        pulls, answers = jnp.zeros(len(RULES), int), jnp.zeros((len(RULES), ARMS), bool)
        return Notes(pulls, answers, none.astype(bool), none.astype(dtype), clocks)

    def note(notes: Notes, t: Array, estimate: Estimate, index: Array, block: Array) -> Notes:
        tested = (design, estimate, t)
        judged = [rule(*tested, delta=DELTA, epsilon=EPSILON) for rule in CERTIFIED.values()]
        exhaustive = judged[0]
        rivals = fullbandit.surrogates(*tested, delta=DELTA)
        permitted = EPSILON * jnp.asarray(list(SAMPLED.values()), dtype)
        blocking = (rivals.leads > permitted[:, None]).sum(axis=1)
        hazards = lottery_hazard(blocking, s=design.support.shape[0], size=ARMS, dtype=dtype)
        # All tests up to the next time have this hazard, and one of them may be the last.
        drawn = notes.hazards + hazards * block >= notes.clocks
        failing = jnp.maximum(jnp.ceil((notes.clocks - notes.hazards) / hazards) - 1, 0)

        holds = jnp.concatenate([jnp.stack([verdict.stop for verdict in judged]), drawn])
        waited = jnp.concatenate([jnp.zeros(len(CERTIFIED), dtype), jnp.where(drawn, failing, 0)])
        is_first = holds & (notes.pulls == 0)
        is_larger = EPSILON - exhaustive.margin > permitted
        return Notes(
            pulls=jnp.where(is_first, (t + waited).astype(int), notes.pulls),
            answers=jnp.where(is_first[:, None], exhaustive.answer, notes.answers),
            exceeded=jnp.where(is_first[len(CERTIFIED) :], is_larger, notes.exceeded),
            hazards=jnp.where(drawn, notes.hazards, notes.hazards + hazards * block),
            clocks=notes.clocks,
        )

    return follow(design, TIMES, begin=begin, note=note, done=lambda notes: jnp.all(notes.pulls > 0))


def verdicts(task: Task, outcome: Outcome) -> dict[str, Array]:
    notes: Notes = outcome.state.notes
    good = jax.vmap(lambda answer: fullbandit.is_right(task["instance"], answer, EPSILON))(notes.answers)
    return {"pulls_of": notes.pulls, "exceeded": notes.exceeded, "good": good}
