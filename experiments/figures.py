"""Shared parts of figures: styles that differ in black and white, curves with bars, marks, ticks, legends."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.report import Line, means

# Markers and lines tell styles apart in black and white.
STYLES = (
    {"marker": "o", "linestyle": "-", "color": "#1b4f8f"},
    {"marker": "s", "linestyle": "--", "color": "#b03a2e"},
    {"marker": "^", "linestyle": ":", "color": "#1e7d4f"},
    {"marker": "D", "linestyle": "-.", "color": "#6c3483"},
    {"marker": "v", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "color": "#7d6608"},
    {"marker": "P", "linestyle": (0, (1, 1)), "color": "#555555"},
    {"marker": "X", "linestyle": (0, (3, 1)), "color": "#d68910"},
    {"marker": "*", "linestyle": (0, (8, 2)), "color": "#148f9f"},
)
COLORS = tuple(style["color"] for style in STYLES)
LOOK = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "legend.frameon": False,
    "lines.markersize": 6,
    "errorbar.capsize": 3,
    "svg.fonttype": "none",
}
# Colours as variables of the page that holds the figure; its dark theme has others.
VARIABLES = {"#000000": "ink", "#ffffff": "paper", "#dddddd": "grid", "#eeeeee": "soft"} | {
    color: f"c{n}" for n, color in enumerate(COLORS)
}


def drawn(draw: Callable[[Any], None], name: str) -> Callable[[Path, str], None]:
    """Draws a figure. Returns a function that writes it to a path as `png` or `svg`, whose ids depend on the name."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    look = LOOK | {"svg.hashsalt": name, "axes.prop_cycle": mpl.cycler(color=COLORS)}
    with mpl.rc_context(look):
        figure = Figure(figsize=(6.4, 4.4), layout="constrained", dpi=150)
        draw(figure)

    def write(path: Path, kind: str) -> None:
        with mpl.rc_context(look):
            figure.savefig(path, format=kind)
        if kind == "svg":
            path.write_text(themed(path.read_text()))

    return write


def themed(svg: str) -> str:
    """Replaces the colours of an SVG by variables, with the colours as defaults where the page defines none."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="[\w.]+_\d+"', "", svg)  # nothing refers to these ids, and other figures repeat them
    known = re.compile("|".join(VARIABLES))
    return known.sub(lambda color: f"var(--{VARIABLES[color[0]]}, {color[0]})", svg)


def curve(
    axes: Any, x: Any, lines: Sequence[Line], label: str | None, style: int, *, scale: Any = 1.0, **more: Any
) -> None:
    """Draws one algorithm's means with bars of two standard errors, times `scale` for every x."""
    se = np.array([line.se for line in lines]) * scale
    errorbars(axes, x, means(lines) * scale, se, label=label, style=style, **more)


def points(axes: Any, x: Any, lines: Sequence[Line], label: str | None, style: int, *, scale: Any = 1.0) -> None:
    """Draws means as `curve` does, without lines between them."""
    curve(axes, x, lines, label, style, scale=scale, linestyle="")


def errorbars(axes: Any, x: Any, y: Any, se: Any, *, label: str | None, style: int, **more: Any) -> None:
    """Draws means with bars of two standard errors.

    A bar never reaches below a tenth of its mean, so that a logarithmic axis can show its end.
    """
    bars = np.atleast_1d(2 * np.nan_to_num(np.asarray(se, float)))
    bars = {"yerr": [np.minimum(bars, 0.9 * np.abs(y)), bars]}
    axes.errorbar(x, y, label=label, **{"mfc": "w"} | bars | STYLES[style] | more)


def quantiles(axes: Any, x: Any, values: Iterable[np.ndarray], label: str, style: int, at: Sequence[float]) -> None:
    """Draws medians, with bars from a lower to an upper quantile."""
    low, middle, high = np.array([np.quantile(each, (at[0], 0.5, at[1])) for each in values]).T
    axes.errorbar(x, middle, yerr=[middle - low, high - middle], label=label, mfc="w", **STYLES[style])


def marks(style: int, **more: Any) -> dict[str, Any]:
    """Returns a style without its line."""
    return STYLES[style] | {"linestyle": "", "mfc": "w"} | more


def band(axes: Any, x: Any, low: Any, high: Any, style: int = 0, label: str | None = None) -> None:
    """Shades a range."""
    axes.fill_between(x, low, high, color=COLORS[style], alpha=0.12, lw=0, label=label)


def ticks(axes: Any, at: Iterable[Any], labels: Iterable[str] | None = None, axis: str = "x") -> None:
    """Sets the ticks of an axis, and no others."""
    at = list(at)
    getattr(axes, f"set_{axis}ticks")(at, [f"{value:g}" for value in at] if labels is None else list(labels))
    getattr(axes, f"set_{axis}ticks")([], minor=True)


def legend_below(figure: Any, axes: Any = None, ncols: int = 3, fontsize: float = 9) -> None:
    """Draws one legend for all panels."""
    handles = (axes or figure.axes[0]).get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=ncols, fontsize=fontsize)


def legend_under(axes: Any, ncols: int = 2, fontsize: float = 9, depth: float = 0.14) -> None:
    """Draws a panel's legend under its axis."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -depth), ncols=ncols, fontsize=fontsize, columnspacing=1)


def curves(axes: Any, x: Sequence[float], lines: Mapping[str, Sequence[Line]], **settings: Any) -> None:
    """Draws a curve for every algorithm, by its name; `settings` go to the axes."""
    for style, (name, row) in enumerate(lines.items()):
        curve(axes, x, row, name, style)
    axes.set(**settings)


def split(figure: Any, size: tuple[float, float], rows: int, columns: int, **shared: Any) -> Any:
    """Splits a figure of this size, in inches, into panels."""
    figure.set_size_inches(*size)
    return figure.subplots(rows, columns, **shared)


def side_by_side(axes: Any, names: Sequence[str], **settings: Any) -> None:
    """Labels positions 0, 1, ... of an axis with names, without vertical lines; `settings` go to the axes."""
    axes.set(xticks=range(len(names)), **settings)
    axes.set_xticklabels(names)
    axes.grid(axis="x", visible=False)
