"""Errors too rare to be seen: the true error probability beside delta, down to 1e-12, on gauss4 and linear arms.

Every error is estimated by weighted runs on other instances (`jaxbandits.rare`). gk16 and log_t are heuristics;
kk_pair is proved for Gaussian arms. `mab_rare_delta_instances` has other instances.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr

from experiments.figures import legend_under, split
from experiments.mab import weighted
from experiments.report import Claim, Report, listed
from experiments.settings import Settings
from jaxbandits import linear, mab
from jaxbandits.numerics import thresholds
from jaxbandits.rare import RareResult

DELTAS = (1e-1, 1e-2, 1e-4, 1e-6, 1e-9, 1e-12)
RULES = ("TTUCB", "TaS, D", "LUCB", "T3C", "EB-TCI", "UGapE")
LINEAR = "soare(2)"
SHARE = 0.01  # the runs are chosen for the sum of all errors: a smaller part may rest on none of them

Row = tuple[str, str, str]  # instance, threshold, rule
Cell = tuple[str, str, str, float]  # a row and delta


def run(options: Settings) -> Report:
    rules = {thresholds.gk16: RULES, thresholds.log_t: RULES[:1], thresholds.kk_pair: RULES[:1]}
    if options.quick:
        rules[thresholds.gk16] = RULES[:2]
    soare = linear.soare(2, omega=0.5)
    more = {
        (LINEAR, "gk16", "LinGapE"): (soare, lingape),
        (LINEAR, "its own", "LinGapE"): (soare, proved),
    }
    note = "soare(2): two unit vectors and one at an angle of .5 to the best."
    return report_of(rows("gauss4", mab.gauss4(), rules) | more, smallest, options, note)


def report_of(
    rows: dict[Row, tuple[Any, Callable[..., tuple]]],
    smallest: Callable[[Row], float],
    options: Settings,
    note: str,
) -> Report:
    """Estimates every row, down to the smallest delta of each, and reports on them."""
    deltas = DELTAS[:3] if options.quick else DELTAS
    cases = {
        (*row, delta): weighted.Case(f"mab rare delta, {', '.join(row)}, {delta:g}", build, instance, delta)
        for row, (instance, build) in rows.items()
        for delta in deltas
        if delta >= smallest(row)
    }
    results = weighted.estimates(cases, options)
    return Report(
        "The true error probability of rules, beside the delta that they promise",
        [],
        claims(results),
        weighted.columns_of(results, ("instance", "threshold", "rule", "delta")),
        partial(draw, results=results),
        notes=(
            "Estimate +- relative standard error; a star (in the figure: a hollow mark): with warnings, below. An "
            f"error is a wrong answer within {weighted.longest(deltas[0], options):,} rounds, or "
            f"{weighted.longest(deltas[-1], options):,} at the smallest deltas. {note}",
            *weighted.warnings_of(results),
        ),
        grid=[
            {"instance": row[0], "threshold": row[1], "rule": row[2]}
            | {f"{d:g}": weighted.shown(results[*row, d]) if (*row, d) in results else "" for d in deltas}
            for row in dict.fromkeys(key[:3] for key in results)
        ],
    )


def rows(
    name: str, instance: mab.Instance, rules: dict[Callable[..., Any], tuple[str, ...]]
) -> dict[Row, tuple[Any, Callable[..., tuple]]]:
    """Returns the instance and the build of every row of an instance: rules by their threshold."""
    return {
        (name, threshold.__name__, rule): (instance, weighted.building(rule, threshold))
        for threshold, several in rules.items()
        for rule in several
    }


def smallest(row: Row) -> float:
    """Returns the smallest delta of a row: below it, runs that err take 100,000 pulls and more, and a cell minutes."""
    instance, threshold, rule = row
    is_first = threshold == "gk16" and rule not in ("LUCB", "UGapE")
    return DELTAS[-1] if instance == LINEAR or is_first else 1e-6


def lingape(instance: linear.Instance, key: Any, delta: Any) -> tuple:
    """Builds LinGapE's choices, stopped by likelihood ratios with gk16."""
    del key
    stop = linear.likelihood_ratio(thresholds.gk16(arms=instance.arms.shape[0]), delta=delta)
    algorithm = linear.lingape_glr(instance.arms, stop=stop, noise_scale=instance.noise_scale)
    return algorithm, linear.environment(instance, algorithm)


def proved(instance: linear.Instance, key: Any, delta: Any) -> tuple:
    """Builds LinGapE, with its proved width."""
    del key
    algorithm = linear.lingape(instance.arms, delta=delta, noise_scale=instance.noise_scale)
    return algorithm, linear.environment(instance, algorithm)


def exact_start(delta: float) -> float:
    """Computes the probability that a likelihood-ratio rule on gauss4 stops at t = K with a wrong answer, for gk16."""
    means = np.asarray(mab.gauss4().means)
    margin = np.sqrt(4 * np.log((1 + np.log(4)) / delta))
    x = np.linspace(-12, 14, 200_001)
    total = 0.0
    for j in range(1, 4):
        others = np.prod([ndtr(x - margin - mean) for a, mean in enumerate(means) if a != j], axis=0)
        total += float(np.trapezoid(np.exp(-((x - means[j]) ** 2) / 2) / np.sqrt(2 * np.pi) * others, x))
    return total


def claims(results: dict[Cell, RareResult]) -> list[Claim]:
    shares = {", ".join(map(str, key[:3])): 0.0 for key in results}
    for key, result in results.items():
        name = ", ".join(map(str, key[:3]))
        shares[name] = max(shares[name], result.estimate / key[3])
    starts = {
        f"{key[2]}, {key[3]:g}": (result.part(result.events.pulls == 4), exact_start(key[3]))
        for key, result in results.items()
        if key[0] == "gauss4" and key[1] == "gk16" and key[2] in ("TTUCB", "TaS, D", "T3C", "EB-TCI")
        if exact_start(key[3]) > SHARE * result.estimate
    }
    z = {name: (part.estimate - exact) / part.se for name, (part, exact) in starts.items() if part.se > 0}
    below = Claim(
        "the error stays below delta; the largest ratio of each row",
        listed(shares, ".2g"),
        max(shares.values()) < 1,
    )
    if not z:
        return [below]
    exact = Claim(
        f"errors at t = 4 on gauss4, where they are more than {SHARE:.0%} of all, agree with their exact value; in "
        "standard errors",
        listed(z, "+.1f"),
        max(map(abs, z.values())) < 4,
    )
    return [below, exact]


def draw(figure: Any, *, results: dict[Cell, RareResult]) -> None:
    instances = tuple(dict.fromkeys(key[0] for key in results))
    panels = split(figure, (4.4 * len(instances), 5.6), 1, len(instances), squeeze=False)[0]
    for instance, axes in zip(instances, panels, strict=True):
        rows = dict.fromkeys(key[1:3] for key in results if key[0] == instance)
        for n, (kind, rule) in enumerate(rows):
            cells = {key[3]: result for key, result in results.items() if key[:3] == (instance, kind, rule)}
            weighted.draw_estimates(axes, cells, label=f"{rule}, {kind}", style=n)
        deltas = np.array(sorted({key[3] for key in results}))
        axes.plot(deltas, deltas, "k-", lw=1, label="delta")
        if instance == "gauss4":
            axes.plot(deltas, [exact_start(delta) for delta in deltas], "k:", lw=1, label="at t = 4, gk16, exact")
        axes.set(xscale="log", yscale="log", xlabel="delta", title=instance)
        axes.invert_xaxis()
        legend_under(axes)
    panels[0].set_ylabel("probability of a wrong answer")
