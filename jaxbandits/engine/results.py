"""What a sweep returns."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaxbandits.engine.grouping import (
    NOT_SUMMARISED,
    count_endings,
    describe,
    group_names,
    grouped,
    is_real,
    scalar_columns,
    stopped_runs,
    with_groups,
)

if TYPE_CHECKING:
    import pandas


class Stats(NamedTuple):
    """How a sweep went."""

    seconds: float  # wall time, without compilation
    compile_seconds: float
    pulls: int  # oracle queries of all runs together
    rounds: int  # decisions of all runs together
    occupancy: float  # share of lane-rounds that carried a run forward; the rest were idle
    lanes: int  # width of one batch of lanes on one device
    devices: int  # over which a batch is spread
    batches: int  # batches advanced side by side
    chunk: int  # rounds between two refreshes; the host looks in after one chunk or several
    bytes: int  # memory of all batches on one device: what is carried, and what one call works with


def added(stats: Sequence[Stats]) -> Stats:
    """All processes of a sweep together, as if one had worked after the other; zeros if there are none."""
    if not stats:
        return Stats(0.0, 0.0, 0, 0, 0.0, 0, 0, 0, 0, 0)
    sums = {name: sum(getattr(s, name) for s in stats) for name in ("seconds", "compile_seconds", "pulls", "rounds")}
    most = {name: max(getattr(s, name) for s in stats) for name in ("lanes", "devices", "batches", "chunk", "bytes")}
    room = sum(s.rounds / s.occupancy for s in stats if s.occupancy)
    return Stats(**sums, **most, occupancy=sums["rounds"] / room if room else 0.0)


class Results(NamedTuple):
    """One entry a finished run, ordered by row, then seed."""

    columns: dict[str, np.ndarray]  # row, seed, status, pulls, rounds, answer, and the metrics: (runs, ...)
    stats: Stats  # how the sweep went

    def summary(self, by: str | tuple[str, ...] = "row") -> dict[str, np.ndarray]:
        """Describes the runs of each group.

        Args:
            by: column or columns that name a group; their values are scalars.

        Returns:
            dict of arrays with one entry a group, in the order of the group's values: the columns of `by`, value and
            dtype as they are; `runs`, `stopped`, `censored` (out of rounds) and `failed` (not finite), which are
            counts; and for every other real column NAME of shape (runs, ...) its `NAME_mean`, the mean's standard error
            `NAME_se`, and quantiles `NAME_q05` .. `NAME_q95`, all float64 (groups, ...): an array is described entry by
            entry. These are taken over the stopped runs alone, and are NaN where there are none (the standard error:
            fewer than two) and where a value among them is NaN; an infinite one leaves NaNs or infinities.

        Raises:
            ValueError: `by` names no column, one that does not exist or is not scalar, or one with a name that the
                summary itself uses.
        """
        by = group_names(by, scalar_columns(self.columns))
        first, group = grouped([self.columns[name] for name in by])
        status = self.columns["status"]
        counts = count_endings(status, group, len(first))
        order = stopped_runs(status, group)
        described = {}
        for name, values in self.columns.items():
            if name not in (*by, *NOT_SUMMARISED) and is_real(values):
                table = describe(values, order, counts["stopped"])
                described |= {f"{name}_{key}": statistic for key, statistic in table.items()}
        return with_groups({name: self.columns[name][first] for name in by}, counts | described)

    def to_pandas(self) -> "pandas.DataFrame":
        """The runs as a data frame, one row a run, in the order of `columns`.

        Returns:
            DataFrame with the columns of `columns`. A scalar column of numbers keeps its dtype (`status` holds the
            integers of `Status`); an array column is of dtype object and holds one NumPy array a run.

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
