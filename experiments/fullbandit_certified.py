"""What a guarantee costs: seven stopping rules on the same rewards, run by run.

Synthetic instances as in Figure 3 of Kuroki et al. (2020): n = 10 arms, super-arms of k = 5, noise N(0, 1) of every
arm, sigma = 5, delta = 0.05, epsilon = 0.5, G-optimal shares on 50 and on 20 random super-arms. All rules track the
same design, so one path of rewards serves them all. They are tested at times that grow by 0.5 %, SA-FOA's lottery after
every pull. SAQM takes the ratio of peeling as 0.9 (the paper) or as what it is (exact: by trying all super-arms).
SA-FOA permits a lead of epsilon/2 (the paper) or of epsilon.
"""

from argparse import Namespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments._fullbandit import DELTA, EPSILON
from experiments._fullbandit_synthetic import ARMS, Moment, Task, follow, g_design, instance, tasks
from experiments._simulate import simulate
from experiments.report import STYLES, Claim, Report, joined, line, number
from jaxbandits import Outcome, Status, fullbandit
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.fullbandit._sa_foa import lottery_hazard

GAPS = (0.1, 0.4, 1.0)
ROWS = (50, 20)  # super-arms of a support
RATIO = 1.005  # of two times
TIMES = tuple(np.unique(np.geomspace(100, 10**8, round(np.log(10**6) / np.log(RATIO))).astype(int)).tolist())
CERTIFIED = ("Exhaustive", "spectral", "ICB, ellipsoid", "SAQM, exact", "SAQM, 0.9")
SAMPLED = {"SA-FOA, eps/2": 0.5, "SA-FOA, eps": 1.0}  # permitted lead in units of epsilon
RULES = (*CERTIFIED, *SAMPLED)


class Notes(NamedTuple):
    """Of one run."""

    pulls: Array  # int (rules,)              at the first time that the rule held; 0 if it has not yet
    answers: Array  # bool (rules, n)         then
    exceeded: Array  # bool (samplings,)      then, whether the exhaustive rule found a larger lead than permitted
    hazards: Array  # float (samplings,)      of the lotteries so far
    clocks: Array  # float (samplings,)       at which they end


def run(options: Namespace) -> Report:
    realizations = options.seeds or (10 if options.quick else 100)
    parts = {}
    for rows in ROWS:
        columns = simulate(
            f"certified: s = {rows}",
            lambda task, key: (referee(task.design), fullbandit.environment(instance(task), task.design)),
            tasks(GAPS, realizations, lambda r, rows=rows: g_design(r, rows)),
            options=options,
            seeds=1,
            max_rounds=len(TIMES) + 1,
            metrics=verdicts,
        ).columns
        parts[f"s = {rows}"] = columns | {"gap": np.repeat(GAPS, realizations)}

    runs = joined(parts, label="support")
    settings = [(support, gap) for support in parts for gap in GAPS]
    chosen = {(support, gap): (runs["support"] == support) & (runs["gap"] == gap) for support, gap in settings}
    # A rule that never held would have 0 pulls and pass for the fastest.
    all_held = bool(np.all(runs["pulls_of"] > 0) and np.all(runs["status"] == Status.STOPPED))
    times = {name: runs["pulls_of"][:, i].astype(float) for i, name in enumerate(RULES)}
    ratios = {name: times[name] / times["Exhaustive"] for name in RULES}
    lines = {
        (support, gap, name): line(f"{name}, {support}, gap {gap}", times[name][chosen[support, gap]])
        for support, gap in settings
        for name in RULES
    }
    factors = {
        (support, gap, name): line(name, ratios[name][chosen[support, gap]])
        for support, gap in settings
        for name in RULES
    }
    exceeded = {
        (support, gap, name): float(runs["exceeded"][chosen[support, gap], i].mean())
        for support, gap in settings
        for i, name in enumerate(SAMPLED)
    }
    few = runs["support"] == "s = 20"
    early = times["SAQM, 0.9"] < times["SAQM, exact"]
    wrong = {name: int((~runs["good"][:, i]).sum()) for i, name in enumerate(RULES)}
    total = len(runs["row"])
    claims = [
        Claim("every rule stops in every run", f"{total} runs", all_held),
        *(
            Claim(
                f"Exhaustive never stops later than {name} on the same rewards",
                f"{int(np.sum(ratio >= 1))} of {total} runs; {ratio.min():.2f} to {ratio.max():.2f} times the pulls",
                bool(np.all(ratio >= 1)),
            )
            for name, ratio in ratios.items()
            if name in ("spectral", "ICB, ellipsoid")
        ),
        Claim(
            "on 50 rows spectral takes the fewest pulls of the rules that are polynomial and certified",
            ", ".join(
                f"{name} {min(means):.2f} to {max(means):.2f} times"
                for name in ("spectral", "ICB, ellipsoid")
                for means in [[factors["s = 50", gap, name].ours for gap in GAPS]]
            ),
            all(
                factors["s = 50", gap, "spectral"].ours < factors["s = 50", gap, "ICB, ellipsoid"].ours for gap in GAPS
            ),
        ),
        Claim(
            "SA-FOA often stops while the exhaustive rule forbids it (half of all stops)",
            ", ".join(f"{name} {runs['exceeded'][:, i].mean():.0%}" for i, name in enumerate(SAMPLED)),
            bool(runs["exceeded"].mean() > 0.5),
        ),
        Claim(
            "the ratio 0.9 stops SAQM before the exact one would, on 20 rows",
            f"{np.mean(early[few]):.0%} of the runs; {np.mean(early[~few]):.0%} on 50 rows",
            bool(np.mean(early[few]) > 0.5),
        ),
        Claim(
            "no answer of any rule loses more than epsilon",
            ", ".join(f"{name} {count}" for name, count in wrong.items()),
            not any(wrong.values()),
        ),
    ]

    def draw(figure) -> None:
        figure.set_size_inches(9.6, 5.2)
        panels = figure.subplots(1, 2, sharey=True)
        for axes, support in zip(panels, parts, strict=True):
            for g, gap in enumerate(GAPS):
                y = np.arange(len(RULES))[::-1] + 0.22 * (1 - g)
                shown = [lines[support, gap, name] for name in RULES]
                bars = [2 * x.se for x in shown]
                style = STYLES[g] | {"linestyle": ""}
                axes.errorbar([x.ours for x in shown], y, xerr=bars, mfc="w", label=f"gap {gap}", **style)
            axes.set(xscale="log", xlabel="pulls until the stop", title=f"support: {support}")
            axes.axhspan(-0.5, len(SAMPLED) - 0.5, color="#eeeeee", zorder=0)
            axes.set_ylim(-0.5, len(RULES) - 0.5)
            axes.grid(axis="y", visible=False)
        panels[0].set_yticks(np.arange(len(RULES))[::-1], RULES)
        panels[1].legend(loc="upper right")
        panels[0].text(0.98, 0.02, "no guarantee", transform=panels[0].transAxes, ha="right")

    def cell(support: str, gap: float, name: str) -> str:
        share = f" ({exceeded[support, gap, name]:.0%})" if name in SAMPLED else ""
        return f"{factors[support, gap, name].ours:.2f}{share}"

    return Report(
        "What a guarantee costs: stopping rules on the same rewards, n = 10, k = 5",
        list(lines.values()),
        claims,
        runs,
        draw,
        notes=(
            "Exhaustive in pulls, the others as multiples of it: means of the ratios within a run. In brackets the "
            "share of SA-FOA's stops at which the exhaustive rule still found a lead above the permitted one.",
            "ICB and spectral bound the exhaustive rule from above on any path. Spectral pays for the worst direction "
            "of a design, and gains where designs are well conditioned; on 20 rows ICB is ahead of it.",
        ),
        grid=(
            ("support, gap", "Exhaustive, pulls", *RULES[1:], "runs"),
            [
                (
                    f"{support}, {gap}",
                    f"{number(round(lines[support, gap, 'Exhaustive'].ours))} +- "
                    f"{number(round(lines[support, gap, 'Exhaustive'].se))}",
                    *(cell(support, gap, name) for name in RULES[1:]),
                    str(int(chosen[support, gap].sum())),
                )
                for support, gap in settings
            ],
        ),
    )


