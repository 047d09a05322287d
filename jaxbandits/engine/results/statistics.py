"""Groups of runs and their statistics, for `summary` and `compare`."""

import difflib
import math
from collections.abc import Collection

import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Status
from jaxbandits.checks import show
from jaxbandits.engine.results.tables import is_task_column

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
STATISTICS = ("mean", "se", *(f"q{round(100 * q):02d}" for q in QUANTILES))
FINISHED = (Status.STOPPED, Status.HORIZON)  # statistics are taken over these runs alone
CENSORED = (Status.MAX_ROUNDS, Status.EXHAUSTED)
FAILED = (Status.NONFINITE, Status.INVALID_ACTION)
ENDINGS = {
    "finished": FINISHED,
    "stopped": (Status.STOPPED,),
    "censored": CENSORED,
    "failed": FAILED,
}
NOT_SUMMARISED = ("row", "seed", "status", "stream")
SUGGESTED = 3  # largest number of names that a message suggests
# Numbers described at a time: 32 MB in double precision, however large a column is.
MAX_NUMBERS = 2**22


def scalar_columns(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the columns with one value per run."""
    return {name: values for name, values in columns.items() if values.ndim == 1}


def is_real(values: np.ndarray) -> bool:
    """True if the values are ordered numbers, including the floating types that only JAX has."""
    return any(jnp.issubdtype(values.dtype, kind) for kind in (np.bool_, np.integer, np.floating))


def is_measured(name: str, values: np.ndarray) -> bool:
    """True if a column is an outcome of the runs whose mean has a meaning: no input, and no index of an arm."""
    is_index = name.split(".")[0] == "answer" and values.dtype.kind in "iu"
    return name not in NOT_SUMMARISED and not is_task_column(name) and is_real(values) and not is_index


def full_name(name: object, columns: Collection[str]) -> str | None:
    """Returns the column that a name stands for: itself, or the only one that ends with it (`task.delta` for `delta`).

    Columns of the table of tasks take precedence. Returns None if no column, or more than one, matches.
    """
    if not isinstance(name, str):
        return None
    if name in columns:
        return name
    ending = [column for column in columns if column.endswith(f".{name}")]
    candidates = [column for column in ending if is_task_column(column)] or ending
    return candidates[0] if len(candidates) == 1 else None


def short_name(name: str, columns: Collection[str]) -> str:
    """Returns the short name of a column of the table of tasks, unless it stands for another column."""
    short = name.rpartition(".")[2]
    return short if full_name(short, columns) == name else name


def short_names(columns: Collection[str]) -> list[str]:
    """Returns the names of columns as a user would write them, sorted."""
    return sorted(short_name(name, columns) for name in columns)


def suggestion(name: object, names: Collection[str]) -> str:
    """Returns the sentence that ends the message about an unknown name: the names that resemble it; "" if none do."""
    if not isinstance(name, str):
        return ""
    near = [each for each in names if each.endswith(f".{name}") or each.startswith(f"{name}_")][:SUGGESTED]
    if not near:
        lower = {each.lower(): each for each in names}
        near = [lower[each] for each in difflib.get_close_matches(name.lower(), lower, n=1)]
    return f". Did you mean {' or '.join(map(repr, near))}?" if near else ""


def group_names(by: str | tuple[str, ...], scalar: dict, argument: str = "by") -> dict[str, str]:
    """Returns the full names of the scalar columns in `by`, by the names used there.

    Raises:
        ValueError: `by` names something else. The message calls it `argument`.
    """
    if not isinstance(by, (str, tuple, list)):
        raise ValueError(f"{argument} must be the name of a column or a tuple of names, got {show(by)}")
    names = (by,) if isinstance(by, str) else tuple(by)
    if not names:
        raise ValueError(f"{argument} must name at least one column, got ()")
    full_names = {}
    for name in names:
        full = full_name(name, scalar)
        if full is None:
            known = short_names(scalar)
            raise ValueError(
                f"{argument} must name scalar columns, one of {known}, got {name!r}{suggestion(name, known)}"
            )
        full_names[name] = full
    return full_names


def grouped(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Groups runs with equal values, in the order of the values.

    Returns:
        One run of each group (groups,), and the group of each run (runs,).
    """
    # Column by column and by rank: in one array the columns would take one dtype and lose digits.
    group = np.zeros(len(columns[0]), np.int64)
    first = group
    for values in columns:
        distinct, rank = np.unique(values, return_inverse=True)
        _, first, group = np.unique(group * len(distinct) + rank, return_index=True, return_inverse=True)
    return first, group


def by_appearance(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Groups runs with equal values as `grouped` does, in the order in which each column's values appear.

    The first column varies slowest, whatever the order of the runs.
    """
    return grouped([appearance(values)[1] for values in columns])


def appearance(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distinct values of a column in the order in which they appear, and the number of each run's value."""
    distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return distinct[order], np.argsort(order)[inverse]


def count_endings(status: np.ndarray, group: np.ndarray, groups: int) -> dict[str, np.ndarray]:
    """Counts the runs of each group and their endings: int64 (groups,) each."""
    counts = {"runs": np.bincount(group, minlength=groups)}
    return counts | {
        name: np.bincount(group[np.isin(status, ends)], minlength=groups) for name, ends in ENDINGS.items()
    }


def finished_runs(status: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Returns the indices of the finished runs, group by group."""
    finished = np.flatnonzero(np.isin(status, FINISHED))
    return finished[np.argsort(group[finished], kind="stable")]


def describe(values: np.ndarray, order: np.ndarray, counts: np.ndarray) -> dict[str, np.ndarray]:
    """Computes the statistics (groups, ...) of a column (runs, ...).

    Args:
        values: the column.
        order: indices of the runs to describe, group by group.
        counts: number of these runs in each group.
    """
    shape = values.shape[1:]
    width = math.prod(shape)
    values = values.reshape(len(values), width)
    starts = np.cumsum(counts) - counts
    table = {name: np.full((len(counts), width), np.nan) for name in STATISTICS}
    # Groups of the same size form a rectangular array, so one call describes as many as fit into a block.
    for size in np.unique(counts[counts > 0]):
        groups = np.flatnonzero(counts == size)
        entries_at_once = max(1, min(width, MAX_NUMBERS // size))
        groups_at_once = max(1, MAX_NUMBERS // (size * entries_at_once))
        for i in range(0, len(groups), groups_at_once):
            part = groups[i : i + groups_at_once]
            runs = order[starts[part][:, None] + np.arange(size)]
            for j in range(0, width, entries_at_once):
                entries = slice(j, j + entries_at_once)
                for name, statistic in _statistics(values[runs, entries].astype(float)).items():
                    table[name][part, entries] = statistic
    return {name: statistic.reshape(len(counts), *shape) for name, statistic in table.items()}


def _statistics(values: np.ndarray) -> dict[str, np.ndarray]:
    """Computes statistics (groups, entries) of values (groups, runs, entries). Infinities silently make NaNs."""
    runs = values.shape[1]
    with np.errstate(invalid="ignore"):
        mean = np.mean(values, axis=1)
        se = np.std(values, axis=1, ddof=1) / np.sqrt(runs) if runs > 1 else np.full_like(mean, np.nan)
        quantiles = np.quantile(values, QUANTILES, axis=1, overwrite_input=True)
    return dict(zip(STATISTICS, (mean, se, *quantiles), strict=True))


def count_clusters(cluster: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Counts the clusters of each group: int64 (groups,).

    Args:
        cluster: int (runs,), cluster of each described run, group by group.
        counts: int (groups,), number of these runs in each group.
    """
    group = np.repeat(np.arange(len(counts)), counts)
    first, _ = grouped([group, cluster])
    return np.bincount(group[first], minlength=len(counts))


def clustered_errors(
    values: np.ndarray, *, mean: np.ndarray, order: np.ndarray, counts: np.ndarray, cluster: np.ndarray
) -> np.ndarray:
    """Computes standard errors (groups, ...) of means over runs that are independent only between clusters.

    With G clusters of n runs in all, and the sum s of the deviations from the mean in each cluster, the square of the
    standard error is G / (G - 1) sum(s^2) / n^2. If clusters are of one size, this is the standard error of the mean
    of their means; if each is one run, the usual one. NaN if there are fewer than two clusters.

    Args:
        values: (runs, ...), the column.
        mean: (groups, ...), its mean in each group.
        order: int (described,), the runs to describe, group by group.
        counts: int (groups,), number of these runs in each group.
        cluster: int (described,), cluster of each of these runs.
    """
    shape = values.shape[1:]
    width = math.prod(shape)
    group = np.repeat(np.arange(len(counts)), counts)
    first, cell = grouped([group, cluster])
    of_cell = group[first]
    clusters = np.bincount(of_cell, minlength=len(counts))
    squares = np.zeros((len(counts), width))
    values, mean = values.reshape(len(values), width), mean.reshape(len(counts), width)
    with np.errstate(invalid="ignore", divide="ignore"):
        for entry in range(width):
            deviations = values[order, entry].astype(float) - mean[group, entry]
            sums = np.bincount(cell, weights=deviations, minlength=len(first))
            squares[:, entry] = np.bincount(of_cell, weights=sums**2, minlength=len(counts))
        factor = np.where(clusters > 1, clusters / (clusters - 1), np.nan) / np.square(counts)
        return np.sqrt(squares * factor[:, None]).reshape(len(counts), *shape)


def constant_within(columns: dict[str, np.ndarray], first: np.ndarray, group: np.ndarray) -> dict[str, np.ndarray]:
    """Selects the columns (runs,) that are constant within every group, and returns their values (groups,)."""
    constant = {}
    for name, values in columns.items():
        expected = values[first][group]
        # A NaN is equal to itself here.
        if np.all((values == expected) | ((values != values) & (expected != expected))):
            constant[name] = values[first]
    return constant


def with_groups(groups: dict[str, np.ndarray], table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Puts the columns that name the groups in front of their statistics."""
    for name in groups:
        if name in table:
            raise ValueError(f"by must not name a column that is named like one of the results, got {name!r}")
    return groups | table
