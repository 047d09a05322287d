"""All rules of fixed confidence on three instances, on the same rewards: pulls, errors, proportions.

Garivier and Kaufmann's (2016) two Bernoulli instances and four Gaussian arms, delta = 0.1, the heuristic threshold
gk16 in every rule that takes one. No rule of this confidence can stay below T* kl(delta, 1 - delta) pulls in the mean,
and the likelihood ratio of the best proportions reaches the threshold after T* gk16(tau).
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.claims import above_bound, interval
from experiments.figures import legend_below, split
from experiments.mab import common
from experiments.mab.common import DELTA, RULES, TOP_TWO
from experiments.report import STANDARD_ERRORS, Claim, Columns, Line, Report, listed, plus_minus
from experiments.settings import Settings
from jaxbandits import Results, compare, mab

INSTANCES = {"gk1": mab.gk1, "gk2": mab.gk2, "gauss4": mab.gauss4}
SHOWN = ("uniform", "TaS, D", "T3C", "TTUCB", "EB-TCI", "KL-LUCB", "lil'UCB")  # curves in the figure
MARKS = common.geometric(10, 20_000, 16)
# Means and standard errors of independent NumPy programs with noise of their own, 60 to 1000 runs each.
EXAMPLES = {
    ("gk1", "uniform"): (6749, 279),
    ("gk1", "TaS, D"): (3969, 116),
    ("gk1", "TaS, C"): (4753, 167),
    ("gk1", "T3C"): (3950, 86),
    ("gk1", "TTUCB"): (4116, 82),
    ("gk1", "EB-TC"): (5004, 309),
    ("gk1", "EB-TCI"): (4273, 77),
    ("gk1", "LUCB"): (8484, 243),
    ("gk1", "KL-LUCB"): (8308, 136),
    ("gk1", "UGapE"): (8412, 287),
    ("gk1", "elimination"): (53421, 662),
    ("gk1", "lil'UCB"): (6120, 210),
    ("gk2", "TTTS"): (1413, 34),
    ("gk2", "T3C"): (1382, 22),
    ("gk2", "TTUCB"): (1418, 22),
    ("gk2", "EB-TCI"): (1574, 24),
    ("gauss4", "TTTS"): (1909, 55),
    ("gauss4", "TTUCB"): (1892, 37),
}
SURE = 1e-4  # the delta at which proportions are compared with the optimal ones


def run(options: Settings) -> Report:
    names = ("gk2",) if options.quick else tuple(INSTANCES)
    seeds = options.seeds or (60 if options.quick else 1000)

    def sweep(instance: str) -> Results:
        settings = {"options": options, "seeds": seeds, "marks": MARKS}
        return common.runs(f"mab gk, {instance}", INSTANCES[instance](), RULES, **settings)

    least = {name: common.bound(INSTANCES[name]()) for name in names}
    axes = {"instance": names, "rule": RULES}
    cells = study.crossed(axes, sweep, split="rule", more=lambda instance, rule: {"bound": least[instance]})
    first = cells.sweeps[names[0],]
    pairs = {
        rule: compare(first.where(rule=rule), first.where(rule="EB-TCI"), paired=True) for rule in ("T3C", "TTUCB")
    }
    wrong = study.errors(cells)
    return study.report(
        "Fixed confidence: thirteen rules on three instances, delta = 0.1",
        cells,
        [
            above_bound(cells.lines.values()),
            common.confident(study.named(cells, wrong)),
            *claims(cells.lines),
            shares_are_optimal({name: far_from_optimal(name, options, seeds) for name in names}),
        ],
        draw=partial(draw, sweeps=dict(zip(names, cells.sweeps.values(), strict=True))),
        notes=(
            "Threshold: gk16, a heuristic; successive elimination and lil'UCB have tests of their own. Means and "
            "standard errors are over the runs that stopped; where some were censored, read the median.",
            "The same rewards for all rules: "
            + "; ".join(
                f"{rule} less EB-TCI on {names[0]} {c['pulls_difference'][0]:.0f} +- {c['pulls_se'][0]:.0f} pulls "
                f"(correlation {c['pulls_correlation'][0]:.2f}, s.e. {c['pulls_gain'][0]:.1f} times smaller)"
                for rule, c in pairs.items()
            ),
        ),
        grid=[row(key[0], columns, cells.lines[key], wrong[key]) for key, columns in cells.cells.items()],
    )


def row(name: str, columns: Columns, line: Line, wrong: tuple[int, int]) -> dict[str, str]:
    """Formats the row of one rule on one instance."""
    counts = columns["counts"][common.stopped(columns)]
    shares = np.mean(counts / counts.sum(axis=1, keepdims=True), axis=0)
    asymptote = float(common.time_of(INSTANCES[name]())) * common.gk16(line.ours)
    return {
        "instance, rule": line.quantity,
        "pulls": plus_minus(line),
        "median": f"{np.median(columns['pulls']):,.0f}",
        "/ (T* kl)": f"{line.ours / line.bound:.2f}" if line.bound else "",
        "/ (T* gk16)": f"{line.ours / asymptote:.2f}",
        "wrong": "{} of {}".format(*wrong),
        "95 %": interval(*wrong),
        "shares of pulls": listed(shares, ".3f"),
    }


def far_from_optimal(name: str, options: Settings, seeds: int) -> float:
    """Computes the distance of Track-and-Stop's proportions from the optimal ones, at a small delta."""
    instance = INSTANCES[name]()
    settings = {"options": options, "seeds": max(seeds // 4, 2), "delta": SURE}
    sweep = common.runs(f"mab gk, {name}, delta = {SURE}", instance, "TaS, D", **settings)
    optimal = np.asarray(mab.characteristic_time(instance.problem, instance.means).allocation)
    counts = sweep.columns["counts"].sum(axis=0)
    return float(np.max(np.abs(counts / counts.sum() - optimal)))


def shares_are_optimal(far: dict[str, float]) -> Claim:
    return Claim(
        f"at delta = {SURE:g} Track-and-Stop's shares of all pulls are within .03 of the optimal ones",
        f"largest differences: {listed(far)}",
        max(far.values()) <= 0.03,
    )


def claims(lines: Mapping[study.Key, Line]) -> list[Claim]:
    """Claims agreement with the NumPy programs and, if the instance was run, the order of rules on gk1."""
    off = {
        ", ".join(key): (lines[key].ours - mean) / np.hypot(lines[key].se, se)
        for key, (mean, se) in EXAMPLES.items()
        if key in lines
    }
    claims = [
        Claim(
            f"means are within {STANDARD_ERRORS} standard errors of the means of NumPy programs, {len(off)} pairs",
            f"differences of {min(off.values()):+.1f} to {max(off.values()):+.1f} standard errors",
            max(map(abs, off.values())) <= STANDARD_ERRORS,
        )
    ]
    if ("gk1", "uniform") in lines:
        quick = {rule: lines["gk1", rule].ours for rule in ("TaS, D", *TOP_TWO)}
        slow = {rule: lines["gk1", rule].ours for rule in ("uniform", "KL-LUCB")}
        told = f"{listed(quick, ',.0f')}; {listed(slow, ',.0f')}"
        is_less = max(quick.values()) < min(slow.values())
        claims.append(Claim("gk1: Track-and-Stop and the top-two rules beat uniform and KL-LUCB", told, is_less))
    return claims


def draw(figure: Any, *, sweeps: Mapping[str, Results]) -> None:
    panels = split(figure, (4.2 * len(sweeps) + 1, 4.8), 1, len(sweeps), sharey=True, squeeze=False)[0]
    for (name, results), axes in zip(sweeps.items(), panels, strict=True):
        results.where(rule=SHOWN).plot(y="curve.wrong", ax=axes, log="xy")
        axes.set(title=name, xlabel="pulls so far", ylabel="", ylim=(2e-3, 1))
        axes.axhline(DELTA, color="k", lw=1, ls=":")
        axes.get_legend().remove()
    figure.axes[0].set_ylabel("share of wrong answers")
    legend_below(figure, ncols=4)