def referee(design: fullbandit.Design) -> Algorithm:
    """Writes down when each rule holds first, and ends when all have held."""
    dtype = design.inverse.dtype
    rows = design.support.shape[0]
    settings = {"delta": DELTA, "epsilon": EPSILON}

    def begin(key: Key) -> Notes:
        clocks = jnp.maximum(jax.random.exponential(key, (len(SAMPLED),), dtype), jnp.finfo(dtype).tiny)
        return Notes(
            pulls=jnp.zeros(len(RULES), int),
            answers=jnp.zeros((len(RULES), ARMS), bool),
            exceeded=jnp.zeros(len(SAMPLED), bool),
            hazards=jnp.zeros(len(SAMPLED), dtype),
            clocks=clocks,
        )

    def note(notes: Notes, moment: Moment) -> Notes:
        tested = (design, moment.estimate, moment.t)
        exhaustive = fullbandit.exhaustive_rule(*tested, **settings)
        held = [
            exhaustive.stop,
            fullbandit.spectral_rule(*tested, **settings).stop,
            fullbandit.icb_rule(*tested, radius="ellipsoid", **settings).stop,
            fullbandit.saqm_rule(*tested, alpha="exact", **settings).stop,
            fullbandit.saqm_rule(*tested, alpha=0.9, **settings).stop,
        ]
        rivals = fullbandit.surrogates(*tested, delta=DELTA)
        permitted = EPSILON * jnp.asarray(list(SAMPLED.values()), dtype)
        blocking = (rivals.leads > permitted[:, None]).sum(axis=1)
        hazards = lottery_hazard(blocking, s=rows, size=ARMS, dtype=dtype)
        # All tests up to the next time have this hazard, and one of them may be the last.
        drawn = notes.hazards + hazards * moment.block >= notes.clocks
        failing = jnp.maximum(jnp.ceil((notes.clocks - notes.hazards) / hazards) - 1, 0)

        holds = jnp.concatenate([jnp.stack(held), drawn])
        waited = jnp.concatenate([jnp.zeros(len(held), dtype), jnp.where(drawn, failing, 0)])
        is_first = holds & (notes.pulls == 0)
        is_larger = EPSILON - exhaustive.margin > permitted
        return Notes(
            pulls=jnp.where(is_first, (moment.t + waited).astype(int), notes.pulls),
            answers=jnp.where(is_first[:, None], exhaustive.answer, notes.answers),
            exceeded=jnp.where(is_first[len(held) :], is_larger, notes.exceeded),
            hazards=jnp.where(drawn, notes.hazards, notes.hazards + hazards * moment.block),
            clocks=notes.clocks,
        )

    return follow(design, TIMES, begin=begin, note=note, done=lambda notes: jnp.all(notes.pulls > 0))


def verdicts(task: Task, outcome: Outcome) -> dict[str, Array]:
    notes: Notes = outcome.state.notes
    good = jax.vmap(lambda answer: fullbandit.is_right(instance(task), answer, EPSILON))(notes.answers)
    return {"pulls_of": notes.pulls, "exceeded": notes.exceeded, "good": good}
