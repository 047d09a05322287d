"""The posterior on a grid given many observations, recomputed in blocks, as matrix products under `vmap`.

The time is proportional to the number of observations, not to the capacity.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.numerics.cholesky import BLOCK, cholesky
from jaxbandits.numerics.gp import explained
from jaxbandits.numerics.loops import by_parts, for_blocks
from jaxbandits.numerics.platforms import by_platform

SHARED = 32  # rows read per turn for several columns, as a product
COLUMN_ROWS = 4  # rows read per turn for a single column, elementwise


class Known(NamedTuple):
    """Posterior of f on a grid of M points."""

    mean: Array  # float (M,)
    variance: Array  # float (M,)  >= 0
    rows: Array  # float (p, M)    R: for the prior covariance K, the posterior covariance is K - R'R


def known(
    columns: Callable[[Array], Array],
    prior_variance: Array,
    points: Array,
    values: Array,
    noise: Array,
    rows: Array,
    *,
    live: Array,
    where: Array | bool = True,
    is_noisy: bool = True,
) -> Known:
    """Computes the posterior given one observation at each of several points, each with a noise variance of its own.

    It is `condition` for 16 observations at a time. w observations at one point are one of their mean, with a w-th of
    the noise variance. With a jitter as the noise, the rows are features of inducing points, and the variance is their
    residual.

    Args:
        columns: prior covariance of the grid with 16 of its points, (index (16,)) -> float (16, M). An index of M or
            more may stand for any point.
        prior_variance: float (M,).
        points: int (n,), indices of the observed points, without repeats.
        values: float (n,), the observations.
        noise: float (n,) >= 0, noise variances of the observations.
        rows: float (p, M), buffer for the new rows, p >= n a multiple of 16.
        live: int (), number of points at the front that count.
        where: bool (), True to write this lane's rows. If False, they stay unchanged.
        is_noisy: True if the noise is not small against the prior variance. A product with the inverse of a block's
            factor then loses no digits. If False, the rows are corrected once by the residual, but not the mean.

    Returns:
        Known, with 0 in the rows of a block beyond its live ones. NaN if the covariance of the observations is not
        positive definite. Cost: O(live^2 M), in (live / 16)^2 / 2 turns.
    """
    (p, size), dtype = rows.shape, rows.dtype
    points, values, noise = (jnp.pad(x, (0, p - x.shape[0])) for x in (points, values, noise))
    live = jnp.where(where, live, 0)
    is_live = jnp.arange(p, dtype=jnp.int32) < live

    def turn(first: Array, so_far: Known) -> Known:
        index, value, block_noise, counts = (
            lax.dynamic_slice_in_dim(x, first, BLOCK) for x in (points, values, noise, is_live)
        )

        def without(block: Array, covariance: Array) -> Array:
            rows = lax.dynamic_slice_in_dim(so_far.rows, block * BLOCK, BLOCK)
            return covariance - jnp.matmul(rows.at[:, index].get(mode="clip").T, rows, precision="highest")

        covariance = lax.fori_loop(0, first // BLOCK, without, columns(index))
        square = jnp.where(counts[:, None] & counts[None], covariance.at[:, index].get(mode="clip"), 0)
        factor = cholesky(square + jnp.diag(jnp.where(counts, block_noise, 1)))
        inverse = jnp.where(counts[None], factor.inverses[0], 0)
        gap = value - so_far.mean.at[index].get(mode="clip")
        new, surprise = (jnp.matmul(inverse, x, precision="highest") for x in (covariance, gap))
        if not is_noisy:
            residual = covariance - jnp.matmul(factor.lower, new, precision="highest")
            new += jnp.matmul(inverse, residual, precision="highest")
        old = lax.dynamic_slice_in_dim(so_far.rows, first, BLOCK)
        return Known(
            mean=so_far.mean + jnp.matmul(surprise, new, precision="highest"),
            variance=jnp.maximum(so_far.variance - jnp.sum(new**2, axis=0), 0),
            rows=lax.dynamic_update_slice_in_dim(so_far.rows, jnp.where(where, new, old), first, axis=0),
        )

    return for_blocks(live, BLOCK, turn, Known(jnp.zeros(size, dtype), prior_variance, rows))


def unexplained(columns: Array, rows: Array, indices: Array, live: Array) -> Array:
    """Computes the columns minus the part that rows R explain, K[:, a] - R'R[:, a].

    Args:
        columns: float (n, M), K[:, a] for each a in `indices`.
        rows: float (p, M), p a multiple of `SHARED`; 0 beyond the first `live` rows.
        indices: int (n,).
        live: int ().

    Returns:
        float (n, M). Cost: O(n live M).
    """

    def without(rows: Array, columns: Array) -> Array:
        return columns - explained(rows, rows.at[:, indices].get(mode="clip").T)

    def turn(first: Array, columns: Array) -> Array:
        return without(lax.dynamic_slice_in_dim(rows, first, SHARED), columns)

    # In turns, the data stay in a core's cache. On an accelerator, the host would check a flag in each turn.
    return by_platform(
        columns,
        cpu=lambda columns: for_blocks(live, SHARED, turn, columns),
        default=lambda columns: by_parts(rows.shape[0], live, lambda n: without(rows[:n], columns)),
    )


def unexplained_column(column: Array, rows: Array, index: Array, live: Array) -> Array:
    """Computes `unexplained` for one column (M,), by the first `live` of rows (T, M), T a multiple of `COLUMN_ROWS`."""

    def without(first: Array | int, rows: Array, column: Array) -> Array:
        numbers = first + jnp.arange(rows.shape[0], dtype=jnp.int32)
        coefficients = jnp.where(numbers < live, rows.at[:, index].get(mode="clip"), 0)
        if rows.shape[0] > COLUMN_ROWS:
            return column - explained(rows, coefficients)
        return column - sum(coefficients[i] * rows[i] for i in range(COLUMN_ROWS))

    def turn(first: Array, column: Array) -> Array:
        return without(first, lax.dynamic_slice_in_dim(rows, first, COLUMN_ROWS), column)

    return by_platform(
        column,
        cpu=lambda column: for_blocks(live, COLUMN_ROWS, turn, column),
        default=lambda column: by_parts(rows.shape[0], live, lambda n: without(0, rows[:n], column)),
    )


def explained_by_live(rows: Array, coefficients: Array, live: Array) -> Array:
    """Computes `explained` (n, M) for rows (p, M), p a multiple of `SHARED`, and coefficients (n, p).

    The coefficients must be 0 beyond the live rows.
    """

    def turn(first: Array, total: Array) -> Array:
        block = lax.dynamic_slice_in_dim(coefficients, first, SHARED, axis=1)
        return total + explained(lax.dynamic_slice_in_dim(rows, first, SHARED), block)

    zeros = jnp.zeros((coefficients.shape[0], rows.shape[1]), rows.dtype)
    return by_platform(
        coefficients,
        cpu=lambda _: for_blocks(live, SHARED, turn, zeros),
        default=lambda coefficients: by_parts(rows.shape[0], live, lambda n: explained(rows[:n], coefficients[:, :n])),
    )
