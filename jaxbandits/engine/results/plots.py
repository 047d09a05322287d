"""`Results.plot`: means and bands of groups of runs over a parameter, or curves over their marks."""

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandits.checks import instance, one_of, show
from jaxbandits.engine.results.statistics import (
    count_endings,
    describe,
    finished_runs,
    full_name,
    group_names,
    grouped,
    is_real,
    scalar_columns,
)
from jaxbandits.engine.run.recording import PREFIX, is_marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

BAND = 1.96  # standard errors to each side: a 95 % confidence interval of the mean
RATIO = 10  # smallest ratio of largest to smallest value that makes an axis logarithmic by default
DOTS = 30  # largest number of points of a line that are each marked
DASHES = "-", "--", "-.", ":"
MARKERS = "osDv<>pPX*hd"  # "^" is left out: it marks missing runs
SPACING = 0.1  # distance between two markers of a line whose points are not marked, as a share of the axes' width

Columns = dict[str, np.ndarray]


class Line(NamedTuple):
    """The line of one group of runs."""

    label: str
    x: np.ndarray  # (points,)
    mean: np.ndarray  # (points,)    mean over the finished runs; NaN if there are none
    se: np.ndarray  # (points,)      standard error of the mean
    cut: np.ndarray  # bool (points,)    True if runs were censored or failed, and so are missing in the mean


def draw(columns: Columns, *, x: str | None, y: str, by: Any, ax: "Axes | None", log: str | None) -> "Axes":
    """Draws the figure of `Results.plot`."""
    try:
        from matplotlib import pyplot
        from matplotlib.axes import Axes
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("plot needs matplotlib: pip install matplotlib") from error
    value = full_name(y, columns)
    if value is None or not is_real(columns[value]) or columns[value].ndim > 2:
        raise ValueError(f"y must name a column of numbers or curves, one of {sorted(columns)}, got {show(y)}")
    if ax is not None:
        instance("ax", ax, Axes)
    if log is not None:
        one_of("log", log, ("", "x", "y", "xy"))
    names = group_names(by, scalar_columns(columns)) if by not in ((), []) else {}
    parts = [columns]
    if names:
        first, group = grouped([columns[name] for name in names.values()])
        parts = [_chosen(columns, group == n) for n in range(len(first))]
    is_curve = columns[value].ndim == 2
    if is_curve:
        if x is not None:
            raise ValueError(f"x must be None for {y!r}, which is drawn over its own marks, got {show(x)}")
        x_column = _marks(columns, value)
        lines = [_curve(part, marks=x_column, y=value, label=_label(part, names)) for part in parts]
    else:
        x_column = next(iter(group_names(x if isinstance(x, str) else "", scalar_columns(columns), "x").values()))
        lines = [_means(part, x=x_column, y=value, label=_label(part, names)) for part in parts]

    ax = pyplot.gca() if ax is None else ax
    taken = {_look(line) for line in ax.get_lines()}
    for line in lines:
        _draw(ax, line, taken)
    _set_scales(ax, lines, log)
    ax.set_xlabel((x_column.rpartition(".")[2] or "entry") if x is None else x)
    ax.set_ylabel(f"mean {y}")
    if any(line.cut.any() for line in lines):
        ax.plot([], [], "^", color="gray", fillstyle="none", label="runs censored or failed")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(title=", ".join(names) or None)
    return ax


def _chosen(columns: Columns, runs: np.ndarray) -> Columns:
    """Returns the columns of some of the runs."""
    return {name: values[runs] for name, values in columns.items()}


def _marks(columns: Columns, curve: str) -> str:
    """Returns the name of the column with a curve's marks, or "" if the array is not a curve."""
    return next((name for name in columns if is_marks(name)), "") if curve.startswith(f"{PREFIX}.") else ""


def _label(columns: Columns, names: dict[str, str]) -> str:
    """Formats the values that define a group, in few digits."""
    values = [columns[full][0] for full in names.values()]
    return ", ".join(f"{value:.4g}" if isinstance(value, np.floating) else str(value) for value in values)


