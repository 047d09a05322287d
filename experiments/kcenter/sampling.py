"""What the experiments on dimension sampling share: many runs on the first images, a few on others."""

from argparse import ArgumentParser
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.figures import COLORS, band, curve, split, ticks
from experiments.kcenter import common
from experiments.kcenter.common import Images, image_runs
from experiments.report import Claim, Columns, Line, Report, joined, line, number, two_digits
from experiments.settings import Settings
from jaxbandits.base import Algorithm
from jaxbandits.kcenter import ds_random

K = 10
DRAWS = 1024  # of random sampling, each round

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


class Schedule(NamedTuple):
    """Which instance each run of a setting takes."""

    rows: np.ndarray  # int32 (runs, n)  its points
    instance: np.ndarray  # int (runs,)  0 is that of the first n images, which most runs take


def schedule(n: int, total: int, *, first: int, others: int = 0, runs: int = 1) -> Schedule:
    """`first` runs on the first n of `total` images and `runs` runs on each of `others` other instances."""
    instance = np.concatenate([np.zeros(first, int), np.repeat(np.arange(1, others + 1), runs)])
    return Schedule(common.consecutive(n, 1 + others, total)[instance], instance)


def scheduled_runs(
    heading: str, rule: Callable[..., Algorithm], images: Images, plan: Schedule, *, options: Settings, **simulated: Any
) -> dict[str, np.ndarray]:
    """The columns of a sweep, with `setting` and `instance` beside them."""
    columns = image_runs(heading, rule, images, plan.rows, k=K, options=options, seeds=1, **simulated).columns
    setting, place = np.divmod(columns["row"], len(plan.rows))
    return columns | {"setting": setting, "instance": plan.instance[place]}


def random_runs(heading: str, n: int, images: Images, *, runs: int, options: Settings, **rule: Any) -> Columns:
    """Runs of random sampling on the first n images."""
    plan = schedule(n, len(images.points), first=runs)
    rule_of = partial(ds_random, delta=common.DELTA, **rule)
    return scheduled_runs(heading, rule_of, images, plan, options=options, test_every=DRAWS, lanes=runs)


def add_random(parser: ArgumentParser, default: int) -> None:
    """`--random-up-to`."""
    text = "random sampling for at most so many images (%(default)s)"
    parser.add_argument("--random-up-to", type=int, default=default, metavar="N", help=text)


def chosen(columns: Columns, where: np.ndarray) -> dict[str, np.ndarray]:
    return {name: values[where] for name, values in columns.items()}


class Measured(NamedTuple):
    """The queries of one rule in one setting."""

    first: Line  # on the first images
    instances: np.ndarray  # (instances,)  the mean on each instance, in units of the line
    ordered: str  # share of the runs of `first` with greedy's centers
    members: str  # or with the same set of centers
    right: tuple[int, int]  # runs with greedy's centers in order, of all runs on any instance

    @property
    def range(self) -> str:
        """Over the instances."""
        if len(self.instances) < 2:
            return ""
        mean, least, most = (number(float(f"{f(self.instances):.3g}")) for f in (np.mean, np.min, np.max))
        return f"{mean} ({least} to {most})"


def measured(quantity: str, columns: Columns, *, unit: float, k: int = K, printed: float | None = None) -> Measured:
    """Queries until the first k centers, of the runs in `columns`.

    The paper's number is one instance's, which it does not name: it may be off by what instances differ.
    """
    queries = common.queries_until(columns, k) / unit
    match = common.matches_until(columns, k)
    is_first = columns["instance"] == 0
    means = np.array([queries[columns["instance"] == i].mean() for i in np.unique(columns["instance"])])
    first = chosen(match, is_first)
    ordered, members = (common.share(first, name) for name in ("ordered", "members"))
    ours = line(quantity, queries[is_first], status=columns["status"][is_first], printed=printed)
    if len(means) > 1:
        ours = ours._replace(printed_se=float(means.std(ddof=1)), spread="the instances'")
    ours = ours._replace(note=f"ordered {ordered}, as a set {members}")
    return Measured(ours, means, ordered, members, (int(match["ordered"].sum()), len(queries)))


