"""Pulls in blocks: COCI and uniform sampling make the same pulls whatever the block, in fewer rounds.

The eight instances of `cpe_eight`, delta = 0.1, blocks of 1, 8, 32 and 128 slots on the same samples. A round makes
several pulls only if it can be certain of all of them, before it has seen any. Times are without compilation; they are
those of one batch of lanes, so that lanes whose run has ended idle.
"""

from argparse import Namespace
from functools import partial
from typing import Any

import jaxbandits
from experiments import _cpe
from experiments._cpe import in_range
from experiments.cpe_eight import NAMES
from experiments.report import STYLES, Claim, Report, joined, line, number
from jaxbandits import Status, cpe

QUICK = ("best5", "osa4")
RULES = ("COCI", "uniform")
BLOCKS = (1, 8, 32, 128)
QUICK_BLOCKS = (1, 32)
# Pulls a round, by another program: the least and the greatest of the eight.
OTHER = {("COCI", 8): (5, 7), ("COCI", 32): (7, 14), ("uniform", 32): (20, 31), ("uniform", 128): (22, 107)}
ROOM = 0.1  # by how much the extremes of the other program's runs may be exceeded
GAIN = 1.1  # what COCI gains from blocks beyond 32, at most

Sweeps = dict[tuple[str, str, int], jaxbandits.Results]  # (instance, rule, block)
Speed = dict[tuple[str, str, int], float]  # pulls a round


def run(options: Namespace) -> Report:
    names, blocks = (QUICK, QUICK_BLOCKS) if options.quick else (NAMES, BLOCKS)
    replicates = options.seeds or (20 if options.quick else 100)
    sweeps: Sweeps = {
        (name, rule, block): _cpe.runs(
            f"cpe block: {name}",
            getattr(cpe, name)(),
            rule,
            options=options,
            replicates=replicates,
            label=f"{rule}, block {block}",
            leap=block,
        )
        for name in names
        for rule in RULES
        for block in blocks
    }
    speed = {key: pulls_a_round(sweep) for key, sweep in sweeps.items()}
    return Report(
        "Blocks of pulls: the same runs in fewer rounds",
        [
            line(f"{name}: {rule}, block {block}", sweep.columns["pulls"], status=sweep.columns["status"])
            for (name, rule, block), sweep in sweeps.items()
        ],
        [
            same_runs(sweeps),
            *(
                in_range(
                    f"{rule}, block {block}: pulls a round",
                    {name: speed[name, rule, block] for name in names},
                    least * (1 - ROOM),
                    most * (1 + ROOM),
                    digits=1,
                )
                for (rule, block), (least, most) in OTHER.items()
                if block in blocks
            ),
            *([no_gain_beyond_32(speed, names)] if 128 in blocks else []),
        ],
        joined(
            {
                f"{rule}, block {block}": joined(
                    {name: sweeps[name, rule, block].columns for name in names}, label="problem"
                )
                for rule in RULES
                for block in blocks
            }
        ),
        partial(draw, speed=speed, names=names, blocks=blocks),
        notes=(
            "The columns of a block are pulls a round; in brackets millions of pulls a second. A round "
            "with a block tests up to two boxes more, one within and one around the boxes of all its pulls.",
        ),
        grid=(
            ("", "T", *(f"block {block}" for block in blocks), "runs"),
            [
                (
                    f"{name}: {rule}",
                    number(round(float(sweeps[name, rule, 1].columns["pulls"].mean()))),
                    *(f"{speed[name, rule, block]:.1f} ({rate(sweeps[name, rule, block]):.2f})" for block in blocks),
                    str(replicates),
                )
                for name in names
                for rule in RULES
            ],
        ),
    )


def pulls_a_round(sweep: jaxbandits.Results) -> float:
    """Over all runs together."""
    return float(sweep.columns["pulls"].sum() / sweep.columns["rounds"].sum())


def rate(sweep: jaxbandits.Results) -> float:
    """Millions of pulls a second."""
    return sweep.stats.pulls / sweep.stats.seconds / 1e6


def same_runs(sweeps: Sweeps) -> Claim:
    """Against the runs with single pulls: T, the pulls of every arm, and the answer."""
    same = total = 0
    for (name, rule, block), sweep in sweeps.items():
        if block == 1:
            continue
        ours, single = sweep.columns, sweeps[name, rule, 1].columns
        equal = (ours["status"] == Status.STOPPED) & (single["status"] == Status.STOPPED)
        for column in ("pulls", "counts", "answer"):
            equal &= (ours[column] == single[column]).reshape(len(equal), -1).all(axis=1)
        same, total = same + int(equal.sum()), total + len(equal)
    return Claim(
        "with every block all runs have the T, the counts of every arm and the answer of those with single pulls",
        f"{number(same)} of {number(total)}",
        same == total,
    )


def no_gain_beyond_32(speed: Speed, names: tuple[str, ...]) -> Claim:
    return in_range(
        "COCI: pulls a round with block 128 over those with block 32",
        {name: speed[name, "COCI", 128] / speed[name, "COCI", 32] for name in names},
        0,
        GAIN,
        digits=2,
    )


def draw(figure: Any, *, speed: Speed, names: tuple[str, ...], blocks: tuple[int, ...]) -> None:
    figure.set_size_inches(8.4, 4.2)
    panels = figure.subplots(1, 2, sharey=True)
    styles = [*STYLES, *({"marker": marker, "linestyle": "-", "color": "#777777"} for marker in "PX*")]
    for axes, rule in zip(panels, RULES, strict=True):
        for name, style in zip(names, styles, strict=False):
            axes.plot(blocks, [speed[name, rule, block] for block in blocks], label=name, mfc="w", **style)
        axes.plot(blocks, blocks, color="k", lw=1, label="every slot filled")
        axes.set(xscale="log", yscale="log", xlabel="block, slots of a round", title=rule)
        axes.set(xticks=blocks, xticklabels=map(str, blocks))
        axes.minorticks_off()
    panels[0].set(ylabel="pulls a round", yticks=(1, 2, 5, 10, 20, 50, 100))
    panels[0].set_yticklabels(["1", "2", "5", "10", "20", "50", "100"])
    figure.suptitle("The same runs in fewer rounds")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=9)
