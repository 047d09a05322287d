"""The largest entries of a vector that changes one entry at a time: blocks, with the two largest of each."""

import math
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Array


class Blocks(NamedTuple):
    """n values in nb blocks of B. Where there is no candidate the value is the least finite one."""

    values: Array  # float (nb, B)  entry i at (i // B, i % B); the last block is padded
    top: Array  # float (nb,)       the largest value of each block
    second: Array  # float (nb,)    the second largest; equal to `top` if two entries share it
    size: Array  # int32 ()         n


class Leader(NamedTuple):
    """The largest and the second largest entry, the lowest index first among ties."""

    index: Array  # int32 ()       of the largest value  # pyright: ignore[reportIncompatibleMethodOverride]
    value: Array  # float ()
    runner_up: Array  # float ()   the largest of all other values; the least finite one if there is none
    challenger: Array  # int32 ()  its index


def build(values: Array, width: int | None = None) -> Blocks:
    """Puts values into blocks.

    Args:
        values: float (n,), finite.
        width: B, entries of a block; the power of two next to sqrt(n) by default.

    Returns:
        Blocks. Cost: O(n).
    """
    (n,) = values.shape
    if width is None:
        width = 1 << round(math.log2(n) / 2)
    rows = jnp.full(-(-n // width) * width, _lowest(values.dtype)).at[:n].set(values).reshape(-1, width)
    return Blocks(rows, *_two_largest(rows), jnp.asarray(n, jnp.int32))


def read(blocks: Blocks, index: Array) -> Array:
    """The value of one entry."""
    return blocks.values[index // blocks.values.shape[1], index % blocks.values.shape[1]]


def update(blocks: Blocks, index: Array, value: Array) -> Blocks:
    """Sets entries to new values.

    Args:
        blocks: Blocks.
        index: int () or (b,), at least 0; an index of n or more changes no bit.
        value: float, of the index's shape. If an index occurs twice, its values must be equal.

    Returns:
        Blocks. Cost: O(n / B + B) for one index, O(n) for several.
    """
    count, width = blocks.values.shape
    if jnp.size(index) == 1:
        index, value = jnp.reshape(index, ()), jnp.reshape(value, ())
    block, place = index // width, index % width
    block = jnp.where(index < blocks.size, block, count)
    if jnp.ndim(index) > 0:
        values = blocks.values.at[block, place].set(value, mode="drop")
        return Blocks(values, *_two_largest(values), blocks.size)
    row = blocks.values.at[block].get(mode="clip")
    row = jnp.where(jnp.arange(width, dtype=index.dtype) == place, value, row)
    top, second = _two_largest(row)
    # A select over nb entries is cheaper than a scatter of one.
    changed = jnp.arange(count, dtype=index.dtype) == block
    return Blocks(
        blocks.values.at[block].set(row, mode="drop"),
        jnp.where(changed, top, blocks.top),
        jnp.where(changed, second, blocks.second),
        blocks.size,
    )


def leader(blocks: Blocks) -> Leader:
    """The largest and the second largest entry.

    Args:
        blocks: Blocks.

    Returns:
        Leader; fields that are not used cost nothing under `jit`. Cost: O(n / B + B).
    """
    count, width = blocks.values.shape
    block = _first(blocks.top, jnp.max(blocks.top))
    place = _first(blocks.values[block], blocks.top[block])
    is_block = jnp.arange(count, dtype=jnp.int32) == block
    others = jnp.where(is_block, blocks.second, blocks.top)
    runner_up = jnp.max(others)
    next_block = _first(others, runner_up)
    is_leader = (next_block == block) & (jnp.arange(width, dtype=jnp.int32) == place)
    next_place = _first(jnp.where(is_leader, jnp.inf, blocks.values[next_block]), runner_up)
    return Leader(block * width + place, blocks.top[block], runner_up, next_block * width + next_place)


def _two_largest(rows: Array) -> tuple[Array, Array]:
    """The largest and the second largest along the last axis."""
    top = jnp.max(rows, axis=-1)
    is_top = jnp.arange(rows.shape[-1], dtype=jnp.int32) == _first(rows, top)[..., None]
    return top, jnp.max(jnp.where(is_top, _lowest(rows.dtype), rows), axis=-1)


def _first(rows: Array, value: Array) -> Array:
    """The first place of a value that occurs, by two plain reductions, which XLA vectorises, unlike argmax."""
    width = rows.shape[-1]
    places = jnp.where(rows == value[..., None], jnp.arange(width, dtype=jnp.int32), width)
    return jnp.min(places, axis=-1)


def _lowest(dtype: jnp.dtype) -> Array:
    """The lowest finite value, which stands where there is no candidate."""
    return jnp.asarray(jnp.finfo(dtype).min, dtype)
