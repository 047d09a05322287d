"""Groups of runs and their statistics, for `summary` and `compare`."""

import math
from collections.abc import Collection

import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Status
from jaxbandits.checks import show
from jaxbandits.engine.results.tables import is_task_column

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
STATISTICS = ("mean", "se", *(f"q{round(100 * q):02d}" for q in QUANTILES))
FINISHED = (Status.STOPPED, Status.HORIZON)  # complete runs, over which statistics are taken
FAILED = (Status.NONFINITE, Status.INVALID_ACTION)
ENDINGS = {
    "finished": FINISHED,
    "stopped": (Status.STOPPED,),
    "censored": (Status.MAX_ROUNDS,),
    "failed": FAILED,
}
NOT_SUMMARISED = ("row", "seed", "status", "stream")
MAX_NUMBERS = 2**22  # described at a time: 32 MB in double precision, however large a column is


def scalar_columns(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns with one value a run."""
    return {name: values for name, values in columns.items() if values.ndim == 1}


def is_real(values: np.ndarray) -> bool:
    """True for numbers with an order, those of the floating types that only JAX knows included."""
    return any(jnp.issubdtype(values.dtype, kind) for kind in (np.bool_, np.integer, np.floating))


def is_measured(name: str, values: np.ndarray) -> bool:
    """Whether a column is what runs came to, and not what they were asked."""
    return name not in NOT_SUMMARISED and not is_task_column(name) and is_real(values)


def full_name(name: object, columns: Collection[str]) -> str | None:
    """The column that a name means: itself, or the only one whose name ends with it, `task.delta` for `delta`."""
    if not isinstance(name, str):
        return None
    if name in columns:
        return name
    ending = [column for column in columns if column.endswith(f".{name}")]
    of_tasks = [column for column in ending if is_task_column(column)]
    found = of_tasks or ending
    return found[0] if len(found) == 1 else None


def group_names(by: str | tuple[str, ...], scalar: dict, argument: str = "by") -> dict[str, str]:
    """The scalar columns that `by` means, by the names that it has for them.

    Raises:
        ValueError: `by` is something else; `argument` is what the message calls it.
    """
    if not isinstance(by, (str, tuple, list)):
        raise ValueError(f"{argument} must be the name of a column or a tuple of names, got {show(by)}")
    names = (by,) if isinstance(by, str) else tuple(by)
    if not names:
        raise ValueError(f"{argument} must name at least one column, got ()")
    found = {}
    for name in names:
        full = full_name(name, scalar)
        if full is None:
            raise ValueError(f"{argument} must name scalar columns, one of {sorted(scalar)}, got {name!r}")
        found[name] = full
    return found


def grouped(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Groups runs of equal values, ordered by them: one run of each group (groups,), the group of each run (runs,)."""
    # Column by column, each by its rank: in one array the columns would take one dtype and lose digits.
    group = np.zeros(len(columns[0]), np.int64)
    first = group
    for values in columns:
        distinct, rank = np.unique(values, return_inverse=True)
        _, first, group = np.unique(group * len(distinct) + rank, return_index=True, return_inverse=True)
    return first, group


def count_endings(status: np.ndarray, group: np.ndarray, groups: int) -> dict[str, np.ndarray]:
    """How many runs each group has, and how they ended: int64 (groups,) each."""
    counts = {"runs": np.bincount(group, minlength=groups)}
    return counts | {
        name: np.bincount(group[np.isin(status, ends)], minlength=groups) for name, ends in ENDINGS.items()
    }


def finished_runs(status: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The runs that are complete, group by group."""
    finished = np.flatnonzero(np.isin(status, FINISHED))
    return finished[np.argsort(group[finished], kind="stable")]


def describe(values: np.ndarray, order: np.ndarray, counts: np.ndarray) -> dict[str, np.ndarray]:
    """Statistics (groups, ...) of a column (runs, ...); `order` lists its runs group by group, `counts` in each."""
    shape = values.shape[1:]
    width = math.prod(shape)
    values = values.reshape(len(values), width)
    starts = np.cumsum(counts) - counts
    table = {name: np.full((len(counts), width), np.nan) for name in STATISTICS}
    # Groups of the same size make one rectangular array, so one call describes as many as fit into a block.
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
    """Statistics (groups, entries) of values (groups, runs, entries); infinite ones make NaNs without a warning."""
    runs = values.shape[1]
    with np.errstate(invalid="ignore"):
        mean = np.mean(values, axis=1)
        se = np.std(values, axis=1, ddof=1) / np.sqrt(runs) if runs > 1 else np.full_like(mean, np.nan)
        quantiles = np.quantile(values, QUANTILES, axis=1, overwrite_input=True)
    return dict(zip(STATISTICS, (mean, se, *quantiles), strict=True))


def constant_within(columns: dict[str, np.ndarray], first: np.ndarray, group: np.ndarray) -> dict[str, np.ndarray]:
    """Of these columns (runs,), those with one value in every group: (groups,)."""
    found = {}
    for name, values in columns.items():
        own = values[first][group]
        if np.all((values == own) | ((values != values) & (own != own))):  # a NaN is equal to itself here
            found[name] = values[first]
    return found


def with_groups(groups: dict[str, np.ndarray], table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns that name the groups, followed by their statistics."""
    for name in groups:
        if name in table:
            raise ValueError(f"by must not name a column that is named like one of the results, got {name!r}")
    return groups | table
