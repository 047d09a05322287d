"""Ticks of axes: at the values that runs have, and with plain numbers where an axis spans little."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axis import Axis

FEW = 8  # largest number of distinct values that each get a tick
SHORT = 100  # ratio of the ends of a logarithmic axis, below which its labels are plain numbers
STEEP = 5  # ratio below which a logarithmic axis has the ticks of a linear one
STEPS = (1, 2, 5, 10)
PLAIN = 1e-4, 1e6  # absolute values from the one to below the other are written without a power of ten
LONGEST = 8  # characters of the longest number, as powers of ten are written in more characters than they show
WIDTH = 0.6  # width of a digit, as a share of the size of the font
POINTS = 72  # points per inch


def plain(value: float, digits: int = 4) -> str:
    """Writes a number in few digits, with a power of ten only if it is very small or large: 0.001, 500, 3e-7."""
    if value != 0 and not PLAIN[0] <= abs(value) < PLAIN[1]:
        factor, _, power = f"{value:.{digits - 1}e}".partition("e")
        factor = factor.rstrip("0").rstrip(".")
        times = {"1": "", "-1": "-"}.get(factor, rf"{factor} \times ")
        return f"${times}10^{{{int(power)}}}$"
    if value == int(value):
        return str(int(value))
    return np.format_float_positional(float(f"{value:.{digits}g}"), trim="-")


def fixed_ticks(axis: "Axis") -> np.ndarray:
    """Returns the values at which `set_ticks` has put ticks before; none if it has not."""
    return np.asarray(getattr(axis.get_major_locator(), "locs", ()) if _is_ours(axis) else (), float)


def set_ticks(axis: "Axis", values: Sequence[float] = ()) -> None:
    """Puts ticks at a few values. Without values, labels a short logarithmic axis plainly.

    Args:
        axis: the horizontal or vertical axis, with its scale set and all drawn.
        values: distinct values in increasing order. More than a few are not ticks.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    if 0 < len(values) <= FEW:
        axis.set_major_locator(FixedLocator(values))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(partial(_label, axis, np.asarray(values, float))))
        return
    low, high = axis.get_view_interval()
    is_log = axis.get_scale() == "log"
    if is_log and 0 < low < high < SHORT * low:
        is_steep = high < STEEP * low
        axis.set_major_locator(MaxNLocator(6, steps=STEPS) if is_steep else LogLocator(subs=STEPS[:3], numticks=99))
        axis.set_minor_locator(NullLocator() if is_steep else LogLocator(subs=range(1, 10), numticks=99))
        axis.set_major_formatter(FuncFormatter(partial(_label, axis, np.zeros(0))))
        axis.set_minor_formatter(NullFormatter())
    elif _is_ours(axis):
        # An earlier figure in these axes had other values: back to the ticks of the scale.
        (axis.axes.set_xscale if axis is axis.axes.xaxis else axis.axes.set_yscale)(axis.get_scale())


def _is_ours(axis: "Axis") -> bool:
    """True if the labels of the axis are from here."""
    return getattr(getattr(axis.get_major_formatter(), "func", None), "func", None) is _label


def _label(axis: "Axis", values: np.ndarray, value: float, position: Any = None) -> str:
    """Returns the label of a tick: one of a few values, or any number.

    Labels that would overlap with one to their left are empty.

    Args:
        axis: the axis, whose size is only known when it is drawn.
        values: the few values; none for any number.
        value: the value at the tick.
        position: the tick's number.
    """
    if len(values) == 0:
        return plain(value)
    texts = next((texts for texts in map(_texts, (values, values), (4, 7)) if len(set(texts)) == len(texts)), None)
    texts = texts or _texts(values, 15)
    nth = int(np.abs(values - value).argmin())
    if axis is axis.axes.xaxis:
        from matplotlib import rcParams

        axes = axis.axes
        at = axes.transData.transform(np.column_stack([values, np.full(len(values), axes.get_ylim()[0])]))[:, 0]
        character = WIDTH * rcParams["font.size"] * axes.figure.dpi / POINTS
        widths = character * np.array([min(len(text), LONGEST) + 1 for text in texts])
        end, is_free = -np.inf, True
        for n in range(nth + 1):
            is_free = at[n] - widths[n] / 2 >= end
            if is_free:
                end = at[n] + widths[n] / 2
        return texts[nth] if is_free else ""
    return texts[nth]


def _texts(values: np.ndarray, digits: int) -> list[str]:
    """Writes several numbers."""
    return [plain(value, digits) for value in values.tolist()]
