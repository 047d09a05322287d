"""Thompson sampling for linear bandits (Abeille, Lazaric, 2017; Agrawal, Goyal, 2013)."""

from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.linear._problem.arms import check_ridge, checked_arms
from jaxbandits.linear._shared.factor import backward, factored, gram_of
from jaxbandits.linear._shared.radius import radius_at
from jaxbandits.linear._shared.regret import State, algorithm_from_index
from jaxbandits.numerics.linalg import dot
from jaxbandits.numerics.normal import normal


class Proved(NamedTuple):
    """Width of the draws for which regret is proved: the radius C of `lin_ucb` at delta / (4 T)."""

    delta: Array | float  # () in (0, 1), allowed probability of failure
    norm_bound: Array | float  # () >= 0, upper bound of ||theta||
    # () in [1, 2^31): T, number of pulls that the run is meant to last. It does not end the run
    horizon: Array | int


class Posterior(NamedTuple):
    """Width of the draws in units of the posterior's: it has no proof, and far less regret than `Proved`."""

    scale: Array | float = 1.0  # () > 0; sqrt(9 d log(T / delta)) is Agrawal and Goyal's


def lin_ts(
    arms: Array,
    *,
    width: Proved | Posterior,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
) -> Algorithm:
    """Draws theta_hat + v A^-1/2 z with a standard normal z, and pulls the arm that is best under it until the horizon.

    Args:
        arms: float (K, d), features; the run has their dtype.
        width: v, as `Proved(delta, norm_bound, horizon)`, or as `Posterior(scale)`, where v = scale noise_scale.
        ridge: () > 0, regularisation of least squares, at least 1.2e-4 (float32) or 2.2e-13 (float64) times the
            largest |x|^2. With a smaller one the rank-one updates lose their digits.
        noise_scale: () > 0, sub-Gaussian constant of the noise, in units of reward.

    Returns:
        Algorithm with actions `Pull` and answers int (), the arm with the largest estimate. It never stops: give `run`
        or `sweep` a `horizon`. In its state, `counts` (K,) and `sums` (K,) are exact.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee** (`Proved`; ||theta|| <= norm_bound, ||x|| <= 1): with probability 1 - delta, regret of order
    d^1.5 sqrt(T), up to logarithms. **Cost**: O(K d^2 + d^3) per round, and d normal variables.

    Source: Abeille and Lazaric (2017), Linear Thompson sampling revisited; Agrawal and Goyal (2013), Thompson sampling
    for contextual bandits with linear payoffs.
    """
    arms = checked_arms(arms)
    check_ridge(arms, ridge)
    checks.positive("noise_scale", noise_scale)
    d, dtype = arms.shape[1], arms.dtype
    checks.instance("width", width, (Proved, Posterior))
    if isinstance(width, Proved):
        checks.probability("width.delta", width.delta)
        checks.not_negative("width.norm_bound", width.norm_bound)
        checks.integer("width.horizon", width.horizon, least=1, most=2**31 - 1)
    else:
        checks.positive("width.scale", width.scale)
    numbers = type(width)(*(jnp.asarray(x, dtype) for x in width))
    ridge, noise_scale = (jnp.asarray(x, dtype) for x in (ridge, noise_scale))

    def index(key: Key, state: State) -> Array:
        if isinstance(numbers, Proved):
            delta, norm_bound, horizon = numbers
            v = radius_at(state.logdet, *(delta, ridge, noise_scale, norm_bound, 4 * horizon))
        else:
            v = numbers.scale * noise_scale
        # A = L L', and L'^-1 z has the covariance A^-1.
        A = gram_of(arms, state.counts.astype(dtype)) + ridge * jnp.eye(d, dtype=dtype)
        z = backward(factored(A), list(normal(key, (d,), dtype)))
        return dot(arms, state.theta + v * z)

    return algorithm_from_index(arms, ridge, index)
