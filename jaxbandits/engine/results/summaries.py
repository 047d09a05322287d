"""Statistics of groups of runs: how they are computed, held and printed."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jaxbandits.engine.results.intervals import share_intervals
from jaxbandits.engine.results.printing import (
    EMPTY,
    WIDTH,
    Style,
    aligned,
    labels,
    latex,
    markdown,
    number,
    with_error,
    with_interval,
)
from jaxbandits.engine.results.statistics import (
    ENDINGS,
    by_appearance,
    clustered_errors,
    constant_within,
    count_clusters,
    count_endings,
    describe,
    finished_runs,
    full_name,
    group_names,
    grouped,
    is_measured,
    scalar_columns,
    short_name,
    suggestion,
    with_groups,
)
from jaxbandits.engine.results.tables import is_task_column
from jaxbandits.engine.run.recording import is_marks

if TYPE_CHECKING:
    from types import ModuleType

    import pandas

RULE = "rule"  # column with the name of each run's rule, in a sweep of several
MANY_GROUPS = 20  # number of groups above which printed results have one line per rule
SHOWN_GROUPS = 20  # number of groups that a printed summary lists
COMPARED = ("difference", "ratio", "ks", "correlation", "gain", "p")  # statistics of `compare`, without their errors
COUNTS = ("runs", *ENDINGS, "clusters")  # columns of every summary, with the statistics
PRINTED = ("difference", "ratio", "p")  # the ones that are printed if they fit


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Mapping[str, np.ndarray]):
    """Statistics with one entry per group: a mapping from names to arrays (groups, ...), which prints as a table."""

    columns: dict[str, np.ndarray]  # the columns that define the groups, counts and statistics: (groups, ...) each
    by: tuple[str, ...]  # names of the columns that define the groups

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise KeyError(f"no column {name!r}{suggestion(name, self.columns)}")
        return self.columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        shown = self._shown("text")
        groups = len(next(iter(self.columns.values()), ()))
        names = len(self.by)
        body = list(zip(*(texts[:SHOWN_GROUPS] for texts in shown.values()), strict=True))
        # Statistics that do not fit are named below.
        while len((lines := aligned([*shown], body, names=names))[0]) > WIDTH and len(shown) > names + 1:
            shown.popitem()
            body = [line[:-1] for line in body]
        if groups > SHOWN_GROUPS:
            lines.append(f".. and {groups - SHOWN_GROUPS} more groups")
        statistics = [name for name in self.columns if name.endswith("_mean") or self._compared(name)]
        hidden = [name for name in statistics if not {name, name.removesuffix("_mean")} & shown.keys()]
        if hidden:
            lines.append(f"not shown: {', '.join(hidden)}")
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """Returns the printed table in Markdown, with all groups and columns."""
        shown = self._shown("markdown")
        return markdown([*shown], list(zip(*shown.values(), strict=True)), names=len(self.by))

    def to_latex(self) -> str:
        """Returns the printed table in LaTeX, with all groups and columns, as a `tabular` of booktabs."""
        shown = self._shown("latex")
        return latex([*shown], list(zip(*shown.values(), strict=True)), names=len(self.by))

    def to_pandas(self) -> "pandas.DataFrame":
        """Returns the numbers (groups,) as a data frame with one row per group; arrays are left out.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        return require_pandas("to_pandas").DataFrame(scalar_columns(self.columns))

    def _shown(self, style: Style) -> dict[str, list[str]]:
        """Formats the columns that are printed, by their headings."""
        shown = {name: labels(self.columns[name]) for name in self.by}
        # The differences of all columns precede their ratios, so that each is seen on a narrow page.
        for name in sorted(self.columns, key=self._place):
            values = self.columns[name]
            stem, _, ending = name.rpartition("_")
            if name not in self.by and (_is_count(name) or (_is_loss(name) and values.any())):
                shown[name] = labels(values)
            elif ending == "mean" and f"{stem}_se" in self.columns and values.ndim == 1:
                shown[stem] = self._texts(stem, "mean", style)
            elif ending in PRINTED and self._compared(name):
                shown[name] = self._texts(stem, ending, style)
        return shown

    def _place(self, name: str) -> int:
        """Returns the place of a column in print: 0, or for a statistic of `compare` its number, from 1."""
        return 1 + COMPARED.index(name.rpartition("_")[2]) if self._compared(name) else 0

    def _compared(self, name: str) -> bool:
        """True if a column is a statistic of `compare`."""
        stem, _, ending = name.rpartition("_")
        return ending in COMPARED and {f"{stem}_difference", f"{stem}_se"} <= self.columns.keys()

    def _texts(self, stem: str, ending: str, style: Style) -> list[str]:
        """Formats one statistic of a column, group by group, with its error or interval."""
        values = self.columns[f"{stem}_{ending}"]
        prefix = f"{stem}_" if ending == "mean" else f"{stem}_{ending}_"
        if ending == "p":
            return [EMPTY if np.isnan(p) else number(f"{p:.2g}", style) for p in values]
        if f"{prefix}low" in self.columns:
            interval = zip(values, self.columns[f"{prefix}low"], self.columns[f"{prefix}high"], strict=True)
            return [with_interval(*numbers, style) for numbers in interval]
        return [with_error(*numbers, style) for numbers in zip(values, self.columns[f"{stem}_se"], strict=True)]


