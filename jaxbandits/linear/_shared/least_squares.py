"""Least squares from pull counts and reward sums."""

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.numerics.linalg import gram, spd_inverse


def least_squares(arms: Array, counts: Array, sums: Array, ridge: Array | float) -> tuple[Array, Array]:
    """Computes the estimate of theta, and the inverse of A = ridge I + sum_k counts_k x_k x_k'.

    An arm without a pull counts as pulled once, so that A is regular; before the first pull the estimate is 0.

    Args:
        arms: float (K, d).
        counts: int (K,), pulls.
        sums: float (K,), sums of rewards.
        ridge: () >= 0.

    Returns:
        float (d,) and float (d, d). Cost: O(K d^2 + d^3).
    """
    inverse = inverse_gram(arms, counts, ridge)
    return jnp.matmul(inverse, jnp.matmul(sums, arms, precision="highest"), precision="highest"), inverse


def inverse_gram(arms: Array, counts: Array, ridge: Array | float) -> Array:
    """Computes the inverse of A alone, float (d, d)."""
    A = gram(arms, jnp.maximum(counts, 1).astype(arms.dtype))
    return spd_inverse(A + jnp.asarray(ridge, arms.dtype) * jnp.eye(arms.shape[1], dtype=arms.dtype))
