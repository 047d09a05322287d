"""Runs of two sweeps that saw the same rewards, and what their differences come to.

Such runs share a stream. A sweep whose environments have one reports it, as two words of 32 bits drawn from the key
itself, in a column `stream` (of a hundred thousand runs, two would have a single word in common): that two runs shared
theirs is then read off the results, whatever made it so (a root key, a row and a seed in common, or a stream that the
caller's `build` chose), and cannot be assumed where it is not true.
"""

import warnings

import numpy as np

from jaxbandits.checks import show


def matched(stream: np.ndarray, group: np.ndarray, side: np.ndarray, common: np.ndarray) -> np.ndarray:
    """The pairs of runs with one stream.

    Args:
        stream: uint64 (runs,), of the runs of both sweeps.
        group: int (runs,), the group of each.
        side: int (runs,), 0 for the first sweep, 1 for the second.
        common: bool (groups,), groups with runs of both.

    Returns:
        int (pairs, 2): a run of each sweep, ordered by group and stream.

    Raises:
        ValueError: in some common group two runs of one sweep have the same stream, or both sweeps have runs whose
            stream the other lacks.
    """
    runs = np.flatnonzero(common[group])
    order = runs[np.lexsort((side[runs], stream[runs], group[runs]))]
    place, name, own = group[order], stream[order], side[order]
    is_next = (place[1:] == place[:-1]) & (name[1:] == name[:-1])  # as the run before it
    if np.any(is_next & (own[1:] == own[:-1])):
        raise ValueError("by must tell apart the runs of a sweep that share a stream, got groups with several of them")
    first = np.flatnonzero(is_next)
    pairs = np.stack([order[first], order[first + 1]], axis=1)
    found = np.bincount(group[pairs[:, 0]], minlength=len(common))
    runs_of = [np.bincount(group[side == one], minlength=len(common)) for one in (0, 1)]
    lacking = common & (found < np.minimum(*runs_of))
    if lacking.any():
        g = int(np.argmax(lacking))
        raise ValueError(
            "paired must be False unless the streams of a and b were shared (one root key, the same rows and seeds, "
            f"and stream= made of nothing else): of {runs_of[0][g]} and {runs_of[1][g]} runs of a group, {found[g]} "
            "have a partner"
        )
    return pairs


def streams_of(name: str, columns: dict[str, np.ndarray]) -> np.ndarray:
    """The column `stream`, one uint64 a run; raises `ValueError` if the sweep's environments had none."""
    if columns.get("stream", np.zeros(0)).ndim != 2:
        raise ValueError(
            f"{name} must be a sweep whose environments have stream=, for paired=True, got columns {show([*columns])}"
        )
    words = columns["stream"].astype(np.uint64)
    return (words[:, 0] << np.uint64(32)) | words[:, 1]


def of_differences(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """What the values of paired runs (n,) come to: mean and standard error of the difference, and what pairing gained.

    The p-value is that of Student's t for a mean difference of 0.
    """
    from scipy import stats  # its import takes a quarter of a second, and only `compare` needs it

    a, b = a.astype(float), b.astype(float)
    n = len(a)
    if n == 0:
        return dict.fromkeys(("difference", "se", "correlation", "gain", "p"), np.nan)
    mean = float(np.mean(a - b))
    if n == 1:
        return {"difference": mean} | dict.fromkeys(("se", "correlation", "gain", "p"), np.nan)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of values that do not vary, or are infinite
        se = np.std(a - b, ddof=1) / np.sqrt(n)
        apart = np.sqrt((np.var(a, ddof=1) + np.var(b, ddof=1)) / n)
        correlation = np.mean((a - a.mean()) * (b - b.mean())) / (np.std(a) * np.std(b))
        p = float(2 * stats.t.sf(abs(np.float64(mean) / se), n - 1))
        return {"difference": mean, "se": se, "correlation": correlation, "gain": apart / se, "p": p}
