"""Cholesky factors of the small matrices of a round, spelled out: no library call, no loop.

Every step is elementwise over what a lane holds. The steps stand apart (`lax.optimization_barrier`), because a compiler
that fuses them computes the first ones anew in each of the last.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.numerics.linalg import dot


class Factor(NamedTuple):
    """A = L L'."""

    columns: tuple[Array, ...]  # float (d - k,)   L_lk for l = k, .., d - 1
    scales: tuple[Array, ...]  # d of float ()   1 / L_kk; NaN from the first pivot on that is not positive


def gram_of(arms: Array, weights: Array) -> Array:
    """A(w) = sum_k w_k x_k x_k', float (d, d), as one product of the weights with a table (K, d^2)."""
    K, d = arms.shape
    table = (arms[:, :, None] * arms[:, None, :]).reshape(K, d * d)
    return jnp.matmul(weights, table, precision="highest").reshape(d, d)


def factored(matrix: Array) -> Factor:
    """The factor of a symmetric positive definite matrix (d, d). Cost: O(d^3).

    Column by column, from those before it: an update of all that is left takes twice as long, being written and read d
    times (K = 50, d = 20, 64 lanes, core-us a round under load: FWS 23.2 and 12.9, LinGame 26.9 and 16.0).
    """
    columns, scales = [], []
    for k in range(matrix.shape[0]):
        rest = matrix[k, k:]
        for l, column in enumerate(columns):
            rest = rest - column[k - l] * column[k - l :]
        scale = lax.rsqrt(jnp.where(rest[0] > 0, rest[0], jnp.nan))
        column, scale = lax.optimization_barrier((rest * scale, scale))
        columns.append(column)
        scales.append(scale)
    return Factor(tuple(columns), tuple(scales))


def is_positive_definite(matrix: Array) -> Array:
    """Whether all pivots of elimination are positive, bool (). No NaN comes of those that are not. Cost: O(d^3)."""
    holds, rows = jnp.ones((), bool), []
    for k in range(matrix.shape[0]):
        row = matrix[k, k:]
        for l, (above, share) in enumerate(rows):
            row = row - share[k - l] * above[k - l :]
        holds &= row[0] > 0
        share = row / jnp.where(holds, row[0], 1)
        # Its shares of the pivot, kept beside it, spare a product a term (Lazy Track-and-Stop, as above: 12.4, 6.9).
        row, share, holds = lax.optimization_barrier((row, share, holds))
        rows.append((row, share))
    return holds


def forward(factor: Factor, directions: Array) -> list[Array]:
    """The entries of L^-1 y of every row y, d of float (M,): the sum of their squares is ||y||^2 in A^-1."""
    solved: list[Array] = []
    for k, scale in enumerate(factor.scales):
        rest = directions[:, k]
        for l, entry in enumerate(solved):
            rest = rest - entry * factor.columns[l][k - l]
        solved.append(rest * scale)
    return solved


def backward(factor: Factor, entries: list[Array]) -> Array:
    """L'^-1 s, float (..., d), from the entries of s."""
    d = len(entries)
    solved: list[Array] = [entries[0]] * d
    for k in reversed(range(d)):
        rest = entries[k]
        for l in range(k + 1, d):
            rest = rest - factor.columns[k][l - k] * solved[l]
        solved[k] = rest * factor.scales[k]
    return jnp.stack(solved, axis=-1)


class Norms(NamedTuple):
    """Directions in the inverse of a matrix."""

    squares: Array  # float (M,)   ||y||^2 in A^-1
    factor: Factor
    entries: list[Array]  # of L^-1 y


def norms_of(matrix: Array, directions: Array) -> Norms:
    """Cost: O(M d^2 + d^3)."""
    factor = factored(matrix)
    entries = forward(factor, directions)
    return Norms(sum((e * e for e in entries[1:]), start=entries[0] * entries[0]), factor, entries)


def influence(factor: Factor, arms: Array, direction: Array) -> Array:
    """x_k'A^-1 y of every arm (K,), for one direction y (d,). Cost: O(d^2 + K d)."""
    return dot(arms, backward(factor, [entry[0] for entry in forward(factor, direction[None])]))


def root_after(root: Array, x: Array, image: Array, leverage: Array, times: Array) -> Array:
    """From R with R'R = A^-1 that of A + times x x', float (d, d); `image` A^-1 x, `leverage` x'A^-1 x. Cost: O(d^2).

    The new one is (I + times f f')^-1/2 R with f = R x: a step of rank one, where a triangular R would be renewed row
    by row. 0 times change no bit.

    Source: Potter's square root of a covariance (Bierman, 1977, Factorization methods for discrete sequential
    estimation).
    """
    scale = jnp.sqrt(1 + times * leverage)
    return root - (times / (scale * (scale + 1)) * dot(root, x))[:, None] * image[None]


def root_without_errors(root: Array, matrix: Array) -> Array:
    """R with R'R = A^-1, from one for which this holds up to some rounding. Cost: O(d^3).

    A Newton step, which squares what R A R' is away from I, and turns R no more than that.
    """
    product = _product(_product(root, matrix), root.T)
    return root + _product(jnp.eye(root.shape[0], dtype=root.dtype) - product, root) / 2


def _product(a: Array, b: Array) -> Array:
    """Spelled out: many small products of matrices would be a call each."""
    return sum((a[:, k, None] * b[k, None] for k in range(1, b.shape[0])), start=a[:, 0, None] * b[0, None])
