"""The two largest entries of a vector that changes one entry at a time: blocks, with the two largest of each.

An accelerator would spend ten launches on the blocks, each longer than reading a few hundred entries. For `FEW` to
`FLAT` entries, it therefore does not keep the two largest of each block: one reduction over all entries finds the
leader.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.numerics.linalg import aligned
from jaxbandits.numerics.platforms import by_platform

# Largest number of entries that `jaxbandits.engine.scalars` turns into elementwise code with the whole round.
FEW = 16
ONE_BY_ONE = 2  # largest number of simultaneous changes made one by one; more rescan all entries
# Number of entries that 65,536 lanes read from an H200's memory in the time of ten launches.
FLAT = 256


class Blocks(NamedTuple):
    """n values in nb blocks of B. The lowest finite value stands for a missing candidate."""

    values: Array  # float (nb, B)  entry i at (i // B, i % B); the last block is padded
    top: Array  # float (nb,)       largest value of each block; see above for accelerators
    second: Array  # float (nb,)    second largest value of each block; equal to `top` if two entries share it
    size: Array  # int32 ()         n


class Leader(NamedTuple):
    """The largest and the second largest entry, the lowest index first among ties."""

    index: Array  # int32 ()       index of the largest value  # pyright: ignore[reportIncompatibleMethodOverride]
    value: Array  # float ()       largest value
    runner_up: Array  # float ()   largest of all other values; the lowest finite value if there is none
    challenger: Array  # int32 ()  index of `runner_up`


def build(values: Array, width: int | None = None) -> Blocks:
    """Puts values into blocks.

    Args:
        values: float (n,), finite.
        width: B, number of entries of a block. If None, the power of two next to sqrt(n).

    Returns:
        Blocks. Cost: O(n).
    """
    (n,) = values.shape
    if width is None:
        width = 1 << round(math.log2(n) / 2)
    rows = jnp.full(-(-n // width) * width, _lowest(values.dtype)).at[:n].set(values).reshape(-1, width)
    return Blocks(rows, *_two_largest(rows), jnp.asarray(n, jnp.int32))


def read(blocks: Blocks, index: Array) -> Array:
    """Returns the value of one entry."""
    return blocks.values[index // blocks.values.shape[1], index % blocks.values.shape[1]]


def update(blocks: Blocks, index: Array, value: Array) -> Blocks:
    """Sets entries to new values.

    Args:
        blocks: Blocks.
        index: int () or (b,), at least 0. An index of n or more changes no bit.
        value: float, of the index's shape. If an index occurs twice, its values must be equal.

    Returns:
        Blocks. Cost: O(n / B + B) for each of up to two indices, O(n) for more.
    """
    if jnp.size(index) == 1:
        index, value = jnp.reshape(index, ()), jnp.reshape(value, ())
    if not FEW < blocks.values.size <= FLAT:
        return _update_in_blocks(blocks, index, value)
    return by_platform(blocks, index, value, cpu=_update_in_blocks, default=_update_in_all)


def leader(blocks: Blocks) -> Leader:
    """Returns the largest and the second largest entry.

    Args:
        blocks: Blocks.

    Returns:
        Leader. Unused fields cost nothing under `jit`. Cost: O(n / B + B).
    """
    return leaders(blocks)[0]


def leaders(*several: Blocks) -> list[Leader]:
    """Returns the `leader` of each of several vectors of one shape. An accelerator scans them together."""
    if not FEW < several[0].values.size <= FLAT:
        return list(map(_leader_of_blocks, several))
    return by_platform(*several, cpu=lambda *each: list(map(_leader_of_blocks, each)), default=_leaders_of_all)


def _update_in_blocks(blocks: Blocks, index: Array, value: Array) -> Blocks:
    count, width = blocks.values.shape
    block, offset = index // width, index % width
    block = jnp.where(index < blocks.size, block, count)
    if jnp.ndim(index) > 0:
        if index.size <= ONE_BY_ONE:
            for at, new in zip(index, value, strict=True):
                blocks = _update_in_blocks(blocks, at, new)
            return blocks
        values = blocks.values.at[block, offset].set(value, mode="drop")
        return Blocks(values, *_two_largest(values), blocks.size)
    row = blocks.values.at[block].get(mode="clip")
    row = jnp.where(jnp.arange(width, dtype=index.dtype) == offset, value, row)
    top, second = _two_largest(row)
    # A select over nb entries is cheaper than a scatter of one.
    changed = jnp.arange(count, dtype=index.dtype) == block
    return Blocks(
        blocks.values.at[block].set(row, mode="drop"),
        jnp.where(changed, top, blocks.top),
        jnp.where(changed, second, blocks.second),
        blocks.size,
    )


def _update_in_all(blocks: Blocks, index: Array, value: Array) -> Blocks:
    """Sets entries without updating `top` and `second`."""
    width = blocks.values.shape[1]
    block = jnp.where(index < blocks.size, index // width, blocks.values.shape[0])
    return blocks._replace(values=blocks.values.at[block, index % width].set(value, mode="drop"))


def _leaders_of_all(*several: Blocks) -> list[Leader]:
    """Finds the leaders in one reduction, which merges the two largest entries of two parts of a vector."""
    dtype, size = several[0].values.dtype, several[0].values.size
    indices, lowest = jnp.arange(size, dtype=jnp.int32), _lowest(dtype)
    nothing, nowhere = jnp.asarray(-jnp.inf, dtype), jnp.asarray(size, jnp.int32)

    def better(a: Sequence[Array], b: Sequence[Array]) -> Array:
        return (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))

    def both(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
        wins = better(a, b)
        first = [jnp.where(wins, x, y) for x, y in zip(a, b, strict=True)]
        loser = [jnp.where(wins, y, x) for x, y in zip(a[:2], b[:2], strict=True)]
        is_second = better(loser, first[2:])
        return *first[:2], *[jnp.where(is_second, x, y) for x, y in zip(loser, first[2:], strict=True)]

    def all_of_both(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(x for n in range(0, len(a), 4) for x in both(a[n : n + 4], b[n : n + 4]))

    no_value, no_index = jnp.full(size, nothing), jnp.full(size, nowhere)
    each = [(blocks.values.reshape(-1), indices, no_value, no_index) for blocks in several]
    reduced = lax.reduce(sum(each, ()), (nothing, nowhere, nothing, nowhere) * len(several), all_of_both, (0,))
    per_vector = (reduced[n : n + 4] for n in range(0, len(reduced), 4))
    return [
        Leader(index=index, value=value, runner_up=jnp.maximum(second, lowest), challenger=second_index)
        for value, index, second, second_index in per_vector
    ]


def _leader_of_blocks(blocks: Blocks) -> Leader:
    count, width = blocks.values.shape
    block = _first(blocks.top, jnp.max(blocks.top))
    offset = _first(blocks.values[block], blocks.top[block])
    is_block = jnp.arange(count, dtype=jnp.int32) == block
    others = jnp.where(is_block, blocks.second, blocks.top)
    runner_up = jnp.max(others)
    next_block = _first(others, runner_up)
    is_leader = (next_block == block) & (jnp.arange(width, dtype=jnp.int32) == offset)
    next_offset = _first(jnp.where(is_leader, jnp.inf, blocks.values[next_block]), runner_up)
    return Leader(
        index=block * width + offset,
        value=blocks.top[block],
        runner_up=runner_up,
        challenger=next_block * width + next_offset,
    )


def _two_largest(rows: Array) -> tuple[Array, Array]:
    """Returns the largest and the second largest entry along the last axis."""
    top = jnp.max(rows, axis=-1)
    is_top = aligned(jnp.arange(rows.shape[-1], dtype=jnp.int32), rows.ndim) == _first(rows, top)[..., None]
    return top, jnp.max(jnp.where(is_top, _lowest(rows.dtype), rows), axis=-1)


def _first(rows: Array, value: Array) -> Array:
    """Returns the first index of a value that occurs. Unlike argmax, XLA vectorises it."""
    width = rows.shape[-1]
    each = aligned(jnp.arange(width, dtype=jnp.int32), rows.ndim)
    indices = jnp.where(rows == value[..., None], each, width)
    return jnp.min(indices, axis=-1)


def _lowest(dtype: jnp.dtype) -> Array:
    """Returns the lowest finite value, which stands for a missing candidate."""
    return jnp.asarray(jnp.finfo(dtype).min, dtype)
