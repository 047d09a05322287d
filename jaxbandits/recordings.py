"""Tables of recorded rewards, for the environments that replay them."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require, show

Order = Literal["in turn", "bootstrap"]


class Recording(NamedTuple):
    """Rewards of K arms, each in the order in which its pulls pay them."""

    rewards: Array  # float (K, n)    0 past an arm's last one
    sums: Array  # float (K, n + 1)   sum of the first 0, 1, .. n rewards
    lengths: Array  # int32 (K,)      number of rewards


def recording_of(rewards: Any, dtype: Any, *, arms: int | None = None) -> Recording:
    """Returns the recording of a table.

    Args:
        rewards: see `mab.recorded`.
        dtype: dtype of the rewards.
        arms: number of arms; None if the table tells.

    Raises:
        ValueError: the rewards are no such table, an arm has none, or one of them is infinite.
    """
    columns = _columns(rewards)
    require(len(columns) >= 2, "rewards", "have a column for each of at least two arms", len(columns))
    require(arms in (None, len(columns)), "rewards", f"have a column for each of {arms} arms", len(columns))
    kept = [column[~np.isnan(column)] for column in columns]
    for k, column in enumerate(kept):
        require(column.size > 0, "rewards", f"have a reward of every arm, of arm {k} too", "none")
        if not np.isfinite(column).all():
            raise ValueError(f"rewards must be finite, or NaN where one is missing, got an infinity of arm {k}")
    lengths = np.array([column.size for column in kept])
    table = np.zeros((len(kept), lengths.max()))
    for row, column in zip(table, kept, strict=True):
        row[: column.size] = column
    sums = np.concatenate([np.zeros((len(kept), 1)), np.cumsum(table, axis=1)], axis=1)
    return Recording(jnp.asarray(table, dtype), jnp.asarray(sums, dtype), jnp.asarray(lengths, jnp.int32))


def paid(recording: Recording, arm: Array, start: Array, times: Array) -> Array:
    """Returns the sum of the rewards `start`, .. `start + times - 1` of an arm, (); exact for one pull."""
    n, arm = recording.rewards.shape[1], arm.astype(jnp.int32)
    one = recording.rewards[arm, jnp.minimum(start, n - 1)]
    many = recording.sums[arm, jnp.minimum(start + times, n)] - recording.sums[arm, jnp.minimum(start, n)]
    return jnp.where(times == 0, 0, jnp.where(times == 1, one, many))


def drawn(recording: Recording, arm: Array, u: Array) -> Array:
    """Returns a reward of an arm, () chosen by a uniform number u in [0, 1)."""
    arm = arm.astype(jnp.int32)
    number = jnp.floor(u * recording.lengths[arm].astype(u.dtype)).astype(jnp.int32)
    # Rounding could reach the end.
    return recording.rewards[arm, jnp.minimum(number, recording.lengths[arm] - 1)]


def _real(values: Any) -> np.ndarray:
    """Returns numbers, with None as NaN; raises `TypeError` or `ValueError` if they are none."""
    array = np.asarray(values)
    if array.dtype.kind == "c":
        raise TypeError("complex numbers")
    return array.astype(float)


def _columns(rewards: Any) -> list[np.ndarray]:
    """Returns the rewards of each arm, NaN where one is missing."""
    expected = "be a table with a column for each arm, or a list with the rewards of each arm"
    is_listed = isinstance(rewards, Sequence) and not isinstance(rewards, (str, bytes))
    require(is_listed or hasattr(rewards, "shape"), "rewards", expected, show(rewards))
    require(is_concrete(rewards), "rewards", "be known before tracing", rewards)
    try:
        if is_listed:
            columns = [_real(column) for column in rewards]
        else:
            table = _real(rewards)
            columns = list(table.T) if table.ndim == 2 else [table]
    except (TypeError, ValueError) as error:
        raise ValueError(f"rewards must {expected}, got entries that are no numbers: {error}") from error
    require(all(column.ndim == 1 for column in columns), "rewards", expected, [column.shape for column in columns])
    return columns
