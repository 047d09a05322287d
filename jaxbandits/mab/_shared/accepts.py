"""Accepts and rejects: which arms leave at a phase's end where the m best are sought."""

import jax.numpy as jnp

from jaxbandits.base import Array


def leaving(means: Array, active: Array, rank: Array, places: Array | int, number: Array) -> tuple[Array, Array]:
    """Finds the arms that leave, as if one after the other, with the means as they stand.

    While l arms are sought, one of the l best arms has as its gap its lead over the best arm behind them, another arm
    its distance from the worst of them. The arm with the largest gap leaves, among several the one that ranks last.
    Neither of the two arms that gaps refer to changes while others leave, so that all leave in the order of their gaps.
    If none is sought the last arm leaves, and if all are the first.

    Args:
        means: float (K,).
        active: bool (K,), remaining arms.
        rank: int32 (K,), number of better remaining arms.
        places: int32 (), number of arms that are still sought, at most the remaining ones.
        number: int32 (), number of arms that leave.

    Returns:
        bool (K,) each: the arms that leave, and the accepted ones among them.
    """
    inside, outside = active & (rank < places), active & (rank >= places)
    # Gaps from 0 order alike where one of the two sides is empty.
    last_inside = jnp.where(jnp.any(inside), jnp.min(jnp.where(inside, means, jnp.inf)), 0)
    first_outside = jnp.where(jnp.any(outside), jnp.max(jnp.where(outside, means, -jnp.inf)), 0)
    gaps = jnp.where(inside, means - first_outside, last_inside - means)
    # These leave after all arms outside have: all of the arms that remain then have a place.
    has_place = inside & (gaps <= jnp.min(jnp.where(outside, gaps, jnp.inf)))
    turn = jnp.where(has_place, -rank, rank)
    sooner = (gaps[None] > gaps[:, None]) | ((gaps[None] == gaps[:, None]) & (turn[None] > turn[:, None]))
    leaves = active & (jnp.sum(sooner & active[None], axis=1, dtype=jnp.int32) < number)
    return leaves, leaves & inside
