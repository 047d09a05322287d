"""The action that is hardest to tell from the best one, exactly; and the threshold that follows from it.

Of f_x = <means, x* - x>^2 / (2 sum over the arms on which x* and x differ of 1 / weight), the least is wanted. On a
matroid single swaps suffice, where the published algorithms play games of thousands of steps. By Brualdi's theorem the
arms of x* - x and of x - x* can be matched so that every single swap x* - e + f is an action. Gap and sum of 1 / weight
add over the pairs (g_i, h_i), and if g_i^2 >= m h_i for all of them, then (sum g_i)^2 >= m (sum sqrt(h_i))^2 >= m sum
h_i: no exchange of several arms is harder to tell than the hardest swap in it.
"""

from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.cpe._problem.problems import Enumerated, Table, arm_count
from jaxbandits.cpe._shared.maximum import Playable, Row, Swaps, best_of, check_playable, first_least
from jaxbandits.numerics import thresholds


class Confusing(NamedTuple):
    """The action that is hardest to tell from the best one."""

    value: Array  # float ()   its f_x, in units of the noise
    out: Array  # int32 ()     the arm that it lacks; of a listed class, its row
    into: Array  # int32 ()    the arm that it has instead; of a listed class, -1
    smallest_gap: Array  # float ()   least difference of means to any swap, or any row: which may be another


class Closest(NamedTuple):
    """The same with what it takes to move along it."""

    value: Array  # float ()   f_x at noise_scale 1
    slope: Array  # float ()   gap / sum of 1 / weight: the means become equal if each moves by slope / weight
    differs: Array  # bool (K,)   the arms on which the two actions differ
    out: Array  # int32 ()
    into: Array  # int32 ()


def most_confusing(problem: Playable, means: Array, weight: Array, noise_scale: Array | float = 1.0) -> Confusing:
    """The action x that minimises f_x = <means, x* - x>^2 / (2 noise_scale^2 sum_{k in x* xor x} 1 / weight_k).

    x* is the best action at the means. The least value is F(weight, means); with the counts of samples for weights it
    is the log likelihood ratio of x* being wrong.

    Args:
        problem: as in `maximum`. An `Oracle` is refused: the minimum is not that of gap and variance combined
            linearly.
        means: float (K,), in units of reward.
        weight: float (K,), positive: counts, or shares of plays.
        noise_scale: () > 0, in units of reward.

    Returns:
        Confusing. On a matroid a swap, exactly; ties go to the lowest `into`, then the lowest `out`.

    Raises:
        ValueError: an argument is not as above.

    Cost: that of `maximum`, and O(D K) on a matroid whose actions have D arms, O(N K) on a listed class.

    Source: the closed form on swaps is ours; the quantity is that of Tzeng, Wang, Proutiere and Lu (2023).

    Example:
        >>> from jaxbandits import cpe
        >>> means = jnp.asarray([0.9, 0.5, 0.7, 0.1])
        >>> found = cpe.most_confusing(cpe.top_k(4, 2), means, jnp.asarray([100.0, 100.0, 10.0, 100.0]))
        >>> print(found.value.round(3), found.out, found.into)
        0.182 2 1
    """
    check_playable(problem)
    K = arm_count(problem)
    means = checks.array("means", means, (K,))
    weight = checks.array("weight", weight, (K,), above=0).astype(means.dtype)
    checks.positive("noise_scale", noise_scale)
    best = best_of(problem, means)
    gaps = gaps_of(problem, best, means)
    found = closest(problem, best, gaps, 1 / weight)
    value = found.value / jnp.asarray(noise_scale, means.dtype) ** 2
    return Confusing(value, found.out, found.into, jnp.min(gaps))


def gaps_of(problem: Playable, best: Swaps | Row, means: Array) -> Array:
    """What the best action leads by: of swaps (D, K), of rows (N,); inf for what is no other action."""
    match best:
        case Swaps(_, out, into):
            return jnp.where(into, means[out][:, None] - means[None], jnp.inf)
        case Row(action, row):
            assert isinstance(problem, Enumerated)
            fewer = action.astype(means.dtype) - problem.rows.astype(means.dtype)
            gaps = jnp.matmul(fewer, means, precision="highest")
            return jnp.where(jnp.arange(len(problem.rows)) == row, jnp.inf, gaps)


def closest(problem: Playable, best: Swaps | Row, gaps: Array, inverse: Array) -> Closest:
    """The action that minimises gap^2 / (2 sum of `inverse` (K,) over the arms in which it differs)."""
    arms = jnp.arange(inverse.shape[0], dtype=jnp.int32)
    match best:
        case Swaps(_, out, _):
            # Reduced where it is made: an argmin, or a column read from the table, would have it written out in lanes.
            of_out = inverse[out]
            by_into = jnp.min(gaps**2 / (of_out[:, None] + inverse[None]), axis=0)
            least, into = jnp.min(by_into), first_least(by_into)
            values = gaps.T[into] ** 2 / (of_out + inverse[into])
            own = jnp.min(jnp.where(values == least, out, inverse.shape[0]))
            differs = (arms == own) | (arms == into)
            return Closest(least / 2, _root_slope(least, differs, inverse), differs, own, into)
        case Row(action, _):
            assert isinstance(problem, Enumerated)
            others = (problem.rows > 0) != action
            values = gaps**2 / jnp.matmul(others.astype(inverse.dtype), inverse, precision="highest")
            row = jnp.argmin(values).astype(jnp.int32)
            least, differs = values[row], others[row]
            return Closest(least / 2, _root_slope(least, differs, inverse), differs, row, jnp.full_like(row, -1))


def _root_slope(least: Array, differs: Array, inverse: Array) -> Array:
    """What gap / h is at the least gap^2 / h; gaps are not negative."""
    return jnp.sqrt(least / jnp.sum(jnp.where(differs, inverse, 0)))


def proved_threshold(problem: Playable) -> thresholds.Threshold:
    """The threshold that makes P-FWS, CombGame and any other sampling of plays with its stop delta-correct.

    If the answer is wrong, then on a matroid some swap of it has a larger mean of the arm that comes in than of the arm
    that goes out, and the ratio is at most that of these two arms: two arms, not K, and at most D (K - D) pairs, each
    arm with at most one sample a play. So the threshold is `thresholds.kk_pair` over the swaps, at counts (t, t). For a
    listed class it is `thresholds.kk_all`, a multiple of it.

    Args:
        problem: as in `maximum`.

    Returns:
        The threshold; reads `pulls`, the plays, of a matroid, and `counts` (K,) of a listed class.

    Raises:
        ValueError: the problem is not as above.

    **Proved** for Gaussian arms. Source: ours, from Kaufmann and Koolen (2021) for two arms.

    Example:
        >>> from jaxbandits import cpe
        >>> from jaxbandits.numerics.thresholds import Evidence
        >>> triangle = cpe.graphic(3, [[0, 1], [1, 2], [0, 2]])
        >>> print(cpe.proved_threshold(triangle)(0.1, Evidence(pulls=1000)).round(2))
        15.65
    """
    check_playable(problem)
    K = arm_count(problem)
    if isinstance(problem, Enumerated):
        return thresholds.kk_all(arms=K)
    D = int(problem.quota) if isinstance(problem, Table) else problem.nodes - 1
    pair = thresholds.kk_pair(comparisons=D * (K - D))

    def kk_swap(delta: Array | float, evidence: thresholds.Evidence) -> Array:
        plays = jnp.asarray(evidence.pulls)
        return pair(delta, evidence._replace(counts=jnp.stack([plays, plays])))

    return kk_swap
