"""Hardness of an instance: gaps, hardness measures, bounds on stopping times, and the time of the best design.

All of it depends on the truth, which no algorithm knows.
"""

from collections.abc import Callable
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.fullbandit._problem.design import Design, all_superarms, check_design, check_mask, check_size
from jaxbandits.fullbandit._problem.instances import Instance, check_instance
from jaxbandits.fullbandit._shared.confidence import Radius, confidence_radius
from jaxbandits.fullbandit._shared.enumeration import largest_squared_norm, superarm_table
from jaxbandits.fullbandit._theory.allocations import xy_allocation
from jaxbandits.numerics.densest_subgraph import largest_eigenvalue, quadratic_maximization

Method = Literal["enumerate", "greedy", "spectral"]

LARGEST_TIME = 1e30  # upper bound of all numbers of pulls, within the range of float32
ORACLE_ARMS = 12  # largest number of arms of an instance whose super-arms are all compared


def gap(instance: Instance) -> Array:
    """Computes the lead of the worst arm of the best super-arm over the best arm outside; 0 if they tie.

    Args:
        instance: the truth.

    Returns:
        float (), at least 0: also the lead of the best super-arm over the second best.

    Raises:
        ValueError: the instance is not valid.

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama, Polynomial-time algorithms for multiple-arm identification with
    full-bandit feedback: Delta_min, where "arg min" is printed for the minimum.
    """
    ranked, _ = lax.top_k(check_instance(instance), instance.k + 1)
    return ranked[instance.k - 1] - ranked[instance.k]


def rho(design: Design, *, method: Method = "enumerate") -> Array:
    """Computes the largest |chi_M|^2 in Lambda^-1 over all super-arms M, in the design or not.

    Args:
        design: the tracked design.
        method: "enumerate" tries all super-arms; "greedy" is a lower bound by peeling, in O(n^2); "spectral" is the
            upper bound k lambda_max(Lambda^-1).

    Returns:
        float (), at least n if every super-arm is in the design.

    Raises:
        ValueError: `method` is unknown, or there are more than 5e6 super-arms to try.

    Source: Kuroki et al., Theorem 3.
    """
    check_design(design)
    checks.one_of("method", method, Method)
    if method == "enumerate":
        return largest_squared_norm(design.inverse, superarm_table(design.support.shape[1], design.k))
    if method == "greedy":
        return quadratic_maximization(design.inverse, design.k, reduction="exact").value
    return design.k * largest_eigenvalue(design.inverse)


def rho_independent(design: Design) -> Array:
    """Computes the largest squared width of a difference of two super-arms if every arm has a width of its own.

    Args:
        design: the tracked design.

    Returns:
        float (): the square of the sum of the 2 min(k, n-k) largest roots of diagonal entries of Lambda^-1.

    Raises:
        ValueError: the design is not valid.

    Source: Kuroki et al., rho' of Lemma 3.
    """
    check_design(design)
    n = design.support.shape[1]
    widest, _ = lax.top_k(jnp.sqrt(jnp.diagonal(design.inverse)), 2 * min(design.k, n - design.k))
    return widest.sum() ** 2


def hardness(rho: Array | float, gap: Array | float, epsilon: Array | float) -> Array:
    """Computes H = rho / (gap + epsilon)^2, to which stopping times are proportional up to logarithms.

    Args:
        rho: float () >= 0, from `rho`, or from `rho_independent` for `icb`.
        gap: float () >= 0, from `gap`.
        epsilon: float () >= 0, allowed loss.

    Returns:
        float (), infinite if gap and epsilon are both 0.

    Raises:
        ValueError: an argument is out of range.

    Source: Kuroki et al., Theorem 3 and Lemma 3.
    """
    rho = checks.array("rho", rho, (), least=0)
    checks.not_negative("gap", gap)
    checks.not_negative("epsilon", epsilon)
    return rho / (jnp.asarray(gap, rho.dtype) + jnp.asarray(epsilon, rho.dtype)) ** 2


