"""Shared parts of the experiments on dimension sampling: many runs on the first images, a few on others."""

import itertools
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.figures import COLORS, band, curve, legend_below, split, ticks
from experiments.kcenter import common
from experiments.kcenter.common import Images, until
from experiments.report import Columns, Line, Report, chosen, joined, line_of
from experiments.settings import Settings

K = 10
DRAWS = {"test_every": 1024}  # draws of random sampling per round
KS = (3, 5, 7)  # centers beside ten, on BY_K images
BY_K = 1000

Place = tuple[int, int]  # (n, k)
Sweeps = dict[tuple[str, int], Columns]  # (rule, n) -> columns


class Size(NamedTuple):
    """Numbers of runs for a number of images."""

    first: int  # runs on the first n images
    others: int = 0  # other instances
    runs: int = 1  # runs on each other instance
    random: int = 0  # runs of random sampling on the first n images


class Rule(NamedTuple):
    """A rule of a table by n and k, with its sweeps and its printed numbers."""

    label: str
    heading: str  # heading of its sweeps, with a placeholder for n
    factory: common.Rule
    printed: Mapping[Place, float]  # in the table's unit
    drawn: Mapping[str, int] = common.LEAP
    has_others: bool = False  # True if it also runs on other instances
    times: int = 1  # factor on the number of runs on the first images
    is_random: bool = False  # True for random sampling, which is slow and limited by --random-up-to


def scheduled_runs(
    heading: str, rule: common.Rule, images: Images, n: int, *, first: int, others: int = 0, runs: int = 1, **more: Any
) -> dict[str, np.ndarray]:
    """Makes `first` runs on the first n images and `runs` on each of `others` other instances.

    The column `instance` tells them apart; 0 marks the first images.
    """
    instance = np.concatenate([np.zeros(first, int), np.repeat(np.arange(1, others + 1), runs)])
    rows = common.consecutive(n, 1 + others, len(images.points))[instance]
    columns = common.image_runs(heading, rule, images, rows, k=K, seeds=1, **more)
    return columns | {"instance": instance[columns["instance"]]}


def sweeps_of(rules: Mapping[str, Rule], sizes: Mapping[int, Size], images: Images, options: Settings) -> Sweeps:
    """Runs every rule on every number of images."""
    sweeps: Sweeps = {}
    for (n, size), (name, rule) in itertools.product(sizes.items(), rules.items()):
        first, more = rule.times * (options.seeds or size.first), {"drawn": rule.drawn}
        if rule.is_random:
            first = size.random if n <= options.extra["random_up_to"] else 0
            more = {"drawn": DRAWS, "lanes": first}
        if first:
            more |= {"first": first, "others": size.others if rule.has_others else 0, "runs": size.runs}
            sweeps[name, n] = scheduled_runs(rule.heading.format(n), rule.factory, images, n, options=options, **more)
    return sweeps


def add_random(parser: ArgumentParser, default: int) -> None:
    """Adds `--random-up-to`."""
    what = "largest number of images for random sampling (%(default)s)"
    parser.add_argument("--random-up-to", type=int, default=default, metavar="N", help=what)


class Measured(NamedTuple):
    """The queries of one rule in one setting."""

    line: Line  # on the first images
    instances: np.ndarray  # (instances,)  the mean on each instance, in units of the line
    spread: str  # over the instances, if there are several
    first: Columns  # the runs on the first images
    right: str  # number of runs, on any instance, with greedy's centers in order


def measured(quantity: str, columns: Columns, *, unit: float = 1.0, printed: float | None = None) -> Measured:
    """Measures the queries of the runs in `columns`. The paper's number is for one unnamed instance, so it may differ
    by the spread between instances.
    """
    means = np.array([runs["pulls"].mean() / unit for runs in common.by_value(columns, "instance").values()])
    first, spread = chosen(columns, columns["instance"] == 0), ""
    ours = line_of(quantity, first, unit=unit, printed=printed)
    if len(means) > 1:
        ours = ours._replace(printed_se=float(means.std(ddof=1)), spread="the instances'")
        spread = common.spread(means, middle=np.mean)
    return Measured(ours, means, spread, first, f"{columns['ordered'].sum()} of {len(columns['ordered'])}")


