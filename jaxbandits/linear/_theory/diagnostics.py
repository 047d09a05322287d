"""Diagnostics of a run: the estimate of theta from counts and sums, and its precision."""

from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.linear._problem.arms import checked_arms
from jaxbandits.linear._shared.least_squares import estimate_of
from jaxbandits.numerics.linalg import gram, spd_inverse_logdet


class Estimate(NamedTuple):
    """Least squares, with A = ridge I + sum_k counts_k x_k x_k'."""

    theta: Array  # float (d,)
    inverse: Array  # float (d, d)   A^-1: y.theta has the squared width y'A^-1 y
    logdet: Array  # float ()        log det(A / ridge), for `lingape_radius`; log det A if ridge is 0


def estimate(arms: Array, counts: Array, sums: Array, *, ridge: Array | float = 0.0) -> Estimate:
    """Computes the least-squares estimate from pulls and the sums of their rewards.

    Args:
        arms: float (K, d), the algorithm's arms.
        counts: int (K,), pulls of each arm: `state.counts`.
        sums: float (K,), sums of rewards: `state.sums`.
        ridge: () >= 0, the algorithm's ridge (1 by default in `lingape`).

    Returns:
        Estimate. With ridge 0 an arm without a pull counts as pulled once, so that A is regular.

    Raises:
        ValueError: an argument is not as above.

    Cost: O(K d^2 + d^3).

    Example:
        The gaps to the best arm, and the half-widths of their confidence intervals:

        >>> import jax, jaxbandits
        >>> from jaxbandits import linear
        >>> instance = linear.canonical(0.5)
        >>> algorithm = linear.lingape(instance.arms, delta=0.05)
        >>> state = jaxbandits.run(jax.random.key(0), algorithm, linear.environment(instance), max_rounds=10**5).state
        >>> estimate = linear.estimate(instance.arms, state.counts, state.sums, ridge=1.0)
        >>> radius = linear.lingape_radius(estimate.logdet, K=5, delta=0.05)
        >>> directions = instance.arms[0] - instance.arms[1:]
        >>> half = radius * jnp.sqrt(jnp.sum(directions @ estimate.inverse * directions, axis=1))
        >>> print((directions @ estimate.theta >= half).all())  # so it has stopped
        True
    """
    arms = checked_arms(arms)
    counts = checks.array("counts", counts, (arms.shape[0],), kind="int", least=0)
    sums = checks.array("sums", sums, (arms.shape[0],), dtype=arms.dtype)
    checks.not_negative("ridge", ridge)
    # The ridge may be traced, so a select decides whether an arm without a pull counts as pulled.
    ridge = jnp.asarray(ridge, arms.dtype)
    weights = jnp.maximum(counts, jnp.where(ridge > 0, 0, 1)).astype(arms.dtype)
    scale = jnp.where(ridge > 0, ridge, 1)
    inverse, logdet = spd_inverse_logdet(
        (gram(arms, weights) + ridge * jnp.eye(arms.shape[1], dtype=arms.dtype)) / scale
    )
    inverse = inverse / scale
    return Estimate(estimate_of(inverse, arms, sums), inverse, logdet)
