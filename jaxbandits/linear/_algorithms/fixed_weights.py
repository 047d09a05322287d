"""A fixed allocation, tracked."""

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.checks import is_concrete, require
from jaxbandits.linear._problem.arms import checked_arms
from jaxbandits.linear._shared.fixed_confidence import EliminateName, StartName, checked_settings
from jaxbandits.linear._shared.glr import Comparison, State, algorithm_of
from jaxbandits.numerics.thresholds import Threshold


def fixed_weights(
    arms: Array,
    allocation: Array,
    *,
    delta: Array | float,
    threshold: Threshold,
    items: Array | None = None,
    epsilon: Array | float = 0.0,
    ridge: Array | float = 1.0,
    glr_ridge: float | None = None,
    noise_scale: Array | float = 1.0,
    eliminate: EliminateName | None = None,
    start: StartName = "arms",
) -> Algorithm:
    """Pulls the arm that is furthest behind its share until the likelihood ratios pass the threshold.

    With the allocation of `characteristic_time` this is the oracle of published tables.

    Args:
        arms: float (K, d), what is pulled; the run has their dtype.
        allocation: float (K,), shares of the pulls, at least 0, of sum 1.
        delta: () in (0, 1), admitted probability of error.
        threshold: one of `numerics.thresholds`: `gk16`, `log_t`, `ellipsoid`, `ellipsoid_trace`, `jp`, `jp_heuristic`
            or `kk_all`. `jp` and `kk_all` are proved for glr_ridge=0 only and heuristic without it; the `ellipsoid`s,
            whose ridge is to be `ridge`, for glr_ridge=None only. The least eigenvalue that `jp` reads is that of the
            arms of the start.
        items: float (M, d), what is compared; the answer is one of them. None: the arms.
        epsilon: () >= 0, admitted suboptimality of the answer, in units of reward. No sampling rule knows of it.
        ridge: () > 0, regularisation of the least squares, at least 1.2e-4 (float32) or 2.2e-13 (float64) times the
            largest |x|^2: below, the rank-one updates lose their digits.
        glr_ridge: None, or 0 for a stop and an answer by least squares without ridge; the sampling rule keeps it. The
            arms of the start must span R^d.
        noise_scale: () > 0, sub-Gaussian constant of the noise, in units of reward.
        eliminate: None; "stop": an item is out for good once its statistic has passed the threshold, and the last one
            left is the answer; "both": the sampling rule forgets it as well. Needs epsilon = 0.
        start: what is pulled first, once each: all "arms", or a "spanner", the first d of them, by index, that span
            R^d, which pays where the arms are many. A spanner needs arms that are not traced.

    Returns:
        Algorithm with actions `Pull`, or `Step` where items are eliminated, and answers int (), an item. In its state,
        `counts` (K,) and `sums` (K,) are exact.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: that of the threshold; with a proved one P(the answer is not epsilon-best) <= delta. **Cost**:
    O((K + M) d) a round.

    Source: the oracle of Tirinzoni and Degenne (2022), Table 1.
    """
    K = checked_arms(arms).shape[0]
    shares = checks.array("allocation", allocation, (K,), least=0)
    total = (np.asarray(allocation) if is_concrete(allocation) else shares).sum()
    require(abs(total - 1) < 1e-6, "allocation", "sum to 1", allocation)
    settings = checked_settings(arms, delta, threshold, items, epsilon, ridge, glr_ridge, noise_scale, eliminate, start)
    dtype = settings.arms.dtype
    shares = shares.astype(dtype)

    def rule(key: Key, state: State, seen: Comparison) -> tuple[Array, tuple[()]]:
        del key, seen
        return jnp.argmin(state.counts.astype(dtype) - state.pulls.astype(dtype) * shares), ()

    return algorithm_of(settings, rule)
