"""Candidates of bi-monotone kinds: an arm's level is highest and lowest at two corners of a box.

Raising theta_i never lowers level i and never raises another. So level i is highest at the corner (hi at i, lo
elsewhere) and lowest at the corner (lo at i, hi elsewhere). A kind either compares levels with a given one, `exceeds`,
or computes them, `level_range`.
"""

from collections.abc import Callable
from typing import Any

from jaxbandits.base import Array

# (problem, level (m,), at_i=(m,), others=(m,)) -> bool (m,): arm i's level is above level[i] at the corner (at_i at i,
# others elsewhere). Every level is above -1.
Exceeds = Callable[..., Array]
LevelRange = Callable[[Any, Array, Array], tuple[Array, Array]]  # (problem, lo, hi) -> lowest, highest int32 (m,)


def open_by_level(exceeds: Exceeds, problem: Any, lo: Array, hi: Array, levels: Array) -> Array:
    """Returns the open arms: the next level can be reached, or the present one can be left."""
    return exceeds(problem, levels, at_i=hi, others=lo) | ~exceeds(problem, levels - 1, at_i=lo, others=hi)


def lasting_by_level(exceeds: Exceeds, problem: Any, lo: Array, hi: Array, levels: Array) -> Array:
    """Returns the lasting arms: the next level, or the present one, is both reached and not reached in the box."""

    def is_certain(level: Array) -> Array:
        return exceeds(problem, level, at_i=hi, others=lo) & ~exceeds(problem, level, at_i=lo, others=hi)

    return is_certain(levels) | is_certain(levels - 1)


def open_by_range(level_range: LevelRange, problem: Any, lo: Array, hi: Array, levels: Array) -> Array:
    """Returns the open arms: the lowest and the highest level differ."""
    del levels
    lowest, highest = level_range(problem, lo, hi)
    return highest != lowest


def lasting_by_range(level_range: LevelRange, problem: Any, lo: Array, hi: Array, levels: Array) -> Array:
    """Returns the lasting arms; in an empty box, lo > hi, the "highest" level may be below the "lowest"."""
    del levels
    lowest, highest = level_range(problem, lo, hi)
    return highest > lowest
