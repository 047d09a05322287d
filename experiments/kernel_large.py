"""Distributed kernel bandits at a larger size: 20 agents, 500 rounds, beside two central learners of 10,000 queries.

h1 and Branin, 1000 candidates, beta .2 and 1, 5 runs each, float32. The central learners see every observation at once
and query one point at a time: GP-UCB is the limit of communication that is free, without parallelism; BPE eliminates in
batches, as DUETS does.
"""

from argparse import Namespace
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments import _kernel as kernels
from experiments._kernel import ALONE, DIMENSIONS, FUNCTIONS, PLAYERS, by_beta, mean_se
from experiments.report import STYLES, Claim, Report, joined
from jaxbandits import Status
from jaxbandits.kernel import Instance

NAMES, QUICK_NAMES = ("h1", "branin"), ("branin",)
BETAS = (0.2, 1.0)
AGENTS, HORIZON = 20, 500
QUICK_AGENTS, QUICK_HORIZON = 5, 60
RUNS, QUICK_RUNS = 5, 2
POINTS = 20  # of a curve
MAX_INDUCING = 256


def run(options: Namespace) -> Report:
    agents, horizon = (QUICK_AGENTS, QUICK_HORIZON) if options.quick else (AGENTS, HORIZON)
    names = QUICK_NAMES if options.quick else NAMES
    count = options.seeds or (QUICK_RUNS if options.quick else RUNS)
    grid = {rule: _grid(horizon * (agents if rule in ALONE else 1)) for rule in (*PLAYERS, *ALONE)}
    all_runs = {
        (function, rule): kernels.runs(
            "kernel large",
            function,
            rule,
            options=options,
            replicates=count,
            betas=BETAS,
            n_agents=agents,
            horizon=horizon,
            grid=grid[rule],
            dtype=jnp.float32,
            fixed={"max_inducing": MAX_INDUCING} if rule == "ApproxDisKernelUCB" else None,
            metrics=_last_shared if rule == "DisKernelUCB" else None,
            lanes=1,
        )
        for function in names
        for rule in grid
    }
    rows = []
    for (function, rule), results in all_runs.items():
        regret, sent = by_beta(results, "regret", BETAS), by_beta(results, "communication", BETAS)
        for row, beta in enumerate(BETAS):
            rows.append((f"{FUNCTIONS[function]}, {rule}, beta {beta:g}", _entry(regret[row]), _entry(sent[row])))
    ended = np.concatenate([results.columns["status"] for results in all_runs.values()]) == Status.STOPPED
    return Report(
        f"{agents} agents, {horizon} rounds: regret and communication",
        [],
        [
            _exact_count(all_runs, agents),
            Claim(
                "DUETS communicates least of the three that communicate",
                ", ".join(
                    f"{FUNCTIONS[function]}, beta {beta:g}: {_sent(all_runs, function, 'DUETS', row):,.0f}"
                    for function in names
                    for row, beta in enumerate(BETAS)
                ),
                all(
                    _sent(all_runs, function, "DUETS", row) < _sent(all_runs, function, rule, row)
                    for function in names
                    for row in range(len(BETAS))
                    for rule in ("DisKernelUCB", "ApproxDisKernelUCB")
                ),
            ),
            Claim("every run ends after its last round, without a NaN", f"{ended.sum()} of {ended.size}", ended.all()),
        ],
        joined({f"{function}, {rule}": results.columns for (function, rule), results in all_runs.items()}, "runs"),
        lambda figure: draw(figure, names, all_runs, grid, agents),
        notes=["float32. The two central learners ask one point at a time, as many as all agents together."],
        grid=(("", "regret", "communication"), rows),
    )


def _grid(rounds: int) -> tuple[int, ...]:
    return tuple(sorted({max(1, rounds * i // POINTS) for i in range(1, POINTS + 1)}))


def _last_shared(instance: Instance, outcome: jaxbandits.Outcome) -> dict[str, Any]:
    del instance
    return {"last_shared": outcome.state.synced}


def _sent(all_runs: dict[tuple[str, str], jaxbandits.Results], function: str, rule: str, row: int) -> float:
    return float(np.mean(by_beta(all_runs[function, rule], "communication", BETAS)[row]))


def _exact_count(all_runs: dict[tuple[str, str], jaxbandits.Results], agents: int) -> Claim:
    """DisKernelUCB sends every point once up and once down: (d + 1)(N + 1) numbers a round that is shared."""
    off = []
    for (function, rule), results in all_runs.items():
        if rule != "DisKernelUCB":
            continue
        columns = results.columns
        expected = (DIMENSIONS[function] + 1) * (agents + 1) * columns["last_shared"]
        off.append(np.abs(columns["communication"] - expected))
    worst = float(np.max(np.concatenate(off)))
    return Claim(
        "DisKernelUCB sends (d + 1)(N + 1) numbers for each round up to its last synchronisation, exactly",
        f"off by at most {worst:g} in {sum(map(len, off))} runs",
        worst == 0,
    )


def _entry(values: np.ndarray) -> str:
    mean, se = mean_se(values)
    return f"{mean:,.0f} +- {se:,.0f}"


def draw(figure: Any, names: tuple[str, ...], all_runs: dict, grid: dict[str, tuple[int, ...]], agents: int) -> None:
    figure.set_size_inches(10, 7)
    axes = figure.subplots(2, len(names), sharex=True, squeeze=False)
    styles = (*STYLES, {"marker": "P", "linestyle": "-", "color": "#555555"})
    for column, function in enumerate(names):
        for style, rule in zip(styles, grid, strict=True):
            curve = by_beta(all_runs[function, rule], "curve", BETAS)
            row = int(np.argmin(np.mean(by_beta(all_runs[function, rule], "regret", BETAS), axis=1)))
            x = np.array(grid[rule]) * (1 if rule in ALONE else agents)
            label = f"{rule} (central)" if rule in ALONE else rule
            for place, values in enumerate((curve[row, ..., 0], curve[row, ..., 1:].sum(axis=-1))):
                if place == 1 and not values.any():
                    continue
                axes[place, column].plot(x, values.mean(axis=0), label=label, mfc="w", ms=5, markevery=3, **style)
                axes[place, column].fill_between(
                    x, values.min(axis=0), values.max(axis=0), color=style["color"], alpha=0.12, lw=0
                )
        axes[0, column].set(title=FUNCTIONS[function], yscale="log")
        axes[1, column].set(xlabel="queries of all agents", yscale="log")
    axes[0, 0].set_ylabel("regret")
    axes[1, 0].set_ylabel("numbers sent")
    figure.suptitle("At the better of two beta; bands: all runs", fontsize=11)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
