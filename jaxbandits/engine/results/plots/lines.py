"""Lines of groups of runs: means, medians, error rates, and curves over their marks."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaxbandits.engine.results.intervals import clopper_pearson
from jaxbandits.engine.results.plots.looks import UNNAMED, Look
from jaxbandits.engine.results.statistics import count_endings, describe, finished_runs, grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Columns = dict[str, np.ndarray]

WIDTH = 1.96  # standard errors to each side: a 95 % confidence interval of the mean
DOTS = 30  # largest number of points of a line that are each marked
MARKED = 10  # number of points that are marked on a line with more
BETWEEN = 7  # number of lines after which marks of such lines return to the same place
ARROW = 13  # length of the arrow that points down from an upper limit, in points
TOP = 0.97  # height of triangles without a mean, as a share of the axes' height


class Line(NamedTuple):
    """The line of one group of runs."""

    label: str
    x: np.ndarray  # (points,)
    middle: np.ndarray  # (points,)    mean, median or error rate of the finished runs; NaN if there are none
    low: np.ndarray  # (points,)       lower end of the band
    high: np.ndarray  # (points,)      upper end of the band
    cut: np.ndarray  # bool (points,)  True if runs were censored or failed, and so are missing
    is_rate: bool = False  # True if zeros are rates of events that did not occur, which have an upper limit


def means(columns: Columns, x: np.ndarray, y: str, *, label: str, band: str | None) -> Line:
    """Computes the line of `y` (runs,) over the values of `x` (runs,), in their order."""
    first, group = grouped([x])
    counts = count_endings(columns["status"], group, len(first))
    table = describe(columns[y], order=finished_runs(columns["status"], group), counts=counts["finished"])
    return Line(label, x[first], *_band(table, band), cut=counts["finished"] < counts["runs"])


def curve(columns: Columns, marks: str, y: str, *, label: str, band: str | None) -> Line:
    """Computes the line of a curve at its marks. Without marks, the entries of the array are numbered."""
    status, values = columns["status"], columns[y]
    at = columns[marks] if marks else np.broadcast_to(np.arange(values.shape[1]), values.shape)
    if len(at) and (at != at[0]).any():
        raise ValueError(f"by must part runs with different marks, got groups in which {marks} varies")
    one = np.zeros(len(status), int)
    counts = count_endings(status, one, 1)
    table = describe(values, order=finished_runs(status, one), counts=counts["finished"])
    # One triangle stands at the end.
    cut = np.zeros(values.shape[1], bool)
    cut[-1:] = counts["finished"] < counts["runs"]
    x = at[0] if len(at) else np.arange(0)
    return Line(label, x, *_band({name: statistic[0] for name, statistic in table.items()}, band), cut=cut)


def error_rates(columns: Columns, x: np.ndarray, y: str, *, label: str) -> Line:
    """Computes the share of finished runs in which `y` (runs,) is true, with exact intervals, over values of `x`."""
    first, group = grouped([x])
    counts = count_endings(columns["status"], group, len(first))
    runs = counts["finished"]
    finished = finished_runs(columns["status"], group)
    errors = np.bincount(group[finished], weights=columns[y][finished].astype(float), minlength=len(first))
    low, high = clopper_pearson(errors, runs)
    known = runs > 0
    rate = np.where(known, errors / np.maximum(runs, 1), np.nan)
    low, high = (np.where(known, end, np.nan) for end in (low, high))
    return Line(label, x[first], rate, low, high, cut=runs < counts["runs"], is_rate=True)


def _band(table: dict[str, np.ndarray], band: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the middle of a line and both ends of its band."""
    if band == "quantiles":
        return table["q50"], table["q05"], table["q95"]
    mean = table["mean"]
    width = WIDTH * table["se"] if band == "mean" else np.full_like(mean, np.nan)
    return mean, mean - width, mean + width


