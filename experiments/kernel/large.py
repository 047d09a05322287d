"""Distributed kernel bandits at a larger size: 20 agents, 500 rounds, and two central learners of 10,000 queries.

h1 and Branin, 1000 candidates, beta .2 and 1, 5 runs each, float32. The central learners receive every observation at
once and query one point at a time. GP-UCB is the limit of free communication without parallelism. BPE eliminates in
batches, as DUETS does.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments.figures import STYLES, band, legend_below, split
from experiments.kernel import common as kernels
from experiments.kernel.common import ALONE, DIMENSIONS, FUNCTIONS, PLAYERS, by_beta, entry
from experiments.kernel.figure1 import BASELINES
from experiments.report import Claim, Report, joined
from experiments.settings import Settings

BETAS = (0.2, 1.0)
POINTS = 20  # points of a curve


def run(options: Settings) -> Report:
    agents, horizon = (5, 60) if options.quick else (20, 500)
    names = ("branin",) if options.quick else ("h1", "branin")
    rounds = {rule: horizon * (agents if rule in ALONE else 1) for rule in (*PLAYERS, *ALONE)}
    marks = {r: tuple(sorted({max(1, n * i // POINTS) for i in range(1, POINTS + 1)})) for r, n in rounds.items()}

    def own(function: str, rule: str) -> dict[str, Any]:
        synced = {"metrics": lambda instance, outcome: {"last_shared": outcome.state.synced}}
        return {"grid": marks[rule]} | (synced if rule == "DisKernelUCB" else {})

    shared = {"options": options, "betas": BETAS, "n_agents": agents, "horizon": horizon, "lanes": 1}
    shared |= {"replicates": options.seeds or (2 if options.quick else 5), "dtype": jnp.float32, "max_inducing": 256}
    all_runs = kernels.compared("kernel large", names, marks, own, **shared)
    sent, grid = {}, []
    for (function, rule), results in all_runs.items():
        regret, communication = (by_beta(results, kind) for kind in ("regret", "communication"))
        for beta, lost, messages in zip(BETAS, regret, communication, strict=True):
            sent[function, beta, rule] = messages.mean()
            row = {"": f"{FUNCTIONS[function]}, {rule}, beta {beta:g}", "regret": entry(lost)}
            grid.append(row | {"communication": entry(messages)})
    least = {(f, beta): min(sent[f, beta, rule] for rule in BASELINES) for f in names for beta in BETAS}
    # DisKernelUCB sends every point once up and once down: (d + 1)(N + 1) numbers per shared round.
    exact = {f: all_runs[f, "DisKernelUCB"].columns for f in names}
    per_round = {f: (DIMENSIONS[f] + 1) * (agents + 1) for f in names}
    off = np.concatenate([abs(x["communication"] - per_round[f] * x["last_shared"]) for f, x in exact.items()])

    def draw(figure) -> None:
        panels = split(figure, (10, 7), 2, len(names), sharex=True, squeeze=False)
        for (top, bottom), function in zip(panels.T, names, strict=True):
            for style, rule in enumerate(marks):
                regret, curve = (by_beta(all_runs[function, rule], kind) for kind in ("regret", "curve"))
                curve = curve[regret.mean(axis=1).argmin()]
                x = np.array(marks[rule]) * (1 if rule in ALONE else agents)
                label = f"{rule} (central)" if rule in ALONE else rule
                for axes, values in zip((top, bottom), kernels.growth(curve), strict=True):
                    if axes is top or values.any():
                        axes.plot(x, values.mean(axis=0), label=label, mfc="w", ms=5, markevery=3, **STYLES[style])
                        band(axes, x, values.min(axis=0), values.max(axis=0), style)
            top.set(title=FUNCTIONS[function], yscale="log")
            bottom.set(xlabel="queries of all agents", yscale="log")
        panels[0, 0].set_ylabel("regret")
        panels[1, 0].set_ylabel("numbers sent")
        figure.suptitle("At the better of two beta; bands: all runs", fontsize=11)
        legend_below(figure, fontsize=10)

    return Report(
        f"{agents} agents, {horizon} rounds: regret and communication",
        [],
        [
            Claim(
                "DisKernelUCB sends (d + 1)(N + 1) numbers for each round up to its last synchronisation, exactly",
                f"off by at most {max(off):g} in {len(off)} runs",
                max(off) == 0,
            ),
            Claim(
                "DUETS communicates least among the three that communicate",
                ", ".join(f"{FUNCTIONS[f]}, beta {beta:g}: {sent[f, beta, 'DUETS']:,.0f}" for f, beta in least),
                all(sent[f, beta, "DUETS"] < rivals for (f, beta), rivals in least.items()),
            ),
            kernels.every_run_ends(all_runs),
        ],
        joined(all_runs, "runs"),
        draw,
        notes=["float32. The two central learners query one point at a time, as many as all agents together."],
        grid=grid,
    )
