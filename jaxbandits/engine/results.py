"""The results of a sweep, and their summary."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaxbandits.engine.grouping import (
    NOT_SUMMARISED,
    count_endings,
    describe,
    finished_runs,
    group_names,
    grouped,
    is_real,
    scalar_columns,
    with_groups,
)
from jaxbandits.engine.recording import is_marks

if TYPE_CHECKING:
    import pandas


class Stats(NamedTuple):
    """What a sweep did, and how fast."""

    seconds: float  # wall time, without compilation
    compile_seconds: float
    pulls: int  # oracle queries of all runs together
    rounds: int  # decisions of all runs together
    occupancy: float  # share of lane-rounds that carried a run forward; the rest were idle
    lanes: int  # of one batch on one device
    devices: int  # that a batch is spread over
    batches: int  # that advance side by side
    chunk: int  # rounds between two refreshes; the host visits a batch after one chunk or several
    bytes: int  # memory of all batches on one device: what they carry, and the workspace of a call


def added(stats: Sequence[Stats]) -> Stats:
    """The sum over all processes of a sweep, as if they had run one after the other; zeros if there are none."""
    if not stats:
        return Stats(0.0, 0.0, 0, 0, 0.0, 0, 0, 0, 0, 0)
    sums = {name: sum(getattr(s, name) for s in stats) for name in ("seconds", "compile_seconds", "pulls", "rounds")}
    maxima = {name: max(getattr(s, name) for s in stats) for name in ("lanes", "devices", "batches", "chunk", "bytes")}
    capacity = sum(s.rounds / s.occupancy for s in stats if s.occupancy)
    return Stats(**sums, **maxima, occupancy=sums["rounds"] / capacity if capacity else 0.0)


class Results(NamedTuple):
    """What a sweep returns: one entry for every finished run, ordered by row, then seed."""

    columns: dict[str, np.ndarray]  # row, seed, status, pulls, rounds, answer, and the metrics: (runs, ...)
    stats: Stats  # times, counts and the choices that the sweep made

    def summary(self, by: str | tuple[str, ...] = "row") -> dict[str, np.ndarray]:
        """Describes the runs of each group.

        Args:
            by: name or names of the scalar columns whose values make a group.

        Returns:
            dict of arrays with one entry for every group, in the order of the groups' values: the columns of `by`,
            values and dtypes unchanged; the counts `runs`, `finished` (stopped, or their horizon reached), `stopped`,
            `censored` (out of rounds) and `failed` (not finite); and for every other real column NAME of shape
            (runs, ...) its `NAME_mean`, the mean's standard error `NAME_se`, and quantiles `NAME_q05` .. `NAME_q95`,
            all float64 (groups, ...): an array is described entry by entry, so that the bands of a curve stand beside
            its marks, `curve.pulls` or `curve.rounds` (groups, G). Statistics are taken over the finished runs alone.
            They are NaN where there are no such runs (the standard error: fewer than two) or one of their values is
            NaN; an infinite value makes NaNs or infinities.

        Raises:
            ValueError: `by` names no column, one that does not exist or is not scalar, or one whose name the summary
                itself uses.
        """
        by = group_names(by, scalar_columns(self.columns))
        first, group = grouped([self.columns[name] for name in by])
        status = self.columns["status"]
        counts = count_endings(status, group, len(first))
        order = finished_runs(status, group)
        described = {}
        for name, values in self.columns.items():
            if is_marks(name):
                described[name] = values[first]
            elif name not in (*by, *NOT_SUMMARISED) and is_real(values):
                table = describe(values, order, counts["finished"])
                described |= {f"{name}_{key}": statistic for key, statistic in table.items()}
        return with_groups({name: self.columns[name][first] for name in by}, counts | described)

    def to_pandas(self) -> "pandas.DataFrame":
        """The runs as a data frame, one row for every run, in the order of `columns`.

        Returns:
            DataFrame with the columns of `columns`. A scalar column keeps its dtype (`status` holds the integers of
            `Status`); an array column is of dtype object and holds one NumPy array for every run.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("to_pandas needs pandas: pip install pandas") from error
        return pandas.DataFrame(
            {
                name: values if values.ndim == 1 else pandas.Series(list(values), dtype=object)
                for name, values in self.columns.items()
            }
        )