Cells = dict[str, dict[Place, Measured]]  # rule -> by n and k


class Rule(NamedTuple):
    """How a rule is shown."""

    label: str
    unit: float  # of queries
    printed: Mapping[Place, float]  # in this unit


def cells_of(sweeps: Sweeps, rules: Mapping[str, Rule], places: Collection[Place]) -> Cells:
    """What every rule took, by n and k, beside what the paper printed."""
    return {
        name: {
            (n, k): measured(f"{name}: n = {n}, k = {k}", sweeps[name, n], unit=unit, k=k, printed=printed.get((n, k)))
            for n, k in places
            if (name, n) in sweeps
        }
        for name, (_, unit, printed) in rules.items()
    }


def report(
    title: str,
    sweeps: Sweeps,
    rules: Mapping[str, Rule],
    cells: Cells,
    claims: Sequence[Claim],
    notes: Sequence[str],
    grid: Sequence[Mapping[str, str]],
    **drawn: Any,
) -> Report:
    """Of a table of queries by n and k; `drawn` goes to `draw_by_n_and_k`."""
    return Report(
        title,
        [cell.first for row in cells.values() for cell in row.values()],
        claims,
        joined({f"{rule}, n = {n}": columns for (rule, n), columns in sweeps.items()}, "sweep"),
        partial(draw_by_n_and_k, sweeps=sweeps, rules=rules, **drawn),
        notes,
        grid,
    )


def factors(values: Mapping[Place, float], form: str = ".3g") -> str:
    """Numbers side by side, each with its n and k."""
    return ", ".join(f"{value:{form}} (n = {n:,}, k = {k})" for (n, k), value in values.items())


def mean(cell: Measured | None, scale: float = 1.0) -> str:
    """A mean with its standard error, in another unit."""
    if cell is None:
        return ""
    se = f" +- {two_digits(cell.first.se * scale):g}" if np.isfinite(cell.first.se) else ""
    return f"{number(float(f'{cell.first.ours * scale:.4g}'))}{se}"


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
    every, ks = sorted({n for _, n in sweeps}), range(2, K + 1)
    for label, (look, queries) in known.items():
        left.plot(every, [queries(n, K) for n in every], look, lw=1.2, label=label)
        right.plot(ks, [queries(by_k, k) for k in ks], look, lw=1.2)
    for style, (rule, (label, unit, printed)) in enumerate(rules.items()):
        there = [n for n in every if (rule, n) in sweeps]
        for axes, x, places in ((left, there, [(n, K) for n in there]), (right, ks, [(by_k, k) for k in ks])):
            if places and places[0][0] in there:
                cells = [measured(rule, sweeps[rule, n], unit=1.0, k=k) for n, k in places]
                curve(axes, x, [cell.first for cell in cells], label, style)
                if rule == banded:
                    low, high = ([f(cell.instances) for cell in cells] for f in (np.min, np.max))
                    band(axes, x, low, high, style, f"{label}, other images")
        for axes, by in (
            (left, {n: unit * q for (n, k), q in printed.items() if k == K and every[0] <= n <= every[-1]}),
            (right, {k: unit * q for (n, k), q in printed.items() if n == by_k}),
        ):
            axes.plot(list(by), list(by.values()), "x", color=COLORS[style], mew=2)
    left.plot([], [], "kx", mew=2, label="in the paper")
    left.set(xscale="log", yscale="log", xlabel="images n", ylabel="queries", title=f"Until {K} centers")
    ticks(left, every, [f"{n:,}" for n in every])
    right.set(yscale="log", xlabel="centers k", title=f"Of {by_k} images", xticks=list(ks))
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
