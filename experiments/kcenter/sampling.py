"""What the experiments on dimension sampling share: many runs on the first images, a few on others."""

import itertools
from argparse import ArgumentParser
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.figures import COLORS, band, curve, legend_below, split, ticks
from experiments.kcenter import common
from experiments.kcenter.common import Images, chosen
from experiments.report import Columns, Line, Report, joined, line, number, two_digits
from experiments.settings import Settings

K = 10
DRAWS = {"test_every": 1024}  # of random sampling, each round
KS = (3, 5, 7)  # centers beside ten, on BY_K images
BY_K = 1000

Place = tuple[int, int]  # (n, k)
Sweeps = dict[tuple[str, int], Columns]  # (rule, n) -> columns


class Size(NamedTuple):
    """How many runs a number of images gets."""

    first: int  # on the first n images
    others: int = 0  # other instances
    runs: int = 1  # on each of them
    random: int = 0  # of random sampling, on the first n images


class Rule(NamedTuple):
    """How a rule of a table by n and k is run and shown."""

    label: str
    unit: float  # of queries
    printed: Mapping[Place, float]  # in this unit
    heading: str  # of its sweeps, with a place for n
    factory: common.Rule  # that takes delta and what is drawn
    drawn: Mapping[str, int] = common.LEAP
    has_others: bool = False  # whether it runs on other instances as well
    times: int = 1  # as many runs on the first images as others
    is_random: bool = False  # which takes long, and is left out where --random-up-to says so


def scheduled_runs(
    heading: str, rule: common.Rule, images: Images, n: int, *, first: int, others: int = 0, runs: int = 1, **more: Any
) -> dict[str, np.ndarray]:
    """`first` runs on the first n images and `runs` on each of `others` other instances.

    The column `instance` tells them apart; 0 is that of the first images.
    """
    instance = np.concatenate([np.zeros(first, int), np.repeat(np.arange(1, others + 1), runs)])
    rows = common.consecutive(n, 1 + others, len(images.points))[instance]
    columns = common.image_runs(heading, rule, images, rows, k=K, seeds=1, **more)
    return columns | {"instance": instance[columns["instance"]]}


def sweeps_of(rules: Mapping[str, Rule], sizes: Mapping[int, Size], images: Images, options: Settings) -> Sweeps:
    """The runs of every rule on so many images."""
    found: Sweeps = {}
    for (n, size), (name, rule) in itertools.product(sizes.items(), rules.items()):
        first, more = rule.times * (options.seeds or size.first), {"drawn": rule.drawn}
        if rule.is_random:
            first = size.random if n <= options.own["random_up_to"] else 0
            more = {"drawn": DRAWS, "lanes": first}
        if first:
            more |= {"first": first, "others": size.others if rule.has_others else 0, "runs": size.runs}
            factory, heading = partial(rule.factory, delta=common.DELTA), rule.heading.format(n)
            found[name, n] = scheduled_runs(heading, factory, images, n, options=options, **more)
    return found


def add_random(parser: ArgumentParser, default: int) -> None:
    """`--random-up-to`."""
    what = "random sampling for at most so many images (%(default)s)"
    parser.add_argument("--random-up-to", type=int, default=default, metavar="N", help=what)


class Measured(NamedTuple):
    """The queries of one rule in one setting."""

    first: Line  # on the first images
    instances: np.ndarray  # (instances,)  the mean on each instance, in units of the line
    match: Columns  # whether the runs of `first` found greedy's centers
    right: tuple[int, int]  # runs with greedy's centers in order, of all runs on any instance

    @property
    def range(self) -> str:
        """Over the instances."""
        return common.spread(self.instances, middle=np.mean) if len(self.instances) > 1 else ""


def measured(quantity: str, columns: Columns, *, unit: float, k: int = K, printed: float | None = None) -> Measured:
    """Queries until the first k centers, of the runs in `columns`.

    The paper's number is one instance's, which it does not name: it may be off by what instances differ.
    """
    queries, match = common.queries_until(columns, k) / unit, common.matches_until(columns, k)
    means = np.array([queries[columns["instance"] == i].mean() for i in np.unique(columns["instance"])])
    is_first = columns["instance"] == 0
    ours = line(quantity, queries[is_first], status=columns["status"][is_first], printed=printed)
    if len(means) > 1:
        ours = ours._replace(printed_se=float(means.std(ddof=1)), spread="the instances'")
    return Measured(ours, means, chosen(match, is_first), (int(match["ordered"].sum()), len(queries)))


