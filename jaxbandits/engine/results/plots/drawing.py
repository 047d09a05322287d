"""`Results.plot`: reads its arguments, and draws lines, boxes or error rates with their axes and legend."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandits.checks import instance, one_of, show, warn
from jaxbandits.engine.results.plots.bounds import Bound, NamedBound, bound_values, draw_bound, named_bounds
from jaxbandits.engine.results.plots.boxes import Boxes, boxes, draw_boxes
from jaxbandits.engine.results.plots.lines import Columns, Line, curve, draw_line, error_rates, means
from jaxbandits.engine.results.plots.looks import Look, next_looks
from jaxbandits.engine.results.plots.ticks import fixed_ticks, set_ticks
from jaxbandits.engine.results.plots.words import column_words, group_label, outcome_words, set_labels, set_legend
from jaxbandits.engine.results.statistics import (
    by_appearance,
    constant_within,
    full_name,
    group_names,
    grouped,
    is_real,
    scalar_columns,
    short_name,
)
from jaxbandits.engine.results.summaries import label_columns
from jaxbandits.engine.results.tables import is_task_column
from jaxbandits.engine.run.recording import PREFIX, is_marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RATIO = 10  # smallest ratio of largest to smallest value that makes an axis logarithmic by default
SHARE = 0.8  # share of the place of a category that its boxes or points take
SOLE = 0.6  # the same of a single box or point
ASIDE = 0.4  # largest share of the distance of two numbers on an axis that the error rates at each of them take
STEP = 0.02  # distance of these error rates, as a share of the axis: near to the width of a marker
BELOW = 10  # smallest error rate over the lower end of an axis to which an interval may stretch it
CROWDED = 9  # characters of all categories per inch of the axes' width, beyond which their names are turned
MANY = 20  # number of values of a column of the table of tasks, beyond which they are taken for drawn at random
MISSING = "censored or failed"
# Dashes of bounds, longer than the dashes of any group of runs.
BOUND_DASHES = (0, (6, 2)), (0, (6, 2, 1, 2)), (0, (12, 3)), (0, (6, 2, 1, 2, 1, 2))
DELTA_DASHES = (0, (1, 1))


class Axis(NamedTuple):
    """The horizontal axis of a figure."""

    name: str  # column, "" for the entries of an array
    runs: np.ndarray  # (runs,)        number of each run, or index of its category
    values: np.ndarray  # (points,)    distinct values in the order of their appearance
    at: np.ndarray  # (points,)        number or index of each
    categories: list[str]  # names of the categories by index, if the axis has any


class Limit(NamedTuple):
    """A line to compare the runs with: a lower bound, or the error probability that was allowed."""

    label: str
    values: np.ndarray  # (points,)    at `Axis.values`
    dashes: Any


def draw(
    columns: Columns,
    *,
    x: str | None,
    y: str,
    by: str | tuple[str, ...] | None,
    kind: str | None,
    band: str | None,
    bound: Bound | NamedBound | Sequence[NamedBound] | None,
    log: str | None,
    ax: "Axes | None",
) -> "Axes":
    """Draws the figure of `Results.plot`."""
    try:
        from matplotlib import pyplot
        from matplotlib.axes import Axes
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("plot needs matplotlib: pip install matplotlib") from error
    for name, choice, choices in (
        ("kind", kind, ("box", "error")),
        ("band", band, ("mean", "quantiles")),
        ("log", log, ("", "x", "y", "xy")),
    ):
        if choice is not None:
            one_of(name, choice, choices)
    if ax is not None:
        instance("ax", ax, Axes)
    value = _value_column(columns, y, kind)
    names = _group_columns(columns, by, x, kind)
    parts, labels, codes = _parts(columns, names)
    if kind == "box" and list(names.values()) == [full_name(x, scalar_columns(columns))]:
        # The axis has these names already.
        labels = [""] * len(labels)
    is_curve = columns[value].ndim == 2
    axis = _curve_axis(columns, value, x, y) if is_curve else _scalar_axis(columns, x, kind)
    groups: list[Any] = [
        curve({name: values[part] for name, values in columns.items()}, axis.name, value, label=label, band=band)
        if is_curve
        else _group(columns, axis, part, value, label=label, kind=kind, band=band)
        for part, label in zip(parts, labels, strict=True)
    ]
    if is_curve:
        # Groups may have marks of their own.
        values = np.unique(np.concatenate([group.x for group in groups])) if groups else axis.values
        axis = axis._replace(values=values, at=values)
    limits = _limits(axis, bound, is_error=kind == "error")
    if by not in ((), []):
        _warn_of_pools(columns, names, x)

    if ax is None:
        ax = pyplot.figure(layout="constrained").add_subplot()
    places = _set_categories(ax, axis)
    # Changing the scale takes the ticks of an earlier call away.
    ticks = np.union1d(fixed_ticks(ax.xaxis), axis.at)
    _set_scales(ax, axis, groups, limits, log)
    # Each group stands in the middle if no two of them meet.
    alone = bool(axis.categories) and sum(len(group.x) for group in groups) == len(axis.at)
    width = SOLE if alone else SHARE / max(len(groups), 1)
    if kind == "error" and not axis.categories and len(axis.at) == 1:
        # A single value stands in the middle of an axis that is much longer than the distance of the points.
        center = float(axis.at[0])
        ends = (
            (center * np.exp(-0.5), center * np.exp(0.5)) if ax.get_xscale() == "log" else (center - 0.5, center + 0.5)
        )
        ax.update_datalim([(end, 1) for end in ends], updatey=False)
    positive = np.concatenate([group.middle[group.middle > 0] for group in groups]) if kind == "error" else np.zeros(0)
    floor = positive.min(initial=np.inf) / BELOW
    looks = next_looks(ax, codes, has_dashes=not axis.categories)
    for n, (group, look) in enumerate(zip(groups, looks, strict=True)):
        if axis.categories:
            shift = 0.0 if alone else (n - (len(groups) - 1) / 2) * width
            group = group._replace(x=places[group.x] + shift)
        elif kind == "error":
            group = group._replace(x=_beside(group.x, axis.at, n, len(groups), is_log=ax.get_xscale() == "log"))
        if kind == "box":
            draw_boxes(ax, group, look, width)
        elif kind == "error":
            _draw_unstretched(ax, group, look, n, floor)
        else:
            draw_line(ax, group, look, n, has_band=band is not None and not axis.categories)
    for limit in limits:
        at = places[axis.at] if axis.categories else axis.at
        draw_bound(ax, at, limit.values, label=limit.label, is_category=bool(axis.categories), dashes=limit.dashes)
    if not axis.categories:
        set_ticks(ax.xaxis, ticks.tolist())
    set_ticks(ax.yaxis)
    if any(group.cut.any() for group in groups) and MISSING not in ax.get_legend_handles_labels()[1]:
        ax.plot([], [], "^", color="gray", fillstyle="none", label=MISSING)
    words = column_words(axis.name) or "entry"
    set_labels(ax, f"{words} so far" if is_marks(axis.name) else words, _outcome(columns, value, kind=kind, band=band))
    set_legend(ax, ", ".join(map(column_words, names)))
    return ax


def _value_column(columns: Columns, y: str, kind: str | None) -> str:
    """Returns the full name of the column to draw. Raises `ValueError` if it cannot be drawn as `kind`."""
    value = full_name(y, columns)
    if value is None or not is_real(columns[value]) or columns[value].ndim > 2:
        raise ValueError(f"y must name a column of numbers or curves, one of {sorted(columns)}, got {show(y)}")
    if kind is not None and columns[value].ndim > 1:
        raise ValueError(f"kind must be None for {y!r}, which has several numbers per run, got {kind!r}")
    if kind == "error" and not np.isin(columns[value], (0, 1)).all():
        raise ValueError(f"y must name a boolean column for kind='error', true where a run is wrong, got {y!r}")
    return value


def _group_columns(
    columns: Columns, by: str | tuple[str, ...] | None, x: str | None, kind: str | None
) -> dict[str, str]:
    """Returns the columns that define the groups. If `by` is None, the rule and the labels of joined sweeps."""
    scalar = scalar_columns(columns)
    if by is None:
        over = full_name(x, scalar) if kind != "box" else None
        return {short_name(name, scalar): name for name in label_columns(scalar) if name != over}
    return group_names(by, scalar) if by not in ((), []) else {}


def _warn_of_pools(columns: Columns, names: dict[str, str], x: str | None) -> None:
    """Warns of columns of the table of tasks, or rules, that vary within a line at one value of x."""
    scalar = scalar_columns(columns)
    over = full_name(x, scalar)
    inputs = {name: values for name, values in scalar.items() if name == "rule" or is_task_column(name)}
    if len(columns["status"]) == 0:
        return
    cells = [scalar[name] for name in (*names.values(), over) if name is not None] or [np.zeros(len(columns["status"]))]
    constant = constant_within(inputs, *grouped(cells))
    pooled = [name for name in inputs if name not in constant and len(np.unique(inputs[name])) <= MANY]
    if pooled:
        short = [short_name(name, scalar) for name in pooled]
        by = (*names, *short)
        advice = repr(by[0] if len(by) == 1 else by)
        warn(f"a line pools runs that differ in {', '.join(short)}. Give by={advice}", stacklevel=4)


def _parts(columns: Columns, names: dict[str, str]) -> tuple[list[Any], list[str], list[tuple[int, int]]]:
    """Returns the runs of each group in order of appearance, their labels, and the numbers of colour and shape.

    Of two columns with several values each, the first has the colours, and the second dashes, markers and hatches.
    """
    if not names:
        return [slice(None)], [""], [(0, 0)]
    first, group = by_appearance([columns[name] for name in names.values()])
    labels = [group_label([columns[name][n] for name in names.values()]) for n in first]
    parts = [np.flatnonzero(group == n) for n in range(len(first))]
    numbers = np.arange(len(first))
    colors, shapes = numbers, numbers
    if len(names) == 2:
        indices = [by_appearance([columns[name]])[1][first] for name in names.values()]
        if all(np.ptp(index) > 0 for index in indices if len(index)):
            colors, shapes = indices
    return parts, labels, list(zip(colors.tolist(), shapes.tolist(), strict=True))


def _curve_axis(columns: Columns, value: str, x: str | None, y: str) -> Axis:
    """Returns the axis of curves: their marks, or the entries of an array."""
    if x is not None:
        raise ValueError(f"x must be None for {y!r}, which is drawn over its own marks, got {show(x)}")
    marks = next((name for name in columns if is_marks(name)), "") if value.startswith(f"{PREFIX}.") else ""
    nothing = np.zeros(0)
    return Axis(marks, nothing, nothing, nothing, [])


def _scalar_axis(columns: Columns, x: str | None, kind: str | None) -> Axis:
    """Returns the axis of a scalar column. Words are categories, and so is everything below boxes."""
    (name,) = group_names(x if isinstance(x, str) else "", scalar_columns(columns), "x").values()
    runs = columns[name]
    first, index = by_appearance([runs])
    values = runs[first]
    is_number = runs.dtype.kind in "iuf"
    if is_number and kind != "box":
        return Axis(name, runs, values, values, [])
    order = np.argsort(values) if is_number else np.arange(len(values))
    at = np.argsort(order)
    return Axis(name, at[index], values, at, [group_label([values[n]]) for n in order])


def _group(
    columns: Columns, axis: Axis, part: Any, y: str, *, label: str, kind: str | None, band: str | None
) -> Line | Boxes:
    """Computes the line or the boxes of some of the runs."""
    chosen = {name: columns[name][part] for name in ("status", y)}
    x = axis.runs[part]
    if kind == "box":
        return boxes(chosen, x, y, label=label)
    if kind == "error":
        return error_rates(chosen, x, y, label=label)
    return means(chosen, x, y, label=label, band=band)


def _limits(axis: Axis, bound: Bound | NamedBound | Sequence[NamedBound] | None, *, is_error: bool) -> list[Limit]:
    """Returns the lines to compare with: delta for error rates over delta, and the caller's bound."""
    limits = []
    if is_error and column_words(axis.name) == "delta" and not axis.categories:
        limits.append(Limit("delta", axis.values.astype(float), DELTA_DASHES))
    if bound is not None:
        for n, (label, one) in enumerate(named_bounds(bound)):
            dashes = BOUND_DASHES[n % len(BOUND_DASHES)]
            limits.append(Limit(label, bound_values(one, axis.values), dashes))
    return limits


