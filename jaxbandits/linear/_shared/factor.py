"""Cholesky factors of the small matrices of a round, spelled out: no library call, no loop.

Every step is elementwise over a lane's values. Barriers (`lax.optimization_barrier`) separate the steps, because a
compiler that fuses them computes the first ones anew in each of the last.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.numerics.linalg import dot


class Factor(NamedTuple):
    """Cholesky factor L of A = L L'."""

    columns: tuple[Array, ...]  # float (d - k,)   L_lk for l = k, .., d - 1
    scales: tuple[Array, ...]  # d of float ()   1 / L_kk; NaN from the first pivot that is not positive


def gram_of(arms: Array, weights: Array) -> Array:
    """Computes A(w) = sum_k w_k x_k x_k', float (d, d), as one product of the weights with a table (K, d^2)."""
    K, d = arms.shape
    table = (arms[:, :, None] * arms[:, None, :]).reshape(K, d * d)
    return jnp.matmul(weights, table, precision="highest").reshape(d, d)


def factored(matrix: Array) -> Factor:
    """Computes the factor of a symmetric positive definite matrix (d, d). Cost: O(d^3).

    Each column follows from the columns before it. An update of all remaining columns takes twice as long, because it
    is written and read d times (K = 50, d = 20, 64 lanes, core-us per round under load: FWS 23.2 and 12.9, LinGame 26.9
    and 16.0).
    """
    columns, scales = [], []
    for k in range(matrix.shape[0]):
        residual = matrix[k, k:]
        for l, column in enumerate(columns):
            residual = residual - column[k - l] * column[k - l :]
        scale = lax.rsqrt(jnp.where(residual[0] > 0, residual[0], jnp.nan))
        column, scale = lax.optimization_barrier((residual * scale, scale))
        columns.append(column)
        scales.append(scale)
    return Factor(tuple(columns), tuple(scales))


def is_positive_definite(matrix: Array) -> Array:
    """Checks whether all pivots of elimination are positive, bool (). It produces no NaN. Cost: O(d^3)."""
    holds, rows = jnp.ones((), bool), []
    for k in range(matrix.shape[0]):
        row = matrix[k, k:]
        for l, (above, share) in enumerate(rows):
            row = row - share[k - l] * above[k - l :]
        holds &= row[0] > 0
        share = row / jnp.where(holds, row[0], 1)
        # The row over its pivot is kept too, which saves a product per term (Lazy Track-and-Stop, as above: 12.4, 6.9).
        row, share, holds = lax.optimization_barrier((row, share, holds))
        rows.append((row, share))
    return holds


def forward(factor: Factor, directions: Array) -> list[Array]:
    """Computes the entries of L^-1 y of every row y, d of float (M,); the sum of their squares is ||y||^2 in A^-1."""
    solved: list[Array] = []
    for k, scale in enumerate(factor.scales):
        residual = directions[:, k]
        for l, entry in enumerate(solved):
            residual = residual - entry * factor.columns[l][k - l]
        solved.append(residual * scale)
    return solved


def backward(factor: Factor, entries: list[Array]) -> Array:
    """Computes L'^-1 s, float (..., d), from the entries of s."""
    d = len(entries)
    solved: list[Array] = [entries[0]] * d
    for k in reversed(range(d)):
        residual = entries[k]
        for l in range(k + 1, d):
            residual = residual - factor.columns[k][l - k] * solved[l]
        solved[k] = residual * factor.scales[k]
    return jnp.stack(solved, axis=-1)


class Norms(NamedTuple):
    """Norms of directions in the inverse of a matrix."""

    squares: Array  # float (M,)   ||y||^2 in A^-1
    factor: Factor
    entries: list[Array]  # d of float (M,)   entries of L^-1 y


def norms_of(matrix: Array, directions: Array) -> Norms:
    """Computes the squared norms ||y||^2 of directions y (M, d) in A^-1. Cost: O(M d^2 + d^3)."""
    factor = factored(matrix)
    entries = forward(factor, directions)
    return Norms(sum((e * e for e in entries[1:]), start=entries[0] * entries[0]), factor, entries)


def influence(factor: Factor, arms: Array, direction: Array) -> Array:
    """Computes x_k'A^-1 y of every arm (K,), for one direction y (d,). Cost: O(d^2 + K d)."""
    return dot(arms, backward(factor, [entry[0] for entry in forward(factor, direction[None])]))


def root_after(root: Array, x: Array, image: Array, leverage: Array, times: Array) -> Array:
    """Updates R with R'R = A^-1 to A + times x x', float (d, d); `image` is A^-1 x, `leverage` x'A^-1 x. Cost: O(d^2).

    The new R is (I + times f f')^-1/2 R with f = R x: a step of rank one, whereas a triangular R would be renewed row
    by row. With 0 times no bit changes.

    Source: Potter's square root of a covariance (Bierman, 1977, Factorization methods for discrete sequential
    estimation).
    """
    scale = jnp.sqrt(1 + times * leverage)
    return root - (times / (scale * (scale + 1)) * dot(root, x))[:, None] * image[None]


def root_without_errors(root: Array, matrix: Array) -> Array:
    """Corrects an R for which R'R = A^-1 holds up to rounding. Cost: O(d^3).

    It is a Newton step, which squares the distance of R A R' from I, and turns R no more than that.
    """
    product = _product(_product(root, matrix), root.T)
    return root + _product(jnp.eye(root.shape[0], dtype=root.dtype) - product, root) / 2


def _product(a: Array, b: Array) -> Array:
    """Multiplies two matrices, spelled out: many small products of matrices would be a call each."""
    return sum((a[:, k, None] * b[k, None] for k in range(1, b.shape[0])), start=a[:, 0, None] * b[0, None])
