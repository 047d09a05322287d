"""The published spanning trees: P-FWS, CombGame, CLUCB on plays and all trees in turn, on the same samples.

Tzeng, Wang, Proutiere and Lu (2023), delta = 0.1. Their runs stop on an approximate statistic. It is divided by the
edges of a tree, and a game estimates its minimum over all trees from far above (`semibandit_exactness`). Ours stop on
the likelihood ratio itself.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments.claims import every_run_stops
from experiments.figures import legend_below
from experiments.papers import printed
from experiments.report import STANDARD_ERRORS, Claim, Line, Report, joined, line_of
from experiments.semibandit import common
from experiments.settings import Settings
from jaxbandits import Results, compare, cpe
from jaxbandits.base import Algorithm
from jaxbandits.numerics import thresholds

Key = tuple[str, str]  # graph, rule
PUBLISHED = ("E20 P-FWS", "E20 CombGame", "E20 uniform", "E25 P-FWS")  # keys of the rows of "trees" in paper.toml


def rules(problem: cpe.Graphic) -> dict[str, Any]:
    """Returns factories (problem, *, delta) -> Algorithm by name. All trees in turn need a list of all trees, so E20
    alone.
    """
    gk16 = thresholds.gk16(arms=len(problem.ends))
    return {
        "P-FWS": cpe.pfws,
        "P-FWS, unit cover": lambda problem, **settings: cpe.pfws(problem, cover=cpe.unit_cover(problem), **settings),
        "CombGame": cpe.combgame,
        "CLUCB on plays, ratio": partial(cpe.semi_clucb, threshold=gk16),
        "all trees in turn": in_turn,
    }


def in_turn(problem: cpe.Graphic, **settings: Any) -> Algorithm:
    """Builds uniform sampling of all trees, in one random order."""
    trees = all_trees(problem)
    return cpe.round_robin(problem, trees[np.random.default_rng(0).permutation(len(trees))], **settings)


def all_trees(problem: cpe.Graphic) -> np.ndarray:
    """Lists every spanning tree, int8 (N, K), in lexicographic order of its edges, by contraction of edges."""
    nodes, ends = problem.nodes, np.asarray(problem.ends)
    K = len(ends)
    forests, parts = np.zeros((1, K), np.int8), np.arange(nodes, dtype=np.int8)[None]
    for edge, (u, v) in enumerate(ends):
        open_ = parts[:, u] != parts[:, v]
        taken, merged = forests[open_].copy(), parts[open_].copy()
        taken[:, edge] = 1
        merged = np.where(merged == merged[:, [v]], merged[:, [u]], merged)
        forests, parts = np.concatenate([taken, forests]), np.concatenate([merged, parts])
        # Forests that cannot become a tree with the remaining edges are dropped.
        remaining = K - edge - 1
        able = forests.sum(axis=1) + remaining >= nodes - 1
        forests, parts = forests[able], parts[able]
    return forests[forests.sum(axis=1) == nodes - 1]


def run(options: Settings) -> Report:
    seeds = options.seeds or (40 if options.quick else 1000)
    names = ("E20",) if options.quick else tuple(common.GRAPHS)
    sweeps: dict[Key, Results] = {}
    for name in names:
        instance = common.GRAPHS[name]()
        for rule, factory in rules(instance.problem).items():
            if rule == "all trees in turn" and name != "E20":
                continue
            # Slow rules get fewer runs.
            runs = max(seeds // 5, 2) if rule in ("CombGame", "all trees in turn") else seeds
            sweeps[name, rule] = common.runs(
                f"pfws trees, {name}", instance, rule, factory, options=options, seeds=runs
            )
    lines = {key: line_of(", ".join(key), sweep) for key, sweep in sweeps.items()}
    times = {name: common.time_of(common.GRAPHS[name]()) for name in names}
    more = {name: compare(sweeps[name, "P-FWS, unit cover"], sweeps[name, "P-FWS"], paired=True) for name in names}
    spent = sum(100 * s.stats.seconds / len(s.columns["pulls"]) for (_, rule), s in sweeps.items() if rule == "P-FWS")
    return Report(
        "Spanning trees of two graphs, delta = 0.1",
        list(lines.values()),
        claims(lines, sweeps, times, spent),
        joined(sweeps, label="graph, rule"),
        partial(draw, sweeps=sweeps),
        notes=(
            "Threshold: gk16, a heuristic. Published, 100 runs: "
            + "; ".join(
                f"{name} {plays} plays, {wrong:.0%} wrong, {seconds:,} CPU s a run"
                for name, (plays, wrong, seconds) in zip(PUBLISHED, printed("semibandit", "trees"), strict=True)
            )
            + ". The published runs stop on an approximate statistic.",
            "; ".join(f"{name}: T* = {time:.2f}" for name, time in times.items())
            + "; "
            + "; ".join(
                f"{name}: the unit cover takes {c['pulls_difference'][0]:.0f} +- {c['pulls_se'][0]:.0f} plays more"
                for name, c in more.items()
            ),
        ),
        grid=[common.cells(lines[key], sweep, times[key[0]]) for key, sweep in sweeps.items()],
    )


def claims(lines: dict[Key, Line], sweeps: dict[Key, Results], times: dict[str, float], spent: float) -> list[Claim]:
    claims = [every_run_stops(sweeps.values())]
    for name, time in times.items():
        ours = lines[name, "P-FWS"]
        share, room = ours.ours / (time * common.gk16(ours.ours)), ours.se / (time * common.gk16(ours.ours))
        claims.append(
            Claim(
                f"{name}: the mean of P-FWS is 1.0 to 1.3 T* threshold(mean)",
                f"{share:.3f} +- {room:.3f}",
                1.0 <= share <= 1.3,
            )
        )
        for rule in ("CombGame", "all trees in turn"):
            if (name, rule) in lines:
                other = lines[name, rule]
                lead, se = other.ours - ours.ours, float(np.hypot(other.se, ours.se))
                claims.append(
                    Claim(
                        f"{name}: P-FWS stops before {rule}, by more than {STANDARD_ERRORS} standard errors",
                        f"by {lead:.0f} +- {se:.0f} plays",
                        lead > STANDARD_ERRORS * se,
                    )
                )
    claims.append(common.confident({", ".join(key): common.errors(sweep) for key, sweep in sweeps.items()}))
    statement = f"100 runs of P-FWS on {' and '.join(times)} take less than five minutes"
    claims.append(Claim(statement, f"{spent:.1f} s", spent < 300))
    return claims


def draw(figure: Any, *, sweeps: dict[Key, Results]) -> None:
    names = list(dict.fromkeys(name for name, _ in sweeps))
    figure.set_size_inches(4.2 * len(names) + 1, 4.6)
    for name, axes in zip(names, np.ravel(figure.subplots(1, len(names), sharey=True)), strict=True):
        drawn = {rule: sweep for (where, rule), sweep in sweeps.items() if where == name}
        common.draw_stops(axes, drawn)
        axes.set(title=name)
    figure.axes[0].set_ylabel("share of runs that have stopped")
    legend_below(figure, ncols=3)
