"""Pairs of runs from two sweeps that received the same rewards, and the statistics of their differences.

Such runs share a stream. A sweep whose environments have streams reports them in a column `stream`, as two words of 32
bits drawn from the key itself. (With a single word, two of a hundred thousand runs would coincide.) The results
themselves therefore show whether two runs shared a stream, whatever the reason: a root key, a row and a seed in common,
or a stream that the caller's `build` chose. It is never merely assumed.
"""

import warnings

import numpy as np

from jaxbandits.checks import show
from jaxbandits.engine.results.intervals import TAIL, around_ratio, newcombe, paired_phi

# Statistics of paired values, by the ending of their column.
PAIRED = ("difference", "se", "difference_low", "difference_high", "ratio", "ratio_low", "ratio_high")
PAIRED += ("correlation", "gain", "p")

STREAMED = "environment(instance, algorithm, stream=key)"  # call in `build`, for runs with streams


def matched(stream: np.ndarray, group: np.ndarray, side: np.ndarray, common: np.ndarray) -> np.ndarray:
    """Matches the runs of two sweeps that have the same stream.

    Args:
        stream: uint64 (runs,), streams of the runs of both sweeps.
        group: int (runs,), group of each run.
        side: int (runs,), 0 for the first sweep, 1 for the second.
        common: bool (groups,), True for groups with runs of both sweeps.

    Returns:
        int (pairs, 2): one run of each sweep, ordered by group and stream.

    Raises:
        ValueError: in a common group, two runs of one sweep have the same stream, or both sweeps have runs whose stream
            the other lacks.
    """
    runs = np.flatnonzero(common[group])
    order = runs[np.lexsort((side[runs], stream[runs], group[runs]))]
    groups, streams, sides = group[order], stream[order], side[order]
    # True if the next run in this order has the same group and stream.
    is_same = (groups[1:] == groups[:-1]) & (streams[1:] == streams[:-1])
    if np.any(is_same & (sides[1:] == sides[:-1])):
        raise ValueError("by must tell apart the runs of a sweep that share a stream, got groups with several of them")
    first = np.flatnonzero(is_same)
    pairs = np.stack([order[first], order[first + 1]], axis=1)
    pair_counts = np.bincount(group[pairs[:, 0]], minlength=len(common))
    run_counts = [np.bincount(group[side == one], minlength=len(common)) for one in (0, 1)]
    lacking = common & (pair_counts < np.minimum(*run_counts))
    if lacking.any():
        g = int(np.argmax(lacking))
        raise ValueError(
            "paired must be False unless the streams of a and b were shared (one root key, the same rows and seeds, "
            f"and stream= made of nothing else): of {run_counts[0][g]} and {run_counts[1][g]} runs of a group, "
            f"{pair_counts[g]} have a partner. Sweep both under one key, with {STREAMED} in build"
        )
    return pairs


def streams_of(name: str, columns: dict[str, np.ndarray]) -> np.ndarray:
    """Returns the column `stream`, one uint64 per run. Raises `ValueError` if the sweep's environments had none."""
    if columns.get("stream", np.zeros(0)).ndim != 2:
        raise ValueError(
            f"{name} must be a sweep whose environments have stream=, for paired=True, got columns {show([*columns])}. "
            f"Repeat it with {STREAMED} in build"
        )
    words = columns["stream"].astype(np.uint64)
    return (words[:, 0] << np.uint64(32)) | words[:, 1]


def paired_statistics(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """Computes mean and standard error of the differences of paired values (n,), intervals, and the gain by pairing.

    The p-value is from Student's t-test for a mean difference of 0; of boolean values, from McNemar's exact test.
    """
    # Importing SciPy takes a quarter of a second, and only `compare` needs it.
    from scipy import stats

    answers = (a, b) if a.dtype == bool else None
    a, b = a.astype(float), b.astype(float)
    n = len(a)
    if n == 0:
        return dict.fromkeys(PAIRED, np.nan)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # values may be constant or infinite
        mean = float(np.mean(a - b))
        means = np.asarray(np.mean(a)), np.asarray(np.mean(b))
        if n == 1:
            ratio = means[0] / means[1] if min(means) > 0 else np.nan
            return dict.fromkeys(PAIRED, np.nan) | {"difference": mean, "ratio": float(ratio)}
        quantile = stats.t.ppf(1 - TAIL, n - 1)
        se = np.std(a - b, ddof=1) / np.sqrt(n)
        unpaired_se = np.sqrt((np.var(a, ddof=1) + np.var(b, ddof=1)) / n)
        correlation = np.mean((a - a.mean()) * (b - b.mean())) / (np.std(a) * np.std(b))
        low, high = mean - quantile * se, mean + quantile * se
        p = float(2 * stats.t.sf(abs(np.float64(mean) / se), n - 1))
        if answers is not None:
            runs = np.array(n), np.array(n)
            low, high = newcombe(means, runs, paired_phi(*answers))
            discordant = int(np.sum(answers[0] & ~answers[1])), int(np.sum(~answers[0] & answers[1]))
            p = float(min(1.0, 2 * stats.binom.cdf(min(discordant), sum(discordant), 0.5)))
        ratio = np.asarray(means[0] / means[1] if min(means) > 0 else np.nan)
        # The logarithm of the ratio changes with a pair as its values do in units of their means.
        half = quantile * np.std(a / means[0] - b / means[1], ddof=1) / np.sqrt(n)
        gained = {"correlation": correlation, "gain": unpaired_se / se, "p": p}
    differences = {"difference": mean, "se": se, "difference_low": low, "difference_high": high}
    statistics = differences | around_ratio(ratio, half) | gained
    return {name: float(value) for name, value in statistics.items()}
