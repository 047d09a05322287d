"""Tracking of a fixed allocation."""

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.checks import is_concrete, require
from jaxbandits.linear._problem.arms import checked_arms
from jaxbandits.linear._problem.questions.asked import Question
from jaxbandits.linear._shared.fixed_confidence import StartName, checked_settings
from jaxbandits.linear._shared.likelihood_ratio import ItemComparison, State, algorithm_from_rule
from jaxbandits.linear._shared.stop import LikelihoodRatio


def fixed_weights(
    arms: Array,
    allocation: Array,
    *,
    stop: LikelihoodRatio,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
    start: StartName = "arms",
    question: Question | None = None,
) -> Algorithm:
    """Pulls the arm that is furthest behind its share until the likelihood ratios pass the threshold.

    With the allocation of `characteristic_time` it is the oracle of published tables.

    Args:
        arms: float (K, d), features of the arms; the run has their dtype.
        allocation: float (K,), shares of the pulls, at least 0, of sum 1.
        stop: from `likelihood_ratio` or `no_stop`.
        ridge: () > 0, regularisation of least squares, at least 1.2e-4 (float32) or 2.2e-13 (float64) times the
            largest |x|^2. With a smaller one the rank-one updates lose their digits.
        noise_scale: () > 0, sub-Gaussian constant of the noise, in units of reward.
        start: "arms" or "spanner", the arms that are pulled first, once each. "arms" are all of them. A "spanner" is
            the first d by index that span R^d; it pays where the arms are many, and requires concrete arms.
        question: `BestArm(epsilon)`, `TopM(m)` or `Above(level)`, about the items. If None, the best item. A stop with
            an epsilon requires None, and one that eliminates requires the best item.

    Returns:
        Algorithm with actions `Pull`, or `Step` where items are eliminated, and answers int (), an item; for `TopM` and
        `Above` bool (M,), a set of items. In its state, `counts` (K,) and `sums` (K,) are exact.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: as for the stop. **Cost**: O((K + M) d) per round. For `TopM` with the P = m (M - m) pairs of an item
    inside and one outside, O((K + P) d + M^2).

    Source: the oracle of Tirinzoni and Degenne (2022), Table 1.
    """
    K = checked_arms(arms).shape[0]
    shares = checks.array("allocation", allocation, (K,), least=0)
    total = (np.asarray(allocation) if is_concrete(allocation) else shares).sum()
    require(abs(total - 1) < 1e-6, "allocation", "sum to 1", allocation)
    settings = checked_settings(arms, stop, ridge=ridge, noise_scale=noise_scale, start=start, question=question)
    dtype = settings.arms.dtype
    shares = shares.astype(dtype)

    def rule(key: Key, state: State, comparison: ItemComparison) -> tuple[Array, tuple[()]]:
        del key, comparison
        return jnp.argmin(state.counts.astype(dtype) - state.pulls.astype(dtype) * shares), ()

    return algorithm_from_rule(settings, rule)
