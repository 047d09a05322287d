"""The published spanning trees: P-FWS, CombGame, CLUCB on plays and all trees in turn, on the same samples.

Tzeng, Wang, Proutiere and Lu (2023), delta = 0.1. Their runs stop on an approximate statistic. It is divided by the
edges of a tree, and a game estimates its minimum over all trees from far above (`semibandit_exactness`). Ours stop on
the likelihood ratio itself.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.papers import printed
from experiments.report import STANDARD_ERRORS, Claim, Report
from experiments.semibandit import common
from experiments.settings import Settings
from jaxbandits import Results, compare, cpe
from jaxbandits.base import Algorithm
from jaxbandits.numerics import thresholds

PUBLISHED = ("E20 P-FWS", "E20 CombGame", "E20 uniform", "E25 P-FWS")  # keys of the rows of "trees" in paper.toml


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


RULES = {  # rule -> (problem) -> its factory (problem, *, delta) -> Algorithm
    "P-FWS": lambda problem: cpe.pfws,
    "P-FWS, unit cover": lambda problem: partial(cpe.pfws, cover=cpe.unit_cover(problem)),
    "CombGame": lambda problem: cpe.combgame,
    "CLUCB on plays, ratio": lambda problem: partial(cpe.semi_clucb, threshold=thresholds.gk16(arms=len(problem.ends))),
    "all trees in turn": lambda problem: in_turn,
}
SLOW = ("CombGame", "all trees in turn")  # rules with fewer runs


def run(options: Settings) -> Report:
    seeds = options.seeds or (40 if options.quick else 1000)
    names = ("E20",) if options.quick else tuple(common.GRAPHS)
    graphs = {name: common.GRAPHS[name]() for name in names}

    def sweep(graph: str, rule: str) -> Results | None:
        if rule == "all trees in turn" and graph != "E20":
            return None  # too many trees to list
        problem = graphs[graph].problem
        shared = {"options": options, "seeds": max(seeds // 5, 2) if rule in SLOW else seeds}
        return common.runs(f"pfws trees, {graph}", graphs[graph], rule, RULES[rule](problem), **shared)

    cells = study.crossed({"graph": names, "rule": RULES}, sweep)
    times = {name: common.time_of(graph) for name, graph in graphs.items()}
    laws = {key: common.law(line, times[key[0]]) for key, line in cells.lines.items()}
    pairs = {name: [cells.sweeps[name, rule] for rule in ("P-FWS, unit cover", "P-FWS")] for name in names}
    more = {name: compare(*pair, paired=True) for name, pair in pairs.items()}
    spent = sum(common.seconds(pfws) for _, pfws in pairs.values())
    return study.report(
        "Spanning trees of two graphs, delta = 0.1",
        cells,
        claims(cells, laws, spent),
        draw=partial(common.draw_stops, cells=cells),
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
        grid=common.grid(cells, laws),
    )


def claims(cells: study.Study, laws: dict[study.Key, float], spent: float) -> list[Claim]:
    claims, lines, names = [study.stops(cells)], cells.lines, cells.axes["graph"]
    for name in names:
        ours, law = lines[name, "P-FWS"], laws[name, "P-FWS"]
        what = f"{name}: the mean of P-FWS is 1.0 to 1.3 T* threshold(mean)"
        share = ours.ours / law
        claims.append(Claim(what, f"{share:.3f} +- {ours.se / law:.3f}", 1.0 <= share <= 1.3))
        for rule in SLOW:
            if (name, rule) in lines:
                lead, se = lines[name, rule].ours - ours.ours, float(np.hypot(lines[name, rule].se, ours.se))
                what = f"{name}: P-FWS stops before {rule}, by more than {STANDARD_ERRORS} standard errors"
                claims.append(Claim(what, f"by {lead:.0f} +- {se:.0f} plays", lead > STANDARD_ERRORS * se))
    what = f"100 runs of P-FWS on {' and '.join(names)} take less than five minutes"
    claims.append(common.confident(study.named(cells, study.errors(cells))))
    return [*claims, Claim(what, f"{spent:.1f} s", spent < 300)]
