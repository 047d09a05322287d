"""XY-oracle: the pulls of the best fixed design when theta is known."""

import bisect
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.linear._problem.arms import checked_arms, leads
from jaxbandits.linear._shared.allocations import oracle_allocation
from jaxbandits.linear._shared.radius import Radius, checked_radius_settings, radius_after
from jaxbandits.numerics.linalg import gram, spd_inverse, squared_norms
from jaxbandits.numerics.tracking import tracked_counts

MAX_BISECTION_ERROR = 64  # largest number of pulls by which the bisection may miss the first n


class XYOracle(NamedTuple):
    """Sample complexity of the oracle, and its pulls."""

    n: int  # first number of pulls after which the confidence bounds lie below the gaps
    counts: Array  # int (K,)        pulls of each arm after n pulls
    allocation: Array  # float (K,)  design that the pulls track
    value: Array  # float ()         max_i ||x_best - x_i||^2 / gap_i^2 in A(allocation)^-1
    lower: Array  # float ()         certified lower bound of the smallest such value


def xy_oracle(
    arms: Array,
    *,
    theta: Array,
    delta: float,
    noise_scale: float = 1.0,
    union_power: int = 1,
    radius: Radius = "azuma",
    steps: int = 5000,
) -> XYOracle:
    """Computes the pulls that the best fixed design needs when theta is known, a baseline without randomness.

    The design minimises max_{i != best} ||x_best - x_i||^2 / gap_i^2 in A(p)^-1. It is tracked until the confidence
    radius times ||x_best - x_i|| in A^-1 is at most the gap, for every i.

    Args:
        arms: float64 (K, d), spanning R^d. In float32 tracked counts are exact to about 10^5 pulls only.
        theta: float64 (d,), the truth.
        delta: in (0, 1), allowed probability of error.
        noise_scale: sub-Gaussian constant of the noise, in units of reward, positive.
        union_power: 1 or 2. The default fits the published totals to a few pulls.
        radius: "azuma" or "subgaussian", see `confidence_radius`.
        steps: iterations of the design's solver. The relative error of `n` is at most value / lower - 1, apart from
            the integer pulls: 2e-11 on `soare(5)`.

    Returns:
        XYOracle.

    Raises:
        ValueError: an argument is out of range or traced, two arms tie for the best, or the gaps need 2^53 pulls.

    Cost: the design's solver, then about 120 inversions of A, on the host: it cannot be called while a program is
    traced.

    Source: Soare, Lazaric and Munos (2014), the oracle; Xu, Honda and Sugiyama (2018), equation (18) and Table 1.
    """
    for name, value in {"arms": arms, "theta": theta, "delta": delta, "noise_scale": noise_scale}.items():
        require(is_concrete(value), name, "be concrete", value)
    arms = checked_arms(arms, full_rank=True)
    K, d = arms.shape
    require(arms.dtype == jnp.float64, "arms", "be float64", arms.dtype)
    theta = checks.array("theta", theta, (d,), dtype=arms.dtype)
    confidence = checked_radius_settings(
        delta=delta, K=K, noise_scale=noise_scale, union_power=union_power, radius=radius
    )
    steps = checks.whole("steps", steps, least=1)
    _, directions, gaps = leads(arms, theta)
    optimum = oracle_allocation(arms, theta=theta, steps=steps)

    @jax.jit
    def is_enough(n: Array) -> Array:
        counts = tracked_counts(optimum.allocation, n)
        inverse = spd_inverse(gram(arms, counts.astype(arms.dtype)))
        squared_bounds = radius_after(n.astype(arms.dtype), confidence) ** 2 * squared_norms(directions, inverse)
        return jnp.all(squared_bounds <= gaps**2)

    def enough(n: int) -> bool:
        return bool(is_enough(jnp.asarray(n, int)))

    limit = 2**53  # largest integer up to which a double represents every integer
    n = bisect.bisect_left(range(limit), True, lo=K, key=enough)
    require(n < limit, "theta", "have gaps that take fewer than 2^53 pulls", gaps)
    # One more pull may help no pair and still widen the bounds, so around the crossing the condition alternates.
    n = min(filter(enough, range(max(K, n - MAX_BISECTION_ERROR), n + 1)))
    return XYOracle(n, tracked_counts(optimum.allocation, n), *optimum)
