"""A lower bound drawn into a figure."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits.checks import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Bound = float | Sequence[float] | np.ndarray | Mapping[Any, float] | Callable[[Any], Any]
NamedBound = tuple[str, Bound]

UNTITLED = "lower bound"  # name of a bound without one
NEAR = 1e-6  # relative difference up to which numbers are one value of x: single precision, and a little more
HALF = 0.45  # half the length of a bound at a category; categories are at distance 1
FORMS = "be a number, an array with one number for every value of x, a mapping of these values or a function of them"


def named_bounds(bound: Any) -> list[NamedBound]:
    """Returns the names and the bounds of `bound`: one bound, one with its name, or several with theirs."""
    if _is_named(bound):
        return [bound]
    if isinstance(bound, (list, tuple)) and bound and all(map(_is_named, bound)):
        return list(bound)
    return [(UNTITLED, bound)]


def _is_named(bound: Any) -> bool:
    """True if a bound comes with its name."""
    return isinstance(bound, tuple) and len(bound) == 2 and isinstance(bound[0], str)


def bound_values(bound: Bound, x: np.ndarray) -> np.ndarray:
    """Returns the bound at the values of x.

    Args:
        bound: a number, an array, a mapping or a function.
        x: (points,), the distinct values of x in the order of their appearance.

    Raises:
        ValueError: the bound is nothing of this kind, or has no number for a value.
    """
    if callable(bound):
        values = [bound(value) for value in x.tolist()]
    elif isinstance(bound, Mapping):
        values = [_looked_up(bound, value) for value in x.tolist()]
    else:
        values = bound
    try:
        # A flag would count as 0 or 1.
        numbers = None if isinstance(values, bool) else np.asarray(values, float)
    except (TypeError, ValueError):
        numbers = None
    # A function may return arrays of one number.
    if numbers is not None and callable(bound) and numbers.size == len(x):
        numbers = numbers.reshape(len(x))
    if numbers is None or numbers.shape not in ((), x.shape) or not np.isfinite(numbers).all():
        raise ValueError(f"bound must {FORMS}, {len(x)} in all, got {show(bound)}")
    return np.broadcast_to(numbers, x.shape)


def _looked_up(bound: Mapping[Any, float], value: Any) -> float:
    """Returns the number of a value, whose key may have more digits than the column."""
    if value in bound:
        return bound[value]
    if isinstance(value, float):
        for key, number in bound.items():
            if isinstance(key, (int, float, np.number)) and abs(key - value) <= NEAR * abs(value):
                return number
    raise ValueError(f"bound must have a number for every value of x, got none for {value!r}")


def draw_bound(ax: "Axes", x: np.ndarray, values: np.ndarray, *, label: str, is_category: bool, dashes: Any) -> None:
    """Draws a bound as a black line, at categories as one piece for each.

    Args:
        ax: the axes.
        x: (points,), numbers or positions of categories.
        values: (points,), the bound there.
        label: its name in the legend.
        is_category: True if x are positions of categories.
        dashes: dashes of the line.
    """
    order = np.argsort(x, kind="stable")
    x, values = x[order].astype(float), values[order]
    style = {"color": "black", "linestyle": dashes, "linewidth": 1.5, "label": label}
    if len(x) == 1 and not is_category:
        # A bound at a single point has no length: it crosses the axes.
        ax.axhline(values[0], **style)
        return
    if is_category:
        x = np.column_stack([x - HALF, x + HALF, np.full(len(x), np.nan)]).ravel()
        values = np.repeat(values, 3)
    ax.plot(x, values, **style)