Cells = dict[str, dict[Place, Measured]]  # rule -> by n and k


def cells_of(sweeps: Sweeps, rules: Mapping[str, Rule], unit: float, by_k: int = BY_K) -> Cells:
    """Measures the queries of every rule until ten centers, and until fewer for `by_k` images, beside the paper's."""
    places = [(n, K) for n in sizes_of(sweeps)] + [(by_k, k) for k in KS]
    return {
        name: {
            (n, k): measured(
                f"{name}: n = {n}, k = {k}", until(sweeps[name, n], k), unit=unit, printed=rule.printed.get((n, k))
            )
            for n, k in places
            if (name, n) in sweeps
        }
        for name, rule in rules.items()
    }


def sizes_of(sweeps: Sweeps) -> list[int]:
    """Returns all n, in order."""
    return sorted({n for _, n in sweeps})


def report(
    title: str,
    sweeps: Sweeps,
    rules: Mapping[str, Rule],
    cells: Cells,
    *,
    unit: float,
    by_k: int = BY_K,
    banded: str = "",
    known: Mapping[str, tuple[str, Callable[[int, int], float]]] = {},
    **parts: Any,
) -> Report:
    """Builds the report of a table of queries by n and k.

    `parts` are claims, notes and the grid; other arguments are for the figure. The figure shows queries against n until
    ten centers, and against k for n = `by_k`, with the other instances of the rule `banded`; `known` is label to look
    and (n, k) -> queries that are known without runs.
    """
    every, ks = sizes_of(sweeps), list(range(2, K + 1))
    by_k = by_k if by_k in every else max(every)

    def draw(figure: Any) -> None:
        left, right = split(figure, (10.4, 4.8), 1, 2)
        for axes, x, places in ((left, every, [(n, K) for n in every]), (right, ks, [(by_k, k) for k in ks])):
            for label, (look, queries) in known.items():
                axes.plot(x, [queries(*at) for at in places], look, lw=1.2, label=label)
            for style, (name, rule) in enumerate(rules.items()):
                shown = {
                    value: measured("", until(sweeps[name, n], k))
                    for value, (n, k) in zip(x, places, strict=True)
                    if (name, n) in sweeps
                }
                if shown:
                    curve(axes, list(shown), [cell.line for cell in shown.values()], rule.label, style)
                if shown and name == banded:
                    draw_instances(axes, list(shown), list(shown.values()), f"{rule.label}, other images", style)
                axes.plot(x, [unit * rule.printed.get(at, np.nan) for at in places], "x", color=COLORS[style], mew=2)
        left.plot([], [], "kx", mew=2, label="in the paper")
        left.set(xscale="log", yscale="log", xlabel="images n", ylabel="queries", title=f"Until {K} centers")
        ticks(left, every, [f"{n:,}" for n in every])
        right.set(yscale="log", xlabel="centers k", title=f"Of {by_k} images", xticks=ks)
        legend_below(figure, left, ncols=4)

    lines = [cell.line for row in cells.values() for cell in row.values()]
    columns = joined({f"{rule}, n = {n}": columns for (rule, n), columns in sweeps.items()}, "sweep")
    return Report(title, lines, columns=columns, draw=draw, **parts)


def factors(values: Mapping[Place, float]) -> str:
    """Formats numbers side by side, each with its n and k."""
    return ", ".join(f"{value:.3g} (n = {n:,}, k = {k})" for (n, k), value in values.items())


def mean(cell: Measured | None) -> str:
    """Formats a mean with its standard error, if there is one."""
    return common.mean(cell and cell.line)


def draw_instances(
    axes: Any, x: Any, cells: Sequence[Measured], label: str = "other images", style: int = 0, scale: float = 1.0
) -> None:
    """Draws the range of the means over instances."""
    low, high = (scale * np.array([f(cell.instances) for cell in cells]) for f in (np.min, np.max))
    band(axes, x, low, high, style=style, label=label)