def draw_line(ax: "Axes", line: Line, look: Look, nth: int, *, has_band: bool) -> None:
    """Draws a line with its band, and a triangle at each point that lacks runs.

    Bars with caps stand at the marked points, because a band of many runs may be thinner than the line.

    Args:
        ax: the axes, with their scales set.
        line: the line. Zeros on a logarithmic axis are drawn as upper limits.
        look: its look.
        nth: number of lines before it, which shifts the marks of a line with many points.
        has_band: True if the band is shaded where the line has several points.
    """
    is_limit = (line.middle == 0) & (line.is_rate and ax.get_yscale() == "log")
    middle = np.where(is_limit, np.nan, line.middle)
    marked = _marked(line.x, nth, is_log=ax.get_xscale() == "log")
    style = {"color": look.color, "linestyle": look.dashes, "marker": look.marker, "markersize": 5}
    ax.plot(line.x, middle, **style, markevery=marked.tolist(), label=line.label or UNNAMED)
    if has_band and len(line.x) > 1:
        ax.fill_between(line.x, line.low, line.high, color=look.color, alpha=0.18, linewidth=0)
    _draw_bars(ax, line, marked[np.isfinite(line.low[marked]) & ~is_limit[marked]], look)
    _draw_limits(ax, line, is_limit, look)
    _draw_triangles(ax, line, np.where(is_limit, line.high, line.middle), look)


def _marked(x: np.ndarray, nth: int, *, is_log: bool) -> np.ndarray:
    """Returns the indices of the points to mark: all of a few, otherwise some at equal distances along the axis."""
    if len(x) <= DOTS:
        return np.arange(len(x))
    along = np.log(np.maximum(x, np.min(x[x > 0]))) if is_log else x.astype(float)
    shares = (np.arange(MARKED) + (nth % BETWEEN + 0.5) / BETWEEN) / MARKED
    marks = along[0] + (along[-1] - along[0]) * shares
    return np.unique(np.abs(along[:, None] - marks).argmin(axis=0))


def _draw_bars(ax: "Axes", line: Line, at: np.ndarray, look: Look) -> None:
    """Draws bars with caps from the lower to the upper end of the band at some points."""
    middle, low, high = line.middle[at], line.low[at], line.high[at]
    # Rounding may leave an end on the wrong side of the middle.
    ends = np.maximum([middle - low, high - middle], 0)
    ax.errorbar(line.x[at], middle, ends, fmt="none", ecolor=look.color, elinewidth=1, capsize=4)


def _draw_limits(ax: "Axes", line: Line, is_limit: np.ndarray, look: Look) -> None:
    """Draws the upper end of the interval of a rate of zero, with a short arrow that points down."""
    if not is_limit.any():
        return
    from matplotlib.path import Path

    x, high = line.x[is_limit], line.high[is_limit]
    arrow = Path([(0, 0), (0, -1), (-0.25, -0.65), (0, -1), (0.25, -0.65)], [1, 2, 1, 2, 2])
    # A marker made of a path is scaled to half its size on either side.
    ax.plot(x, high, color=look.color, marker=arrow, markersize=2 * ARROW, fillstyle="none", linestyle="")
    ax.plot(x, high, color=look.color, marker=look.marker, markersize=5, markerfacecolor="white", linestyle="")


def _draw_triangles(ax: "Axes", line: Line, heights: np.ndarray, look: Look) -> None:
    """Draws a triangle at each point that lacks runs."""
    style = {"marker": "^", "linestyle": "", "color": look.color, "fillstyle": "none", "markersize": 10}
    shown = line.cut & np.isfinite(heights)
    ax.plot(line.x[shown], heights[shown], **style)
    # Without a finished run, the mean is only known to be large: the triangle stands at the upper edge.
    lost = line.cut & ~np.isfinite(heights)
    ax.plot(line.x[lost], np.full(lost.sum(), TOP), transform=ax.get_xaxis_transform(), **style)
