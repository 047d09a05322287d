"""Rows of entries in falling order, of which a decision takes the best ones: what tables and opinion sampling share.

One entry of each row is compared with the entries of the other rows.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from jaxbandits.base import Array

# (problem, level (m,), at_i=(m,), others=(m,)) -> bool (m,): arm i's level is above level[i] at the corner (at_i at i,
# others elsewhere). Every level is above -1.
Exceeds = Callable[..., Array]


def open_arms_by(exceeds: Exceeds) -> Callable[[Any, Array, Array, Array], Array]:
    """Returns `open_arms`: an arm is open if its next entry can be chosen or its last one can be dropped."""

    def open_arms(problem: Any, lo: Array, hi: Array, levels: Array) -> Array:
        return exceeds(problem, levels, at_i=hi, others=lo) | ~exceeds(problem, levels - 1, at_i=lo, others=hi)

    return open_arms


def lasting_arms_by(exceeds: Exceeds) -> Callable[[Any, Array, Array, Array], Array]:
    """Returns `lasting_arms`: the arms for which one of these two entries is both chosen and dropped in the box."""

    def lasting_arms(problem: Any, lo: Array, hi: Array, levels: Array) -> Array:
        def is_certain(level: Array) -> Array:
            return exceeds(problem, level, at_i=hi, others=lo) & ~exceeds(problem, level, at_i=lo, others=hi)

        return is_certain(levels) | is_certain(levels - 1)

    return lasting_arms


def share_out(demand: Array, places: Array) -> Array:
    """Gives places to the arms up to their demand, the largest index first."""
    behind = jnp.cumsum(demand[::-1], dtype=demand.dtype)[::-1] - demand
    return jnp.clip(places - behind, 0, demand)
