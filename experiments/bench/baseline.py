"""Speed on one core against what an experienced user writes instead: NumPy vectorised over the seeds.

Figures are of CPU time, of the whole process on one core, so other programs disturb them little. Pulls per second are
marginal: long runs less short ones, in turn with NumPy and, with `--numba`, with scalar code that numba compiles. The
short runs stand there with all that they cost: of ours the first sweep, which traces and compiles, and a second one.
"""

import contextlib
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from experiments.bench.gpu import is_wanted
from experiments.bench.rivals import rivals
from experiments.bench.rivals.rival import SEEDS, THAN_NUMBA, Rival
from experiments.figures import COLORS
from experiments.report import Report
from experiments.settings import Settings

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
            f"{SEEDS} runs side by side, float64; pulls per CPU second, long runs less short ones, medians of "
            f"{repeats(options)[0]}. The aim: so many times NumPy, and {THAN_NUMBA:g} times numba.",
            "limit: times NumPy of the same sweep whose algorithm repeats its first pull: keys, noise, answers and "
            "counters are left, and nothing of the rule.",
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
    """Returns one row as numbers; without `--numba` its columns are NaN."""
    players = {"ours": rival.ours, "numpy": rival.numpy}
    if options.extra.get("numba") and rival.numba:
        players["numba"] = rival.numba
    if rival.floor:
        players["floor"] = rival.floor
    count, least = repeats(options)
    made, first, again = {}, {}, {}
    for name, play in players.items():
        made[name], first[name] = timed(play, SHORT)
        again[name] = timed(play, SHORT)[1]
    rounds = {name: rival.long.get(name) or long_enough(play, again[name], least) for name, play in players.items()}
    # They take turns, so that a busy minute of the machine slows all.
    turns = [{name: rate(play, rounds[name]) for name, play in players.items()} for _ in range(count)]
    if rival.floor:  # rounds as pulls
        turns = [turn | {"floor": turn["floor"] * made["ours"] / made["floor"]} for turn in turns]

    def middle(of: Callable[[dict[str, float]], float]) -> float:
        return statistics.median(of(turn) for turn in turns)

    part: dict[str, Any] = {name: getattr(rival, name) for name in ("family", "rule", "instance", "target", "reason")}
    for name in ("ours", "numpy", "numba", "floor"):
        has = name in players
        part[name] = middle(lambda turn, name=name: turn[name]) if has else np.nan
        part[f"times_{name}"] = middle(lambda turn, name=name: turn["ours"] / turn[name]) if has else np.nan
        part[f"{name}_first"], part[f"{name}_again"] = first.get(name, np.nan), again.get(name, np.nan)
    return part


def timed(play: Callable[[int], int], rounds: int) -> tuple[int, float]:
    """Returns the pulls and the CPU seconds of all threads."""
    started = time.process_time()
    pulls = play(rounds)
    return pulls, time.process_time() - started


def long_enough(play: Callable[[int], int], short: float, least: float) -> int:
    """Returns a number of rounds that takes `least` seconds more than the short runs."""
    rounds = 2 * SHORT
    while (more := timed(play, rounds)[1] - short) < least:
        rounds = SHORT + round((rounds - SHORT) * min(max(1.2 * least / max(more, 1e-3), 1.5), 10))
    return rounds


def rate(play: Callable[[int], int], rounds: int) -> float:
    """Measures the pulls of all runs per CPU second, without the short runs."""
    (few, short), (many, long) = timed(play, SHORT), timed(play, rounds)
    return (many - few) / (long - short)


def misses(part: dict[str, Any]) -> bool:
    """True if a rule is slower than it should be."""
    return bool(part["times_numpy"] < part["target"] or part["times_numba"] < THAN_NUMBA)


def row(part: dict[str, Any]) -> dict[str, str]:
    """Returns one row as text."""

    def cell(value: float, form: str) -> str:
        return format(value, form) if np.isfinite(value) else ""

    return {
        "family": part["family"],
        "algorithm": part["rule"],
        "instance": part["instance"],
        "pulls/s": cell(part["ours"], ".2e"),
        "NumPy": cell(part["numpy"], ".2e"),
        "numba": cell(part["numba"], ".2e"),
        "x NumPy": cell(part["times_numpy"], ".2g"),
        "x numba": cell(part["times_numba"], ".2g"),
        "limit": cell(part["floor"] / part["numpy"], ".2g"),
        "aim": f"{part['target']:g}" + (", missed" if misses(part) else ""),
        "short: first": cell(part["ours_first"], ".2f"),
        "again": cell(part["ours_again"], ".2f"),
        "NumPy, short": cell(part["numpy_again"], ".2f"),
        "numba, first": cell(part["numba_first"], ".2f"),
        "reason": part["reason"] if misses(part) else "",
    }


def draw(figure: Any, *, parts: list[dict[str, Any]]) -> None:
    figure.set_size_inches(7, 1 + 0.22 * len(parts))
    axes, y = figure.subplots(), np.arange(len(parts))[::-1]
    labels = (("numpy", "NumPy over the seeds", "s"), ("numba", "numba", "^"), ("ours", "this library", "o"))
    for name, label, marker in labels:
        axes.plot([part[name] for part in parts], y, marker, label=label, ms=8, mfc="w", color=COLORS[0])
    axes.set(xscale="log", xlabel="pulls a CPU second, one core", ylim=(-1, len(parts)))
    axes.set_yticks(y, ["{rule}, {instance}".format(**part) for part in parts], fontsize=8)
    figure.legend(loc="outside upper center", ncols=3, fontsize=9)
