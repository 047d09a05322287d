"""LinUCB, or OFUL: the arm with the largest upper bound (Abbasi-Yadkori, Pal, Szepesvari, 2011)."""

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.linear._problem.arms import check_ridge, checked_arms
from jaxbandits.linear._shared.radius import radius_at
from jaxbandits.linear._shared.regret import State, algorithm_from_index
from jaxbandits.numerics.linalg import dot


def lin_ucb(
    arms: Array,
    *,
    delta: Array | float,
    norm_bound: Array | float,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
) -> Algorithm:
    """Pulls the arm with the largest upper confidence bound, x.theta_hat + C ||x|| in A^-1, until the horizon.

    C = noise_scale sqrt(logdet + 2 log(1 / delta)) + sqrt(ridge) norm_bound with logdet = log det(A / ridge). It is
    `lingape_radius` with union_bound 1.

    Args:
        arms: float (K, d), features; the run has their dtype.
        delta: () in (0, 1), allowed probability that theta ever leaves the ellipsoid of radius C.
        norm_bound: () >= 0, upper bound of ||theta||.
        ridge: () > 0, regularisation of least squares, at least 1.2e-4 (float32) or 2.2e-13 (float64) times the
            largest |x|^2. With a smaller one the rank-one updates lose their digits.
        noise_scale: () > 0, sub-Gaussian constant of the noise, in units of reward.

    Returns:
        Algorithm with actions `Pull` and answers int (), the arm with the largest estimate. It never stops: give `run`
        or `sweep` a `horizon`. In its state, `counts` (K,) and `sums` (K,) are exact.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee** (Theorem 3; ||theta|| <= norm_bound, ||x|| <= 1, abs(x.theta) <= 1, ridge >= 1): with probability
    1 - delta, for all n at once, regret <= 4 sqrt(n d log(ridge + n / d)) (sqrt(ridge) norm_bound + noise_scale
    sqrt(2 log(1 / delta) + d log(1 + n / (ridge d)))). **Cost**: O(K d) per round, O(K d^2 + d^3) per refresh.

    Source: Abbasi-Yadkori, Pal and Szepesvari (2011), Improved algorithms for linear stochastic bandits, Theorems 2, 3.
    """
    arms = checked_arms(arms)
    checks.probability("delta", delta)
    checks.not_negative("norm_bound", norm_bound)
    check_ridge(arms, ridge)
    checks.positive("noise_scale", noise_scale)
    numbers = (delta, norm_bound, ridge, noise_scale)
    delta, norm_bound, ridge, noise_scale = (jnp.asarray(x, arms.dtype) for x in numbers)
    settings = (delta, ridge, noise_scale, norm_bound, jnp.ones((), arms.dtype))

    def index(key: Key, state: State) -> Array:
        del key
        C = radius_at(state.logdet, *settings)
        return dot(arms, state.theta) + C * jnp.sqrt(jnp.maximum(state.leverage, 0))

    return algorithm_from_index(arms, ridge, index)
