"""Cholesky factors of one lane's matrices of 16 to some thousand rows, in blocks, as matrix products under `vmap`.

LAPACK would process the lanes one after another, and jaxlib's batched LAPACK calls may block inside the thread pool
that must do their work. Only the leading `live` rows take part: a matrix that is mostly padding costs little.
"""

import itertools
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.numerics.loops import blocks_below, for_blocks, padded

BLOCK = 16  # rows of a diagonal block, which is factored pivot by pivot
GROUPS, LEAST = 4, 64  # largest number of groups of blocks, each with a loop of its own; smallest rows of a group


class Factor(NamedTuple):
    """L with L L' = A, padded to whole blocks."""

    lower: Array  # float (p, p)  0 above the diagonal, and in the blocks beyond the live rows
    inverses: Array  # float (p / 16, 16, 16)  inverses of the diagonal blocks of L
    live: Array  # int32 ()  number of rows that count


def cholesky(matrix: Array, live: Array | int | None = None) -> Factor:
    """Computes the Cholesky factor of a symmetric positive definite matrix.

    The blocks below a diagonal block are computed by multiplying with its inverse, and corrected once by the residual.
    The factor is therefore as accurate as by substitution: LL' is A up to rounding, however close to singular A is.

    Args:
        matrix: float (n, n); only its leading (live, live) part is read.
        live: () number of rows that count. If None, all.

    Returns:
        Factor. NaN if a pivot is not positive. Cost: O(live^3 + n^2), in live / 16 turns.
    """
    n, size = matrix.shape[0], padded(matrix.shape[0], BLOCK)
    count = jnp.asarray(n if live is None else live, jnp.int32)
    is_live = jnp.arange(size, dtype=jnp.int32) < count
    matrix = jnp.pad(matrix, (0, size - n))
    matrix = jnp.where(is_live[:, None] & is_live[None], matrix, jnp.eye(size, dtype=matrix.dtype))
    # The live blocks move to the end: the remaining matrix is then the last part, smaller with every group.
    width, blocks = max(padded(-(-size // GROUPS), BLOCK), LEAST), blocks_below(count, BLOCK)
    dead = 0 if live is None or size <= width else size - BLOCK * blocks
    remainder, columns = _moved(matrix, dead), []
    for start, end in itertools.pairwise([*range(0, size, width), size]):
        first = jnp.maximum(dead - start, 0)
        turns = jnp.minimum(jnp.maximum(end - start - first, 0) // BLOCK, blocks)
        remainder, lower, inverses = _group(remainder, width=end - start, first=first, blocks=turns)
        columns.append((jnp.pad(lower, ((start, 0), (0, 0))), inverses))
    lowers, inverses = zip(*columns, strict=True)
    lower, inverses = jnp.concatenate(lowers, axis=1), jnp.concatenate(inverses)
    return Factor(_moved(lower, -dead), jnp.roll(inverses, -dead // BLOCK, 0), count)


def _moved(matrix: Array, shift: Array | int) -> Array:
    """Moves rows and columns by `shift`, the last ones to the front."""
    return jnp.roll(jnp.roll(matrix, shift, 0), shift, 1)


def _group(remainder: Array, *, width: int, first: Array, blocks: Array) -> tuple[Array, Array, Array]:
    """Factors the first `width` columns of the remaining matrix, from column `first` on, block by block.

    Each block is subtracted from the remainder as soon as it is known. For a nearly singular matrix the remainder is
    small, and so is its rounding. Subtracting all earlier products of a block at once is faster, but left twice the
    error.

    Args:
        remainder: float (q, q).
        width: columns of the group, a multiple of 16.
        first: int32 (), a multiple of 16; the rows and columns before it are those in the unit matrix.
        blocks: int32 (), number of blocks of 16 columns, from `first` on.

    Returns:
        The new remainder (q - width, q - width), columns of L (q, width), 0 outside the blocks, and the inverses of
        their diagonal blocks.
    """
    rows = jnp.arange(remainder.shape[0], dtype=jnp.int32)[:, None]

    def turn(block: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        remainder, lower, inverses = carry
        at = first + block * BLOCK
        panel = lax.dynamic_slice_in_dim(remainder, at, BLOCK, axis=1)
        diagonal, inverse = _small(lax.dynamic_slice_in_dim(panel, at, BLOCK))
        below = jnp.where(rows < at + BLOCK, 0, _divide(diagonal, inverse, panel.T).T)
        remainder -= _times(below, below.T)
        column = lax.dynamic_update_slice_in_dim(below, diagonal, at, axis=0)
        lower = lax.dynamic_update_slice_in_dim(lower, column, at, axis=1)
        return remainder, lower, lax.dynamic_update_index_in_dim(inverses, inverse, at // BLOCK, axis=0)

    dtype = remainder.dtype
    begun = remainder, jnp.zeros((rows.size, width), dtype), jnp.zeros((width // BLOCK, BLOCK, BLOCK), dtype)
    remainder, lower, inverses = lax.fori_loop(0, blocks, turn, begun)
    return remainder[width:, width:], lower, inverses


def solve_lower(factor: Factor, right: Array) -> Array:
    """Computes L^-1 B.

    Args:
        factor: factor of a matrix of n rows.
        right: B, float (n, k) or (n,); the rows beyond the live ones are not read.

    Returns:
        float (n, k) or (n,), 0 in the rows beyond the live ones. Cost: O(n live k).
    """
    right, shape = _columns(factor, right)

    def turn(first: Array, solved: Array) -> Array:
        rows = lax.dynamic_slice_in_dim(factor.lower, first, BLOCK)
        block = lax.dynamic_slice_in_dim(right, first, BLOCK) - _times(rows, solved)
        diagonal = lax.dynamic_slice_in_dim(rows, first, BLOCK, axis=1)
        solution = _divide(diagonal, factor.inverses[first // BLOCK], block)
        return lax.dynamic_update_slice_in_dim(solved, solution, first, axis=0)

    return for_blocks(factor.live, BLOCK, turn, jnp.zeros_like(right))[: shape[0]].reshape(shape)


def solve_upper(factor: Factor, right: Array) -> Array:
    """Computes L'^-1 B. Arguments, result and cost: see `solve_lower`."""
    right, shape = _columns(factor, right)
    # Upwards, starting at the last block of any lane; a lane with fewer blocks solves for zeros until its own begin.
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
    """Computes log det A, float ()."""
    diagonal = jnp.diagonal(factor.lower)
    is_live = jnp.arange(diagonal.shape[0], dtype=jnp.int32) < factor.live
    return 2 * jnp.sum(jnp.log(jnp.where(is_live, diagonal, 1)))


def leading(factor: Factor, rows: int) -> Factor:
    """Returns the factor of the first `rows` rows and columns, a multiple of 16 or all of them."""
    size = padded(rows, BLOCK)
    return Factor(factor.lower[:size, :size], factor.inverses[: size // BLOCK], jnp.minimum(factor.live, size))


def _columns(factor: Factor, right: Array) -> tuple[Array, tuple[int, ...]]:
    """Returns the right-hand side as a matrix of whole blocks, with zeros beyond the live rows, and its old shape."""
    columns = right.reshape(right.shape[0], -1)
    columns = jnp.pad(columns, ((0, factor.lower.shape[0] - right.shape[0]), (0, 0)))
    return jnp.where(jnp.arange(columns.shape[0], dtype=jnp.int32)[:, None] < factor.live, columns, 0), right.shape


def _divide(triangle: Array, inverse: Array, block: Array) -> Array:
    """Solves T X = B for X, corrected once by the residual."""
    solution = _times(inverse, block)
    return solution + _times(inverse, block - _times(triangle, solution))


def _small(matrix: Array) -> tuple[Array, Array]:
    """Computes L and L^-1 of a few rows, pivot by pivot."""
    size = matrix.shape[0]
    index = jnp.arange(size, dtype=jnp.int32)

    def pivot(k: Array, work: Array) -> Array:
        row = lax.dynamic_slice_in_dim(work, k, 1)
        value = lax.dynamic_slice(work, (k, k), (1, 1))
        row /= jnp.sqrt(jnp.where(value > 0, value, jnp.nan))
        column = lax.dynamic_slice_in_dim(work, k, 1, axis=1) / jnp.sqrt(value)
        return jnp.where((index == k)[:, None], row, work - jnp.where((index > k)[:, None], column, 0) * row)

    work = jnp.concatenate([matrix, jnp.eye(size, dtype=matrix.dtype)], axis=1)
    work = lax.fori_loop(0, size, pivot, work)
    # The rows are now [L' L^-1], with rounding errors below the diagonal of L'.
    return jnp.tril(work[:, :size].T), jnp.tril(work[:, size:])


def _times(a: Array, b: Array) -> Array:
    return jnp.matmul(a, b, precision="highest")
