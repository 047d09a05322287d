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
from jaxbandits.fullbandit._shared.tracking import Estimate, check_estimate, largest
from jaxbandits.numerics.densest_subgraph import Reduction
from jaxbandits.numerics.linalg import dot, squared_norms


class Surrogates(NamedTuple):
    """The rivals found from every super-arm M_i of the design."""

    answer: Array  # bool (n,)   M^, the estimated best super-arm
    sets: Array  # bool (s, n)   S_i
    leads: Array  # float (s,)   by how much S_i may lead M^, 0 if it is M^; -inf where M_i is M^
    widths: Array  # float (s,)  what the confidence width adds to the lead
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
    """The rivals of the estimated best super-arm M^ that the super-arms of a design lead to.

    Wanted is the largest theta(M) - theta(M^) + C_t |chi_M - chi_M^|. With g = C_t / (2 |chi_Mi - chi_M^|) the last
    term is at most g |chi_M - chi_M^|^2 and a constant, which it equals at M_i. That makes a quadratic form over sets,
    and S_i is what `quadratic_maximization` finds for it. The lead that counts is then that of S_i, with the norm.

    Args:
        design: its super-arms are the M_i.
        estimate: of `estimator(design)`.
        t: () >= 1, pulls.
        delta: () in (0, 1).
        noise_scale: () > 0, as in `icb`.
        reduction: as in `quadratic_maximization`.

    Returns:
        Surrogates. The largest lead bounds from below what any M may lead by.

    Raises:
        ValueError: an argument is out of range.

    Cost: O(s n^2).
    """
    check_design(design)
    check_estimate(design, estimate, t)
    checks.probability("delta", delta)
    checks.positive("noise_scale", noise_scale)
    checks.one_of("reduction", reduction, Reduction)
    return find_surrogates(design, estimate, t, delta, noise_scale, reduction=reduction)


@partial(jax.jit, static_argnames=("reduction",), inline=True)
def find_surrogates(design: Design, estimate: Estimate, t, delta, noise_scale, *, reduction: Reduction) -> Surrogates:
    """`surrogates` without its checks."""
    support, k = design.support, design.k
    theta, inverse, _ = estimate
    answer = largest(theta, k)
    chi = answer.astype(theta.dtype)
    radius = confidence_radius("ellipsoid", jnp.asarray(t, theta.dtype), theta.size, k, delta, noise_scale)
    # In units of g only the diagonals differ, and M_i = M^, where g is infinite, needs no care.
    per_g = 2 * _norms(support - chi[None], inverse) / radius
    image = jnp.matmul(inverse, chi, precision="highest")
    sets = peel_all(inverse, per_g[:, None] * theta[None] - (2 * image)[None], k, reduction)
    change = sets.astype(theta.dtype) - chi[None]
    widths = radius * _norms(change, inverse)
    leads = dot(change, theta) + widths
    return Surrogates(answer, sets, jnp.where(jnp.all(support == chi[None], axis=1), -jnp.inf, leads), widths, radius)


def peel_all(inverse: Array, diagonals: Array, k: int, reduction: Reduction) -> Array:
    """The sets bool (s, n) that `quadratic_maximization` finds for each inverse + Diag(diagonals[i]).

    The graphs share all but their diagonals, so the degrees are all that is carried: (s, n) and never (s, n, n). With
    R_j the sum of inverse_jl over the other vertices left, c_j the diagonal and a the number of vertices left, the
    degree of j is R_j + (a - 2) c_j ("paper") or 2 R_j + (a - 2) c_j / (k - 1) ("exact"), up to what all j share.
    """
    n = inverse.shape[0]
    links = jnp.where(jnp.eye(n, dtype=bool), 0, inverse)
    own = jnp.diagonal(inverse)[None] + diagonals
    own = own if reduction == "paper" else own / (2 * (k - 1))
    vertices = jnp.arange(n)

    def remove(removed: Array, sums: Array) -> Array:
        degrees = sums + (n - 2 - removed).astype(own.dtype) * own
        # The first of the least: two plain minima take a third of the time of an argmin (n = 111, s = 222, one core).
        is_least = degrees <= degrees.min(axis=1, keepdims=True)
        weakest = jnp.where(is_least, vertices[None], n - 1).min(axis=1)
        return jnp.where(vertices[None] == weakest[:, None], jnp.inf, sums - links[weakest])

    sums = lax.fori_loop(0, n - k, remove, jnp.broadcast_to(links.sum(axis=1), own.shape))
    return jnp.isfinite(sums)


def _norms(directions: Array, inverse: Array) -> Array:
    return jnp.sqrt(squared_norms(directions, inverse))
