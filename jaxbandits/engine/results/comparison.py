"""Comparison of two sweeps, group by group."""

import os
import warnings
from typing import Any

import numpy as np

from jaxbandits import checks
from jaxbandits.engine.results.intervals import difference_interval, ratio_interval
from jaxbandits.engine.results.pairing import STREAMED, matched, paired_statistics, streams_of
from jaxbandits.engine.results.runs import Results
from jaxbandits.engine.results.statistics import (
    by_appearance,
    count_endings,
    describe,
    finished_runs,
    group_names,
    is_measured,
    scalar_columns,
    with_groups,
)
from jaxbandits.engine.results.summaries import Summary, default_names

COSTS = ("pulls", "rounds")  # columns of every sweep, which follow the metrics in a comparison


def compare(a: Results, b: Results, *, by: str | tuple[str, ...] | None = None, paired: bool = False) -> Summary:
    """Compares two sweeps group by group: differences and ratios of the means, and a test of equal distributions.

    Statistics are taken over the finished runs, as in `Results.summary`. If runs were censored or failed, the finished
    ones are a selection, since the budget cuts off the longest runs, and the selections in `a` and `b` differ. Read
    `censored_a` and `censored_b` first, and repeat the sweep with a larger budget if they are not zero.

    Unless `paired`, the runs of `a` are assumed to be independent of the runs of `b`. The same (row, seed) of two
    sweeps under one root key has the same random numbers, so errors, intervals and p-values do not hold: a warning
    says so. Two ways out: give each sweep a key of its own, or pair the runs.

    With `paired`, runs that received the same rewards form pairs (`jaxbandits.streams`), which makes the standard
    error of a difference several times smaller if the two algorithms behave alike. This requires environments with
    `stream=`. Two sweeps under one root key without it have the same random numbers in the same rounds, but share no
    arm's rewards: their stopping times have a correlation of 0.05 to 0.35, with a stream 0.85 to 0.99.

    Args:
        a: one sweep, or one rule of several: `results.where(rule="RAGE")`. `jaxbandits.load` returns the Results of a
            store.
        b: the other sweep.
        by: name or names of the columns whose values define the groups, scalar and of the same kind (integer, floating
            point, ..) in both sweeps; `delta` stands for `task.delta`, as in `Results.summary`. Equal values are one
            group: `row` presumes that the tables of tasks are the same. If None, `row`, and `rule` and
            labels of `concatenate` where both sweeps have several.
        paired: if True, compares runs with the same stream. Within a group, a sweep must have each stream once, and
            every run of the sweep with fewer runs must have a partner.

    Returns:
        Mapping of arrays, which prints as a table, with one entry for every group that both sweeps have, in the order
        in which the groups appear in `a`: the columns of `by`; the counts `runs_a`, `finished_a`, `stopped_a`,
        `censored_a`, `failed_a` and the same for b; and for every other real scalar column NAME that both have, metrics
        first, but not for answers that are integers, such as indices of arms:
            NAME_difference: mean of a minus mean of b, NaN if either has no finished run.
            NAME_se: standard error of the difference, NaN if either has fewer than two finished runs.
            NAME_difference_low, NAME_difference_high: 95 % confidence interval of the difference, by Welch's t; of two
                shares (boolean columns), Newcombe's score interval.
            NAME_ratio, NAME_ratio_low, NAME_ratio_high: mean of a over mean of b, and its 95 % confidence interval by
                the delta method on the logarithm with Welch's degrees of freedom. NaN unless both means are positive.
                The interval needs means that are several standard errors above 0.
            NAME_ks: two-sample Kolmogorov-Smirnov statistic, the largest distance between the two empirical
                distribution functions, NaN if either has no finished run.
            NAME_p: two-sided p-value of this statistic, from `scipy.stats.ks_2samp`, conservative if values are tied;
                of two shares, of Fisher's exact test. Not corrected for the number of groups and columns.
        With `paired`, statistics are taken over the pairs whose runs are both finished. Intervals are Student's,
        Newcombe's for pairs, and the delta method's on the pairs. There also is the count `pairs`, and instead of the
        last two columns:
            NAME_correlation: correlation between the two runs of a pair.
            NAME_gain: factor by which NAME_se would be larger for equally many independent runs.
            NAME_p: p-value of Student's t-test for a mean difference of 0; of two shares, of McNemar's exact test. Not
                corrected either.

    Raises:
        ValueError: `a` or `b` is no Results, `by` does not fit (see `Results.summary`), the sweeps have no group in
            common, or, with `paired`, their streams were not shared.

    Example:
        LinGapE's two rules on the same rewards. The result says how much smaller the standard error of their difference
        is than with independent runs.

        >>> import jax, jaxbandits
        >>> from jaxbandits import linear
        >>> instance = linear.soare(2, 0.5)
        >>> ratios = {"greedy": None, "ratio": linear.ratio_tables(instance.arms).p}
        >>> def sweep_of(rule):
        ...     def build(task, key):
        ...         algorithm = linear.lingape(instance.arms, delta=0.1, ratios=ratios[rule])
        ...         return algorithm, linear.environment(instance, stream=key)
        ...     return jaxbandits.sweep(build, seeds=40, key=jax.random.key(0), max_rounds=10**4, progress=False)
        >>> difference = jaxbandits.compare(sweep_of("greedy"), sweep_of("ratio"), paired=True)
        >>> print(difference["pairs"], difference["pulls_gain"] > 1.5)
        [40] [ True]

        At full size (`soare(5, 0.1)`, delta 0.05, 1000 seeds) the greedy rule needs 71 +- 7 pulls of 7300 more than
        the other. Independent runs have a standard error of 83, 12 times larger, which would have hidden this. The
        correlation of the stopping times is 0.993; one root key without a stream gives 0.34. A round takes four times
        as long.
    """
    checks.flag("paired", paired)
    _check_results("a", a)
    _check_results("b", b)
    scalar = {
        name: (values, b.columns[name])
        for name, values in scalar_columns(a.columns).items()
        if name in scalar_columns(b.columns)
    }
    if by is None:
        sides = [default_names({name: pair[side] for name, pair in scalar.items()}) for side in (0, 1)]
        by = min(sides, key=len)
    names = group_names(by, scalar)
    if not paired:
        _warn_of_shared_numbers(a, b)
    for name in names.values():
        kinds = [values.dtype for values in scalar[name]]
        if kinds[0].kind != kinds[1].kind:
            raise ValueError(
                f"by must name columns of the same kind in both sweeps, got {name!r} of {kinds[0]} and {kinds[1]}"
            )
    measured = [
        name for name, pair in scalar.items() if name not in names.values() and all(is_measured(name, x) for x in pair)
    ]
    # Metrics were asked for, and come first.
    measured.sort(key=lambda name: name in COSTS)
    # One table with the runs of both, in which every group is a pair of groups: the runs of a and the runs of b.
    joint = {name: np.concatenate(scalar[name]) for name in ("status", *names.values(), *measured)}
    first, group = by_appearance([joint[name] for name in names.values()])
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
        runs = matched(stream, group=group, side=pair % 2, common=np.asarray(common))
        runs = runs[np.isin(runs, order).all(axis=1)]
        ends = np.searchsorted(group[runs[:, 0]], np.flatnonzero(common)[1:])
        compared["pairs"] = np.array([len(part) for part in np.split(runs, ends)])
        for name in measured:
            tables = [paired_statistics(*joint[name][part].T) for part in np.split(runs, ends)]
            compared |= {f"{name}_{key}": np.array([table[key] for table in tables]) for key in tables[0]}
    else:
        finished = counts["finished"].reshape(-1, 2)[common]
        for name in measured:
            values = joint[name]
            table = describe(values, order=order, counts=counts["finished"])
            mean, se = (table[key].reshape(-1, 2)[common] for key in ("mean", "se"))
            # Integers stay integers: large ones would be tied as floating-point numbers.
            exact = values[order] if values.dtype.kind in "biu" else values[order].astype(float)
            groups = np.split(exact, ends)
            tests = np.array([_test(*groups[2 * g : 2 * g + 2]) for g in np.flatnonzero(common)])
            statistics = difference_interval(
                (mean[:, 0], mean[:, 1]),
                (se[:, 0], se[:, 1]),
                (finished[:, 0], finished[:, 1]),
                of_shares=values.dtype == bool,
            )
            statistics |= ratio_interval(
                (mean[:, 0], mean[:, 1]), (se[:, 0], se[:, 1]), (finished[:, 0], finished[:, 1])
            )
            statistics |= {"ks": tests[:, 0], "p": tests[:, 1]}
            compared |= {f"{name}_{key}": statistic for key, statistic in statistics.items()}
    return Summary(
        with_groups({name: joint[full][first[common]] for name, full in names.items()}, compared), tuple(names)
    )


