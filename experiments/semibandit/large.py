"""Complete graphs of up to 24 nodes, 2.3e30 spanning trees: plays until the stop, and rounds per second. Means are 1 +
.1 U, plus 1.5 for the edges of a random tree. No method that lists trees, or plays games against them, can run these.
The exact minimum over swaps costs O(K D).
"""

from functools import partial
from typing import Any

import jax

from experiments import study
from experiments.figures import STYLES, split, ticks
from experiments.report import Claim, Report, means, number, plus_minus
from experiments.semibandit import common
from experiments.settings import Settings
from jaxbandits import Results, cpe

NODES = (8, 12, 16, 24)
RUNS = {8: 64, 12: 64, 16: 32, 24: 16}


def run(options: Settings) -> Report:
    nodes = NODES[:2] if options.quick else NODES
    # A store would hide the speed of the sweep itself.
    options = options._replace(store=None, executor=None)

    def sweep(nodes: int) -> Results:
        seeds = options.seeds or (8 if options.quick else RUNS[nodes])
        settings = {"options": options, "seeds": seeds, "lanes": min(seeds, 16)}
        instance = cpe.complete_graph(nodes, jax.random.key(0))
        return common.runs(f"pfws large, {nodes} nodes", instance, "P-FWS", cpe.pfws, **settings)

    cells = study.crossed({"nodes": nodes}, sweep, name="{nodes} nodes")
    wrong = study.errors(cells)
    stats = {V: sweep.stats for (V,), sweep in cells.sweeps.items()}
    rates = {V: each.rounds / each.seconds for V, each in stats.items()}
    last = nodes[-1]
    return study.report(
        "Spanning trees of complete graphs, delta = 0.1",
        cells,
        [
            common.confident(study.named(cells, wrong)),
            Claim(
                f"all runs with {last} nodes end within ten minutes",
                f"{stats[last].seconds:.1f} s, {cells.lines[last,].runs} runs",
                stats[last].seconds < 600,
            ),
        ],
        draw=partial(draw, cells=cells, rates=rates),
        notes=(
            f"On {jax.devices()[0].device_kind}, float64, without compilation; speeds of one measurement. One "
            "instance per size, samples from a stream.",
        ),
        grid=[
            {
                "nodes": str(V),
                "arms": str(V * (V - 1) // 2),
                "trees": number(float(V) ** (V - 2)) if V < 12 else f"{float(V) ** (V - 2):.1e}",
                "plays": plus_minus(cells.lines[V,]),
                "wrong": "{} of {}".format(*wrong[V,]),
                "rounds/s": f"{rates[V]:.2e}",
            }
            for V in nodes
        ],
    )


def draw(figure: Any, *, cells: study.Study, rates: dict[int, float]) -> None:
    nodes = cells.axes["nodes"]
    left, right = split(figure, (9, 4.2), 1, 2)
    left.plot(nodes, means(cells.lines.values()), mfc="w", **STYLES[0])
    right.plot(nodes, list(rates.values()), mfc="w", **STYLES[1])
    right.set(yscale="log", ylabel="rounds per second")
    left.set(ylabel="plays until the stop", ylim=(0, None))
    for axes in (left, right):
        axes.set(xscale="log", xlabel="nodes of the complete graph")
        ticks(axes, nodes)
    right.set_title(f"up to {float(nodes[-1]) ** (nodes[-1] - 2):.0e} trees", fontsize=10)
    left.set_title("P-FWS on complete graphs", fontsize=10)