def saqm_bound(
    hardness: Array | float,
    n: int,
    k: int,
    *,
    delta: Array | float,
    noise_scale: Array | float = 1.0,
    alpha: Array | float = 0.9,
) -> Array:
    """Bounds SAQM's pulls with probability 1 - delta, by the largest t <= (3 + 1/alpha)^2 C_t^2 H.

    Args:
        hardness: float () >= 0, H = `hardness(rho(design), ...)`.
        n: number of arms, a Python int.
        k: arms in a super-arm, a Python int.
        delta: () in (0, 1).
        noise_scale: () > 0, as in `icb`.
        alpha: () in (0, 1], ratio of the norms, as for `saqm`.

    Returns:
        float (), at least 1, not rounded.

    Raises:
        ValueError: an argument is out of range.

    Source: Kuroki et al., the proof of Theorem 3.
    """
    # ERRATUM: the closed form of Corollary 1 bounds log sqrt(t) instead of log t, and is too small for that.
    hardness = _check_bound(hardness, n=n, k=k, delta=delta, noise_scale=noise_scale)
    checks.real("alpha", alpha, above=0, most=1)
    scale = (3 + 1 / jnp.asarray(alpha, hardness.dtype)) ** 2 * hardness
    return _largest_time(
        lambda t: scale * confidence_radius("ellipsoid", t, n=n, k=k, delta=delta, noise_scale=noise_scale) ** 2,
        scale.dtype,
    )


def icb_bound(
    hardness: Array | float,
    n: int,
    k: int,
    *,
    delta: Array | float,
    noise_scale: Array | float = 1.0,
    radius: Radius = "lemma1",
) -> Array:
    """Bounds ICB's pulls with probability 1 - delta, by the largest t <= 4 C_t^2 H'.

    Args:
        hardness: float () >= 0, H' = `hardness(rho_independent(design), ...)`.
        n: number of arms, a Python int.
        k: arms in a super-arm, a Python int.
        delta: () in (0, 1).
        noise_scale: () > 0, as in `icb`.
        radius: "lemma1" or "ellipsoid", as for `icb`.

    Returns:
        float (), at least 1, not rounded.

    Raises:
        ValueError: an argument is out of range.

    Source: Kuroki et al., the proof of Lemma 3.
    """
    hardness = _check_bound(hardness, n=n, k=k, delta=delta, noise_scale=noise_scale)
    checks.one_of("radius", radius, Radius)
    return _largest_time(
        lambda t: 4 * hardness * confidence_radius(radius, t, n=n, k=k, delta=delta, noise_scale=noise_scale) ** 2,
        hardness.dtype,
    )


def oracle_time(instance: Instance, *, support: ArrayLike | None = None, steps: int = 1000) -> float:
    """Computes the smallest constant before log(1/delta) of any design, for Gaussian noise and up to a factor 2.

    It is the minimum over the shares p of the maximum over M of v |chi_M* - chi_M|^2 / (theta(M*) - theta(M))^2,
    norms in Lambda(p)^-1 and v = k noise_scale^2 the variance of a pull.

    Args:
        instance: the truth, of n <= 12 arms, concrete, its noise_scale positive.
        support: 0/1 (s, n), super-arms that may be pulled. If None, all of them.
        steps: iterations of the solver.

    Returns:
        Value of the computed shares, about 0.5 % above the minimum; infinite if the best super-arm is not unique.

    Raises:
        ValueError: an argument is out of range.

    Cost: O(K s n) per step, with K = C(n, k), on the host: it cannot be called while a program is traced.

    Source: the characteristic time of Soare, Lazaric and Munos (2014), over super-arms.
    """
    check_instance(instance)
    require(is_concrete(instance), "instance", "be concrete", instance)
    values = np.asarray(instance.theta, np.float64)
    require(values.size <= ORACLE_ARMS, "instance.theta", f"have at most {ORACLE_ARMS} arms", values.size)
    checks.positive("instance.noise_scale", instance.noise_scale)
    checks.whole("steps", steps, least=1)
    rows = all_superarms(values.size, instance.k)
    if support is not None:
        check_mask("support", support, ("s", values.size))
    best = np.argmax(rows @ values)
    changes = rows[best].astype(np.float64) - np.delete(rows, best, axis=0)
    # Computed from the differences, because sums over super-arms that tie differ in their last digits.
    leads = changes @ values
    if leads.min() <= 0:
        return float("inf")
    scaled = np.sqrt(instance.k) * float(instance.noise_scale) * changes / leads[:, None]
    return xy_allocation(rows if support is None else support, directions=scaled, steps=steps).value


def _check_bound(hardness, *, n, k, delta, noise_scale) -> Array:
    """Returns the hardness as a float array; raises `ValueError` unless all arguments are in range."""
    check_size(n, k)
    checks.probability("delta", delta)
    checks.positive("noise_scale", noise_scale)
    return checks.array("hardness", hardness, (), least=0, finite=False)


def _largest_time(bound: Callable[[Array], Array], dtype: Any) -> Array:
    """Computes the largest t >= 1 with t <= bound(t), by iteration from above, for a bound that grows as log t.

    Returns 1 if there is none.
    """
    start = jnp.asarray(LARGEST_TIME, dtype)
    return lax.fori_loop(0, 200, lambda _, t: jnp.maximum(bound(t), 1), start)