def _outcome(columns: Columns, value: str, *, kind: str | None, band: str | None) -> str:
    """Returns the label of the vertical axis."""
    words = outcome_words(value, columns["status"])
    if kind == "box":
        return words
    if kind == "error":
        return "error rate" if words in ("wrong", "error") else f"share of runs: {words}"
    return f"{'median' if band == 'quantiles' else 'mean'} {words}"


def _set_categories(ax: "Axes", axis: Axis) -> np.ndarray:
    """Names the categories on the axis, after those that it has already, and returns their places by index."""
    if not axis.categories:
        return np.zeros(0)
    ax.xaxis.update_units(axis.categories)
    places = np.asarray(ax.convert_xunits(axis.categories), float)
    ax.set_xlim(-0.5, max(places.max() + 0.5, ax.get_xlim()[1] if ax.has_data() else 0))
    width = ax.bbox.width / ax.figure.dpi
    if sum(len(name) + 2 for name in axis.categories) > CROWDED * width:
        ax.tick_params("x", rotation=30)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    return places


def _beside(x: np.ndarray, values: np.ndarray, nth: int, count: int, *, is_log: bool) -> np.ndarray:
    """Moves the points of the n-th of several groups aside, so that intervals at one value do not hide each other.

    By so little that all can be seen to belong to this value.
    """
    at = np.unique(np.log(values[values > 0]) if is_log else values.astype(float))
    step = min(ASIDE * np.diff(at).min() / count, STEP * np.ptp(at)) if len(at) > 1 else STEP
    shift = (nth - (count - 1) / 2) * step
    return x * np.exp(shift) if is_log else x + shift


