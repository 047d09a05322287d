"""Rivals of the estimated best super-arm, found by linearising the confidence width and peeling a graph."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.fullbandit._problem.design import Design, check_design
from jaxbandits.fullbandit._shared.confidence import confidence_radius
from jaxbandits.fullbandit._shared.tracking import Estimate, check_estimate, top_k_mask
from jaxbandits.numerics.densest_subgraph import Reduction
from jaxbandits.numerics.linalg import dot, squared_norms


class Surrogates(NamedTuple):
    """Rivals found from every super-arm M_i of the design."""

    answer: Array  # bool (n,)   M^, the estimated best super-arm
    sets: Array  # bool (s, n)   S_i
    leads: Array  # float (s,)   largest possible lead of S_i over M^, 0 if it is M^; -inf where M_i is M^
    widths: Array  # float (s,)  confidence width in the lead
    radius: Array  # float ()    C_t


def surrogates(
    design: Design,
    estimate: Estimate,
    t: Array | float,
    *,
    delta: Array | float,
    noise_scale: Array | float = 1.0,
    reduction: Reduction = "paper",
) -> Surrogates:
    """Finds rivals of the estimated best super-arm M^, one from each super-arm of a design.

    The goal is the largest theta(M) - theta(M^) + C_t |chi_M - chi_M^|. With g = C_t / (2 |chi_Mi - chi_M^|), the last
    term is at most g |chi_M - chi_M^|^2 plus a constant, with equality at M_i. This bound is a quadratic form over
    sets, which `quadratic_maximization` maximises: the result is S_i. The lead of S_i is computed with the norm itself.

    Args:
        design: a design whose super-arms are the M_i.
        estimate: an estimate of `estimator(design)`.
        t: () >= 1, pulls.
        delta: () in (0, 1).
        noise_scale: () > 0, as in `icb`.
        reduction: see `quadratic_maximization`.

    Returns:
        Surrogates. Their largest lead is a lower bound of the largest lead of any M.

    Raises:
        ValueError: an argument is out of range.

    Cost: O(s n^2).
    """
    check_design(design)
    check_estimate(design, estimate, t)
    checks.probability("delta", delta)
    checks.positive("noise_scale", noise_scale)
    checks.one_of("reduction", reduction, Reduction)
    return find_surrogates(design, estimate, t, delta=delta, noise_scale=noise_scale, reduction=reduction)


@partial(jax.jit, static_argnames=("reduction",), inline=True)
def find_surrogates(design: Design, estimate: Estimate, t, *, delta, noise_scale, reduction: Reduction) -> Surrogates:
    """Computes `surrogates` without its checks."""
    support, k = design.support, design.k
    theta, inverse, _ = estimate
    answer = top_k_mask(theta, k)
    chi = answer.astype(theta.dtype)
    radius = confidence_radius(
        "ellipsoid", jnp.asarray(t, theta.dtype), n=theta.size, k=k, delta=delta, noise_scale=noise_scale
    )
    # In units of g only the diagonals differ, and M_i = M^, where g is infinite, needs no special case.
    per_g = 2 * _norms(support - chi[None], inverse) / radius
    image = jnp.matmul(inverse, chi, precision="highest")
    sets = peel_all(inverse, per_g[:, None] * theta[None] - (2 * image)[None], k, reduction)
    change = sets.astype(theta.dtype) - chi[None]
    widths = radius * _norms(change, inverse)
    leads = dot(change, theta) + widths
    return Surrogates(answer, sets, jnp.where(jnp.all(support == chi[None], axis=1), -jnp.inf, leads), widths, radius)


def peel_all(inverse: Array, diagonals: Array, k: int, reduction: Reduction) -> Array:
    """Computes the sets bool (s, n) that `quadratic_maximization` finds for each inverse + Diag(diagonals[i]).

    The graphs differ only in their diagonals, so only the degrees are carried: (s, n) and never (s, n, n). Let R_j be
    the sum of inverse_jl over the other remaining vertices, c_j the diagonal and a the number of remaining vertices.
    Then the degree of j is R_j + (a - 2) c_j ("paper") or 2 R_j + (a - 2) c_j / (k - 1) ("exact"), up to a term that
    all j share.
    """
    n = inverse.shape[0]
    links = jnp.where(jnp.eye(n, dtype=bool), 0, inverse)
    loops = jnp.diagonal(inverse)[None] + diagonals
    loops = loops if reduction == "paper" else loops / (2 * (k - 1))
    vertices = jnp.arange(n)

    def remove(removed: Array, sums: Array) -> Array:
        degrees = sums + (n - 2 - removed).astype(loops.dtype) * loops
        # The first smallest one: two plain minima take a third of the time of an argmin (n = 111, s = 222, one core).
        is_least = degrees <= degrees.min(axis=1, keepdims=True)
        weakest = jnp.where(is_least, vertices[None], n - 1).min(axis=1)
        return jnp.where(vertices[None] == weakest[:, None], jnp.inf, sums - links[weakest])

    sums = lax.fori_loop(0, n - k, remove, jnp.broadcast_to(links.sum(axis=1), loops.shape))
    return jnp.isfinite(sums)


def _norms(directions: Array, inverse: Array) -> Array:
    return jnp.sqrt(squared_norms(directions, inverse))
