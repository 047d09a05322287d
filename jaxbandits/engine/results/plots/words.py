"""Words of figures: labels of axes and groups, and the place of the legend."""

import textwrap
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits.base import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL_WIDTH = 36  # characters of an axis label, beyond which it is broken
# Width of a figure in inches, below which the legend stands above the axes; wider, it stands beside them.
NARROW = 4.5
LEGEND_ROWS = 20  # largest number of rows of a legend beside the axes
HANDLE = 9  # width of a legend's handle and its margins, in characters
CHARACTER = 0.46  # width of a character of a small font, as a share of the normal font size
WIDENED = 1.1  # factor by which a constrained layout widens axes
POINTS = 72  # points per inch


def column_words(name: str) -> str:
    """Returns a column's name as words: its last part, without underscores."""
    return name.rpartition(".")[2].replace("_", " ")


def outcome_words(name: str, status: np.ndarray) -> str:
    """Returns an outcome's name as words with units. Pulls and rounds are counted until the end of the runs."""
    if name not in ("pulls", "rounds"):
        return column_words(name)
    return f"{name} until the {'end' if Status.HORIZON in status else 'stop'}"


def group_label(values: Collection[Any]) -> str:
    """Formats the values that define a group, in few digits."""
    return ", ".join(f"{value:.4g}" if isinstance(value, np.floating) else str(value) for value in values)


def set_labels(ax: "Axes", x: str, y: str) -> None:
    """Labels both axes, in lines that a figure has room for."""
    ax.set_xlabel(textwrap.fill(x, LABEL_WIDTH))
    ax.set_ylabel(textwrap.fill(y, LABEL_WIDTH))


def set_legend(ax: "Axes", title: str) -> None:
    """Draws the legend: outside the axes if their figure makes room for it, otherwise in the best place inside."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return
    style: dict[str, Any] = {"title": title or None, "handlelength": 2.6}
    figure = ax.figure
    if figure.get_layout_engine() is None:
        style["loc"] = "best"
    elif figure.bbox.width / figure.dpi < NARROW or len(figure.axes) > 1:
        from matplotlib import rcParams

        inches = WIDENED * ax.bbox.width / figure.dpi
        characters = inches * POINTS / (CHARACTER * rcParams["font.size"])
        columns = int(characters / (max(map(len, labels)) + HANDLE))
        style |= {"loc": "lower left", "bbox_to_anchor": (0, 1.02), "ncols": min(max(columns, 1), len(labels))}
        style |= {"fontsize": "small", "borderaxespad": 0.0}
    else:
        columns = -(-len(labels) // LEGEND_ROWS)
        style |= {"loc": "upper left", "bbox_to_anchor": (1.02, 1), "ncols": columns, "borderaxespad": 0.0}
    ax.legend(**style)
