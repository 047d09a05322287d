"""The action that is hardest to tell from the best one, exactly; and the threshold that follows from it.

It minimises f_x = <means, x* - x>^2 / (2 sum over the arms on which x* and x differ of 1 / weight). On a matroid it is
a single swap, see `matroids`.
"""

from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.cpe._problem.problems import arm_count
from jaxbandits.cpe._shared.maximum import Playable, actions_of, best_of, check_playable, closest, gaps_of
from jaxbandits.numerics import thresholds


class Confusing(NamedTuple):
    """The action that is hardest to tell from the best one."""

    value: Array  # float ()   its f_x, in units of the noise
    out: Array  # int32 ()     the arm that it lacks; for a listed class its row
    into: Array  # int32 ()    the arm that it has instead; for a listed class -1
    smallest_gap: Array  # float ()   smallest gap to any swap or row, perhaps to another action than this one


def most_confusing(problem: Playable, means: Array, weight: Array, noise_scale: Array | float = 1.0) -> Confusing:
    """Finds the action x that minimises f_x = <means, x* - x>^2 / (2 noise_scale^2 sum_{k in x* xor x} 1 / weight_k).

    x* is the best action at the means. The minimum is F(weight, means). If the weights are counts of samples, it is the
    log likelihood ratio of x* being wrong.

    Args:
        problem: as in `maximum`. An `Oracle` is refused, because f_x is not linear in gap and variance.
        means: float (K,), in units of reward.
        weight: float (K,), positive: counts, or shares of plays.
        noise_scale: () > 0, in units of reward.

    Returns:
        Confusing. On a matroid a swap, exactly; ties go to the lowest `into`, then the lowest `out`.

    Raises:
        ValueError: an argument is not as above.

    Cost: one `maximum`, and O(D K) on a matroid whose actions have D arms, O(N K) on a listed class.

    Source: the closed form on swaps is ours; the quantity is from Tzeng, Wang, Proutiere and Lu (2023).

    Example:
        >>> from jaxbandits import cpe
        >>> means = jnp.asarray([0.9, 0.5, 0.7, 0.1])
        >>> rival = cpe.most_confusing(cpe.top_k(4, 2), means, jnp.asarray([100.0, 100.0, 10.0, 100.0]))
        >>> print(rival.value.round(3), rival.out, rival.into)
        0.182 2 1
    """
    check_playable(problem)
    K = arm_count(problem)
    means = checks.array("means", means, (K,))
    weight = checks.array("weight", weight, (K,), above=0).astype(means.dtype)
    checks.positive("noise_scale", noise_scale)
    best = best_of(problem, means)
    gaps = gaps_of(problem, best, means)
    rival = closest(problem, best, gaps, 1 / weight)
    value = rival.value / jnp.asarray(noise_scale, means.dtype) ** 2
    return Confusing(value, out=rival.out, into=rival.into, smallest_gap=jnp.min(gaps))


def proved_threshold(problem: Playable) -> thresholds.Threshold:
    """Returns a threshold with which P-FWS, CombGame and any other sampling of plays is delta-correct.

    If the answer is wrong on a matroid, some swap of it brings in an arm with a larger mean than the arm that goes out.
    The ratio is then at most the ratio of these two arms. There are at most D (K - D) pairs, and each arm has at most
    one sample per play. So the threshold is `thresholds.kk_pair` over the swaps, at counts (t, t). For a listed class
    it is `thresholds.kk_all`, which is several times as large.

    Args:
        problem: as in `maximum`.

    Returns:
        The threshold. It reads `pulls`, the number of plays, for a matroid, and `counts` (K,) for a listed class.

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
    K, rank = arm_count(problem), actions_of(problem).rank
    if rank is None:
        return thresholds.kk_all(arms=K)
    D = rank(problem)
    pair = thresholds.kk_pair(comparisons=D * (K - D))

    def kk_swap(delta: Array | float, evidence: thresholds.Evidence) -> Array:
        plays = jnp.asarray(evidence.pulls)
        return pair(delta, evidence._replace(counts=jnp.stack([plays, plays])))

    return kk_swap
