"""Box plots of groups of runs."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaxbandits.engine.results.plots.lines import TOP, Columns
from jaxbandits.engine.results.plots.looks import UNNAMED, Look
from jaxbandits.engine.results.statistics import STATISTICS, count_endings, describe, finished_runs, grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP = 0.12  # share of a box's place that stays empty
SLIM = 0.15  # width of a box, up to which its marker is smaller; categories are at distance 1


class Boxes(NamedTuple):
    """The boxes of one group of runs, one at each value of x."""

    label: str
    x: np.ndarray  # (points,)
    table: dict[str, np.ndarray]  # mean, se and quantiles: (points,) each, NaN without finished runs
    cut: np.ndarray  # bool (points,)    True if runs were censored or failed, and so are missing


def boxes(columns: Columns, x: np.ndarray, y: str, *, label: str) -> Boxes:
    """Computes the boxes of `y` (runs,) at the values of `x` (runs,)."""
    first, group = grouped([x])
    counts = count_endings(columns["status"], group, len(first))
    table = describe(columns[y], order=finished_runs(columns["status"], group), counts=counts["finished"])
    return Boxes(label, x[first], {name: table[name] for name in STATISTICS}, counts["finished"] < counts["runs"])


def draw_boxes(ax: "Axes", group: Boxes, look: Look, width: float) -> None:
    """Draws boxes from the first to the third quartile, whiskers from 5 to 95 %, the median and the mean."""
    known = np.flatnonzero(np.isfinite(group.table["q50"]))
    ends = {"whislo": "q05", "q1": "q25", "med": "q50", "q3": "q75", "whishi": "q95", "mean": "mean"}
    statistics = [{end: group.table[name][n] for end, name in ends.items()} | {"fliers": []} for n in known]
    thin = {"color": "black", "linewidth": 0.8}
    drawn = ax.bxp(
        statistics,
        positions=group.x[known],
        widths=(1 - GAP) * width,
        patch_artist=True,
        showmeans=True,
        showfliers=False,
        manage_ticks=False,
        boxprops={"facecolor": look.color, "edgecolor": "black", "linewidth": 0.8, "hatch": look.hatch, "alpha": 0.65},
        medianprops={"color": "black", "linewidth": 1.8},
        meanprops={"marker": look.marker, "mfc": "white", "mec": "black", "markersize": 4 if width > SLIM else 2.5},
        whiskerprops=thin,
        capprops=thin,
    )
    for box in drawn["boxes"][:1]:
        box.set_label(group.label or UNNAMED)
    for n in np.flatnonzero(group.cut):
        top = group.table["q95"][n]
        style = {"marker": "^", "linestyle": "", "color": look.color, "fillstyle": "none", "markersize": 8}
        if np.isfinite(top):
            ax.plot(group.x[n : n + 1], [top], **style)
        else:
            ax.plot(group.x[n : n + 1], [TOP], transform=ax.get_xaxis_transform(), **style)
