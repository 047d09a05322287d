"""Exhaustive: stops when no super-arm can beat the estimated best one within the confidence ellipsoid, all tried."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

from jaxbandits.base import Algorithm, Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.fullbandit._problem.design import MAX_SUPERARMS, Design, all_superarms, check_mask
from jaxbandits.fullbandit._shared.confidence import confidence_radius
from jaxbandits.fullbandit._shared.leap import largest_change
from jaxbandits.fullbandit._shared.tracking import (
    PACE,
    Estimate,
    Pace,
    Verdict,
    check_estimate,
    check_pace,
    check_rule,
    largest,
    track_and_test,
)
from jaxbandits.numerics.linalg import squared_norms

CHUNK = 4096  # super-arms worked on at a time, in every lane


def exhaustive(
    design: Design,
    *,
    delta: Array | float,
    epsilon: Array | float,
    noise_scale: Array | float = 1.0,
    superarms: ArrayLike | None = None,
    pace: Pace = PACE,
) -> Algorithm:
    """Tracks a design until no other super-arm can lead the estimated best one by epsilon, trying them all.

    Its other arguments, its actions and answers and its use of float32 are those of `icb`.

    Args:
        design: what to pull.
        delta: () in (0, 1).
        epsilon: () >= 0.
        noise_scale: () > 0.
        superarms: 0/1 (K, n), concrete: the class of super-arms, if not all sets of k arms. Rows of k ones, no two
            equal, at least two. The union bound stays that over all sets of k arms.
        pace: when the rule is tested.

    Returns:
        Algorithm.

    Raises:
        ValueError: as `icb`, or there are more than 5e6 super-arms.

    **Guarantee**: P(loss of the answer > epsilon) <= delta, up to the constants that `ellipsoid_radius` names.
    **Cost**: O(K n^2) a test with K super-arms, K = C(n, k) by default, and 4096 n numbers of memory a lane; K n bytes
    for the table.

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama, Polynomial-time algorithms for multiple-arm identification with
    full-bandit feedback, Algorithm 5 and equation (5).
    """
    check_rule(design, delta, epsilon, noise_scale)
    check_pace(design, pace)
    n = design.support.shape[1]
    table = superarm_table(n, design.k, superarms=superarms)
    reach = largest_change(design.spectral, min(design.k, n - design.k))

    def test(estimate: Estimate, t: Array) -> tuple[Verdict, Array]:
        verdict = _rule(design.k, estimate, t, delta, epsilon, noise_scale, table, superarms is None)
        return verdict, verdict.radius * reach / jnp.sqrt(t)

    return track_and_test(design, test, reach=reach, pace=pace)


def exhaustive_rule(
    design: Design,
    estimate: Estimate,
    t: Array | float,
    *,
    delta: Array | float,
    epsilon: Array | float,
    noise_scale: Array | float = 1.0,
    superarms: ArrayLike | None = None,
) -> Verdict:
    """The stopping rule of `exhaustive`; its other arguments and errors are those of `icb_rule`.

    Args:
        design: what is tracked.
        estimate: of `estimator(design)`.
        t: () >= 1, pulls.
        delta: () in (0, 1).
        epsilon: () >= 0.
        noise_scale: () > 0.
        superarms: 0/1 (K, n), as in `exhaustive`.

    Returns:
        Verdict; the margin is epsilon - V, and the rule holds where V < epsilon. V, equation (5) less the value of the
        best set M^, is the maximum over all M but M^ of theta(M) - theta(M^) + C_t |chi_M - chi_M^|, norms in A_t^-1.
    """
    check_rule(design, delta, epsilon, noise_scale)
    check_estimate(design, estimate, t)
    table = superarm_table(design.support.shape[1], design.k, superarms=superarms)
    return _rule(design.k, estimate, t, delta, epsilon, noise_scale, table, superarms is None)


def superarm_table(n: int, k: int, *, superarms: ArrayLike | None = None) -> np.ndarray:
    """A class of super-arms, cut into chunks that are worked on one after another.

    Args:
        n: number of arms.
        k: arms in a super-arm.
        superarms: 0/1 (K, n), the class; all sets of k arms, in lexicographic order, by default.

    Returns:
        bool (C, K', n), K' <= 4096. The last row fills up the last chunk.

    Raises:
        ValueError: K > 5e6, or a row is not a set of k arms, or rows are equal, or K < 2.
    """
    rows = all_superarms(n, k) if superarms is None else _checked_class(superarms, n, k)
    size = min(CHUNK, len(rows))
    chunks = -(-len(rows) // size)
    filler = np.repeat(rows[-1:], chunks * size - len(rows), axis=0)
    return np.concatenate([rows, filler]).reshape(chunks, size, n)


@partial(jax.jit, inline=True)
def largest_squared_norm(matrix: Array, table: np.ndarray) -> Array:
    """The largest chi_M' W chi_M over the super-arms M of a `superarm_table`, float ()."""
    return _largest(table, lambda rows: squared_norms(rows, matrix), matrix.dtype)


@partial(jax.jit, static_argnums=(0, 7), inline=True)
def _rule(k, estimate: Estimate, t, delta, epsilon, noise_scale, table: np.ndarray, is_whole: bool) -> Verdict:
    theta, inverse, _ = estimate
    dtype = theta.dtype
    radius = confidence_radius("ellipsoid", jnp.asarray(t, dtype), theta.size, k, delta, noise_scale)
    answer = largest(theta, k) if is_whole else _best_row(theta, table)
    best = answer.astype(dtype)

    def lead(rows: Array) -> Array:
        # The norm is that of the difference itself: from the Gram form short differences would lose their digits.
        change = rows - best[None]
        value = jnp.matmul(change, theta, precision="highest") + radius * jnp.sqrt(squared_norms(change, inverse))
        return jnp.where(jnp.any(change != 0, axis=1), value, -jnp.inf)

    # ERRATUM: the norm is printed with the unknown best super-arm M* in place of M^.
    margin = jnp.asarray(epsilon, dtype) - _largest(table, lead, dtype)
    return Verdict(answer, margin > 0, margin, radius)


def _largest(table: np.ndarray, score: Callable[[Array], Array], dtype) -> Array:
    return lax.map(lambda rows: score(rows.astype(dtype)).max(), jnp.asarray(table)).max()


def _best_row(theta: Array, table: np.ndarray) -> Array:
    values = lax.map(lambda rows: jnp.matmul(rows.astype(theta.dtype), theta, precision="highest"), jnp.asarray(table))
    return jnp.asarray(table.reshape(-1, theta.size))[jnp.argmax(values)]


def _checked_class(superarms: ArrayLike, n: int, k: int) -> np.ndarray:
    check_mask("superarms", superarms, ("K", n))
    require(is_concrete(superarms), "superarms", "be concrete", superarms)
    rows = np.asarray(superarms)
    require(2 <= len(rows) <= MAX_SUPERARMS, "superarms", f"number 2..{MAX_SUPERARMS}", len(rows))
    rows = rows.astype(bool)
    require(rows.sum(1) == k, "superarms", f"have k = {k} arms each", rows.sum(1))
    require(len(np.unique(rows, axis=0)) == len(rows), "superarms", "have no two equal rows", rows)
    return rows
