"""The cost of a proof: pulls and errors of three rules under every threshold, on two instances.

A search follows for a setting where gk16, a heuristic, errs more often than delta. The best of orthogonal arms leads by
so little that no run within the budget can tell. A run that stops there trusts its noise.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments import study
from experiments.claims import allowed
from experiments.figures import legend_below, marks, side_by_side, split
from experiments.likelihood import common
from experiments.report import Claim, Line, Report, listed
from experiments.settings import Settings
from jaxbandits import Results, linear
from jaxbandits.numerics import thresholds

DELTAS = (0.1, 0.01)
INSTANCES = {"soare(6)": partial(linear.soare, 6, 0.1), "sphere_pair": partial(linear.sphere_pair, 0, 20, 6)}
NAMES = ("FWS", "LinGapE", "Lazy TaS")
# Pulls of FWS on soare(6) at delta = .1, by an independent implementation.
EXAMPLES = {"gk16": 904, "log_t": 2086, "jp": 5425, "ellipsoid": 6512, "ellipsoid_trace": 8650, "kk_all": 9179}
NEAR = 0.15  # allowed relative difference; the other implementation's pulls have no spread
# Settings of the search: number of orthogonal arms, lead of the best, pulls.
DIMENSIONS, LEAD, BUDGET = (2, 3, 5, 10, 20), 0.001, 20_000
SEARCHED = ("LinGapE", "uniform")


class Kind(NamedTuple):
    """A threshold, and the stop that a rule makes of it."""

    make: Callable[[linear.Instance], thresholds.Threshold]
    status: str  # "proved", "heuristic"
    least_squares: bool = False  # the statistic has no ridge


def norm(instance: linear.Instance) -> float:
    return float(np.linalg.norm(instance.theta))


def least_of(instance: linear.Instance) -> float:
    """Computes the smallest eigenvalue of the Gram matrix of one pull of every arm, as at the start of a run."""
    arms = np.asarray(instance.arms)
    return float(np.linalg.eigvalsh(arms.T @ arms)[0])


# kk_pair reads the pulls of two arms alone. A linear challenger moves all means, so it does not apply.
KINDS = {
    "gk16": Kind(lambda instance: thresholds.gk16(arms=len(instance.arms)), "heuristic"),
    "log_t": Kind(lambda instance: thresholds.log_t(), "heuristic"),
    "gk_union": Kind(lambda instance: thresholds.gk_union(arms=len(instance.arms)), "heuristic"),
    "kl_lucb": Kind(lambda instance: thresholds.kl_lucb(arms=len(instance.arms)), "heuristic"),
    "jp_heuristic": Kind(lambda instance: thresholds.jp_heuristic(dimension=instance.arms.shape[1]), "heuristic"),
    "jp": Kind(
        lambda instance: thresholds.jp(dimension=instance.arms.shape[1], ridge=1.0, least=least_of(instance)),
        "proved",
        least_squares=True,
    ),
    "ellipsoid": Kind(lambda instance: thresholds.ellipsoid(norm_bound=norm(instance)), "proved"),
    "ellipsoid_trace": Kind(
        lambda instance: thresholds.ellipsoid_trace(
            dimension=instance.arms.shape[1],
            arm_norm=float(np.linalg.norm(instance.arms, axis=1).max()),
            norm_bound=norm(instance),
        ),
        "proved",
    ),
    "kk_all": Kind(lambda instance: thresholds.kk_all(arms=len(instance.arms)), "proved", least_squares=True),
}


def run(options: Settings) -> Report:
    seeds = options.seeds or (40 if options.quick else 1000)
    # Every rule, threshold and instance is a program of its own. A quick run leaves out those that compile slowly.
    instances = {name: INSTANCES[name]() for name in list(INSTANCES)[: 1 if options.quick else None]}
    times = {name: common.time_of(each) for name, each in instances.items()}

    def sweep(instance: str, rule: str, threshold: str) -> Results:
        kind = KINDS[threshold]
        more = {"glr_ridge": 0.0} if kind.least_squares else {}
        factory = common.by_ratios(rule, kind.make(instances[instance]), **more)
        title = f"linear2 thresholds, {instance}: {rule}, {threshold}"
        return common.runs(title, instances[instance], factory, options=options, seeds=seeds, delta=DELTAS)

    cells = study.crossed(
        {"instance": instances, "rule": NAMES, "threshold": KINDS, "delta": DELTAS},
        sweep,
        rows="delta",
        name="{instance}, {rule}, {threshold}, {delta:g}",
        more=lambda instance, delta, **_: {"bound": times[instance] * float(common.kl(delta))},
    )
    lines, wrong = cells.lines, study.errors(cells)
    searched = search(options, options.seeds or (100 if options.quick else 2000))
    return study.report(
        "Pulls until the stop under every threshold",
        cells,
        [
            expected(lines),
            common.confident(counts_of(wrong, "proved")),
            common.confident(counts_of(wrong, "heuristic")),
            costs_more(lines),
        ],
        draw=partial(draw, lines=lines),
        notes=(
            *worst_settings(searched),
            "Thresholds of single arms (kk_pair) are for arms without structure and do not apply here.",
        ),
        grid=[
            {"instance": name, "rule": rule, "threshold": f"{kind}, {KINDS[kind].status}", "delta": f"{delta:g}"}
            | common.cells_of(each)
            | {"wrong": common.shown(*wrong[name, rule, kind, delta])}
            for (name, rule, kind, delta), each in lines.items()
        ],
    )


def search(options: Settings, seeds: int) -> dict[tuple[str, int, float], tuple[int, int]]:
    """Counts wrong answers among the runs that stopped, and all runs, by rule, number of arms and delta."""
    budget = BUDGET // 10 if options.quick else BUDGET

    def sweep(arms: int, rule: str) -> Results:
        instance = linear.Instance(np.eye(arms), LEAD * np.eye(arms)[0], 1.0)
        factory = common.by_ratios(rule, thresholds.gk16(arms=arms))
        title = f"linear2 thresholds, search: {rule}, {arms} arms, {budget}"
        return common.runs(title, instance, factory, options=options, seeds=seeds, delta=DELTAS, longest=budget)

    axes = {"arms": DIMENSIONS[:2] if options.quick else DIMENSIONS, "rule": SEARCHED, "delta": DELTAS}
    cells = study.crossed(axes, sweep, rows="delta")
    return {(rule, arms, delta): (wrong, seeds) for (arms, rule, delta), (wrong, _) in study.errors(cells).items()}


def worst_settings(searched: dict[tuple[str, int, float], tuple[int, int]]) -> list[str]:
    """Describes the worst setting for each delta, and whether its error rate exceeds delta by more than chance."""
    lines = []
    for delta in DELTAS:
        rates = {key: wrong / runs for key, (wrong, runs) in searched.items() if key[2] == delta}
        worst = max(rates, key=rates.__getitem__)
        wrong, runs = searched[worst]
        said = "more often than delta" if wrong > allowed(runs, delta) else "not more often than delta"
        sizes = sorted({arms for _, arms, _ in searched})
        by_arms = {f"{arms}:": max(rates[rule, arms, delta] for rule in SEARCHED) for arms in sizes}
        lines.append(
            f"Search, gk16 at delta = {delta:g}, the best of orthogonal arms leads by {LEAD}: it errs {said}, at most "
            f"in {common.shown(wrong, runs)} ({worst[0]}, {worst[1]} arms); the largest share by number of arms: "
            f"{listed(by_arms, '.4f')}."
        )
    return lines


def counts_of(wrong: Mapping[study.Key, tuple[int, int]], status: str) -> dict[str, tuple[int, int, float]]:
    """Collects the errors under the thresholds of one status, for `common.confident`."""
    return {
        f"{status}: {', '.join(key[:3])}, {key[3]:g}": (*each, key[3])
        for key, each in wrong.items()
        if KINDS[key[2]].status == status
    }


def expected(lines: Mapping[study.Key, Line]) -> Claim:
    ratios = {kind: lines["soare(6)", "FWS", kind, 0.1].ours / pulls for kind, pulls in EXAMPLES.items()}
    statement = f"FWS, soare(6), .1: within {NEAR:.0%} of the pulls of another implementation"
    return Claim(statement, listed(ratios, ".2f"), all(abs(each - 1) <= NEAR for each in ratios.values()))


def costs_more(lines: Mapping[study.Key, Line]) -> Claim:
    """Claims that every proved threshold costs more pulls than gk16."""
    dearer = {
        f"{', '.join(key[:3])}, {key[3]:g}": each.ours / lines[*key[:2], "gk16", key[3]].ours
        for key, each in lines.items()
        if KINDS[key[2]].status == "proved"
    }
    least, most = min(dearer, key=dearer.__getitem__), max(dearer, key=dearer.__getitem__)
    text = f"{dearer[least]:.1f} ({least}) to {dearer[most]:.1f} times ({most})"
    return Claim("a proved threshold needs more pulls than gk16", text, dearer[least] > 1)


def draw(figure: Any, *, lines: Mapping[study.Key, Line]) -> None:
    names = list(dict.fromkeys(name for name, *_ in lines))
    panels = split(figure, (9.6, 3.2 * len(names)), len(names), 1, sharex=True)
    for name, axes in zip(names, np.ravel(panels), strict=True):
        for n, rule in enumerate(NAMES):
            for delta, filled in zip(DELTAS, ("w", None), strict=True):
                rows = [lines[name, rule, kind, delta] for kind in KINDS]
                style = marks(n) | ({"mfc": filled} if filled else {"mfc": marks(n)["color"]})
                x = np.arange(len(KINDS)) + 0.18 * (n - 1)
                axes.errorbar(x, [r.ours for r in rows], [2 * r.se for r in rows], label=f"{rule}, {delta:g}", **style)
        side_by_side(axes, [f"{kind}\n{KINDS[kind].status}" for kind in KINDS], yscale="log", title=name)
        axes.set_ylabel("pulls until the stop")
        axes.tick_params(axis="x", labelsize=8)
    legend_below(figure, ncols=3)
