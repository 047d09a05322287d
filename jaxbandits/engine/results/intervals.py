"""Confidence intervals of 95 %: of shares, of differences and of ratios of means."""

import numpy as np

TAIL = 0.025  # probability outside either end
NORMAL = 1.959963984540054  # quantile 1 - TAIL of the normal distribution


def clopper_pearson(successes: np.ndarray, runs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Computes exact 95 % confidence intervals of probabilities: from 0 to 1 where there are no runs.

    Counts need not be integers. Source: Clopper and Pearson, Biometrika 26 (1934).
    """
    # Importing SciPy takes time, and only shares need it.
    from scipy.special import betaincinv

    successes, runs = np.broadcast_arrays(np.asarray(successes, float), np.asarray(runs, float))
    failures = runs - successes
    # The bounds of no success and of no failure are known; 1 stands for arguments that betaincinv refuses.
    low = betaincinv(np.where(successes > 0, successes, 1), failures + 1, TAIL)
    high = betaincinv(successes + 1, np.where(failures > 0, failures, 1), 1 - TAIL)
    return np.where(successes > 0, low, 0.0), np.where(failures > 0, high, 1.0)


def share_intervals(
    share: np.ndarray, runs: np.ndarray, *, se: np.ndarray, clusters: np.ndarray | None
) -> dict[str, np.ndarray]:
    """Computes 95 % confidence intervals of shares (groups, ...), NaN without runs.

    If runs are independent, the intervals are exact. In clusters, as many independent runs are assumed as would have
    the same standard error, corrected for the degrees of freedom; where all runs agree, one run per cluster.
    Source: Korn and Graubard, Survey Methodology 24 (1998).

    Args:
        share: (groups, ...), shares of the runs.
        runs: int (groups,), number of runs.
        se: (groups, ...), standard errors of the shares.
        clusters: int (groups,), number of clusters; None if runs are independent.
    """
    wide = (slice(None), *(None,) * (share.ndim - 1))
    effective = np.broadcast_to(runs[wide], share.shape).astype(float)
    if clusters is not None:
        from scipy.special import stdtrit

        with np.errstate(all="ignore"):
            quantiles = stdtrit(np.maximum(runs - 1, 1), 1 - TAIL) / stdtrit(np.maximum(clusters - 1, 1), 1 - TAIL)
            # The square of the error of n independent runs is share (1 - share) / (n - 1).
            known = (share * (1 - share) / se**2 + 1) * np.square(quantiles)[wide]
        agree = (share == 0) | (share == 1)
        effective = np.where(agree, clusters[wide], np.minimum(effective, known))
    # Fewer than two clusters say nothing about the error.
    unknown = np.isnan(share) | np.isnan(effective) | ((clusters < 2)[wide] if clusters is not None else False)
    effective = np.where(unknown, 0, effective)
    low, high = clopper_pearson(np.where(unknown, 0, share * effective), effective)
    return {"low": np.where(unknown, np.nan, low), "high": np.where(unknown, np.nan, high)}


def welch(a: np.ndarray, b: np.ndarray, *, runs_a: np.ndarray, runs_b: np.ndarray) -> np.ndarray:
    """Computes half the width of the interval of a difference of two independent means, after Welch.

    Args:
        a: squared standard error of the first mean.
        b: squared standard error of the second mean.
        runs_a: number of runs of the first mean.
        runs_b: number of runs of the second mean.

    Returns:
        As many numbers; NaN where a mean has fewer than two runs.
    """
    from scipy.special import stdtrit

    with np.errstate(all="ignore"):
        freedom = (a + b) ** 2 / (a**2 / (runs_a - 1) + b**2 / (runs_b - 1))
        # Constant values have no error.
        return np.where(a + b == 0, 0.0, stdtrit(freedom, 1 - TAIL) * np.sqrt(a + b))


Pair = tuple[np.ndarray, np.ndarray]  # numbers (groups,) of two sweeps


def difference_interval(means: Pair, ses: Pair, runs: Pair, *, of_shares: bool) -> dict[str, np.ndarray]:
    """Computes the difference of two independent means, its standard error and its interval; of shares, Newcombe's."""
    with np.errstate(invalid="ignore"):  # the difference of two infinite means is NaN
        difference = means[0] - means[1]
        if of_shares:
            low, high = newcombe(means, runs)
        else:
            half = welch(np.square(ses[0]), np.square(ses[1]), runs_a=runs[0], runs_b=runs[1])
            low, high = difference - half, difference + half
    se = np.hypot(*ses)
    return {"difference": difference, "se": se, "difference_low": low, "difference_high": high}


def ratio_interval(means: Pair, ses: Pair, runs: Pair) -> dict[str, np.ndarray]:
    """Computes the ratio of two independent means with its interval, by the delta method on the logarithm.

    The logarithm of a mean has the error se / mean. NaN unless both means are positive.
    """
    with np.errstate(all="ignore"):
        positive = (means[0] > 0) & (means[1] > 0)
        ratio = np.where(positive, means[0] / means[1], np.nan)
        squares = [np.square(se / mean) for mean, se in zip(means, ses, strict=True)]
        return around_ratio(ratio, welch(*squares, runs_a=runs[0], runs_b=runs[1]))


def around_ratio(ratio: np.ndarray, half: np.ndarray) -> dict[str, np.ndarray]:
    """Returns a ratio and its interval, whose logarithm reaches `half` to each side."""
    return {"ratio": ratio, "ratio_low": ratio * np.exp(-half), "ratio_high": ratio * np.exp(half)}


def newcombe(shares: Pair, runs: Pair, phi: np.ndarray | float = 0.0) -> Pair:
    """Computes the interval of a difference of two shares from the score intervals of both.

    Source: Newcombe, Statistics in Medicine 17 (1998), method 10 for independent samples (p. 873) and method 10 for
    paired ones (p. 2635).

    Args:
        shares: the two shares.
        runs: number of runs of each.
        phi: correlation of the two answers of a pair, 0 if samples are independent.
    """
    (p, q), (lows, highs) = shares, zip(*map(_wilson, shares, runs), strict=True)

    def reach(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.sqrt(np.maximum(x**2 - 2 * phi * x * y + y**2, 0))

    return p - q - reach(p - lows[0], highs[1] - q), p - q + reach(highs[0] - p, q - lows[1])


def _wilson(share: np.ndarray, runs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Computes the score interval of a probability; NaN without runs."""
    with np.errstate(all="ignore"):
        weight = NORMAL**2 / np.asarray(runs, float)
        center = (share + weight / 2) / (1 + weight)
        half = np.sqrt(share * (1 - share) * weight + weight**2 / 4) / (1 + weight)
    return center - half, center + half


def paired_phi(a: np.ndarray, b: np.ndarray) -> float:
    """Computes the correlation of paired answers (n,) for `newcombe`, with its correction for continuity."""
    n = len(a)
    both, neither = int(np.sum(a & b)), int(np.sum(~a & ~b))
    only_a, only_b = int(np.sum(a & ~b)), int(np.sum(~a & b))
    margins = np.prod([float(np.sum(side)) for side in (a, ~a, b, ~b)])
    if margins == 0:
        return 0.0
    product = float(both * neither - only_a * only_b)
    product = max(product - n / 2, 0.0) if product > 0 else product
    return product / float(np.sqrt(margins))
