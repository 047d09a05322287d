"""Two sweeps side by side."""

import os
import warnings
from typing import Any

import numpy as np

from jaxbandits import checks
from jaxbandits.engine.results.pairing import matched, of_differences, streams_of
from jaxbandits.engine.results.runs import Results
from jaxbandits.engine.results.statistics import (
    count_endings,
    describe,
    finished_runs,
    group_names,
    grouped,
    is_measured,
    scalar_columns,
    with_groups,
)


def compare(
    a: Results, b: Results, *, by: str | tuple[str, ...] = "row", paired: bool = False
) -> dict[str, np.ndarray]:
    """Compares two sweeps group by group: the difference of the means, and a test of equal distributions.

    Everything is taken over the finished runs, as in `Results.summary`. Where runs were censored or failed, those are a
    selection (the budget cuts off the longest runs), and the selections in `a` and `b` differ: read `censored_a` and
    `censored_b` first, and repeat the sweep with a larger budget if they are not zero.

    Unless `paired`, the runs of `a` are assumed to be independent of those of `b`. Two sweeps under one root key share
    the noise of every task, and then neither the standard error nor the p-value holds: give each sweep its own key.

    With `paired`, runs that saw the same rewards are taken together (`jaxbandits.numbered`), which makes the standard
    error of a difference several times smaller where the two algorithms do much the same. It needs what only a shared
    stream gives: two sweeps under one root key without `stream=` have the same random numbers in the same rounds, but
    no arm's rewards in common, and stopping times of a correlation of 0.05 to 0.35, where a stream gives 0.85 to 0.99.

    Args:
        a: one sweep. Of a store, `jaxbandits.load` gives its Results.
        b: the other.
        by: name or names of the columns whose values make a group, scalar and of the same kind (integer, floating
            point, ..) in both sweeps; `delta` stands for `task.delta`, as in `Results.summary`. Equal values are one
            group: `row` presumes that the tables of tasks are the same.

        paired: whether runs with the same stream are compared with each other. Within a group, a sweep must have each
            stream once, and the one with fewer runs must find a partner for each.

    Returns:
        dict of arrays with one entry for every group that both sweeps have, in the order of the groups' values: the
        columns of `by`; the counts `runs_a`, `finished_a`, `stopped_a`, `censored_a`, `failed_a` and the same for b;
        and for every other real scalar column NAME that both have:
            NAME_difference: mean of a minus mean of b, NaN where either has no finished run.
            NAME_se: standard error of the difference, NaN where either has fewer than two.
            NAME_ks: two-sample Kolmogorov-Smirnov statistic, the largest distance between the two empirical
                distribution functions, NaN where either has no finished run.
            NAME_p: its two-sided p-value, from `scipy.stats.ks_2samp`; conservative where values are tied, and not
                corrected for the number of groups and columns.
        With `paired` the count `pairs`, of those whose runs are both finished, over which all of this is taken, and in
        place of the last two:
            NAME_correlation: of the two runs of a pair.
            NAME_gain: how many times larger NAME_se would be for as many runs that are independent.
            NAME_p: of Student's t-test for a mean difference of 0, not corrected either.

    Raises:
        ValueError: `a` or `b` is no Results, `by` does not fit (see `Results.summary`), the sweeps
            have no group in common, or, with `paired`, their streams were not shared.
    """
    checks.flag("paired", paired)
    _check_results("a", a)
    _check_results("b", b)
    scalar = {
        name: (values, b.columns[name])
        for name, values in scalar_columns(a.columns).items()
        if name in scalar_columns(b.columns)
    }
    names = group_names(by, scalar)
    for name in names.values():
        kinds = [values.dtype for values in scalar[name]]
        if kinds[0].kind != kinds[1].kind:
            raise ValueError(
                f"by must name columns of the same kind in both sweeps, got {name!r} of {kinds[0]} and {kinds[1]}"
            )
    measured = [
        name
        for name, pair in scalar.items()
        if name not in names.values() and all(is_measured(name, values) for values in pair)
    ]
    # One table with the runs of both, in which every group is a pair of groups: the runs of a and those of b.
    joint = {name: np.concatenate(scalar[name]) for name in ("status", *names.values(), *measured)}
    first, group = grouped([joint[name] for name in names.values()])
    pair = 2 * group + np.repeat([0, 1], [len(values) for values in scalar["status"]])
    counts = count_endings(joint["status"], pair, 2 * len(first))
    order = finished_runs(joint["status"], pair)
    ends = np.cumsum(counts["finished"])[:-1]
    common = (counts["runs"].reshape(-1, 2) > 0).all(axis=1)
    if not common.any():
        raise ValueError(
            f"by must name columns with a value that both sweeps have, got none in common for {tuple(names)}"
        )

    compared = {
        f"{name}_{side}": count.reshape(-1, 2)[common, i]
        for i, side in enumerate("ab")
        for name, count in counts.items()
    }
    if paired:
        stream = np.concatenate([streams_of(name, sweep.columns) for name, sweep in (("a", a), ("b", b))])
        runs = matched(stream, group, pair % 2, np.asarray(common))
        runs = runs[np.isin(runs, order).all(axis=1)]
        ends = np.searchsorted(group[runs[:, 0]], np.flatnonzero(common)[1:])
        compared["pairs"] = np.array([len(part) for part in np.split(runs, ends)])
        for name in measured:
            tables = [of_differences(*joint[name][part].T) for part in np.split(runs, ends)]
            compared |= {f"{name}_{key}": np.array([table[key] for table in tables]) for key in tables[0]}
        return with_groups({name: joint[full][first[common]] for name, full in names.items()}, compared)
    for name in measured:
        values = joint[name]
        table = describe(values, order, counts["finished"])
        mean, se = (table[key].reshape(-1, 2)[common] for key in ("mean", "se"))
        # Integers are compared as they are: large ones would be tied as floating-point numbers.
        exact = values[order] if np.issubdtype(values.dtype, np.integer) else values[order].astype(float)
        groups = np.split(exact, ends)
        tests = np.array([_kolmogorov_smirnov(*groups[2 * g : 2 * g + 2]) for g in np.flatnonzero(common)])
        with np.errstate(invalid="ignore"):  # of infinite means
            difference = mean[:, 0] - mean[:, 1]
        compared |= {
            f"{name}_difference": difference,
            f"{name}_se": np.hypot(se[:, 0], se[:, 1]),
            f"{name}_ks": tests[:, 0],
            f"{name}_p": tests[:, 1],
        }
    return with_groups({name: joint[full][first[common]] for name, full in names.items()}, compared)


def _check_results(name: str, sweep: Any) -> None:
    """Raises `ValueError` unless it is the Results of a sweep."""
    if isinstance(sweep, (str, os.PathLike)):
        raise ValueError(f"{name} must be Results, got the folder {sweep}. Load it: jaxbandits.load({str(sweep)!r})")
    checks.instance(name, sweep, Results)


def _kolmogorov_smirnov(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Statistic and p-value (2,)."""
    from scipy import stats  # its import takes a quarter of a second, and only `compare` needs it

    if not (len(a) and len(b)):
        return np.full(2, np.nan)
    with warnings.catch_warnings():
        # For almost equal samples SciPy's exact p-value may round to a little over 1: it warns, and approximates it.
        warnings.filterwarnings("ignore", "ks_2samp: Exact calculation unsuccessful", RuntimeWarning)
        return np.array(stats.ks_2samp(a, b))