def _draw_unstretched(ax: "Axes", line: Line, look: Look, nth: int, floor: float) -> None:
    """Draws a line whose bars do not extend the vertical axis below a floor."""
    below = ax.dataLim.y0
    draw_line(ax, line, look, nth, has_band=False)
    # `floor` is infinite without positive rates, where no bar reaches down.
    if np.isfinite(floor) and ax.get_yscale() == "log":
        ax.dataLim.y0 = max(ax.dataLim.y0, min(below, floor))


def _set_scales(ax: "Axes", axis: Axis, groups: list[Any], limits: list[Limit], log: str | None) -> None:
    """Makes the axes in `log` logarithmic. If None, the axes whose values are positive and span a decade."""
    drawn = [_heights(group) for group in groups] + [limit.values for limit in limits]
    for name, numbers in (("x", axis.at), ("y", np.concatenate(drawn) if drawn else np.zeros(0))):
        if name == "x" and axis.categories:
            continue
        finite = numbers[np.isfinite(numbers)]
        spans = len(finite) > 0 and finite.min() > 0 and finite.max() >= RATIO * finite.min()
        if name in log if log is not None else spans:
            (ax.set_xscale if name == "x" else ax.set_yscale)("log")


def _heights(group: Line | Boxes) -> np.ndarray:
    """Returns the heights at which a group is drawn."""
    if isinstance(group, Boxes):
        return np.concatenate([group.table["q05"], group.table["q95"]])
    # A rate of zero may be drawn as an upper limit; a mean of zero has no place on a logarithmic axis.
    return np.where(group.is_rate & (group.middle == 0), group.high, group.middle)
