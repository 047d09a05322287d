"""Looks of lines and boxes: colours safe for the colour-blind, with dashes, markers and hatches for black and white."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours without yellow, which is hardly visible on white, and black, which is left to bounds.
COLORS = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666"
DASHES = "-", "--", "-.", ":"
MARKERS = "osDvPX*<>dph"  # "^" is left out: it marks missing runs
HATCHES = "", "////", "....", "\\\\\\\\", "xxxx", "----", "++++", "||||"

UNNAMED = "_runs"  # label of a group without a name: the underscore keeps it out of the legend


class Look(NamedTuple):
    """Colour, dashes, marker and hatch of a group of runs."""

    color: Any
    dashes: str
    marker: str
    hatch: str


def next_looks(ax: "Axes", codes: list[tuple[int, int]], *, has_dashes: bool) -> list[Look]:
    """Returns looks that differ from one another and from the lines in the axes.

    Consecutive numbers differ in colour, or in dashes and marker. A caller's own cycle of colours is respected.

    Args:
        ax: the axes. Their cycle of colours advances.
        codes: numbers of the colour and of the shape of each look, both from 0 on.
        has_dashes: True if the looks are for lines, which dashes tell apart.
    """
    from matplotlib.colors import to_rgba

    taken = {(to_rgba(line.get_color()), line.get_linestyle(), line.get_marker()) for line in ax.get_lines()}
    labels = [str(artist.get_label()) for artist in [*ax.get_lines(), *ax.patches]]
    drawn = sum(label == UNNAMED or (label != "" and label[0] != "_") for label in labels)
    looks = []
    count = max((color for color, _ in codes), default=-1) + 1
    colors = [_next_color(ax, drawn + n) for n in range(count)]
    for nth_color, nth_shape in codes:
        color, n = colors[nth_color], drawn + nth_shape
        dashes, marker = next(
            shape for shape in _shapes(n, has_dashes=has_dashes) if (to_rgba(color), *shape) not in taken
        )
        taken.add((to_rgba(color), dashes, marker))
        looks.append(Look(color, dashes, marker, HATCHES[n % len(HATCHES)]))
    return looks


def _shapes(n: int, *, has_dashes: bool) -> Iterator[tuple[str, str]]:
    """Yields dashes and markers for the n-th line in order of preference; after all markers come numbers."""
    dashes = DASHES if has_dashes else ("None",)
    yield dashes[n % len(dashes)], MARKERS[n % len(MARKERS)]
    yield from itertools.product(dashes, MARKERS)
    for number in itertools.count():
        yield from ((dash, f"${number}$") for dash in dashes)


def _next_color(ax: "Axes", n: int) -> Any:
    """Returns the next colour of the axes' cycle, or the n-th of ours if the cycle is matplotlib's default."""
    from matplotlib import rcParamsDefault

    (probe,) = ax.plot([], [])
    color = probe.get_color()
    probe.remove()
    return COLORS[n % len(COLORS)] if color in rcParamsDefault["axes.prop_cycle"].by_key()["color"] else color
