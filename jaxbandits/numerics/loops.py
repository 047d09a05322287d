"""Loops whose trip count is data, without the cost that `vmap` adds to them.

`vmap` of a loop with a trip count per lane selects, in every turn, between the old and the new carry of every lane,
which copies the whole carry. If further turns change nothing, one trip count for all lanes needs no select.
"""

from collections.abc import Callable
from typing import TypeVar

import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap

from jaxbandits.base import Array

T = TypeVar("T")

PARTS = 8  # number of equal parts of an array; `by_parts` reads the first few


@custom_vmap
def common(count: Array) -> Array:
    """Returns `count`, or under `vmap` the largest one of all lanes, which is the same in each lane.

    It may be used only if every value from `count` up gives the same result. Otherwise a run would depend on its
    neighbours.

    Args:
        count: int ().

    Returns:
        int ().
    """
    return count


@common.def_vmap
def _common_of_lanes(axis_size: int, in_batched: list[bool], count: Array) -> tuple[Array, bool]:
    del axis_size
    return (common(jnp.max(count)) if in_batched[0] else common(count)), False


def for_blocks(live: Array, size: int, body: Callable[[Array, T], T], carry: T) -> T:
    """Runs `body(first, carry)` for first = 0, size, 2 size, .. below the number of live entries of any lane.

    Args:
        live: int (), number of entries at the front that count in this lane. A turn beyond them must leave the carry
            unchanged, or write only values that nothing reads.
        size: number of entries of a block.
        body: one turn; `first` is int32 ().
        carry: initial carry.

    Returns:
        The last carry.
    """

    def turn(i: Array, carry: T) -> T:
        # JAX counts in its default integer type if it knows the trip count, as it does outside of any trace.
        return body(jnp.asarray(i, jnp.int32) * size, carry)

    return lax.fori_loop(0, blocks_below(live, size), turn, carry)


def by_parts(capacity: int, live: Array, compute: Callable[[int], T]) -> T:
    """Returns `compute(n)` for the smallest of `PARTS` sizes n up to `capacity` with room for all lanes' live entries.

    Every n >= `live`, int (), must give the same result. It is a real branch, also under `vmap`.
    """
    sizes = sorted({-(-capacity * part // PARTS) for part in range(1, PARTS + 1)})
    branch = jnp.sum(common(live) > jnp.asarray(sizes[:-1], live.dtype), dtype=jnp.int32)
    return lax.switch(branch, [lambda n=n: compute(n) for n in sizes])


def blocks_below(live: Array, size: int) -> Array:
    """Returns the number of turns of `for_blocks`, int32 ()."""
    return (common(jnp.asarray(live, jnp.int32)) + (size - 1)) // size


def padded(length: int, size: int) -> int:
    """Returns the smallest multiple of `size` that holds `length` entries."""
    return -(-length // size) * size