def require_pandas(function: str) -> "ModuleType":
    """Imports pandas, or raises `ModuleNotFoundError` with the name of the function that needs it."""
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{function} needs pandas: pip install pandas") from error
    return pandas


def _is_count(name: str) -> bool:
    """True if a column of a summary counts runs, pairs or clusters, and is always printed."""
    return name in ("runs", "runs_a", "runs_b", "pairs", "clusters")


def _is_loss(name: str) -> bool:
    """True if a column of a summary counts runs that the statistics lack, and is printed unless it is 0."""
    return name.removesuffix("_a").removesuffix("_b") in ("censored", "failed")


def default_names(columns: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """Returns the columns that define the groups by default: `row`, and before it the names of `label_columns`."""
    return (*(heading(label, columns) for label in label_columns(columns)), "row")


def label_columns(columns: Mapping[str, np.ndarray]) -> list[str]:
    """Returns the columns that tell joined sweeps apart: the rule, if there are several, and labels.

    A row of one sweep has one task. If it has several, sweeps were joined, and the first such columns are their labels.
    """
    labels: list[str] = []
    for name, values in columns.items():
        if name == RULE and len(np.unique(values)) > 1:
            labels.append(name)
        elif is_task_column(name) and len(values) and "row" in columns:
            first, group = grouped([columns["row"], *(columns[label] for label in labels)])
            if not constant_within({name: values}, first, group):
                labels.append(name)
    return labels


def heading(name: str, columns: Collection[str]) -> str:
    """Returns the short name of a column that defines groups, unless a summary has a column of that name."""
    short = short_name(name, columns)
    return name if short in COUNTS else short


def varying_names(scalar: Mapping[str, np.ndarray], *, except_for: Collection[str] = ()) -> tuple[str, ...]:
    """Returns the rule and the values of the table of tasks that vary, by their short names; otherwise `row`."""
    names = [name for name, values in scalar.items() if is_task_column(name) and len(np.unique(values)) > 1]
    names = [name for name in [*[RULE] * (RULE in scalar), *names] if name not in except_for]
    return tuple(heading(name, scalar) for name in names) or ("row",)


def summarise(
    columns: dict[str, np.ndarray], *, by: str | tuple[str, ...] | None, cluster: str | tuple[str, ...] | None = None
) -> Summary:
    """Computes the statistics of `Results.summary`."""
    scalar = scalar_columns(columns)
    names = group_names(default_names(scalar) if by is None else by, scalar)
    first, group = by_appearance([columns[name] for name in names.values()])
    status = columns["status"]
    counts = count_endings(status, group, len(first))
    order = finished_runs(status, group)
    tasks = {name: x for name, x in scalar.items() if is_task_column(name) and name not in names.values()}
    of_cluster = None
    if cluster is not None:
        _, of_cluster = by_appearance([columns[name] for name in group_names(cluster, scalar, "cluster").values()])
        of_cluster = of_cluster[order]
        counts["clusters"] = count_clusters(of_cluster, counts["finished"])
    described = {}
    for name, values in columns.items():
        if is_marks(name):
            described[name] = values[first]
        elif name not in names.values() and is_measured(name, values):
            table = describe(values, order=order, counts=counts["finished"])
            if of_cluster is not None:
                table["se"] = clustered_errors(
                    values, mean=table["mean"], order=order, counts=counts["finished"], cluster=of_cluster
                )
            if values.dtype == bool:
                clusters = counts.get("clusters")
                table |= share_intervals(table["mean"], counts["finished"], se=table["se"], clusters=clusters)
            described |= {f"{name}_{key}": statistic for key, statistic in table.items()}
    groups = {name: columns[full][first] for name, full in names.items()}
    return Summary(with_groups(groups, constant_within(tasks, first, group) | counts | described), tuple(names))


def overview(columns: dict[str, np.ndarray]) -> str:
    """Returns the short table of `print(results)`: how runs ended, and the mean pulls of each group of tasks."""
    runs = len(next(iter(columns.values()), ()))
    if not runs or "status" not in columns:
        return f"{runs} runs with the columns {', '.join(columns)}"
    ends = count_endings(columns["status"], np.zeros(runs, int), 1)
    ends["horizon reached"] = ends["finished"] - ends["stopped"]
    told = [f"{int(ends[name][0])} {name}" for name in ("stopped", "horizon reached", "censored", "failed")]
    heading = f"{runs} runs: {', '.join(text for text in told if not text.startswith('0 '))}"
    kept = {name: values for name, values in columns.items() if values.ndim == 1 and _is_overview(name)}
    if "row" not in kept:
        return heading
    names = varying_names(kept)
    groups = by_appearance([kept[full] for full in group_names(names, kept).values()])
    # Rows with equal numbers, such as random instances, are told apart, too.
    if not constant_within({"row": kept["row"]}, *groups):
        names = (*names, "row")
    summary = summarise(kept, by=names)
    if len(summary["runs"]) > MANY_GROUPS and full_name(RULE, kept) is not None:
        summary = summarise(kept, by=RULE)
    return f"{heading}\n{summary}"


def _is_overview(name: str) -> bool:
    """True if a column belongs to the short table of results."""
    return name in ("row", RULE, "status", "pulls") or is_task_column(name)