def _means(columns: Columns, *, x: str, y: str, label: str) -> Line:
    """Computes the means of `y` over the values of `x`."""
    first, group = grouped([columns[x]])
    counts = count_endings(columns["status"], group, len(first))
    table = describe(columns[y], order=finished_runs(columns["status"], group), counts=counts["finished"])
    cut = counts["finished"] < counts["runs"]
    return Line(label, x=columns[x][first], mean=table["mean"], se=table["se"], cut=cut)


def _curve(columns: Columns, *, marks: str, y: str, label: str) -> Line:
    """Computes the mean of a curve at its marks. Without marks, the entries of the array are numbered."""
    status, values = columns["status"], columns[y]
    at = columns[marks] if marks else np.broadcast_to(np.arange(values.shape[1]), values.shape)
    if len(at) and (at != at[0]).any():
        raise ValueError(f"by must part runs with different marks, got groups in which {marks} varies")
    one = np.zeros(len(status), int)
    counts = count_endings(status, one, 1)
    table = describe(values, order=finished_runs(status, one), counts=counts["finished"])
    cut = np.zeros(values.shape[1], bool)
    cut[-1:] = counts["finished"] < counts["runs"]  # one triangle, at the end
    x = at[0] if len(at) else np.arange(0)
    return Line(label, x=x, mean=table["mean"][0], se=table["se"][0], cut=cut)


def _draw(ax: "Axes", line: Line, taken: set[Any]) -> None:
    """Draws a line with its band, and a triangle at each point whose mean lacks runs."""
    is_few = len(line.x) <= DOTS
    (drawn,) = ax.plot(line.x, line.mean, "o-" if is_few else "-", markersize=4, label=line.label or None)
    _tell_apart(drawn, taken)
    color, width = drawn.get_color(), BAND * line.se
    if len(line.x) == 1:
        ax.errorbar(line.x, line.mean, width, color=color, capsize=3)
    else:
        ax.fill_between(line.x, line.mean - width, line.mean + width, color=color, alpha=0.2, linewidth=0)
    shown = line.cut & np.isfinite(line.mean)
    style = {"marker": "^", "linestyle": "", "color": color, "fillstyle": "none", "markersize": 10}
    ax.plot(line.x[shown], line.mean[shown], **style)
    # Without a finished run, the mean is only known to be large: the triangle stands at the upper edge.
    lost = line.cut & ~np.isfinite(line.mean)
    ax.plot(line.x[lost], np.full(lost.sum(), 0.97), transform=ax.get_xaxis_transform(), **style)


def _tell_apart(drawn: "Line2D", taken: set[Any]) -> None:
    """Changes the dashes of a line, then its marker, until no other line has the same look.

    Colours repeat. Each has 4 kinds of dashes with each of 12 markers, and then numbers as markers.
    """
    is_marked = drawn.get_marker() not in ("None", "", None)
    for n in itertools.count(1):
        if _look(drawn) not in taken:
            break
        drawn.set_linestyle(DASHES[n % len(DASHES)])
        marker = n // len(DASHES) - (not is_marked)
        if marker >= 0:
            drawn.set_marker(MARKERS[marker] if marker < len(MARKERS) else f"${marker}$")
            if not is_marked:
                drawn.set_markevery(SPACING)
    taken.add(_look(drawn))


def _look(line: "Line2D") -> tuple[Any, ...]:
    """Returns colour, dashes and marker, which together tell a line from others."""
    from matplotlib.colors import to_rgba

    return to_rgba(line.get_color()), line.get_linestyle(), line.get_marker()


def _set_scales(ax: "Axes", lines: list[Line], log: str | None) -> None:
    """Makes the axes in `log` logarithmic. If None, the axes whose values are positive and span a decade."""
    for axis, values in (("x", [line.x for line in lines]), ("y", [line.mean for line in lines])):
        numbers = np.concatenate(values) if values else np.zeros(0)
        if numbers.dtype.kind not in "iuf":
            continue
        finite = numbers[np.isfinite(numbers)]
        spans = len(finite) > 0 and finite.min() > 0 and finite.max() >= RATIO * finite.min()
        if axis in log if log is not None else spans:
            (ax.set_xscale if axis == "x" else ax.set_yscale)("log")
