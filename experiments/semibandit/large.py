"""Complete graphs of up to 24 nodes, 2.3e30 spanning trees: plays until the stop, and rounds per second. Means are 1 +
.1 U, plus 1.5 for the edges of a random tree. No method that lists trees, or plays games against them, can run these.
The exact minimum over swaps costs O(K D).
"""

from functools import partial
from typing import Any

import jax

from experiments.figures import STYLES, ticks
from experiments.report import Claim, Line, Report, joined, line_of, number, plus_minus
from experiments.semibandit import common
from experiments.settings import Settings
from jaxbandits import Results, cpe

NODES = (8, 12, 16, 24)
RUNS = {8: 64, 12: 64, 16: 32, 24: 16}


def run(options: Settings) -> Report:
    nodes = NODES[:2] if options.quick else NODES
    # A store would hide the speed of the sweep itself.
    options = options._replace(store=None, executor=None)
    sweeps: dict[int, Results] = {}
    for V in nodes:
        instance = cpe.complete_graph(V, jax.random.key(0))
        seeds = options.seeds or (8 if options.quick else RUNS[V])
        name = f"pfws large, {V} nodes"
        sweeps[V] = common.runs(name, instance, "P-FWS", cpe.pfws, options=options, seeds=seeds, lanes=min(seeds, 16))
    lines = {V: line_of(f"{V} nodes", sweep) for V, sweep in sweeps.items()}
    rates = {V: sweep.stats.rounds / sweep.stats.seconds for V, sweep in sweeps.items()}
    return Report(
        "Spanning trees of complete graphs, delta = 0.1",
        list(lines.values()),
        [
            common.confident({f"{V} nodes": common.errors(sweep) for V, sweep in sweeps.items()}),
            Claim(
                f"all runs with {nodes[-1]} nodes end within ten minutes",
                f"{sweeps[nodes[-1]].stats.seconds:.1f} s, {len(sweeps[nodes[-1]].columns['pulls'])} runs",
                sweeps[nodes[-1]].stats.seconds < 600,
            ),
        ],
        joined(sweeps, label="nodes"),
        partial(draw, lines=lines, rates=rates),
        notes=(
            f"On {jax.devices()[0].device_kind}, float64, without compilation; speeds of one measurement. One "
            "instance per size, samples from a stream.",
        ),
        grid=[
            {
                "nodes": str(V),
                "arms": str(V * (V - 1) // 2),
                "trees": number(float(V) ** (V - 2)) if V < 12 else f"{float(V) ** (V - 2):.1e}",
                "plays": plus_minus(lines[V]),
                "wrong": "{} of {}".format(*common.errors(sweeps[V])),
                "rounds/s": f"{rates[V]:.2e}",
            }
            for V in nodes
        ],
    )


def draw(figure: Any, *, lines: dict[int, Line], rates: dict[int, float]) -> None:
    figure.set_size_inches(9, 4.2)
    left, right = figure.subplots(1, 2)
    left.plot(list(lines), [line.ours for line in lines.values()], mfc="w", **STYLES[0])
    right.plot(list(rates), list(rates.values()), mfc="w", **STYLES[1])
    right.set(yscale="log", ylabel="rounds per second")
    left.set(ylabel="plays until the stop", ylim=(0, None))
    for axes in (left, right):
        axes.set(xscale="log", xlabel="nodes of the complete graph")
        ticks(axes, list(lines))
    right.set_title(f"up to {float(max(lines)) ** (max(lines) - 2):.0e} trees", fontsize=10)
    left.set_title("P-FWS on complete graphs", fontsize=10)
