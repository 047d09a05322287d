"""Thompson sampling for linear bandits (Abeille, Lazaric, 2017; Agrawal, Goyal, 2013)."""

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.checks import require
from jaxbandits.linear._problem.arms import check_ridge, checked_arms
from jaxbandits.linear._shared.factor import backward, factored, gram_of
from jaxbandits.linear._shared.radius import radius_at
from jaxbandits.linear._shared.regret import State, algorithm_from_index
from jaxbandits.numerics.linalg import dot
from jaxbandits.numerics.normal import normal


def lin_ts(
    arms: Array,
    *,
    delta: Array | float | None = None,
    norm_bound: Array | float | None = None,
    horizon: Array | int | None = None,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
    scale: Array | float | None = None,
) -> Algorithm:
    """Draws theta_hat + v A^-1/2 z with a standard normal z, and pulls the arm that is best under it until the horizon.

    Args:
        arms: float (K, d), features; the run has their dtype.
        delta: () in (0, 1), allowed probability of failure.
        norm_bound: () >= 0, upper bound of ||theta||.
        horizon: T, number of pulls that the run is meant to last, int () in [1, 2^31). It does not end the run.
        ridge: () > 0, regularisation of least squares, at least 1.2e-4 (float32) or 2.2e-13 (float64) times the
            largest |x|^2. With a smaller one the rank-one updates lose their digits.
        noise_scale: () > 0, sub-Gaussian constant of the noise, in units of reward.
        scale: None or () > 0. If None, v is the radius C of `lin_ucb` at delta / (4 T), for which the guarantee holds.
            Otherwise v = scale noise_scale, and `delta`, `norm_bound` and `horizon` must be None. 1 draws from the
            posterior: it has no such proof, and far less regret. sqrt(9 d log(T / delta)) is Agrawal and Goyal's.

    Returns:
        Algorithm with actions `Pull` and answers int (), the arm with the largest estimate. It never stops: give `run`
        or `sweep` a `horizon`. In its state, `counts` (K,) and `sums` (K,) are exact.

    Raises:
        ValueError: an argument lies outside the range above, a shape does not fit, or both or neither of `scale` and
            the other three are given.

    **Guarantee** (scale=None; ||theta|| <= norm_bound, ||x|| <= 1): with probability 1 - delta, regret of order
    d^1.5 sqrt(T), up to logarithms. **Cost**: O(K d^2 + d^3) per round, and d normal variables.

    Source: Abeille and Lazaric (2017), Linear Thompson sampling revisited; Agrawal and Goyal (2013), Thompson sampling
    for contextual bandits with linear payoffs.
    """
    arms = checked_arms(arms)
    check_ridge(arms, ridge)
    checks.positive("noise_scale", noise_scale)
    d, dtype, proved = arms.shape[1], arms.dtype, None
    for name, value in {"delta": delta, "norm_bound": norm_bound, "horizon": horizon}.items():
        if scale is None:
            require(value is not None, name, "be given without a scale", value)
        else:
            require(value is None, name, "be None with a scale", value)
    if scale is None:
        checks.probability("delta", delta)
        checks.not_negative("norm_bound", norm_bound)
        checks.integer("horizon", horizon, least=1, most=2**31 - 1)
        proved = [jnp.asarray(x, dtype) for x in (delta, norm_bound, horizon)]
    else:
        checks.positive("scale", scale)
    ridge, noise_scale = (jnp.asarray(x, dtype) for x in (ridge, noise_scale))

    def index(key: Key, state: State) -> Array:
        if proved is not None:
            probability, bound, pulls = proved
            v = radius_at(state.logdet, *(probability, ridge, noise_scale, bound, 4 * pulls))
        else:
            v = jnp.asarray(scale, dtype) * noise_scale
        # A = L L', and L'^-1 z has the covariance A^-1.
        A = gram_of(arms, state.counts.astype(dtype)) + ridge * jnp.eye(d, dtype=dtype)
        z = backward(factored(A), list(normal(key, (d,), dtype)))
        return dot(arms, state.theta + v * z)

    return algorithm_from_index(arms, ridge, index)
