"""XY-oracle: what the best fixed design needs when theta is known."""

import bisect
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.checks import require
from jaxbandits.linear.allocations import oracle_allocation
from jaxbandits.linear.problem import check_arms, leads
from jaxbandits.linear.width import Width, check_width, confidence_scale
from jaxbandits.numerics.linalg import gram, spd_inverse, squared_norms
from jaxbandits.numerics.tracking import tracked_counts

WALK = 64  # pulls by which the bisection may miss the first n


class XYOracle(NamedTuple):
    """The oracle's sample complexity and how it spends it."""

    n: int  # the first number of pulls after which the widths lie below the gaps
    counts: Array  # int (K,)        those pulls
    allocation: Array  # float (K,)  the design that they track
    value: Array  # float ()         max_i ||x_best - x_i||^2 / gap_i^2 in A(allocation)^-1
    lower: Array  # float ()         a certified lower bound of the least such value


def xy_oracle(
    arms: Array,
    *,
    theta: Array,
    delta: float,
    noise_scale: float = 1.0,
    union_power: int = 1,
    width: Width = "azuma",
    steps: int = 5000,
) -> XYOracle:
    """The pulls that the best fixed design needs when theta is known: a baseline in which nothing is random.

    The design minimises max_{i != best} ||x_best - x_i||^2 / gap_i^2 in A(p)^-1. It is tracked until the confidence
    width of every x_best - x_i is at most the gap.

    Args:
        arms: float64 (K, d), spanning R^d. In float32 tracked counts are exact to about 10^5 pulls only.
        theta: float64 (d,), the truth.
        delta: in (0, 1), admitted probability of error.
        noise_scale: sub-Gaussian constant of the noise, positive.
        union_power: 1 (here the default, which fits the published totals to a few pulls) or 2.
        width: "azuma" or "subgaussian", see `confidence_scale`.
        steps: iterations of the design's solver. The relative error of `n` is at most value / lower - 1, apart from
            the integer pulls: 2e-11 on `soare(5)`.

    Returns:
        XYOracle.

    Raises:
        ValueError: an argument is out of range, two arms tie for the best, or the gaps need
            2^53 pulls.

    Cost: the design's solver, then about 120 inversions of A, on the host.

    Source: Soare, Lazaric and Munos (2014), the oracle; Xu, Honda and Sugiyama (2018), equation (18) and Table 1.
    """
    check_arms(arms, full_rank=True)
    K = arms.shape[0]
    dtype = arms.dtype
    require(dtype == jnp.float64, "arms", "be float64", dtype)
    check_width(delta=delta, arms=K, noise_scale=noise_scale, union_power=union_power, width=width)
    optimum = oracle_allocation(arms, theta=theta, steps=steps)

    _, directions, gaps = leads(arms, theta)

    @jax.jit
    def is_enough(n: Array) -> Array:
        counts = tracked_counts(optimum.allocation, n)
        inverse = spd_inverse(gram(arms, counts.astype(dtype)))
        scale = confidence_scale(
            n.astype(dtype),
            delta=delta,
            arms=K,
            noise_scale=noise_scale,
            union_power=union_power,
            width=width,
        )
        norms = scale**2 * squared_norms(directions, inverse)
        return jnp.all(norms <= gaps**2)

    def enough(n: int) -> bool:
        return bool(is_enough(jnp.asarray(n, int)))

    limit = 2**53  # the largest integer up to which a double counts one by one
    n = bisect.bisect_left(range(limit), True, lo=K, key=enough)
    require(n < limit, "gaps", "take fewer than 2^53 pulls to tell apart", gaps)
    # One pull more may help no pair and yet widen the confidence: around the crossing the condition comes and goes.
    n = min(filter(enough, range(max(K, n - WALK), n + 1)))
    return XYOracle(n, tracked_counts(optimum.allocation, n), *optimum)