Cells = dict[str, dict[Place, Measured]]  # rule -> by n and k


def cells_of(sweeps: Sweeps, rules: Mapping[str, Rule], sizes: Collection[int], by_k: int = BY_K) -> Cells:
    """What every rule took until ten centers and, of `by_k` images, fewer, beside what the paper printed."""
    places = [(n, K) for n in sizes] + [(by_k, k) for k in KS if by_k in sizes]
    return {
        name: {
            (n, k): measured(
                f"{name}: n = {n}, k = {k}", sweeps[name, n], unit=rule.unit, k=k, printed=rule.printed.get((n, k))
            )
            for n, k in places
            if (name, n) in sweeps
        }
        for name, rule in rules.items()
    }


def report(
    title: str, sweeps: Sweeps, rules: Mapping[str, Rule], cells: Cells, *, drawn: Mapping[str, Any], **told: Any
) -> Report:
    """Of a table of queries by n and k; `drawn` goes to `draw_by_n_and_k`, `told` are claims, notes and the grid."""
    lines = [cell.first for row in cells.values() for cell in row.values()]
    columns = joined({f"{rule}, n = {n}": columns for (rule, n), columns in sweeps.items()}, "sweep")
    draw = partial(draw_by_n_and_k, sweeps=sweeps, rules=rules, **drawn)
    return Report(title, lines, columns=columns, draw=draw, **told)


def factors(values: Mapping[Place, float], form: str = ".3g") -> str:
    """Numbers side by side, each with its n and k."""
    return ", ".join(f"{value:{form}} (n = {n:,}, k = {k})" for (n, k), value in values.items())


def mean(cell: Measured | None, scale: float = 1.0) -> str:
    """A mean with its standard error, in another unit."""
    if cell is None:
        return ""
    se = f" +- {two_digits(cell.first.se * scale):g}" if np.isfinite(cell.first.se) else ""
    return f"{number(float(f'{cell.first.ours * scale:.4g}'))}{se}"


def draw_instances(
    axes: Any, x: Any, cells: Sequence[Measured], label: str = "other images", style: int = 0, scale: float = 1.0
) -> None:
    """The range of the means over instances."""
    low, high = (scale * np.array([f(cell.instances) for cell in cells]) for f in (np.min, np.max))
    band(axes, x, low, high, style, label)


def draw_by_n_and_k(
    figure: Any,
    sweeps: Sweeps,
    rules: Mapping[str, Rule],
    *,
    by_k: int,
    banded: str = "",
    known: Mapping[str, tuple[str, Callable[[int, int], float]]] = {},
) -> None:
    """Queries against n until ten centers, and against k for n = `by_k`.

    The other instances of the rule `banded` are shown as well; `known` is label to look and (n, k) -> queries that are
    known without runs.
    """
    left, right = split(figure, (10.4, 4.8), 1, 2)
    every, ks = sorted({n for _, n in sweeps}), list(range(2, K + 1))
    for axes, x, places in ((left, every, [(n, K) for n in every]), (right, ks, [(by_k, k) for k in ks])):
        for label, (look, queries) in known.items():
            axes.plot(x, [queries(*at) for at in places], look, lw=1.2, label=label)
        for style, (name, rule) in enumerate(rules.items()):
            cells = {
                value: measured(name, sweeps[name, n], unit=1.0, k=k)
                for value, (n, k) in zip(x, places, strict=True)
                if (name, n) in sweeps
            }
            if cells:
                curve(axes, list(cells), [cell.first for cell in cells.values()], rule.label, style)
            if cells and name == banded:
                draw_instances(axes, list(cells), list(cells.values()), f"{rule.label}, other images", style)
            printed = [rule.unit * rule.printed.get(at, np.nan) for at in places]
            axes.plot(x, printed, "x", color=COLORS[style], mew=2)
    left.plot([], [], "kx", mew=2, label="in the paper")
    left.set(xscale="log", yscale="log", xlabel="images n", ylabel="queries", title=f"Until {K} centers")
    ticks(left, every, [f"{n:,}" for n in every])
    right.set(yscale="log", xlabel="centers k", title=f"Of {by_k} images", xticks=ks)
    legend_below(figure, left, ncols=4)
