"""The functions by which the rest of the family knows a kind of problem.

A new kind is a file beside this one: copy `graphic.py`, and add the struct to `Problem` and `KINDS` in `problems`.
Nothing else asks for the type of a problem. A part that is None does not exist for the kind; what needs it refuses the
problem.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.base import Array


class Closest(NamedTuple):
    """The action that is hardest to tell from the best one, with the direction of the closest instance."""

    value: Array  # float ()   f_x at noise_scale 1
    slope: Array  # float ()   gap / sum of 1 / weight: the means become equal if each moves by slope / weight
    differs: Array  # bool (K,)   the arms on which the two actions differ
    out: Array  # int32 ()   the arm that it lacks; for a listed class its row
    into: Array  # int32 ()   the arm that it has instead; for a listed class -1


class Actions(NamedTuple):
    """Functions of a kind whose 0/1 decisions can be played as a whole. Their problem is known, not traced.

    The best action, `best`, is a struct of the kind with a field `action`, bool (K,). Other fields are for `gaps` and
    `closest`.
    """

    check: Callable[[Any], None]  # (problem): raises `ValueError` unless every arm is in an action, and there are two
    maximum: Callable[..., Array]  # (problem, weights (K,)) -> bool (K,)   best action, ties to the lowest index
    best: Callable[..., Any]  # (problem, weights (K,)) -> best
    gaps: Callable[..., Array]  # (problem, best, means (K,)) -> float (...)   lead over each rival; inf for none
    closest: Callable[..., Closest]  # (problem, best, gaps (...), inverse (K,)) -> rival that is hardest to tell
    rank: Callable[[Any], int] | None  # (problem) -> D, arms of every action of a matroid; None for another class
    diameter: Callable[[Any], float]  # (problem) -> largest Euclidean distance of two actions, or an upper bound
    # In NumPy, on the host
    on_host: Callable[..., np.ndarray]  # (problem, weights (K,)) -> int (K,)   `maximum`
    contains: Callable[..., Any]  # (problem, rows int (M, K)) -> bool (M,)   the row is an action
    rivals: Callable[..., np.ndarray]  # (problem, action (K,)) -> float (S, K)   action minus each of its rivals


class Kind(NamedTuple):
    """Functions of a kind of problem. A box is given by its corners lo (m,) and hi (m,)."""

    arm_count: Callable[[Any], int]  # (problem) -> m
    float_dtype: Callable[[Any], Any]  # (problem) -> dtype of a run
    check: Callable[[Any, str], None]  # (problem, name): raises `ValueError` unless its parts are as its comments say
    best_levels: Callable[..., Array]  # (problem, theta (m,)) -> int32 (m,)   see `solve`
    open_arms: Callable[..., Array]  # (problem, lo, hi, levels (m,)) -> bool (m,)   see `candidates`
    lasting_arms: Callable[..., Array]  # (problem, lo, hi, levels (m,)) -> bool (m,)   see `candidates.lasting_arms`
    # (problem, lo, hi, levels (m,)) -> bool (): no arm is open, computed faster than from `open_arms`
    is_decided: Callable[..., Array] | None = None
    reward: Callable[..., Array] | None = None  # (problem, theta (m,), levels (m,)) -> float ()   see `reward`
    decision: Callable[..., Array] = lambda problem, levels: levels  # (problem, levels (m,)) -> y (m,)
    # (problem, theta (m,), one=(m,), other=(m,)) -> r(theta, one) - r(theta, other), for 0/1 decisions with a linear
    # reward, summed over the arms on which they differ
    lead: Callable[..., Array] | None = None
    misfit: Callable[[Any], str] = lambda problem: ""  # (problem) -> reason why it has no such decisions; "" if it has
    reward_gaps: Callable[..., Array] | None = None  # (problem, theta (m,)) -> float (m,)   see `reward_gaps`
    actions: Actions | None = None
    is_binary: bool = False  # True if all decisions are 0/1
    is_unbounded: bool = False  # True if boxes of means need not be clipped to [0, 1]
    check_estimator: Callable[[str], None] = lambda estimator: None  # raises `ValueError` unless theta can be that
    check_candidates: Callable[[Any], None] = lambda problem: None  # raises `ValueError` if `open_arms` may be wrong
