"""Searches over all super-arms of a class, in chunks."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.fullbandit._problem.design import MAX_SUPERARMS, all_superarms, check_mask
from jaxbandits.numerics.linalg import squared_norms

CHUNK = 4096  # number of super-arms that every lane processes at a time


def superarm_table(n: int, k: int, *, superarms: ArrayLike | None = None) -> np.ndarray:
    """Cuts a class of super-arms into chunks that are processed one after another.

    Args:
        n: number of arms.
        k: arms in a super-arm.
        superarms: 0/1 (K, n), the class. If None, all sets of k arms, in lexicographic order.

    Returns:
        bool (C, K', n), K' <= 4096. The last row fills up the last chunk.

    Raises:
        ValueError: K > 5e6, or a row is not a set of k arms, or rows are equal, or K < 2.
    """
    rows = all_superarms(n, k) if superarms is None else _checked_class(superarms, n, k)
    size = min(CHUNK, len(rows))
    chunks = -(-len(rows) // size)
    filler = np.repeat(rows[-1:], chunks * size - len(rows), axis=0)
    return np.concatenate([rows, filler]).reshape(chunks, size, n)


@partial(jax.jit, inline=True)
def largest_squared_norm(matrix: Array, table: np.ndarray) -> Array:
    """Computes the largest chi_M' W chi_M over the super-arms M of a `superarm_table`, float ()."""
    return largest_score(table, lambda rows: squared_norms(rows, matrix), matrix.dtype)


def largest_score(table: np.ndarray, score: Callable[[Array], Array], dtype) -> Array:
    """Computes the largest score over the super-arms of a `superarm_table`, chunk by chunk."""
    return lax.map(lambda rows: score(rows.astype(dtype)).max(), jnp.asarray(table)).max()


def best_row(theta: Array, table: np.ndarray) -> Array:
    """Returns the super-arm of a `superarm_table` with the largest sum of theta, bool (n,)."""
    values = lax.map(lambda rows: jnp.matmul(rows.astype(theta.dtype), theta, precision="highest"), jnp.asarray(table))
    return jnp.asarray(table.reshape(-1, theta.size))[jnp.argmax(values)]


def _checked_class(superarms: ArrayLike, n: int, k: int) -> np.ndarray:
    check_mask("superarms", superarms, ("K", n))
    require(is_concrete(superarms), "superarms", "be concrete", superarms)
    rows = np.asarray(superarms)
    require(2 <= len(rows) <= MAX_SUPERARMS, "superarms", f"number 2..{MAX_SUPERARMS}", len(rows))
    rows = rows.astype(bool)
    require(rows.sum(1) == k, "superarms", f"have k = {k} arms each", rows.sum(1))
    require(len(np.unique(rows, axis=0)) == len(rows), "superarms", "have no two equal rows", rows)
    return rows
