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
    return estimate_of(inverse, arms, sums), inverse


def estimate_of(inverse: Array, arms: Array, sums: Array) -> Array:
    """Computes A^-1 sum_k sums_k x_k, the estimate of theta, float (d,)."""
    return jnp.matmul(inverse, jnp.matmul(sums, arms, precision="highest"), precision="highest")


def inverse_gram(arms: Array, counts: Array, ridge: Array | float) -> Array:
    """Computes the inverse of A alone, float (d, d)."""
    A = gram(arms, jnp.maximum(counts, 1).astype(arms.dtype))
    return spd_inverse(A + jnp.asarray(ridge, arms.dtype) * jnp.eye(arms.shape[1], dtype=arms.dtype))
