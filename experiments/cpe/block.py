"""Pulls in blocks: COCI and uniform sampling make the same pulls with every block size, in fewer rounds.

The eight instances of `cpe_eight`, delta = 0.1, blocks of 1, 8, 32 and 128 slots on the same samples. A round makes
several pulls only if the rule would make all of them whatever their samples are. Times exclude compilation and are for
one batch of lanes, where lanes whose run has ended idle.
"""

import itertools
from collections.abc import Mapping

import numpy as np

from experiments import study
from experiments.claims import all_of, in_range
from experiments.cpe import common
from experiments.cpe.eight import NAMES
from experiments.figures import STYLES, legend_below, split, ticks
from experiments.report import Claim, Report, number
from experiments.settings import Settings
from jaxbandits import Results, cpe

RULES = ("COCI", "uniform")
BLOCKS = (1, 8, 32, 128)
GAIN = 1.1  # largest gain of COCI from blocks beyond 32


def run(options: Settings) -> Report:
    names, blocks = (("best5", "osa4"), (1, 32)) if options.quick else (NAMES, BLOCKS)
    shared = {"options": options, "replicates": options.seeds or (20 if options.quick else 100)}

    def sweep(name: str, rule: str, block: int) -> Results:
        settings = {"label": f"{rule}, block {block}", "leap": block}
        return common.runs(f"cpe block: {name}", getattr(cpe, name)(), rule, **settings, **shared)

    axes = {"name": names, "rule": RULES, "block": blocks}
    cells = study.crossed(axes, sweep, name="{name}: {rule}, block {block}")
    speed = {key: x["pulls"].sum() / x["rounds"].sum() for key, x in cells.cells.items()}  # pulls per round
    claims = [same_runs(cells.sweeps)]
    if 128 in blocks:
        gains = {name: speed[name, "COCI", 128] / speed[name, "COCI", 32] for name in names}
        what = "COCI: pulls per round with block 128 over those with block 32"
        claims.append(in_range(what, gains, 0, GAIN, digits=2))

    def draw(figure) -> None:
        panels = split(figure, (8.4, 4.2), 1, 2, sharey=True)
        for axes, rule in zip(panels, RULES, strict=True):
            for name, style in zip(names, STYLES, strict=False):
                axes.plot(blocks, [speed[name, rule, block] for block in blocks], label=name, mfc="w", **style)
            axes.plot(blocks, blocks, color="k", lw=1, label="every slot filled")
            axes.set(xscale="log", yscale="log", xlabel="block, slots of a round", title=rule)
            ticks(axes, blocks)
        ticks(panels[0], (1, 2, 5, 10, 20, 50, 100), axis="y")
        panels[0].set_ylabel("pulls per round")
        figure.suptitle("The same runs in fewer rounds")
        legend_below(figure, ncols=5)

    return study.report(
        "Blocks of pulls: the same runs in fewer rounds",
        cells,
        claims,
        draw=draw,
        notes=(
            "The columns of a block are pulls per round; in brackets millions of pulls per second. A round with a "
            "block tests up to two more boxes, one inside and one around the boxes of all its pulls.",
        ),
        grid=[
            {"": f"{name}: {rule}", "T": number(round(cells.lines[name, rule, 1].ours))}
            | {f"block {b}": f"{speed[name, rule, b]:.1f} ({rate(cells.sweeps[name, rule, b])})" for b in blocks}
            | {"runs": str(shared["replicates"])}
            for name, rule in itertools.product(names, RULES)
        ],
    )


def rate(sweep: Results) -> str:
    return f"{sweep.stats.pulls / sweep.stats.seconds / 1e6:.2f}" if sweep.stats.rounds else "stored"


def same_runs(sweeps: Mapping[study.Key, Results]) -> Claim:
    columns = ("pulls", "counts", "answer")
    twins = [(sweep, sweeps[name, rule, 1]) for (name, rule, block), sweep in sweeps.items() if block > 1]
    return all_of(
        "with every block, all runs have the same T, counts and answer as with single pulls",
        np.concatenate([common.twins_agree(*pair, columns) for pair in twins]),
    )
