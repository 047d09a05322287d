"""A law of rewards, as all functions of the family that depend on it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxbandits.base import Array, Key, PyTree
from jaxbandits.mab._problem.laws.pooled import Sample

Slots = tuple[Array, Array]  # two numbers of each slot of an action


class Law(NamedTuple):
    """The laws of one kind of rewards, one for each mean.

    The first argument of every function is the problem. Means are floats of its dtype, and broadcast.
    """

    check: Callable[[Any, str], None]  # (problem, name): raises `ValueError` unless its own fields are valid
    # (problem, name, means) -> float (K,); raises `ValueError` unless arms can have these means
    checked_means: Callable[[Any, str, Any], Array]
    # (problem, mean) -> the variance of a reward, V: the derivative of divergence(x, y) in y is (y - x) / V(y)
    variance: Callable[[Any, Array], Array | float]
    divergence: Callable[[Any, Array, Array], Array]  # (problem, p, q)
    inner: Callable[[Any, Array], Array]  # (problem, mean) -> the mean, moved off an end with infinite divergences
    bounds: Callable[[Any, Array, Array], tuple[Array, Array]]  # (problem, mean, c) -> upper, lower
    upper_bound: Callable[[Any, Array, Array], Array]  # (problem, mean, c)
    bound: Callable[[Any, Array, Array, Array], Array]  # (problem, mean, c, is_upper)
    # (problem, leader, other, epsilon) -> minimum over x of n_l kl(m_l, x) + n_a kl(m_a, x + epsilon), 0 where
    # m_a >= m_l + epsilon; an epsilon of None is 0
    transport: Callable[[Any, Sample, Sample, Array | None], Array]
    share: Callable[[Any, Sample, Sample], Array]  # (problem, leader, challenger): see `directed_share`
    # (problem, first, second) -> points x, one of which minimises n_1 kl(m_1, x) + n_2 kl(m_2, x) where m_1 > m_2; None
    # if that is the pooled mean
    meeting: Callable[[Any, Sample, Sample], tuple[Array, ...]] | None
    posterior_draws: Callable[[Any, Key, Array, Array, int | None], Array]  # (problem, key, counts, means, number)
    # (problem, key, counts, means, number) -> a draw, and so many uniform variables
    posterior_draw_and_uniforms: Callable[[Any, Key, Array, Array, int], tuple[Array, Array]]
    draw: Callable[[Any, Key, int, int, Any], PyTree]  # (problem, key, slots, leap, dtype) -> noise of a round
    # (problem, noise, means, action, leap) -> fields of the observation; the action has the arms and the times of the
    # slots. Unknown variances: also sd, float (K,)
    pay: Callable[..., tuple[Array, ...]]
    # (problem, stream, means, leap) -> function (action, pulls before) -> as `pay`; unknown variances: also sd
    pay_from_stream: Callable[..., Callable[[Slots, Array], Slots]]
    can_share: Callable[[int], bool]  # (leap) -> whether `pay_from_stream` exists with it
    # (problem, sums, times) -> whether so many rewards can have these sums; None if any finite number is possible
    are_sums: Callable[[Any, Array, Array], Array] | None
    sums_are: str  # the same in words, for messages
    scale: Callable[[Any], float] | None  # (problem) -> sub-Gaussian constant; None if there is none
    # (problem, counts) -> standard deviations of the posterior, where it is normal; otherwise None
    posterior_scale: Callable[[Any, Array], Array] | None
    # (problem, counts, means, z) -> quantile of the posterior at the upper normal tail of z > 0; None if unknown
    posterior_quantile: Callable[[Any, Array, Array, Array], Array] | None
    width: float | None  # largest difference of two means; None if there is none
    largest_leap: int | None  # pulls of which the sum can be drawn at once; None for any number
    counts_ones: bool  # True if rewards are 0 or 1
    ties: bool  # True if two means are often equal
    has_mixture: bool  # True if there is a threshold for it that reads the sums of rewards
    is_location: bool  # True if divergences depend on the difference of the means alone
    is_convex: bool  # True if divergence(x, y) is convex in y
