"""Results of several sweeps as one table."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxbandits import checks
from jaxbandits.engine.results.runs import Results, added
from jaxbandits.engine.results.tables import column_name, is_task_column


def concatenate(sweeps: Mapping[Any, Results] | Sequence[Results], *, name: str = "sweep") -> Results:
    """Concatenates the results of several sweeps, such as several algorithms, or sizes that need a program each.

    Args:
        sweeps: Results by the label of their sweep, a string or a number; or a sequence of Results with the labels
            0, 1, ..
        name: name of the column `task.NAME` that holds the label of each run's sweep.

    Returns:
        Results with the runs of one sweep after the other. They have the columns that all sweeps have with the same
        shape per run, and all columns of the tables of tasks. The latter are NaN for sweeps without such a value. `row`
        and `seed` are unchanged. `stats` adds up the sweeps, as if they had run one after the other.

    Raises:
        ValueError: an argument does not fit, or a sweep already has a column `task.NAME`.

    Example:
        >>> import jax
        >>> from jaxbandits import grid, linear, sweep
        >>> def sweep_of(d):
        ...     def build(task, key):
        ...         instance = linear.canonical(0.5, d)
        ...         return linear.lingape(instance.arms, delta=task["delta"]), linear.environment(instance)
        ...     key = jax.random.key(d)
        ...     return sweep(build, grid(delta=[0.1, 0.01]), seeds=3, key=key, max_rounds=10**6, progress=False)
        >>> results = concatenate({d: sweep_of(d) for d in (2, 3)}, name="d")
        >>> print(results.summary(by=("d", "delta"))["stopped"])
        [3 3 3 3]
    """
    if isinstance(sweeps, Mapping):
        labels, all_results = list(sweeps), list(sweeps.values())
    elif isinstance(sweeps, (list, tuple)) and not hasattr(sweeps, "_fields"):
        labels, all_results = list(range(len(sweeps))), list(sweeps)
    else:
        raise ValueError(f"sweeps must be a dict or a sequence of Results, got {checks.show(sweeps)}")
    if not all_results:
        raise ValueError("sweeps must have at least one entry, got none")
    for results in all_results:
        checks.instance("sweeps", results, Results)
    for label in labels:
        if not isinstance(label, (str, bool, int, float, np.generic)):
            raise ValueError(f"sweeps must have strings or numbers for labels, got {checks.show(label)}")
    label_column = column_name(checks.instance("name", name, str))
    parts = [results.columns for results in all_results]
    if any(label_column in part for part in parts):
        raise ValueError(f"name must not be the name of a column that a sweep already has, got {name!r}")

    counts = [len(part["row"]) for part in parts]
    columns = {label_column: np.repeat(np.asarray(labels), counts)}
    for each in dict.fromkeys(each for part in parts for each in part):
        missing = [each not in part for part in parts]
        if any(missing) and not is_task_column(each):
            continue
        pieces = [np.full(n, np.nan) if each not in part else part[each] for part, n in zip(parts, counts, strict=True)]
        if len({values.shape[1:] for values in pieces}) == 1:
            columns[each] = np.concatenate(pieces)
    leading = {each: columns.pop(each) for each in ("row", "seed") if each in columns}
    stats = [results.stats for results in all_results if results.stats is not None]
    roots = {results.root for results in all_results}
    return Results(leading | columns, added(stats), roots.pop() if len(roots) == 1 else None)
