"""What the experiments on dimension sampling share: many runs on the first images, a few on others."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from experiments.figures import COLORS, band, curve, ticks
from experiments.kcenter import common
from experiments.kcenter.common import Images, image_runs
from experiments.report import Columns, Line, line, number, two_digits
from experiments.settings import Settings
from jaxbandits.base import Algorithm

K = 10
DRAWS = 1024  # of random sampling, each round

Place = tuple[int, int]  # (n, k)
Sweeps = dict[tuple[str, int], Columns]  # (rule, n) -> columns


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


def chosen(columns: Columns, where: np.ndarray) -> dict[str, np.ndarray]:
    """The runs that are wanted."""
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


def cells_of(
    sweeps: Sweeps, rule: str, places: Collection[Place], unit: float, printed: Mapping[Place, float]
) -> dict[Place, Measured]:
    """What a rule took, by n and k, beside what the paper printed."""
    return {
        (n, k): measured(f"{rule}: n = {n}, k = {k}", sweeps[rule, n], unit=unit, k=k, printed=printed.get((n, k)))
        for n, k in places
        if (rule, n) in sweeps
    }


def mean(cell: Measured | None, scale: float = 1.0) -> str:
    """A mean with its standard error, in another unit."""
    if cell is None:
        return ""
    se = f" +- {two_digits(cell.first.se * scale):g}" if np.isfinite(cell.first.se) else ""
    return f"{number(float(f'{cell.first.ours * scale:.4g}'))}{se}"


def draw_by_n_and_k(
    figure: Any,
    sweeps: Sweeps,
    labels: Mapping[str, str],
    printed: Mapping[str, Mapping[Place, float]],
    *,
    by_k: int,
    banded: str = "",
    known: Mapping[str, tuple[str, Callable[[int, int], float]]] = {},
) -> None:
    """Queries against n until ten centers, and against k for one n.

    Args:
        figure: to draw on.
        sweeps: the runs.
        labels: of every rule.
        printed: queries in the paper, by rule.
        by_k: n where k varies.
        banded: a rule whose other instances are shown.
        known: label to look and (n, k) -> queries that are known without runs.
    """
    figure.set_size_inches(10.4, 4.8)
    left, right = figure.subplots(1, 2)
    every, ks = sorted({n for _, n in sweeps}), range(2, K + 1)
    for label, (look, queries) in known.items():
        left.plot(every, [queries(n, K) for n in every], look, lw=1.2, label=label)
        right.plot(ks, [queries(by_k, k) for k in ks], look, lw=1.2)
    for style, (rule, label) in enumerate(labels.items()):
        there = [n for n in every if (rule, n) in sweeps]
        for axes, x, places in ((left, there, [(n, K) for n in there]), (right, ks, [(by_k, k) for k in ks])):
            if places and places[0][0] in there:
                cells = [measured(rule, sweeps[rule, n], unit=1.0, k=k) for n, k in places]
                curve(axes, x, [cell.first for cell in cells], label, style)
                if rule == banded:
                    low, high = ([f(cell.instances) for cell in cells] for f in (np.min, np.max))
                    band(axes, x, low, high, style, f"{label}, other images")
        marks = printed.get(rule, {})
        for axes, by in (
            (left, {n: q for (n, k), q in marks.items() if k == K and every[0] <= n <= every[-1]}),
            (right, {k: q for (n, k), q in marks.items() if n == by_k}),
        ):
            axes.plot(list(by), list(by.values()), "x", color=COLORS[style], mew=2)
    left.plot([], [], "kx", mew=2, label="in the paper")
    left.set(xscale="log", yscale="log", xlabel="images n", ylabel="queries", title=f"Until {K} centers")
    ticks(left, every, [f"{n:,}" for n in every])
    right.set(yscale="log", xlabel="centers k", title=f"Of {by_k} images", xticks=list(ks))
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
