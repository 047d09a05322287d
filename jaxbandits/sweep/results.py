"""What a sweep returns."""

from typing import NamedTuple

import numpy as np

from jaxbandits.base import Status

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
NOT_SUMMARISED = ("row", "seed", "status")


class Stats(NamedTuple):
    """How a sweep went."""

    seconds: float  # wall time, without compilation
    compile_seconds: float
    pulls: int  # oracle queries of all runs together
    rounds: int  # decisions of all runs together
    occupancy: float  # share of lane-rounds that carried a run forward; the rest were idle
    lanes: int  # width of one batch of lanes
    batches: int  # batches advanced side by side
    chunk: int  # rounds between two visits of the host
    bytes: int  # device memory of all batches: what is carried, and what one call works with


class Results(NamedTuple):
    """One entry a finished run, ordered by row, then seed."""

    columns: dict[str, np.ndarray]  # row, seed, status, pulls, rounds, answer, and the metrics: (runs, ...)
    stats: Stats

    def summary(self, by: str | tuple[str, ...] = "row") -> dict[str, np.ndarray]:
        """Describes the runs of each group.

        Args:
            by: column or columns that name a group; their values are scalars.

        Returns:
            dict of arrays with one entry a group, in the order of the group's values: the columns of `by`; `runs`,
            `stopped`, `censored` (out of rounds) and `failed` (not finite), which are counts; and for every other
            scalar numeric column NAME its `NAME_mean`, the mean's standard error `NAME_se`, and quantiles `NAME_q05` ..
            `NAME_q95`. These are taken over the stopped runs alone, and are NaN where there are none (the standard
            error: fewer than two).

        Raises:
            ValueError: `by` names a column that does not exist or is not scalar.
        """
        by = (by,) if isinstance(by, str) else tuple(by)
        scalar = {name: x for name, x in self.columns.items() if x.ndim == 1}
        for name in by:
            if name not in scalar:
                raise ValueError(f"by must name scalar columns, one of {sorted(scalar)}, got {name!r}")
        groups, member = np.unique(np.stack([scalar[name] for name in by]), axis=1, return_inverse=True)
        status = self.columns["status"]

        def count(which: np.ndarray) -> np.ndarray:
            return np.bincount(member[which], minlength=groups.shape[1])

        table = {name: values.astype(scalar[name].dtype) for name, values in zip(by, groups, strict=True)}
        table["runs"] = count(np.ones_like(status, bool))
        for name, value in (
            ("stopped", Status.STOPPED),
            ("censored", Status.MAX_ROUNDS),
            ("failed", Status.NONFINITE),
        ):
            table[name] = count(status == value)
        # Runs of a group side by side, so that each is looked at once however many groups there are.
        order = np.argsort(member, kind="stable")
        order = order[status[order] == Status.STOPPED]
        ends = np.cumsum(table["stopped"])[:-1]
        for name, values in scalar.items():
            if name in by or name in NOT_SUMMARISED or values.dtype.kind not in "biuf":
                continue
            rows = [_describe(group) for group in np.split(values[order].astype(float), ends)]
            table |= {f"{name}_{key}": np.array([row[key] for row in rows]) for key in rows[0]}
        return table


def _describe(values: np.ndarray) -> dict[str, float]:
    n = len(values)
    table = {
        "mean": float(np.mean(values)) if n else np.nan,
        "se": float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else np.nan,
    }
    quantiles = np.quantile(values, QUANTILES) if n else np.full(len(QUANTILES), np.nan)
    return table | {f"q{round(100 * q):02d}": float(v) for q, v in zip(QUANTILES, quantiles, strict=True)}
