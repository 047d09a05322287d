"""Entries, places of extremes and selections in forms that stay fast in a batch.

A gather of one entry per lane is slow, and XLA:CPU does not vectorise `argmax`. These forms are plain reductions, or
chains of elementwise operations: XLA:CPU calls a library for a float reduction over arms, but fuses a chain with the
work around it. Core-ns per round by reductions and by chains, with 1,024 lanes on a busy machine: UCB1 on 4 Bernoulli
arms 57 and 33, on 20 arms 172 and 94; TTUCB on 4 Gaussian arms 163 and 65.
"""

from functools import partial, reduce
from itertools import accumulate

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.base import Array, PyTree
from jaxbandits.numerics.kernels import apart
from jaxbandits.numerics.linalg import aligned

FEW = 32  # largest number of entries that are reduced by a chain
# Smallest number of entries for which `jnp.argmax` is slower than two reductions: UCB1 on 13 Gaussian arms takes 72
# core-ns per round by it and 82 by them, on 16 arms 147 and 80.
MANY = 16
RANKED = 256  # largest number of entries that are ranked by all comparisons; more are sorted
BLOCK = 64  # numbers per block in `first_smallest`


def select(condition: Array, new: PyTree, old: PyTree) -> PyTree:
    """Returns `new` where the condition () holds, otherwise `old`, leaf by leaf."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


def largest(values: Array) -> Array:
    """Returns the largest value of (n,), NaN if one is NaN."""
    return reduce(jnp.maximum, _parts(values)) if values.shape[0] <= FEW else jnp.max(values)


def smallest(values: Array) -> Array:
    """Returns the smallest value of (n,), NaN if one is NaN."""
    return reduce(jnp.minimum, _parts(values)) if values.shape[0] <= FEW else jnp.min(values)


def running_sums(values: Array) -> Array:
    """Returns the sums of the first 1, 2, ... n values of (n,), in this order of additions if they are few."""
    if values.shape[0] > FEW:
        return jnp.cumsum(values)
    return jnp.stack(list(accumulate(_parts(values))))


def row_sums(values: Array) -> Array:
    """Returns the sum of each row of (n, m), float (n,)."""
    return reduce(jnp.add, _parts(values.T)) if values.shape[1] <= FEW else jnp.sum(values, axis=1)


def row_maxima(values: Array) -> Array:
    """Returns the largest value of each row of (n, m), (n,); NaN if one is NaN."""
    return reduce(jnp.maximum, _parts(values.T)) if values.shape[1] <= FEW else jnp.max(values, axis=1)


def ranks(values: Array) -> Array:
    """Returns the place of each entry of (n,) from the largest on, int32 (n,); of equal entries, the first leads.

    XLA:CPU takes 2.0 us to sort 36 numbers and 8.2 us to sort 111; all comparisons take 0.2 and 2.3 us.
    """
    # A constant, so that XLA sees that two calls are the same.
    is_later = ~np.tri(values.shape[0], dtype=bool)
    comes_first = (values[:, None] > values[None]) | ((values[:, None] == values[None]) & is_later)
    if values.shape[0] <= FEW:
        return row_sums(comes_first.T.astype(jnp.int32))
    return jnp.sum(comes_first, axis=0, dtype=jnp.int32)


def largest_first(values: Array, m: int) -> Array:
    """Returns the m largest entries of (n,), in order, (m,)."""
    if values.shape[0] > RANKED:
        return lax.top_k(values, m)[0]
    is_at = ranks(values)[:, None] == np.arange(m, dtype=np.int32)[None]
    return jnp.sum(jnp.where(is_at, values[:, None], 0), axis=0)


def is_among_largest(values: Array, m: int) -> Array:
    """Returns a mask of the m largest entries of (n,), bool (n,); of equal entries, the first are taken."""
    if values.shape[0] > RANKED:
        return jnp.zeros(values.shape, bool).at[lax.top_k(values, m)[1]].set(True)
    return ranks(values) < m


def _parts(values: Array) -> list[Array]:
    """Returns the entries of an array along its first axis."""
    return [lax.index_in_dim(values, i, keepdims=False) for i in range(values.shape[0])]


def settled(values: Array) -> Array:
    """Returns the same values, to be compared with one of them.

    Otherwise XLA computes them once more for the comparison, where they may be rounded differently: none is equal then.
    """
    return lax.optimization_barrier(values)


def is_entry(index: Array, like: Array) -> Array:
    """Returns True at an index, bool (n,) for an array of n rows."""
    return jnp.arange(like.shape[0], dtype=jnp.int32) == index


def entry(values: Array, index: Array) -> Array:
    """Returns values[index] of (n,), without a gather; 0 if the index is out of range."""
    return _float_entry(values, index) if jnp.issubdtype(values.dtype, jnp.floating) else _sum_at(values, index)


@jax.custom_jvp
@partial(jax.jit, inline=True)
def _float_entry(values: Array, index: Array) -> Array:
    """Returns the entry by its bits: XLA:CPU calls a library for a sum of floats, up to 15 ns of a round of TTUCB."""
    bits = lax.bitcast_convert_type(values, jnp.dtype(f"uint{8 * values.dtype.itemsize}"))
    return lax.bitcast_convert_type(lax.reduce_or(jnp.where(is_entry(index, bits), bits, 0), (0,)), values.dtype)


@_float_entry.defjvp
def _float_entry_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    return _float_entry(*primals), _sum_at(tangents[0], primals[1])


def _sum_at(values: Array, index: Array) -> Array:
    return jnp.sum(jnp.where(is_entry(index, values), values, 0), dtype=values.dtype)


def entries(values: Array, indices: Array) -> Array:
    """Returns values[indices] (m,) of (n,), without a gather; 0 for an index that is out of range."""
    n = values.shape[0]
    if n <= FEW:
        chosen = jnp.zeros(indices.shape, values.dtype)
        for i, value in enumerate(_parts(values)):
            chosen = jnp.where(indices == i, value, chosen)
        return chosen
    is_chosen = indices[:, None] == jnp.arange(n, dtype=indices.dtype)[None]
    return jnp.sum(jnp.where(is_chosen, values[None], 0), axis=1, dtype=values.dtype)


def first_argmax(values: Array) -> Array:
    """Returns the first index of the largest value of (n,), int32 (); the index of the first NaN, if there is one."""
    if MANY <= values.shape[0] <= FEW:
        values = settled(values)
        return _first_at(values, largest(values))
    return jnp.argmax(values).astype(jnp.int32)


def first_argmin(values: Array) -> Array:
    """Returns the first index of the smallest value of (n,), int32 (); the index of the first NaN, if there is one."""
    if MANY <= values.shape[0] <= FEW:
        values = settled(values)
        return _first_at(values, smallest(values))
    return jnp.argmin(values).astype(jnp.int32)


def _first_at(values: Array, extreme: Array) -> Array:
    row = jnp.arange(values.shape[0], dtype=jnp.int32)
    return jnp.min(jnp.where((values == extreme) | (values != values), row, values.shape[0] - 1))


def sliced(values: Array, index: Array) -> Array:
    """Returns values[index], an entry or a row, by a dynamic slice; the index must be in range."""
    return lax.dynamic_index_in_dim(values, index, keepdims=False)


def first_true(mask: Array) -> Array:
    """Returns the first index at which a mask (n,) holds, int32 (); n - 1 if it holds nowhere."""
    return jnp.min(jnp.where(mask, jnp.arange(mask.size, dtype=jnp.int32), mask.size - 1))


def first_largest(values: Array) -> Array:
    """Returns the first index of the largest value of (n,), int (); n - 1 if a value is NaN."""
    n = values.shape[0]
    return jnp.min(jnp.where(values == jnp.max(values), jnp.arange(n), n - 1))


def first_largest_in_rows(values: Array) -> Array:
    """Returns the first index of the largest value along the last axis, int32 (...); the last index for NaN."""
    size = values.shape[-1]
    is_largest = values == jnp.max(values, axis=-1, keepdims=True)
    indices = aligned(jnp.arange(size, dtype=jnp.int32), values.ndim)
    return jnp.minimum(jnp.min(jnp.where(is_largest, indices, size), axis=-1), size - 1)


def is_first_largest(values: Array) -> Array:
    """Returns a mask of the largest value of (n,), the first of several, bool (n,)."""
    return jnp.arange(values.shape[0]) == jnp.argmax(values)


def first_smallest(values: Array) -> Array:
    """Returns the first index of the smallest value of (n,), int32 (); the last index for NaN.

    Long arrays go by blocks, because a minimum of integers is slow as well: 4096 numbers take 19 us by `argmin`, 2.5 us
    by two reductions, 0.4 us by blocks.
    """
    size = values.shape[0]
    if size > BLOCK**2 // 4:
        blocks = jnp.pad(values, (0, -size % BLOCK), constant_values=jnp.inf).reshape(-1, BLOCK)
        block = first_smallest(jnp.min(blocks, axis=1))
        return block * BLOCK + first_smallest(blocks[block])
    row = jnp.arange(size, dtype=jnp.int32)
    return jnp.min(jnp.where(values == jnp.min(values), row, size - 1))


def smallest_entry(values: Array) -> tuple[Array, Array]:
    """Returns the first index of the smallest value of (n,), int32 (), and the value; any index if one is NaN."""
    return apart(_smallest_entry, settled(values))


def _smallest_entry(values: Array) -> tuple[Array, Array]:
    if values.shape[0] > FEW:
        return first_smallest(values), jnp.min(values)
    index = jnp.argmin(values).astype(jnp.int32)
    return index, entry(values, index)
