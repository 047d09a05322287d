"""Tables of means for a terminal, Markdown and LaTeX: `Results.table`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxbandits.checks import show
from jaxbandits.engine.results.printing import (
    EMPTY,
    Style,
    aligned,
    labels,
    latex,
    markdown,
    with_error,
    with_interval,
)
from jaxbandits.engine.results.statistics import by_appearance, full_name, group_names, is_measured, scalar_columns
from jaxbandits.engine.results.summaries import summarise, varying_names
from jaxbandits.engine.run.recording import is_curve


class Cell(NamedTuple):
    """Statistics of one column in one group of runs."""

    mean: float  # mean over the finished runs; NaN if there are none
    se: float  # standard error of the mean
    low: float  # lower end of the 95 % interval of a share; NaN for other columns
    high: float  # upper end
    runs: int  # number of runs; 0 if there is no such group
    censored: int  # number of runs out of rounds
    failed: int  # number of failed runs

    def text(self, style: Style) -> str:
        """Formats the cell, with the runs that its mean lacks."""
        if not self.runs:
            return EMPTY
        lost = {"censored": self.censored, "failed": self.failed}
        told = ", ".join(f"{count} {name}" for name, count in lost.items() if count)
        if np.isnan(self.low):
            value = with_error(self.mean, self.se, style)
        else:
            value = with_interval(self.mean, self.low, self.high, style)
        return f"{value} ({told} of {self.runs})" if told else value


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Means of groups of runs, as a table: printed for a terminal, or written as Markdown or LaTeX.

    A mean has its standard error, with two significant digits; a share of runs its 95 % interval. Both are over the
    finished runs. A cell also says how many runs were censored or failed.
    """

    names: tuple[str, ...]  # names of the columns that define the rows
    values: tuple[tuple[str, ...], ...]  # values of these columns, row by row
    header: tuple[str, ...]  # heading of each column of cells
    cells: tuple[tuple[Cell, ...], ...]  # cells, row by row

    def __repr__(self) -> str:
        header, body = self._texts("text")
        return "\n".join(aligned(header, body, names=len(self.names)))

    def to_markdown(self) -> str:
        """Returns the table in Markdown."""
        return markdown(*self._texts("markdown"), names=len(self.names))

    def to_latex(self) -> str:
        """Returns the table in LaTeX, as a `tabular` with the rules of the package booktabs."""
        return latex(*self._texts("latex"), names=len(self.names))

    def _texts(self, style: Style) -> tuple[list[str], list[list[str]]]:
        """Formats the heading and all lines."""
        lines = [
            [*each, *(cell.text(style) for cell in cells)] for each, cells in zip(self.values, self.cells, strict=True)
        ]
        return [*self.names, *self.header], lines


def tabulate(
    columns: dict[str, np.ndarray],
    *,
    y: str | tuple[str, ...],
    by: str | tuple[str, ...] | None,
    across: str | None,
    cluster: str | tuple[str, ...] | None,
) -> Table:
    """Computes the table of `Results.table`."""
    scalar = scalar_columns(columns)
    for name in (y,) if isinstance(y, str) else y if isinstance(y, (tuple, list)) else ():
        full = full_name(name, columns)
        if full_name(name, scalar) is None and full is not None and is_curve(full):
            raise ValueError(
                f"y must name scalar columns, got {name!r}. {name} is a curve: plot it, or return its last value from "
                "metrics."
            )
    shown = group_names(y, scalar, "y")
    for name, full in shown.items():
        if not is_measured(full, columns[full]):
            raise ValueError(f"y must name scalar columns of numbers that runs have as a result, got {name!r}")
    if across is not None and not isinstance(across, str):
        raise ValueError(f"across must be the name of a column or None, got {show(across)}")
    beside = {} if across is None else group_names(across, scalar, "across")
    names = group_names(varying_names(scalar, except_for=beside.values()) if by is None else by, scalar)
    names = {name: full for name, full in names.items() if full not in beside.values()}
    clusters = {} if cluster is None else group_names(cluster, scalar, "cluster")
    for argument, used in (("by", names), ("across", beside)):
        for name in used:
            if used[name] in shown.values():
                raise ValueError(f"{argument} must not name a column that y names, got {name!r}")
    used = {*names.values(), *beside.values(), *shown.values(), *clusters.values(), "status"}
    groups = (*names.values(), *beside.values())
    kept = {name: values for name, values in columns.items() if name in used}
    summary = summarise(kept, by=groups, cluster=tuple(clusters.values()) or None)
    count = len(summary["runs"])
    first, line = _numbered([summary[full] for full in names.values()], count)
    first_beside, column = _numbered([summary[full] for full in beside.values()], count)
    values = [labels(summary[full]) for full in names.values()]
    headings = [labels(summary[full]) for full in beside.values()]
    empty = Cell(mean=np.nan, se=np.nan, low=np.nan, high=np.nan, runs=0, censored=0, failed=0)
    cells = [[empty] * (len(first_beside) * len(shown)) for _ in first]
    for group in range(count):
        for n, full in enumerate(shown.values()):
            cells[line[group]][column[group] * len(shown) + n] = _cell(summary, full, group)
    # A word says what it is; a number needs the name of its column.
    is_named = any(scalar[full].dtype.kind not in "OSU" for full in beside.values())
    header = []
    for n in first_beside:
        for name in shown:
            if is_named:
                values_here = (f"{each} = {texts[n]}" for each, texts in zip(beside, headings, strict=True))
                header.append(", ".join([name, *values_here]))
            else:
                is_several = len(shown) > 1 or not beside
                header.append(" ".join([*(texts[n] for texts in headings), *[name] * is_several]))
    return Table(
        names=tuple(names),
        values=tuple(tuple(texts[n] for texts in values) for n in first),
        header=tuple(header),
        cells=tuple(map(tuple, cells)),
    )


def _numbered(columns: list[np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Groups the groups of a summary by some of its columns; without columns, they are one group."""
    return by_appearance(columns) if columns else (np.zeros(min(count, 1), int), np.zeros(count, int))


def _cell(summary: Mapping[str, np.ndarray], name: str, group: int) -> Cell:
    """Returns the cell of a column in a group."""

    def statistic(ending: str) -> float:
        return float(summary[f"{name}_{ending}"][group]) if f"{name}_{ending}" in summary else np.nan

    counts = {each: int(summary[each][group]) for each in ("runs", "censored", "failed")}
    return Cell(mean=statistic("mean"), se=statistic("se"), low=statistic("low"), high=statistic("high"), **counts)
