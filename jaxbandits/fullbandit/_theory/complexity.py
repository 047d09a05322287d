"""How hard an instance is: gaps, hardness measures, bounds on stopping times, and what the best design could do.

All of it is about the truth, which no algorithm knows.
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
from jaxbandits.fullbandit._algorithms.exhaustive import largest_squared_norm, superarm_table
from jaxbandits.fullbandit._problem.design import Design, all_superarms, check_design, check_mask, check_size
from jaxbandits.fullbandit._problem.instances import Instance, check_instance
from jaxbandits.fullbandit._shared.confidence import Radius, confidence_radius
from jaxbandits.fullbandit._theory.allocations import xy_allocation
from jaxbandits.numerics.densest_subgraph import largest_eigenvalue, quadratic_maximization

Method = Literal["enumerate", "greedy", "spectral"]

LARGEST_TIME = 1e30  # no number of pulls is beyond; a float32 can hold it
ORACLE_ARMS = 12  # of an instance whose super-arms are all compared


def gap(instance: Instance) -> Array:
    """The lead of the worst arm of the best super-arm over the best arm outside, 0 where they tie.

    Args:
        instance: the truth.

    Returns:
        float (), at least 0: also the lead of the best super-arm over the second best.

    Raises:
        ValueError: the instance is not one.

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama, Polynomial-time algorithms for multiple-arm identification with
    full-bandit feedback: Delta_min, where "arg min" is printed for the minimum.
    """
    ranked, _ = lax.top_k(check_instance(instance), instance.k + 1)
    return ranked[instance.k - 1] - ranked[instance.k]


def rho(design: Design, *, method: Method = "enumerate") -> Array:
    """The largest |chi_M|^2 in Lambda^-1 over all super-arms M, in the design or not.

    Args:
        design: what is pulled.
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
    """The largest squared width of a difference of two super-arms if every arm has a width of its own.

    Args:
        design: what is pulled.

    Returns:
        float (): the square of the sum of the 2 min(k, n-k) largest roots of diagonal entries of Lambda^-1.

    Raises:
        ValueError: the design is not one.

    Source: Kuroki et al., rho' of Lemma 3.
    """
    check_design(design)
    n = design.support.shape[1]
    widest, _ = lax.top_k(jnp.sqrt(jnp.diagonal(design.inverse)), 2 * min(design.k, n - design.k))
    return widest.sum() ** 2


def hardness(rho: Array | float, gap: Array | float, epsilon: Array | float) -> Array:
    """H = rho / (gap + epsilon)^2, which stopping times follow up to logarithms.

    Args:
        rho: float () >= 0, of `rho`, or of `rho_independent` for `icb`.
        gap: float () >= 0, of `gap`.
        epsilon: float () >= 0, admitted loss.

    Returns:
        float (), infinite where gap and epsilon are both 0.

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
    """What SAQM's pulls exceed with probability at most delta: the largest t <= (3 + 1/alpha)^2 C_t^2 H.

    Args:
        hardness: float () >= 0, H = `hardness(rho(design), ...)`.
        n: number of arms, a Python int.
        k: arms in a super-arm, a Python int.
        delta: () in (0, 1).
        noise_scale: () > 0, as in `icb`.
        alpha: () in (0, 1], the ratio of the norms that `saqm` is given.

    Returns:
        float (), at least 1, not rounded.

    Raises:
        ValueError: an argument is out of range.

    Source: Kuroki et al., the proof of Theorem 3.
    """
    # ERRATUM: the closed form of Corollary 1 bounds log sqrt(t) where log t stands, and is too small for that.
    hardness = _check_bound(hardness, n, k, delta, noise_scale)
    checks.real("alpha", alpha, above=0, most=1)
    scale = (3 + 1 / jnp.asarray(alpha, hardness.dtype)) ** 2 * hardness
    return _largest_time(
        lambda t: scale * confidence_radius("ellipsoid", t, n, k, delta, noise_scale) ** 2, scale.dtype
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
    """What ICB's pulls exceed with probability at most delta: the largest t <= 4 C_t^2 H'.

    Args:
        hardness: float () >= 0, H' = `hardness(rho_independent(design), ...)`.
        n: number of arms, a Python int.
        k: arms in a super-arm, a Python int.
        delta: () in (0, 1).
        noise_scale: () > 0, as in `icb`.
        radius: "lemma1" or "ellipsoid", as `icb` is given it.

    Returns:
        float (), at least 1, not rounded.

    Raises:
        ValueError: an argument is out of range.

    Source: Kuroki et al., the proof of Lemma 3.
    """
    hardness = _check_bound(hardness, n, k, delta, noise_scale)
    checks.one_of("radius", radius, Radius)
    return _largest_time(
        lambda t: 4 * hardness * confidence_radius(radius, t, n, k, delta, noise_scale) ** 2, hardness.dtype
    )


def oracle_time(instance: Instance, *, support: ArrayLike | None = None, steps: int = 1000) -> float:
    """The best constant before log(1/delta) that any design could have, for Gaussian noise and up to a factor 2.

    It is the minimum over the shares p of the maximum over M of v |chi_M* - chi_M|^2 / (theta(M*) - theta(M))^2,
    norms in Lambda(p)^-1 and v = k noise_scale^2 the variance of a pull.

    Args:
        instance: the truth, of n <= 12 arms, concrete, its noise_scale positive.
        support: 0/1 (s, n), what may be pulled; all super-arms by default.
        steps: iterations of the solver.

    Returns:
        What the shares found attain, some 0.5 % above the minimum; infinite where the best super-arm is not unique.

    Raises:
        ValueError: an argument is out of range.

    Cost: O(K s n) a step, with K = C(n, k), on the host: it cannot be called while a program is traced.

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
    # From the differences: sums over super-arms that tie differ in their last digits.
    leads = changes @ values
    if leads.min() <= 0:
        return float("inf")
    scaled = np.sqrt(instance.k) * float(instance.noise_scale) * changes / leads[:, None]
    return xy_allocation(rows if support is None else support, directions=scaled, steps=steps).value


def _check_bound(hardness, n, k, delta, noise_scale) -> Array:
    """The hardness as a float array; raises `ValueError` unless all these are in range."""
    check_size(n, k)
    checks.probability("delta", delta)
    checks.positive("noise_scale", noise_scale)
    return checks.array("hardness", hardness, (), least=0, finite=False)


def _largest_time(bound: Callable[[Array], Array], dtype: Any) -> Array:
    """The largest t >= 1 with t <= bound(t), where bound grows as log t: iterated from above, 1 if there is none."""
    start = jnp.asarray(LARGEST_TIME, dtype)
    return lax.fori_loop(0, 200, lambda _, t: jnp.maximum(bound(t), 1), start)
