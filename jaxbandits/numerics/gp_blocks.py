"""The posterior on a grid given many observations, found anew in blocks of them, as matrix products under `vmap`.

The time goes with the observations that there are, not with those that there is room for.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.numerics.cholesky import BLOCK, cholesky
from jaxbandits.numerics.gp import explained
from jaxbandits.numerics.loops import by_parts, for_blocks

SHARED = 32  # rows that are read in one turn for several columns, as a product
OWN = 4  # for one column, elementwise


class Known(NamedTuple):
    """What observations tell of f on a grid of M points."""

    mean: Array  # float (M,)
    variance: Array  # float (M,)  >= 0
    rows: Array  # float (p, M)    R, with a prior covariance of K the posterior one is K - R'R


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
    """The posterior given one observation of each of some points, every one with noise of its own.

    `condition` for 16 observations at a time: w of them at one point are one of their mean, with a w-th of the noise.
    With a jitter for the noise, the rows are features of inducing points, and the variance is what these leave.

    Args:
        columns: prior covariance of the grid with 16 of its points, (index (16,)) -> float (16, M). An index of M or
            more stands for some point.
        prior_variance: float (M,).
        points: int (n,), indices of the observed points, no two of them equal.
        values: float (n,), the observations.
        noise: float (n,) >= 0, their variances.
        rows: float (p, M), where the new ones are written, p >= n a multiple of 16.
        live: int (), points at the front that count.
        where: bool (), whether this lane's rows are to be written; else they stay as they are.
        is_noisy: whether the noise is not small against the prior variance: then a product with the inverse of a
            block's factor loses no digits. Else it is corrected once by the residual, of the rows, not of the mean.

    Returns:
        Known, with 0 in the rows of a block beyond its live ones. NaN if the covariance of the observations is not
        positive definite. Cost: O(live^2 M), in (live / 16)^2 / 2 turns.
    """
    (p, size), dtype = rows.shape, rows.dtype
    points, values, noise = (jnp.pad(x, (0, p - x.shape[0])) for x in (points, values, noise))
    live = jnp.where(where, live, 0)
    is_live = jnp.arange(p, dtype=jnp.int32) < live

    def turn(first: Array, so_far: Known) -> Known:
        index, value, own_noise, counts = (
            lax.dynamic_slice_in_dim(x, first, BLOCK) for x in (points, values, noise, is_live)
        )

        def without(block: Array, left: Array) -> Array:
            rows = lax.dynamic_slice_in_dim(so_far.rows, block * BLOCK, BLOCK)
            return left - jnp.matmul(rows.at[:, index].get(mode="clip").T, rows, precision="highest")

        left = lax.fori_loop(0, first // BLOCK, without, columns(index))
        square = jnp.where(counts[:, None] & counts[None], left.at[:, index].get(mode="clip"), 0)
        factor = cholesky(square + jnp.diag(jnp.where(counts, own_noise, 1)))
        inverse = jnp.where(counts[None], factor.inverses[0], 0)
        gap = value - so_far.mean.at[index].get(mode="clip")
        new, surprise = (jnp.matmul(inverse, x, precision="highest") for x in (left, gap))
        if not is_noisy:
            new += jnp.matmul(inverse, left - jnp.matmul(factor.lower, new, precision="highest"), precision="highest")
        old = lax.dynamic_slice_in_dim(so_far.rows, first, BLOCK)
        return Known(
            mean=so_far.mean + jnp.matmul(surprise, new, precision="highest"),
            variance=jnp.maximum(so_far.variance - jnp.sum(new**2, axis=0), 0),
            rows=lax.dynamic_update_slice_in_dim(so_far.rows, jnp.where(where, new, old), first, axis=0),
        )

    return for_blocks(live, BLOCK, turn, Known(jnp.zeros(size, dtype), prior_variance, rows))


def unexplained(columns: Array, rows: Array, indices: Array, live: Array) -> Array:
    """The columns less what rows R explain of them, K[:, a] - R'R[:, a].

    Args:
        columns: float (n, M), K[:, a] for each a of `indices`.
        rows: float (p, M), p in whole `SHARED`s; 0 beyond the first `live` ones.
        indices: int (n,).
        live: int ().

    Returns:
        float (n, M). Cost: O(n live M).
    """

    def without(rows: Array, left: Array) -> Array:
        return left - explained(rows, rows.at[:, indices].get(mode="clip").T)

    def turn(first: Array, left: Array) -> Array:
        return without(lax.dynamic_slice_in_dim(rows, first, SHARED), left)

    # In turns, what is read stays in a core's cache. The host of an accelerator would look at a flag in each of them.
    return lax.platform_dependent(
        columns,
        cpu=lambda columns: for_blocks(live, SHARED, turn, columns),
        default=lambda columns: by_parts(rows.shape[0], live, lambda n: without(rows[:n], columns)),
    )


def unexplained_by_own(column: Array, rows: Array, index: Array, live: Array) -> Array:
    """As `unexplained`, of one column (M,) and rows (T, M) in whole `OWN`s, of which the first `live` count."""

    def without(first: Array | int, rows: Array, left: Array) -> Array:
        numbers = first + jnp.arange(rows.shape[0], dtype=jnp.int32)
        coefficients = jnp.where(numbers < live, rows.at[:, index].get(mode="clip"), 0)
        if rows.shape[0] > OWN:
            return left - explained(rows, coefficients)
        return left - sum(coefficients[i] * rows[i] for i in range(OWN))

    def turn(first: Array, left: Array) -> Array:
        return without(first, lax.dynamic_slice_in_dim(rows, first, OWN), left)

    return lax.platform_dependent(
        column,
        cpu=lambda column: for_blocks(live, OWN, turn, column),
        default=lambda column: by_parts(rows.shape[0], live, lambda n: without(0, rows[:n], column)),
    )


def explained_by_live(rows: Array, coefficients: Array, live: Array) -> Array:
    """`explained` (n, M) by rows (p, M), p in whole `SHARED`s, and coefficients (n, p), 0 beyond the live ones."""

    def turn(first: Array, total: Array) -> Array:
        own = lax.dynamic_slice_in_dim(coefficients, first, SHARED, axis=1)
        return total + explained(lax.dynamic_slice_in_dim(rows, first, SHARED), own)

    zeros = jnp.zeros((coefficients.shape[0], rows.shape[1]), rows.dtype)
    return lax.platform_dependent(
        coefficients,
        cpu=lambda _: for_blocks(live, SHARED, turn, zeros),
        default=lambda coefficients: by_parts(rows.shape[0], live, lambda n: explained(rows[:n], coefficients[:, :n])),
    )
