"""Studies: rules on instances over an axis, from the sweeps to the report.

An experiment says what it varies and how one sweep is made. Here the sweeps are made, cut into cells, and turned into
lines, tables, columns and a figure:

    cells = study.crossed({"rule": RULES, "epsilon": (0.0, 0.1)}, sweep, name="{rule}, epsilon = {epsilon:g}")
    study.report("Pulls against epsilon", cells, claims, draw=study.figure(cells, "epsilon"))

A key has a value for each axis, in order: `cells.lines["LUCB", 0.1]`.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.claims import errors_of, every_run_stops
from experiments.figures import curve, legend_below, ticks
from experiments.report import Claim, Columns, Line, Report, chosen, columns_of, line, line_of, plus_minus, row_of
from jaxbandits import Results

Key = tuple[Any, ...]  # a value for each axis
Made = Results | Columns | Line | Sequence[Line]  # a sweep; or a number that is not random, or one for each of its rows

REFERENCES = ({"ls": "-"}, {"ls": ":"}, {"ls": (0, (6, 2))})  # styles of lines that are not measured


class Study(NamedTuple):
    """Sweeps over some axes, cut into cells."""

    axes: Mapping[str, Sequence[Any]]  # values of each axis, in order
    name: str  # format of a cell's name, with the axes as fields
    sweeps: Mapping[Key, Any]  # results or columns; keys lack the axis whose values are the rows of a sweep
    cells: Mapping[Key, Columns]  # runs of every cell
    lines: Mapping[Key, Line]  # mean pulls, or another quantity, of every cell


def crossed(axes: Mapping[str, Iterable[Any]], sweep: Callable[..., Made | None], **settings: Any) -> Study:
    """Makes a sweep for each combination of the axes; the first axis varies slowest.

    Args:
        axes: Name and values of each axis.
        sweep: Called with a keyword per axis, except `rows` and `split`. Returns the sweep, or None to leave it out.
            A number that is not random is a `Line`; with `rows`, a list of them.
        **settings: Settings of `collected`.

    Returns:
        The study.
    """
    values = {axis: tuple(each) for axis, each in axes.items()}
    outer = {axis: each for axis, each in values.items() if axis not in (settings.get("rows"), settings.get("split"))}
    made = {key: sweep(**dict(zip(outer, key, strict=True))) for key in itertools.product(*outer.values())}
    return collected(values, {key: each for key, each in made.items() if each is not None}, **settings)


def collected(
    axes: Mapping[str, Iterable[Any]],
    sweeps: Mapping[Any, Made],
    *,
    name: str | None = None,
    rows: str | None = None,
    split: str | None = None,
    values: Callable[[Columns], np.ndarray] | None = None,
    more: Callable[..., dict[str, Any]] = lambda **at: {},
) -> Study:
    """Cuts finished sweeps into cells.

    Args:
        axes: Name and values of each axis, in the order of the keys.
        sweeps: Sweeps by key; with a single axis, by its values.
        name: Format of a cell's name. If None, the values of the axes, separated by commas.
        rows: Axis whose values are the rows of every sweep. If None, a sweep is a cell.
        split: Axis that is a column of every sweep, which is cut by its values. If None, a sweep is a cell.
        values: Quantity of each run, from the columns of a cell. If None, the pulls of the runs that stopped.
        more: Called with a keyword per axis; returns further fields of the cell's `Line`, such as `bound`.

    Returns:
        The study.
    """
    axes = {axis: tuple(each) for axis, each in axes.items()}
    name = name or ", ".join(f"{{{axis}}}" for axis in axes)
    sweeps = {key if isinstance(key, tuple) else (key,): each for key, each in sweeps.items()}
    cells: dict[Key, Columns] = {}
    lines: dict[Key, Line] = {}
    for key in itertools.product(*axes.values()):
        at = dict(zip(axes, key, strict=True))
        sweep = sweeps.get(tuple(value for axis, value in at.items() if axis not in (rows, split)))
        if sweep is None:
            continue
        quantity, fields = name.format(**at), more(**at)
        row = axes[rows].index(at[rows]) if rows else 0
        if not isinstance(sweep, (Results, Mapping)):
            known = sweep if isinstance(sweep, Line) else sweep[row]
            lines[key] = known._replace(quantity=quantity, **fields)
            continue
        columns = row_of(sweep, row) if rows else columns_of(sweep)
        if split:
            columns = chosen(columns, columns[split] == at[split])
        cells[key] = columns
        lines[key] = line(quantity, values(columns), **fields) if values else line_of(quantity, columns, **fields)
    made = {key: each for key, each in sweeps.items() if isinstance(each, (Results, Mapping))}
    return Study(axes, name, made, cells, lines)


# Cells


def at_of(study: Study, key: Key) -> dict[str, Any]:
    """Returns the value of every axis at a key."""
    return dict(zip(study.axes, key, strict=True))


def by(study: Study, axis: str, cells: Mapping[Key, Any] | None = None, **at: Any) -> dict[Any, list[Any]]:
    """Groups lines, or something else that has the study's keys, by an axis.

    Args:
        study: The study.
        axis: Name of the axis.
        cells: Something for every cell. If None, the lines.
        **at: Value of another axis, to which the cells are restricted.

    Returns:
        The cells at every value of the axis that has any, in the order of the other axes.
    """
    groups: dict[Any, list[Any]] = {value: [] for value in study.axes[axis]}
    for key, cell in (study.lines if cells is None else cells).items():
        here = at_of(study, key)
        if all(here[other] == value for other, value in at.items()):
            groups[here[axis]].append(cell)
    return {value: group for value, group in groups.items() if group}


def along(study: Study, axis: str, **at: Any) -> dict[Any, Line]:
    """Returns the lines along an axis, by its values, at these values of all other axes."""
    return {at_of(study, key)[axis]: line for key, line in only(study, **at).lines.items()}


def only(study: Study, **at: Any) -> Study:
    """Returns the part of a study at these values of some axes; the keys keep all axes."""
    axes = {axis: (at[axis],) if axis in at else values for axis, values in study.axes.items()}
    kept = set(itertools.product(*axes.values()))
    cells, lines = ({key: part[key] for key in part if key in kept} for part in (study.cells, study.lines))
    return study._replace(axes=axes, cells=cells, lines=lines)


def errors(study: Study) -> dict[Key, tuple[int, int]]:
    """Counts the wrong answers and the runs that stopped, in every cell, by a column `wrong` or `right`."""
    return {key: errors_of(columns) for key, columns in study.cells.items()}


def named(study: Study, cells: Mapping[Key, Any]) -> dict[str, Any]:
    """Replaces keys by the names of their cells."""
    return {study.lines[key].quantity: cell for key, cell in cells.items()}


def columns(study: Study) -> dict[str, np.ndarray]:
    """Stacks the columns that all cells share, after a column for each axis."""
    parts = list(study.cells.values())
    shapes = [{name: part[name].shape[1:] for name in part} for part in parts]
    shared = [name for name in shapes[0] if all(each.get(name) == shapes[0][name] for each in shapes)]
    sizes = [len(part["row"]) for part in parts]
    places = zip(study.axes, zip(*study.cells, strict=True), strict=True)
    stacked = {axis: np.repeat(np.array([_plain(value) for value in values]), sizes) for axis, values in places}
    return {name: np.concatenate([part[name] for part in parts]) for name in shared if name not in stacked} | stacked


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float)) else str(value)


# The report


def report(
    title: str,
    study: Study,
    claims: Iterable[Claim],
    *,
    draw: Callable[[Any], None] | None,
    grid: Sequence[Mapping[str, str]] = (),
    notes: Sequence[str] = (),
    lines: Sequence[Line] = (),
) -> Report:
    """Returns the report of a study; `lines` are added to its own."""
    return Report(title, [*study.lines.values(), *lines], list(claims), columns(study), draw, notes=notes, grid=grid)


def stops(study: Study) -> Claim:
    """Claims that no run reached its budget and none met a NaN."""
    return every_run_stops(study.sweeps.values())


def across(
    study: Study,
    axis: str,
    cell: Callable[[Line], str] = plus_minus,
    more: Callable[..., dict[str, str]] = lambda **_: {},
) -> list[dict[str, str]]:
    """Returns a table with the values of one axis side by side, and a row for the others.

    Args:
        study: The study.
        axis: Axis whose values are headings.
        cell: Formats a line.
        more: Called with a keyword per other axis; returns further cells of the row.

    Returns:
        The rows, as mappings of heading and cell.
    """
    others = [other for other in study.axes if other != axis]
    rows: dict[Key, dict[str, str]] = {}
    for key, each in study.lines.items():
        at = at_of(study, key)
        heading = shown(at.pop(axis))
        row = rows.setdefault(tuple(at.values()), {other: shown(value) for other, value in at.items()})
        row[heading] = cell(each)
    return [row | more(**dict(zip(others, values, strict=True))) for values, row in rows.items()]


def shown(value: Any) -> str:
    """Formats a value of an axis."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def figure(
    study: Study,
    x: str,
    *,
    references: Mapping[str, Sequence[float]] = {},
    x_ticks: bool = False,
    y_ticks: Sequence[float] = (),
    legend: int | None = None,
    **axes: Any,
) -> Callable[[Any], None]:
    """Returns a function that draws the means over an axis, a curve for each rule.

    Args:
        study: The study.
        x: Axis of numbers.
        references: Names and values, one for each x, of lines that are not measured.
        x_ticks: True for ticks at the values of x.
        y_ticks: Ticks of the other axis. If empty, Matplotlib's.
        legend: Columns of a legend below the figure. If None, it is inside.
        **axes: Settings of the axes, such as `title`, `xscale`, `ylabel`.
    """

    def draw(figure: Any) -> None:
        panel = figure.subplots()
        curves(panel, study, x)
        for look, (label, values) in zip(itertools.cycle(REFERENCES), references.items(), strict=False):
            panel.plot(study.axes[x], values, color="k", lw=1, label=label, **look)
        panel.set(**{"xlabel": x, "ylabel": "pulls until the stop"} | axes)
        if x_ticks:
            ticks(panel, study.axes[x])
        if y_ticks:
            ticks(panel, y_ticks, axis="y")
        legend_below(figure, ncols=legend) if legend else panel.legend()

    return draw


def curves(
    axes: Any, study: Study, x: str | Callable[..., float], *, scale: Callable[..., float] | None = None
) -> None:
    """Draws the means of each rule over `x`, an axis or a function that takes a keyword per axis.

    `scale` takes a keyword per axis and multiplies a cell's mean and error.
    """
    for style, value in enumerate(study.axes["rule"]):
        lines = {key: each for key, each in study.lines.items() if at_of(study, key)["rule"] == value}
        places = [at_of(study, key) for key in lines]
        xs = [x(**at) if callable(x) else at[x] for at in places]
        factors = np.array([scale(**at) for at in places]) if scale else 1.0
        curve(axes, xs, list(lines.values()), shown(value), style, scale=factors)
