"""Shared parts of the upper-confidence-bound algorithms: index, query, and columns of the covariance."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.kernel._problem.settings import Settings, picked
from jaxbandits.numerics.gp import cross, explained
from jaxbandits.numerics.indexing import first_largest_in_rows
from jaxbandits.numerics.loops import by_parts


def index(mean: Array, variance: Array, beta: Array) -> Array:
    """Computes mean + beta sd of each candidate (..., M). A variance below 0 is rounding and counts as 0."""
    return mean + beta * jnp.sqrt(jnp.maximum(variance, 0))


def beta_at(beta: Array, t: Array) -> Array:
    """Returns the beta of round `t` (from 0): `beta` () itself, or entry t of (T,), at the end its last entry."""
    return beta if beta.ndim == 0 else beta[jnp.minimum(t, beta.shape[0] - 1)]


def queries(values: Array, coins: Array, t: Array) -> Array:
    """Chooses each agent's query: before any data by its coin among the M candidates, then the best by its index.

    Args:
        values: float (N, M), the agents' indices.
        coins: float (N,).
        t: int (), rounds observed.

    Returns:
        int32 (N,).
    """
    # The paper maximises a constant in the first round, which would send all agents to candidate 0.
    return jnp.where(t == 0, picked(coins, values.shape[1]), first_largest_in_rows(values))


def columns(settings: Settings) -> Callable[[Array], Array]:
    """Builds the prior covariance of all candidates with given ones: (index (...)) -> float (..., M).

    It is read from `settings.gram` if given. An index of M or more stands for some candidate.
    """
    kernel, candidates, gram = settings.kernel, settings.candidates, settings.gram
    if gram is not None:
        return lambda index: gram.at[index].get(mode="clip")

    def column(index: Array) -> Array:
        point = candidates.at[index].get(mode="clip")
        return jax.vmap(lambda x: kernel(x, point))(candidates)

    return lambda index: jnp.vectorize(column, signature="()->(m)")(index)


class Memory(NamedTuple):
    """Storage of the posterior covariance of all pairs of candidates, with access to its columns.

    As a buffer of the rows that `condition` returns, or, where there would be more rows than candidates, as the
    covariance itself.
    """

    is_buffer: bool
    start: Array  # float (C, M) or (M, M)  before any observation
    columns: Callable[[Array, Array, Array], Array]  # (stored, indices (n,), live (r,)) -> float (r, n, M)
    append: Callable[[Array, Array, Array], Array]  # (stored, rows (n, M), first ()) -> stored


def memory(settings: Settings, capacity: int) -> Memory:
    """Builds the smaller memory for up to `capacity` observations, C.

    Of a buffer, `columns` gives the covariance with each index after each number of rows in `live`, so that earlier
    posteriors stay within reach; `append` writes rows from row `first` on, or nowhere if that is C. A covariance knows
    the present alone: it ignores `live` (1,) and `first`, and rows of zeros leave it as it is.

    Cost of n columns: O(n M r live), or O(n M) from a covariance, where n rows more cost O(n M^2).
    """
    candidates, gram = settings.candidates, settings.gram
    dtype, size = candidates.dtype, candidates.shape[0]
    if capacity > size:
        return Memory(
            is_buffer=False,
            start=cross(settings.kernel, candidates, candidates) if gram is None else gram,
            columns=lambda stored, indices, live: stored.at[indices].get(mode="clip")[None],
            append=lambda stored, rows, first: stored - jnp.matmul(rows.T, rows, precision="highest"),
        )

    prior = columns(settings)
    numbers = jnp.arange(capacity, dtype=jnp.int32)

    def read(stored: Array, indices: Array, live: Array) -> Array:
        values = stored.at[:, indices].get(mode="clip").T
        coefficients = jnp.where(numbers[None, None] < live[:, None, None], values[None], 0)
        # One product, so that the rows are read once for all of `live`.
        known = explained_by_first(stored, coefficients.reshape(-1, capacity), jnp.max(live))
        return prior(indices)[None] - known.reshape(*live.shape, *indices.shape, size)

    def append(stored: Array, rows: Array, first: Array) -> Array:
        old = lax.dynamic_slice_in_dim(stored, first, rows.shape[0])
        return lax.dynamic_update_slice_in_dim(stored, jnp.where(first < capacity, rows, old), first, axis=0)

    return Memory(True, jnp.zeros((capacity, size), dtype), read, append)


def explained_by_first(rows: Array, coefficients: Array, live: Array) -> Array:
    """Computes `explained` (..., M) without most rows (C, M) from `live` on, whose coefficients (..., C) are 0.

    All agents that share a `vmap` have the same `live`, int ().
    """
    return by_parts(rows.shape[0], live, lambda n: explained(rows[:n], coefficients[..., :n]))


def observed(queries: Array, rewards: Array, size: int) -> tuple[Array, Array]:
    """Observations of each of `size` candidates, int (M,), and the sum of their rewards, float (M,).

    Args:
        queries: int32 (N, T), M where there was none.
        rewards: float (N, T).
        size: M.
    """
    counts = jnp.zeros(size, int).at[queries].add(1, mode="drop")
    return counts, jnp.zeros(size, rewards.dtype).at[queries].add(rewards, mode="drop")
