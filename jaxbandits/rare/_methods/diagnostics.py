"""Signs that an estimate by weights must not be trusted."""

from typing import NamedTuple

import numpy as np

FEWEST_EFFECTIVE = 100
LARGEST_SHARE = 0.1
FEWEST_IN_CELL = 20
LARGEST_CELL_ERROR = 0.5
SMALLEST_CELL = 0.05  # share of the estimate from which an octave is judged
LATE_SHARE = 0.05  # share of the estimate in the second half of the budget
FAR = 3  # standard errors
SMALLEST_WEIGHT = 1e-300  # below it weights lose digits, and are 0 in the end


class Weighed(NamedTuple):
    """Mean of weights, with its errors."""

    estimate: float  # mean weight
    se: float  # standard error
    pareto_k: float  # shape of the tail of the weights; NaN for fewer than 5 weights in the tail


def pareto_k(weights: np.ndarray) -> float:
    """Fits the shape of the upper tail of weights: the moments of order 1/k and above are infinite.

    Args:
        weights: float64 (n,), positive.

    Returns:
        The shape k; NaN if the tail has fewer than 5 weights. The tail is the largest min(n/5, 3 sqrt n).

    Source: Zhang and Stephens (2009), A new and efficient estimation method for the generalized Pareto distribution;
    Vehtari, Simpson, Gelman, Yao and Gabry (2022), Pareto smoothed importance sampling, with their weak prior on k.
    """
    n = weights.size
    size = int(min(n / 5, 3 * np.sqrt(n)))
    if size < 5:
        return float("nan")
    ordered = np.sort(weights)
    # Weights of a part may all be 0 in 64 bit.
    if ordered[-1] == 0:
        return float("nan")
    ordered = ordered / ordered[-1]
    x = ordered[-size:] - ordered[-size - 1]
    x = x[x > 0]
    if x.size < 5:
        # Equal weights have no tail.
        return float("-inf")
    m = x.size
    points = 30 + int(np.sqrt(m))
    quartile = x[int(m / 4 + 0.5) - 1]
    b = 1 / x[-1] + (1 - np.sqrt(points / (np.arange(1, points + 1) - 0.5))) / (3 * quartile)
    k = np.log1p(-b[:, None] * x).mean(axis=1)
    # -b / k is the rate of an exponential tail where b and k are 0.
    rate = np.where(k == 0, 1 / x.mean(), -b / np.where(k == 0, 1, k))
    profile = m * (np.log(rate) - k - 1)
    share = np.exp(profile - profile.max())
    b = float((b * share).sum() / share.sum())
    k = float(np.log1p(-b * x).mean())
    return k * m / (m + 10) + 5 / (m + 10)


def largest_pareto_k(runs: int) -> float:
    """Returns the shape above which a mean over the runs is unreliable."""
    return min(1 - 1 / np.log10(max(runs, 11)), 0.7)


def effective_number(weights: np.ndarray) -> float:
    """Computes (sum w)^2 / sum w^2; 0 without weights."""
    top = weights.max(initial=0)
    return float((weights / top).sum() ** 2 / ((weights / top) ** 2).sum()) if top > 0 else 0.0


def mean_over(weights: list[np.ndarray], runs: list[int]) -> tuple[float, float]:
    """Computes the mean of each learning's weights over its runs, averaged over learnings, and its standard error.

    Args:
        weights: float64 (n_l,), the weights that are not 0, of each learning.
        runs: number of runs of each learning.
    """
    means = [w.sum() / n for w, n in zip(weights, runs, strict=True)]
    variances = [max((w**2).sum() / n - mean**2, 0.0) / n for w, n, mean in zip(weights, runs, means, strict=True)]
    return float(np.mean(means)), float(np.sqrt(np.sum(variances)) / len(runs))


def judge(
    *,
    weights: np.ndarray,
    runs: int,
    estimate: Weighed,
    alone: tuple[Weighed, ...],
    broad: Weighed,
    cells: list[tuple[str, int, Weighed]],
    requested: float,
) -> tuple[str, ...]:
    """Returns the warnings about an estimate that more runs may cure, as sentences.

    Args:
        weights: float64 (n,), weights of the runs in the event.
        runs: number of runs of the estimate.
        estimate: the estimate.
        alone: the estimate of each learning by its own mixture.
        broad: the estimate by the first, broad mixtures.
        cells: (name, runs in the event, estimate) of every answer and octave.
        requested: requested relative error.
    """
    if weights.size and weights.max() < SMALLEST_WEIGHT:
        return (f"The probability is too small for 64 bit: no run has a weight above {SMALLEST_WEIGHT:g}.",)
    limit, warnings = largest_pareto_k(runs), []
    if estimate.pareto_k > limit:
        warnings.append(f"The weights have a heavy tail (Pareto k {estimate.pareto_k:.2f}, above {limit:.2f}).")
    if (effective := effective_number(weights)) < FEWEST_EFFECTIVE:
        warnings.append(f"The effective number of runs is {effective:.0f}, below {FEWEST_EFFECTIVE}.")
    if weights.size and (share := weights.max() / weights.sum()) > LARGEST_SHARE:
        warnings.append(f"One run has {share:.0%} of the estimate.")
    for number, each in enumerate(alone):
        if len(alone) > 1 and each.pareto_k > limit:
            warnings.append(f"Learning {number} alone has a heavy tail (Pareto k {each.pareto_k:.2f}).")
    if len(alone) > 1:
        values = [each.estimate for each in alone]
        low, high = alone[int(np.argmin(values))], alone[int(np.argmax(values))]
        if high.estimate - low.estimate > FAR * np.hypot(low.se, high.se):
            warnings.append(f"The learnings disagree: {low.estimate:.2e} and {high.estimate:.2e}.")
    if broad.estimate - estimate.estimate > FAR * np.hypot(broad.se, estimate.se):
        warnings.append(f"The broad mixtures gave more, {broad.estimate:.2e} +- {broad.se:.1e}: a mode may be lost.")
    for name, number, each in cells:
        is_large = each.estimate > SMALLEST_CELL * estimate.estimate
        if is_large and (number < FEWEST_IN_CELL or each.se > LARGEST_CELL_ERROR * each.estimate):
            warnings.append(f"The part {name} rests on {number} runs, {each.estimate:.1e} +- {each.se:.1e}.")
    if estimate.estimate > 0 and estimate.se > requested * estimate.estimate:
        warnings.append(f"The relative error is {estimate.se / estimate.estimate:.0%}, above {requested:.0%}.")
    return tuple(warnings)


def judge_budget(late: float) -> tuple[str, ...]:
    """Returns the warning about a budget that cuts an estimate, which more runs do not cure.

    Args:
        late: share of the estimate in runs that stop in the second half of the budget.
    """
    if late <= LATE_SHARE:
        return ()
    return (
        f"{late:.0%} of the estimate stops in the second half of the budget, which may cut the rest. "
        "Choose a larger max_rounds.",
    )
