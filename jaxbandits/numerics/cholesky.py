"""Cholesky factors of one lane's matrices of 16 to some thousand rows, in blocks, as matrix products under `vmap`.

LAPACK would take the lanes one after another, and jaxlib's batched LAPACK calls may wait inside the pool of threads
that is to do their work. Only the leading `live` rows take part: a matrix that is mostly padding costs little.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.numerics.trips import blocks_below, common, for_blocks, padded

BLOCK = 16  # rows of a diagonal block, which is factored pivot by pivot
PANEL = 64  # columns that are updated block by block; those to their right, once for all of these
PANELS = 8  # at most, of which each is program text of its own


class Factor(NamedTuple):
    """L with L L' = A, padded to whole blocks."""

    lower: Array  # float (p, p)  0 above the diagonal, and in the blocks beyond the live rows
    inverses: Array  # float (p / 16, 16, 16)  of the diagonal blocks of L
    live: Array  # int32 ()  rows that count


def cholesky(matrix: Array, live: Array | int | None = None) -> Factor:
    """The Cholesky factor of a symmetric positive definite matrix.

    The blocks below a diagonal block are found by multiplying with its inverse, and corrected once by the residual. So
    the factor is as accurate as that of substitution: LL' is A but for rounding, however close to singular A is.

    Args:
        matrix: float (n, n); only its leading (live, live) part is read.
        live: () rows that count; None: all.

    Returns:
        Factor. If a pivot is not positive, NaN. Cost: O(n^2 live) / 3, in live / 16 turns.
    """
    n = matrix.shape[0]
    live = jnp.asarray(n if live is None else live, jnp.int32)
    size = padded(n, BLOCK)
    is_live = jnp.arange(size, dtype=jnp.int32) < live
    matrix = jnp.pad(matrix, (0, size - n))
    matrix = jnp.where(is_live[:, None] & is_live, matrix, jnp.eye(size, dtype=matrix.dtype))
    panels = _panels(size)

    # Each block is subtracted from the remainder as soon as it is known. Of a nearly singular matrix little remains, so
    # rounding is small, too; subtracting all earlier products of a block at once is faster, but left twice the error.
    def from_panel(i: int, remains: list[Array]) -> tuple[list[Array], list[Array]]:
        if i == len(panels):
            return [], []
        top = panels[i][0]

        def found() -> tuple[list[Array], list[Array]]:
            lower, inverses = _factor_panel(remains[0], live - top)
            places = [slice(first - top, end - top) for first, end in panels[i + 1 :]]
            products = [_times(lower[place.start :], lower[place].T) for place in places]
            rest = from_panel(i + 1, [a - b for a, b in zip(remains[1:], products, strict=True)])
            return [lower, *rest[0]], [inverses, *rest[1]]

        def nothing() -> tuple[list[Array], list[Array]]:
            lower = [jnp.zeros((size - first, end - first), matrix.dtype) for first, end in panels[i:]]
            return lower, [jnp.zeros(((end - first) // BLOCK, BLOCK, BLOCK), matrix.dtype) for first, end in panels[i:]]

        return found() if i == 0 else lax.cond(common(live) > top, found, nothing)

    lower, inverses = from_panel(0, [matrix[first:, first:end] for first, end in panels])
    columns = [jnp.pad(column, ((size - column.shape[0], 0), (0, 0))) for column in lower]
    return Factor(jnp.concatenate(columns, axis=1), jnp.concatenate(inverses), live)


def solve_lower(factor: Factor, right: Array) -> Array:
    """L^-1 B.

    Args:
        factor: of a matrix of n rows.
        right: float (n, k) or (n,); the rows beyond the live ones are not read.

    Returns:
        float (n, k) or (n,), 0 in the rows beyond the live ones. Cost: O(n live k).
    """
    right, shape = _columns(factor, right)

    def turn(first: Array, solved: Array) -> Array:
        left = lax.dynamic_slice_in_dim(factor.lower, first, BLOCK)
        block = lax.dynamic_slice_in_dim(right, first, BLOCK) - _times(left, solved)
        diagonal = lax.dynamic_slice_in_dim(left, first, BLOCK, axis=1)
        solution = _divide(diagonal, factor.inverses[first // BLOCK], block)
        return lax.dynamic_update_slice_in_dim(solved, solution, first, axis=0)

    return for_blocks(factor.live, BLOCK, turn, jnp.zeros_like(right))[: shape[0]].reshape(shape)


def solve_upper(factor: Factor, right: Array) -> Array:
    """L'^-1 B; arguments, result and cost as for `solve_lower`."""
    right, shape = _columns(factor, right)
    # From the last block of any lane upwards; a lane with fewer blocks solves for zeros until its own begin.
    last = blocks_below(factor.live, BLOCK) - 1

    def turn(done: Array, solved: Array) -> Array:
        first = last * BLOCK - done
        below = lax.dynamic_slice_in_dim(factor.lower, first, BLOCK, axis=1)
        block = lax.dynamic_slice_in_dim(right, first, BLOCK) - _times(below.T, solved)
        diagonal = lax.dynamic_slice_in_dim(below, first, BLOCK)
        solution = _divide(diagonal.T, factor.inverses[first // BLOCK].T, block)
        return lax.dynamic_update_slice_in_dim(solved, solution, first, axis=0)

    return for_blocks(factor.live, BLOCK, turn, jnp.zeros_like(right))[: shape[0]].reshape(shape)


def log_det(factor: Factor) -> Array:
    """The logarithm of det A, float ()."""
    diagonal = jnp.diagonal(factor.lower)
    is_live = jnp.arange(diagonal.shape[0], dtype=jnp.int32) < factor.live
    return 2 * jnp.sum(jnp.log(jnp.where(is_live, diagonal, 1)))


def leading(factor: Factor, rows: int) -> Factor:
    """The factor of the first `rows` rows and columns, a multiple of 16 or all of them."""
    size = padded(rows, BLOCK)
    return Factor(factor.lower[:size, :size], factor.inverses[: size // BLOCK], jnp.minimum(factor.live, size))


def _columns(factor: Factor, right: Array) -> tuple[Array, tuple[int, ...]]:
    """The right-hand side as a matrix of whole blocks, with zeros beyond the live rows; and its shape before."""
    columns = right.reshape(right.shape[0], -1)
    columns = jnp.pad(columns, ((0, factor.lower.shape[0] - right.shape[0]), (0, 0)))
    return jnp.where(jnp.arange(columns.shape[0], dtype=jnp.int32)[:, None] < factor.live, columns, 0), right.shape


def _panels(size: int) -> list[tuple[int, int]]:
    """First row and end of each panel."""
    width = max(PANEL, padded(-(-size // PANELS), BLOCK))
    return [(first, min(first + width, size)) for first in range(0, size, width)]


def _factor_panel(panel: Array, live: Array) -> tuple[Array, Array]:
    """The columns of L, and the inverses of its blocks, from what remains of A in them and below."""
    rows, width = panel.shape
    places = jnp.arange(rows, dtype=jnp.int32)[:, None]

    def turn(first: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        remains, lower, inverses = carry
        columns = lax.dynamic_slice_in_dim(remains, first, BLOCK, axis=1)
        diagonal, inverse = _small(lax.dynamic_slice_in_dim(columns, first, BLOCK))
        below = _times(columns, inverse.T)
        below += _times(columns - _times(below, diagonal.T), inverse.T)
        below = jnp.where(places < first + BLOCK, 0, below)
        remains -= _times(below, below[:width].T)
        column = lax.dynamic_update_slice_in_dim(below, diagonal, first, axis=0)
        lower = lax.dynamic_update_slice_in_dim(lower, column, first, axis=1)
        return remains, lower, lax.dynamic_update_index_in_dim(inverses, inverse, first // BLOCK, axis=0)

    inverses = jnp.zeros((width // BLOCK, BLOCK, BLOCK), panel.dtype)
    carry = panel, jnp.zeros_like(panel), inverses
    return for_blocks(jnp.minimum(live, width), BLOCK, turn, carry)[1:]


def _divide(triangle: Array, inverse: Array, block: Array) -> Array:
    """The solution X of T X = B, corrected once."""
    solution = _times(inverse, block)
    return solution + _times(inverse, block - _times(triangle, solution))


def _small(matrix: Array) -> tuple[Array, Array]:
    """L and L^-1 of a few rows, pivot by pivot."""
    size = matrix.shape[0]
    place = jnp.arange(size, dtype=jnp.int32)

    def pivot(k: Array, work: Array) -> Array:
        row = lax.dynamic_slice_in_dim(work, k, 1)
        value = lax.dynamic_slice(work, (k, k), (1, 1))
        row /= jnp.sqrt(jnp.where(value > 0, value, jnp.nan))
        column = lax.dynamic_slice_in_dim(work, k, 1, axis=1) / jnp.sqrt(value)
        return jnp.where((place == k)[:, None], row, work - jnp.where((place > k)[:, None], column, 0) * row)

    work = jnp.concatenate([matrix, jnp.eye(size, dtype=matrix.dtype)], axis=1)
    work = lax.fori_loop(0, size, pivot, work)
    # The rows are now [L' L^-1]; what is left of A below the diagonal of L' is rounding.
    return jnp.tril(work[:, :size].T), jnp.tril(work[:, size:])


def _times(a: Array, b: Array) -> Array:
    return jnp.matmul(a, b, precision="highest")
