"""What the upper confidence bound algorithms share: the index, the query it makes, and columns of the covariance."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.kernel.problem import chosen
from jaxbandits.numerics.gp import Kernel, cross, explained
from jaxbandits.numerics.trips import common

PARTS = 8  # of a buffer, any number of which may be read


def index(mean: Array, variance: Array, beta: Array) -> Array:
    """Mean + beta sd of each candidate, float (..., M).

    Args:
        mean: float (..., M).
        variance: float (..., M); below 0, by rounding, it counts as 0.
        beta: float ().

    Returns:
        float (..., M).
    """
    return mean + beta * jnp.sqrt(jnp.maximum(variance, 0))


def beta_at(beta: Array, t: Array) -> Array:
    """The width of the round after `t` observed ones: `beta` () as it is, or entry t of (T,); after the last, that."""
    return beta if beta.ndim == 0 else beta[jnp.minimum(t, beta.shape[0] - 1)]


def best(values: Array) -> Array:
    """The lowest index of the largest entry along the last axis, int32 (...)."""
    # Two reductions, which XLA vectorises; it does not always do so with an argmax.
    size = values.shape[-1]
    is_best = values == jnp.max(values, axis=-1, keepdims=True)
    places = jnp.arange(size, dtype=jnp.int32)
    return jnp.minimum(jnp.min(jnp.where(is_best, places, size), axis=-1), size - 1)


def queries(values: Array, coins: Array, t: Array) -> Array:
    """What each agent asks: what its coin picks of the M candidates before any data, else the best by its index.

    Args:
        values: float (N, M), the agents' indices.
        coins: float (N,).
        t: int (), rounds observed.

    Returns:
        int32 (N,).
    """
    # The paper maximises a constant in the first round, which would send all agents to candidate 0.
    return jnp.where(t == 0, chosen(coins, values.shape[1]), best(values))


def columns(kernel: Kernel, candidates: Array, gram: Array | None = None) -> Callable[[Array], Array]:
    """The prior covariance of all candidates with given ones: computed, or taken from the table if there is one.

    Args:
        kernel: of a single pair.
        candidates: float (M, d).
        gram: float (M, M), the kernel of all pairs, or None.

    Returns:
        (index (...)) -> float (..., M). An index of M or more stands for some candidate.
    """
    if gram is not None:
        table = jnp.asarray(gram, candidates.dtype)
        return lambda index: table.at[index].get(mode="clip")

    def column(index: Array) -> Array:
        point = candidates.at[index].get(mode="clip")
        return jax.vmap(lambda x: kernel(x, point))(candidates)

    return lambda index: jnp.vectorize(column, signature="()->(m)")(index)


class Memory(NamedTuple):
    """How one learner keeps the posterior covariance of all pairs of candidates, and reads columns of it.

    As a buffer of the rows that `condition` returns, or, where there would be more rows than candidates, as the
    covariance itself.
    """

    is_buffer: bool
    start: Array  # float (C, M) or (M, M)  before any observation
    columns: Callable[[Array, Array, Array], Array]  # (kept, indices (n,), live (r,)) -> float (r, n, M)
    append: Callable[[Array, Array, Array], Array]  # (kept, rows (n, M), place ()) -> kept


def memory(kernel: Kernel, candidates: Array, capacity: int, gram: Array | None = None) -> Memory:
    """The smaller memory for up to C observations.

    Of a buffer, `columns` gives the covariance with each index after each number of rows in `live`, so that earlier
    posteriors stay within reach; `append` writes rows from `place` on, or nowhere if that is C. A covariance knows the
    present only, whatever `live` (1,), and takes nothing from rows of zeros, whatever `place`.

    Args:
        kernel: of a single pair.
        candidates: float (M, d).
        capacity: C.
        gram: float (M, M), the kernel of all pairs, or None.

    Returns:
        Memory. Cost of n columns: O(n M r live), or O(n M) from a covariance, where n rows more cost O(n M^2).
    """
    dtype, size = candidates.dtype, candidates.shape[0]
    if capacity > size:
        return Memory(
            is_buffer=False,
            start=cross(kernel, candidates, candidates) if gram is None else jnp.asarray(gram, dtype),
            columns=lambda kept, indices, live: kept.at[indices].get(mode="clip")[None],
            append=lambda kept, rows, place: kept - jnp.matmul(rows.T, rows, precision="highest"),
        )

    prior = columns(kernel, candidates, gram)
    places = jnp.arange(capacity, dtype=jnp.int32)

    def read(kept: Array, indices: Array, live: Array) -> Array:
        values = kept.at[:, indices].get(mode="clip").T
        coefficients = jnp.where(places < live[:, None, None], values, 0)
        # One product, so that the rows are read once for all of `live`.
        known = explained_by_first(kept, coefficients.reshape(-1, capacity), jnp.max(live))
        return prior(indices) - known.reshape(*live.shape, *indices.shape, size)

    def append(kept: Array, rows: Array, place: Array) -> Array:
        old = lax.dynamic_slice_in_dim(kept, place, rows.shape[0])
        return lax.dynamic_update_slice_in_dim(kept, jnp.where(place < capacity, rows, old), place, axis=0)

    return Memory(True, jnp.zeros((capacity, size), dtype), read, append)


def explained_by_first(rows: Array, coefficients: Array, live: Array) -> Array:
    """`explained` without reading many of the rows that do not count.

    Args:
        rows: float (C, M).
        coefficients: float (..., C), 0 from `live` on.
        live: int (), the same for all agents that share a `vmap`.

    Returns:
        float (..., M).
    """
    capacity = rows.shape[0]
    sizes = sorted({-(-capacity * part // PARTS) for part in range(1, PARTS + 1)})
    # Of all lanes the same branch, so that it is a branch under `vmap`; what a longer one adds is 0.
    branch = jnp.sum(common(live) > jnp.asarray(sizes[:-1], live.dtype), dtype=jnp.int32)
    return lax.switch(branch, [lambda n=n: explained(rows[:n], coefficients[..., :n]) for n in sizes])