def _warn_of_shared_numbers(a: Results, b: Results) -> None:
    """Warns if runs of two sweeps share random numbers, so that they are not independent."""
    have_streams = all(sweep.columns.get("stream", np.zeros(0)).ndim == 2 for sweep in (a, b))
    share_streams = False
    if have_streams:
        ours, theirs = (streams_of("a", sweep.columns) for sweep in (a, b))
        share_streams = len(np.intersect1d(ours, theirs)) > 0
    if a.root is None or a.root != b.root or not {"row", "seed"} <= a.columns.keys() & b.columns.keys():
        share_keys = False
    else:
        ours, theirs = (sweep.columns["row"].astype(np.int64) << 32 | sweep.columns["seed"] for sweep in (a, b))
        share_keys = len(np.intersect1d(ours, theirs)) > 0
    if not (share_streams or share_keys):
        return
    repeat = "" if share_streams else f"repeat the sweeps with {STREAMED} in build, and "
    checks.warn(
        "a and b share random numbers (one root key, the same rows and seeds), so their runs are not independent, and "
        "errors, intervals and p-values do not hold. Run each sweep under a key of its own; or pair the runs: "
        f"{repeat}write compare(a, b, paired=True)",
        stacklevel=3,
    )


def _check_results(name: str, sweep: Any) -> None:
    """Raises `ValueError` unless it is the Results of a sweep."""
    if isinstance(sweep, (str, os.PathLike)):
        raise ValueError(f"{name} must be Results, got the folder {sweep}. Load it: jaxbandits.load({str(sweep)!r})")
    checks.instance(name, sweep, Results)


def _test(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Computes the two-sample statistic of Kolmogorov and Smirnov, and a p-value (2,), of two shares Fisher's."""
    # Importing SciPy takes a quarter of a second, and only `compare` needs it.
    from scipy import stats

    if not (len(a) and len(b)):
        return np.full(2, np.nan)
    if a.dtype == bool:
        counts = [[int(side.sum()), int((~side).sum())] for side in (a, b)]
        return np.array([abs(a.mean() - b.mean()), stats.fisher_exact(counts)[1]])
    with warnings.catch_warnings():
        # For almost equal samples SciPy's exact p-value may round to slightly more than 1: it warns and approximates.
        warnings.filterwarnings("ignore", "ks_2samp: Exact calculation unsuccessful", RuntimeWarning)
        return np.array(stats.ks_2samp(a, b))
