"""Runs in groups: what `summary` and `compare` have in common."""

import math

import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Status

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
STATISTICS = ("mean", "se", *(f"q{round(100 * q):02d}" for q in QUANTILES))
ENDINGS = {"stopped": Status.STOPPED, "censored": Status.MAX_ROUNDS, "failed": Status.NONFINITE}
NOT_SUMMARISED = ("row", "seed", "status")
BLOCK = 2**22  # numbers described at a time: 32 MB in double precision, however large a column is


def scalar_columns(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns with one value a run."""
    return {name: values for name, values in columns.items() if values.ndim == 1}


def is_real(values: np.ndarray) -> bool:
    """True for numbers with an order; JAX knows more floating-point types than NumPy does."""
    return any(jnp.issubdtype(values.dtype, kind) for kind in (np.bool_, np.integer, np.floating))


def group_names(by: str | tuple[str, ...], scalar: dict) -> tuple[str, ...]:
    """`by` as names of scalar columns, or a ValueError."""
    names = (by,) if isinstance(by, str) else tuple(by)
    if not names:
        raise ValueError("by must name at least one column, got ()")
    for name in names:
        if name not in scalar:
            raise ValueError(f"by must name scalar columns, one of {sorted(scalar)}, got {name!r}")
    return names


def grouped(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Equal runs together, in the order of their values: one run of each group (groups,), the group of each (runs,)."""
    # Column by column, each by its rank: side by side in one array they would all take one dtype and lose digits.
    group = np.zeros(len(columns[0]), np.int64)
    first = group
    for values in columns:
        distinct, rank = np.unique(values, return_inverse=True)
        _, first, group = np.unique(group * len(distinct) + rank, return_index=True, return_inverse=True)
    return first, group


def count_endings(status: np.ndarray, group: np.ndarray, groups: int) -> dict[str, np.ndarray]:
    """How many runs each group has, and how they ended: int64 (groups,) each."""
    counts = {"runs": np.bincount(group, minlength=groups)}
    return counts | {name: np.bincount(group[status == end], minlength=groups) for name, end in ENDINGS.items()}


def stopped_runs(status: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The stopped runs, those of a group side by side."""
    stopped = np.flatnonzero(status == Status.STOPPED)
    return stopped[np.argsort(group[stopped], kind="stable")]


def describe(values: np.ndarray, order: np.ndarray, counts: np.ndarray) -> dict[str, np.ndarray]:
    """Statistics (groups, ...) of a column (runs, ...), whose runs `order` lists group by group, `counts` in each."""
    shape = values.shape[1:]
    width = math.prod(shape)
    values = values.reshape(len(values), width)
    starts = np.cumsum(counts) - counts
    table = {name: np.full((len(counts), width), np.nan) for name in STATISTICS}
    # Groups of the same size make one rectangular array, so that one call describes as many as fit into a block.
    for size in np.unique(counts[counts > 0]):
        groups = np.flatnonzero(counts == size)
        wide = max(1, min(width, BLOCK // size))
        tall = max(1, BLOCK // (size * wide))
        for i in range(0, len(groups), tall):
            part = groups[i : i + tall]
            runs = order[starts[part][:, None] + np.arange(size)]
            for j in range(0, width, wide):
                entries = slice(j, j + wide)
                for name, statistic in _statistics(values[runs, entries].astype(float)).items():
                    table[name][part, entries] = statistic
    return {name: statistic.reshape(len(counts), *shape) for name, statistic in table.items()}


def _statistics(block: np.ndarray) -> dict[str, np.ndarray]:
    """Statistics (groups, entries) of (groups, runs, entries); infinite values make NaNs and no noise about them."""
    runs = block.shape[1]
    with np.errstate(invalid="ignore"):
        mean = np.mean(block, axis=1)
        se = np.std(block, axis=1, ddof=1) / np.sqrt(runs) if runs > 1 else np.full_like(mean, np.nan)
        quantiles = np.quantile(block, QUANTILES, axis=1, overwrite_input=True)
    return dict(zip(STATISTICS, (mean, se, *quantiles), strict=True))


def with_groups(groups: dict[str, np.ndarray], table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns that name the groups, then what is said of them."""
    for name in groups:
        if name in table:
            raise ValueError(f"by must not name a column that is called as one of the results, got {name!r}")
    return groups | table
