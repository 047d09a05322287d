"""Speed on one core against what an experienced user writes instead: NumPy vectorised over the seeds.

Figures are of CPU time, of the whole process on one core, so other programs disturb them little. Rounds per second are
marginal: a long sweep less a short one, repeated in turn with NumPy. The short runs are told with all that they cost:
of ours the first sweep, which traces and compiles, and a second one of the same program.
"""

import contextlib
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import numpy as np

import jaxbandits
from experiments.bench.gpu import is_wanted
from experiments.bench.rivals import Rival, rivals
from experiments.figures import COLORS
from experiments.report import Report
from experiments.settings import Settings

SEEDS = 1024  # runs, all side by side
SHORT = 500  # rounds of the short runs
REPEATS, QUICK_REPEATS = 3, 1
LEAST, QUICK_LEAST = 1.0, 0.2  # CPU seconds of a long sweep beyond a short one


def run(options: Settings) -> Report:
    """Reports a row for every rule that `--only` names."""
    parts = []
    with one_core():
        for rival in rivals():
            if is_wanted(rival.rule, options):
                parts.append(measured(rival, options))
                print(*row(parts[-1]).values(), sep=" | ", file=sys.stderr)
    if not parts:
        raise SystemExit(f"--only must name rules of this bench, got {' '.join(options.extra['only'])}")
    return Report(
        "Speed on one core, against NumPy over the seeds",
        lines=[],
        claims=[],
        columns={name: np.array([part[name] for part in parts]) for name in parts[0]},
        draw=partial(draw, parts=parts),
        notes=[
            f"{SEEDS} runs side by side, float64; rounds per CPU second, a long sweep less a short one, medians of "
            f"{repeats(options)[0]}.",
            f"short: CPU seconds of {SEEDS} runs of {SHORT} rounds with all that they cost.",
        ],
        grid=[row(part) for part in parts],
    )


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Keeps this thread, and the threads that it starts, on one core, where the system allows it."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def repeats(options: Settings) -> tuple[int, float]:
    """Returns how often the speeds are measured, and how many CPU seconds each takes at least."""
    return (QUICK_REPEATS, QUICK_LEAST) if options.quick else (REPEATS, LEAST)


def measured(rival: Rival, options: Settings) -> dict[str, Any]:
    """Returns one row as numbers."""
    players = {"ours": partial(sweep, rival), "numpy": partial(rival.over_lanes, SEEDS)}
    count, least = repeats(options)
    first = {name: seconds(play, SHORT) for name, play in players.items()}
    again = {name: seconds(play, SHORT) for name, play in players.items()}
    rounds = {name: long_enough(play, again[name], least) for name, play in players.items()}
    # They take turns, so that a busy minute of the machine slows all.
    pairs = [{name: rate(play, rounds[name]) for name, play in players.items()} for _ in range(count)]
    speeds = {name: statistics.median(pair[name] for pair in pairs) for name in players}
    return {
        "family": rival.family,
        "rule": rival.rule,
        "instance": rival.instance,
        **speeds,
        "ratio": statistics.median(pair["ours"] / pair["numpy"] for pair in pairs),
        "target": rival.target,
        "reason": rival.reason,
        **{f"{name}_first": value for name, value in first.items()},
        **{f"{name}_again": value for name, value in again.items()},
    }


def sweep(rival: Rival, rounds: int) -> None:
    """Makes `rounds` rounds of all runs."""
    jaxbandits.sweep(rival.build, seeds=SEEDS, key=jax.random.key(0), max_rounds=rounds, lanes=SEEDS, progress=False)


def seconds(play: Callable[[int], Any], rounds: int) -> float:
    """Measures the CPU seconds of all threads."""
    started = time.process_time()
    play(rounds)
    return time.process_time() - started


def long_enough(play: Callable[[int], Any], short: float, least: float) -> int:
    """Returns a number of rounds that takes `least` seconds more than the short runs."""
    rounds = 2 * SHORT
    while (more := seconds(play, rounds) - short) < least:
        rounds = SHORT + round((rounds - SHORT) * min(max(1.2 * least / max(more, 1e-3), 1.5), 10))
    return rounds


def rate(play: Callable[[int], Any], rounds: int) -> float:
    """Measures the rounds of all runs per CPU second, without the short runs."""
    short, long = seconds(play, SHORT), seconds(play, rounds)
    return SEEDS * (rounds - SHORT) / (long - short)


def row(part: dict[str, Any]) -> dict[str, str]:
    """Returns one row as text."""
    is_met = part["ratio"] >= part["target"]
    return {
        "family": part["family"],
        "algorithm": part["rule"],
        "instance": part["instance"],
        "rounds/s": f"{part['ours']:.2e}",
        "NumPy": f"{part['numpy']:.2e}",
        "x NumPy": f"{part['ratio']:.2g}",
        "target": f"{part['target']:g}" if is_met else f"{part['target']:g}, missed",
        "short, first": f"{part['ours_first']:.2f}",
        "again": f"{part['ours_again']:.2f}",
        "NumPy, short": f"{part['numpy_again']:.2f}",
        "reason": "" if is_met else part["reason"],
    }


def draw(figure: Any, *, parts: list[dict[str, Any]]) -> None:
    figure.set_size_inches(7, 1 + 0.22 * len(parts))
    axes, y = figure.subplots(), np.arange(len(parts))[::-1]
    for name, label, marker in (("numpy", "NumPy over the seeds", "s"), ("ours", "this library", "o")):
        axes.plot([part[name] for part in parts], y, marker, label=label, ms=8, mfc="w", color=COLORS[0])
    axes.set(xscale="log", xlabel="rounds a CPU second, one core", ylim=(-1, len(parts)))
    axes.set_yticks(y, ["{rule}, {instance}".format(**part) for part in parts], fontsize=8)
    figure.legend(loc="outside upper center", ncols=3, fontsize=9)
