"""Many pulls in one round, exactly.

If the set of arms to pull from stays the same, the next N pulls are known now: each goes to the arm of the set with
fewest pulls. Two boxes prove that it stays the same: one inside every box of the next N rounds, and one around them.
"""

from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.cpe._problem.environment import Pulls
from jaxbandits.cpe._shared.estimate import Box, box


class Bounds(NamedTuple):
    """Bounds on the boxes of several rounds."""

    inner: Box  # box inside all of them; lo > hi is possible
    outer: Box  # box around all of them


def shares(counts: Array, mask: Array, number: Array) -> Array:
    """Computes each arm's share of the next pulls, each to the set's arm with fewest pulls, the lowest among ties.

    Args:
        counts: int32 (m,), pulls so far.
        mask: bool (m,), the set; not empty.
        number: int32 (), number of pulls, in 0..2^31 / m.

    Returns:
        int32 (m,), with sum `number`. Cost: O(m^2).
    """
    # Pulls that bring the whole set up to the count of arm i; a difference beyond `number` is out of reach anyway.
    lag = jnp.clip(counts[:, None] - counts[None], 0, number + 1)
    is_reached = mask & (jnp.sum(jnp.where(mask[None], lag, 0), axis=1, dtype=jnp.int32) <= number)
    # The arms that are reached end at equal counts; the remainder of the division goes to the lowest of them.
    height = number + jnp.sum(jnp.where(is_reached, counts, 0), dtype=jnp.int32)
    size = jnp.maximum(jnp.sum(is_reached, dtype=jnp.int32), 1)
    level, remainder = height // size, height % size
    earlier = jnp.cumsum(is_reached.astype(jnp.int32)) - is_reached.astype(jnp.int32)
    return jnp.where(is_reached, level - counts + (earlier < remainder).astype(jnp.int32), 0)


def slots(share: Array, leap: int) -> Pulls:
    """Returns the pulls of every arm as one action, arm after arm.

    Args:
        share: int32 (m,), pulls of each arm, at most `leap` in all.
        leap: number of slots of an action, a Python int.

    Returns:
        Pulls. Cost: O(m leap).
    """
    slot = jnp.arange(leap, dtype=jnp.int32)[:, None]
    return Pulls(jnp.sum(jnp.cumsum(share)[None] <= slot, axis=1, dtype=jnp.int32))


def bounds(estimates: Array, counts: Array, share: Array, *, tau: int, first: Array, last: Array, clip: bool) -> Bounds:
    """Computes bounds on the boxes of the next rounds that hold for any samples.

    An estimate is A / B, where B is the count T (means) or T - 1 (variances). A further sample adds a number in [0, 1]
    to A. So after up to s more samples the estimate is at least A / (B + s) and at most (A + s) / (B + s).

    Args:
        estimates: float (m,).
        counts: int32 (m,), at least tau.
        share: int32 (m,), the pulls to come.
        tau: 1 for means, 2 for variances.
        first: float (), the squared radius c(n) of the first of the rounds, see `squared_radius`.
        last: float (), the squared radius of the last round.
        clip: True if boxes are clipped to [0, 1].

    Returns:
        Bounds, with room for rounding.
    """
    dtype = estimates.dtype
    room = 1e-12 if dtype == jnp.float64 else 2e-6
    s, T = share.astype(dtype), counts.astype(dtype)
    B = T - (tau - 1)
    lowest = estimates * (B / (B + s))
    highest = lowest + s / (B + s)
    narrow, wide = jnp.sqrt(first / (T + s)) - room, jnp.sqrt(last / T) + room
    return Bounds(
        inner=box(highest - narrow, lowest + narrow, clip=clip),
        outer=box(lowest - wide, highest + wide, clip=clip),
    )
